# SPDX-License-Identifier: BSD-3-Clause
"""What an installation contains, and what running from the repository root must not break."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE", "sklearn_mgk", "cuda")


def run_python(code, *options, cwd, **env):
    """Run `code` in a new interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module", params=["build_wheel", "build_editable"])
def installed(request, tmp_path_factory):
    """Install a copy of the sources in an empty folder: (kind, folder, copied sources)."""
    sources = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, sources / name)
    built = tmp_path_factory.mktemp("built")
    run_python(f"import setuptools.build_meta as b; b.{request.param}({str(built)!r})", cwd=sources)
    (wheel,) = built.glob("*.whl")
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return request.param, site, sources


def run_installed(code, site):
    """Run `code` with `site` installed, and without this environment's own sklearn_mgk."""
    # -S skips the .pth files of the environment, -I the working directory.
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    start = f"import site, sys; site.addsitedir({str(site)!r}); sys.path += {sorted(libraries)!r}\n"
    return run_python(start + code, "-I", "-S", cwd=site)


def test_cuda_sources_are_found_in_every_kind_of_installation(installed):
    kind, site, sources = installed
    code = "import importlib.resources as r; print(r.files('sklearn_mgk.cuda') / '__init__.py')"
    found = Path(run_installed(code, site))
    assert found.read_text() == (ROOT / "cuda" / "__init__.py").read_text()
    assert found.is_relative_to(sources if kind == "build_editable" else site)


def test_an_installation_has_no_top_level_cuda(installed):
    _, site, _ = installed
    assert not (site / "cuda").exists()


def test_wheel_holds_every_source_file(installed):
    kind, site, _ = installed
    if kind == "build_editable":
        return
    expected = {path.relative_to(ROOT) for path in (ROOT / "sklearn_mgk").rglob("*.py")}
    expected |= {
        Path("sklearn_mgk") / path.relative_to(ROOT)
        for path in (ROOT / "cuda").rglob("*")
        if path.suffix in (".py", ".cuh")
    }
    present = {path.relative_to(site) for path in site.rglob("*.*")}
    assert expected <= present, "not in the wheel: add the package to setup.cfg"


def test_version_is_that_of_the_package(installed):
    _, site, _ = installed
    (metadata,) = site.glob("*.dist-info/METADATA")
    version = run_installed("import sklearn_mgk; print(sklearn_mgk.__version__)", site)
    assert message_from_bytes(metadata.read_bytes())["Version"] == version


@pytest.mark.parametrize("first", ["repository", "libraries"])
def test_nvidia_namespace_package_is_importable_from_the_repository_root(first, tmp_path):
    pathfinder = tmp_path / "cuda" / "pathfinder"
    pathfinder.mkdir(parents=True)
    (pathfinder / "__init__.py").write_text("here = True\n")
    # As `python -m pytest` does, -c puts the working directory at the head of sys.path.
    code = "import sys; sys.path.append(sys.path.pop(0))\n" if first == "libraries" else ""
    code += "import cuda.pathfinder; print(cuda.pathfinder.here)"
    assert run_python(code, cwd=ROOT, PYTHONPATH=str(tmp_path)) == "True"


def test_install_lines_in_error_messages_name_extras_that_exist():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    extras = set(config["options.extras_require"])
    named = {
        extra
        for path in (ROOT / "sklearn_mgk").rglob("*.py")
        for group in re.findall(r"sklearn-mgk\[([\w,]+)\]", path.read_text())
        for extra in group.split(",")
    }
    assert named <= extras
