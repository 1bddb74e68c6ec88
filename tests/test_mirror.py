"""Tests lie where what they test lies: `tests/<package>/...` is for `pearl/<package>/...`."""

from __future__ import annotations

import pytest

from tests.root import ROOT

TESTS, PACKAGE = ROOT / "tests", ROOT / "pearl"

ABOUT_MORE = {"browser", "contracts", "docs", "experiments", "real"}
"""Folders of tests that are of no package: pages in a browser, what every plug-in keeps to,
the experiments, a real model."""


def folders_of_tests() -> set[str]:
    found = (path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return {str(folder) for folder in found if folder.parts} - ABOUT_MORE


@pytest.mark.parametrize("folder", sorted(folders_of_tests()))
def test_a_folder_of_tests_is_one_of_the_package(folder: str) -> None:
    assert (PACKAGE / folder / "__init__.py").is_file()


@pytest.mark.parametrize("package", sorted(p.parent.name for p in PACKAGE.glob("*/__init__.py")))
def test_every_package_has_tests(package: str) -> None:
    assert list((TESTS / package).rglob("test_*.py"))


def test_what_is_about_more_is_there() -> None:
    assert all(list((TESTS / folder).glob("test_*.py")) for folder in ABOUT_MORE)
