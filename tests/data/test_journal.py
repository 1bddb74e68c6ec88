"""Journals: round trip, truncated and invalid files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from pearl.data.journal import read_journal, write_journal
from pearl.errors import DataError


class Header(BaseModel):
    kind: str = "a test of journals"
    v: int = 1
    model: str = "m"


class Row(BaseModel):
    id: int
    text: str = ""


ROWS = [Row(id=0, text="first"), Row(id=1, text="zwei\n\u2028 \U0001f511"), Row(id=2)]
WHOLE = b"".join(row.model_dump_json().encode() + b"\n" for row in (Header(), *ROWS))
HEADER_END = WHOLE.index(b"\n") + 1


def test_journal_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with path.open("w", encoding="utf-8") as file:
        write_journal(file, Header(), ROWS)
    assert path.read_bytes() == WHOLE
    assert read_journal(path, Header, Row) == (Header(), ROWS)


def test_truncated_journal_gives_its_whole_rows(tmp_path: Path) -> None:
    """A row without its line break may be whole JSON and yet half a row: `12` of `123`."""
    path = tmp_path / "j.jsonl"
    for at in range(HEADER_END, len(WHOLE)):
        path.write_bytes(WHOLE[:at])
        rows = read_journal(path, Header, Row)[1]
        assert rows == ROWS[: WHOLE.count(b"\n", 0, at) - 1], at


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"Dear diary\n", "not a file of this kind"),
        (b'{"kind": "another", "v": "x"}\n', "not a file of this kind: it is a 'another'"),
        (WHOLE[:HEADER_END] + b"{}\n", "j.jsonl:2: not a row: id: "),
    ],
)
def test_invalid_journal_is_an_error(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(said)):
        read_journal(path, Header, Row)


def test_missing_or_empty_journal_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_journal(tmp_path / "absent", Header, Row)
    (tmp_path / "empty").touch()
    with pytest.raises(DataError, match="the file is empty"):
        read_journal(tmp_path / "empty", Header, Row)
