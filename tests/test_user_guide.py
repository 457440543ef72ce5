# SPDX-License-Identifier: BSD-3-Clause
"""The user guide shows what the package returns."""

import doctest
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "user_guide"
PAGES = [page.name for page in sorted(GUIDE.glob("*.rst")) if ">>>" in page.read_text("utf-8")]


def test_pages_with_output_are_found():
    assert "spatial_settings.rst" in PAGES


@pytest.mark.parametrize("page", PAGES)
def test_output_shown_is_what_is_computed(page):
    results = doctest.testfile(str(GUIDE / page), module_relative=False, encoding="utf-8")
    assert results.attempted > 0
    assert results.failed == 0
