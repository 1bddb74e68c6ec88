"""What every document reader and every source of a corpus has to be, tomorrow's included."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from pearl import plugins
from pearl.documents.document import read_as
from pearl.errors import DataError
from pearl.retrieval.corpus.sources import SourceFile

PACKAGE = "pearl.retrieval.corpus.sources"
SOURCES = plugins.names(PACKAGE)
READING = "pearl.documents.readers"
READERS = plugins.names(READING)


@pytest.mark.parametrize("name", SOURCES)
def test_a_missing_file_is_a_data_error(name: str, tmp_path: Path) -> None:
    source = plugins.load(PACKAGE, name)
    gone = str(tmp_path / f"gone{source.suffixes()[0]}")
    with pytest.raises((DataError, OSError)):
        list(source.read(SourceFile(gone, "gone", name), {}))


def test_suffixes_are_lower_case_with_a_dot_and_name_one_plugin() -> None:
    readers = [plugins.load(READING, name).SUFFIXES for name in READERS]
    sources = [plugins.load(PACKAGE, name) for name in SOURCES]
    for source in sources:
        assert set(source.in_folders()) <= set(source.suffixes())
    for every in (readers, [source.suffixes() for source in sources]):
        suffixes = Counter(suffix for each in every for suffix in each)
        assert set(suffixes.values()) == {1}
        assert all(re.fullmatch(r"\.[a-z0-9]+", suffix) for suffix in suffixes), suffixes


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff", b"%PDF-1.7\0\xff", b"PK\3\4\0\xff"]
)
@pytest.mark.parametrize("name", READERS)
def test_a_reader_refuses_what_is_not_its_own(name: str, data: bytes) -> None:
    with pytest.raises(DataError) as caught:
        read_as(name, data, "some/file")
    assert str(caught.value).startswith("some/file: ")
    assert caught.value.path == "some/file"


@pytest.mark.parametrize("name", READERS)
def test_a_reader_that_recognises_bytes_does_not_claim_text(name: str) -> None:
    reader = plugins.load(READING, name)
    if hasattr(reader, "recognises"):
        for data in (b"", b"Plain text, about %PDF- and <html>.", "日本語".encode()):
            assert reader.recognises(data) is False
