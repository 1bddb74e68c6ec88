"""What every document reader has to be, tomorrow's included."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from contextlib import suppress

import pytest

from pearl import plugins
from pearl.documents.document import kind_by_name, read_as
from pearl.errors import DataError
from tests.root import ROOT

READING = "pearl.documents.readers"
READERS = plugins.names(READING)
SHIPPED = [n for n in READERS if plugins.load(READING, n).__name__.startswith("pearl.")]


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


@pytest.mark.parametrize("data", [b"x", b"\n", b"\n\n", b"\0"])
@pytest.mark.parametrize("name", READERS)
def test_a_reader_reads_a_few_bytes_or_says_why_not(name: str, data: bytes) -> None:
    try:
        assert isinstance(read_as(name, data, "some/file"), str)
    except DataError as error:
        assert str(error).startswith("some/file: ")  # noqa: PT017


def test_an_error_of_a_reader_that_runs_in_this_process_is_told_as_of_a_damaged_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(data: bytes, path: str) -> str:
        return [data.decode()][1]

    monkeypatch.setattr(plugins.load(READING, "text"), "read", read)
    with pytest.raises(DataError, match=r"some/file: the file is damaged .*IndexError"):
        read_as("text", b"x", "some/file")


@pytest.mark.parametrize("name", SHIPPED)
def test_the_files_of_a_shipped_reader_stand_in_the_docs(name: str) -> None:
    shown = (ROOT / "docs/data.md").read_text("utf-8")
    assert [s for s in plugins.load(READING, name).SUFFIXES if f"`{s}`" not in shown] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_a_file_of_a_shipped_reader_is_read_in_its_tests(name: str) -> None:
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests/documents").rglob("*.py"))
    suffixes = plugins.load(READING, name).SUFFIXES
    wanted = f"no test in tests/documents/readers reads a good file of {suffixes}"
    assert any(f'{suffix}"' in tests for suffix in suffixes), wanted


def test_only_plain_text_is_read_outside_a_child_process() -> None:
    """What a small malicious file may do to any other reader is bounded, as docs/data.md says."""
    assert [n for n in SHIPPED if getattr(plugins.load(READING, n), "IS_BOUNDED", False)] == [
        "text"
    ]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_extra_of_a_shipped_reader_is_one_of_the_project(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = getattr(plugins.load(READING, name), "EXTRA", None)
    assert extra is None or extra in project["optional-dependencies"]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_reader_of_text_tells_that_the_encoding_is_guessed(name: str) -> None:
    data = "Subject: Boat\n\nDer Bär aß süße Äpfel, und die Möwe flog über das Meer.".encode(
        "cp1252"
    )
    with suppress(DataError):  # it reads no text
        assert "guessed to be cp1252" in str(getattr(read_as(name, data, "some/file"), "notes", ()))


@pytest.mark.parametrize("name", READERS)
def test_a_task_over_a_table_is_planned_as_one(name: str) -> None:
    reader = plugins.load(READING, name)
    if getattr(reader, "IS_TABLE", False):
        assert {kind_by_name(f"a{suffix}") for suffix in reader.SUFFIXES} == {"table"}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_that_recognises_bytes_does_not_claim_text(name: str) -> None:
    reader = plugins.load(READING, name)
    if hasattr(reader, "recognises"):
        for data in (b"", b"Plain text, about %PDF- and <html>.", "日本語".encode()):
            assert reader.recognises(data) is False
