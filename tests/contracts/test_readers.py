"""What every reader of `pearl.documents.readers` has to be, tomorrow's included."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest

from pearl import plugins
from pearl.errors import DataError

READERS = plugins.names("pearl.documents.readers")


@pytest.mark.parametrize("name", READERS)
def test_a_reader_names_its_suffixes(name: str) -> None:
    suffixes = plugins.load("pearl.documents.readers", name).SUFFIXES
    assert suffixes
    for suffix in suffixes:
        assert suffix.startswith(".")
        assert suffix == suffix.lower()


@pytest.mark.parametrize("pair", list(combinations(READERS, 2)), ids="-".join)
def test_no_two_readers_share_a_suffix(pair: tuple[str, str]) -> None:
    one, other = (set(plugins.load("pearl.documents.readers", name).SUFFIXES) for name in pair)
    assert one.isdisjoint(other)


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff", b"%PDF-1.7\0\xff", b"PK\3\4\0\xff"]
)
@pytest.mark.parametrize("name", READERS)
def test_a_reader_refuses_what_is_not_its_own(name: str, data: bytes) -> None:
    with pytest.raises(DataError) as caught:
        plugins.load("pearl.documents.readers", name).read(data, "some/file")
    assert str(caught.value).startswith("some/file: ")
    assert caught.value.path == "some/file"


@pytest.mark.parametrize("name", READERS)
def test_a_reader_that_recognises_bytes_does_not_claim_text(name: str) -> None:
    reader = plugins.load("pearl.documents.readers", name)
    if hasattr(reader, "recognises"):
        for data in (b"", b"Plain text, about %PDF- and <html>.", "日本語".encode()):
            assert reader.recognises(data) is False


def test_importing_the_readers_does_not_import_their_libraries() -> None:
    code = (
        "import sys; from pearl import plugins\n"
        "for name in plugins.names('pearl.documents.readers'): plugins.load('pearl.documents.readers', name)\n"
        "heavy = {'docx', 'lxml', 'inscriptis', 'pypdfium2', 'charset_normalizer'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
