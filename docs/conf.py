# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx configuration. Build with ``python -m sphinx -W docs docs/_build``; needs no network."""

from sphinx_gallery.sorting import ExplicitOrder

import sklearn_mgk

project = "sklearn_mgk"
author = "sklearn_mgk developers"
copyright = "sklearn_mgk developers"
version = release = sklearn_mgk.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.extlinks",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "sg_execution_times.rst", "auto_examples/sg_execution_times.rst"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # the gallery's settings hold objects

autosummary_generate = True
extlinks = {"doi": ("https://doi.org/%s", "doi:%s")}
numpydoc_show_class_members = False  # the class template lists them
myst_enable_extensions = ["dollarmath"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    # The main job first, then the rest by name.
    "within_subsection_order": ExplicitOrder(["plot_solubility.py", "*"]),
    "remove_config_comments": True,
    "show_memory": False,
    "plot_gallery": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "sklearn_mgk"
html_static_path = ["_static"]
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": False, "show_nav_level": 2}
