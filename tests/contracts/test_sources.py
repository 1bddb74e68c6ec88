"""What every document reader has to be, tomorrow's included."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from pearl import plugins
from pearl.documents.document import read_as
from pearl.errors import DataError

READING = "pearl.documents.readers"
READERS = plugins.names(READING)


def test_suffixes_are_lower_case_with_a_dot_and_name_one_plugin() -> None:
    suffixes = Counter(s for name in READERS for s in plugins.load(READING, name).SUFFIXES)
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
