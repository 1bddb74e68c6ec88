"""What every source of `pearl.retrieval.corpus.sources` has to be, tomorrow's included."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pearl import plugins
from pearl.errors import DataError
from pearl.retrieval.corpus.sources import SourceFile

PACKAGE = "pearl.retrieval.corpus.sources"
SOURCES = plugins.names(PACKAGE)


@pytest.mark.parametrize("name", SOURCES)
def test_suffixes_are_lower_case_with_a_dot(name: str) -> None:
    source = plugins.load(PACKAGE, name)
    assert set(source.in_folders()) <= set(source.suffixes())
    for suffix in source.suffixes():
        assert suffix.startswith(".")
        assert suffix == suffix.lower()


def test_no_two_share_a_suffix() -> None:
    every = Counter(s for name in SOURCES for s in plugins.load(PACKAGE, name).suffixes())
    assert {suffix for suffix, n in every.items() if n > 1} == set()


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_that_is_gone_is_an_error_of_the_data(name: str, tmp_path: Path) -> None:
    source = plugins.load(PACKAGE, name)
    gone = str(tmp_path / f"gone{source.suffixes()[0]}")
    with pytest.raises((DataError, OSError)):
        list(source.read(SourceFile(gone, "gone", name), {}))
