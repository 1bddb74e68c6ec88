"""Files, datasets and journals → rows, and their errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pearl.data.log_files import read_journal, write_journal
from pearl.data.rows import Row, read_rows, rename
from pearl.errors import DataError, UsageError
from tests.skips import needs


def rows_of(path: Path, data: bytes | str) -> list[Row | DataError]:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(read_rows(str(path)))


def told(path: Path, data: bytes | str) -> list[Any]:
    """The line and the fields of each row, the first line of what is said of each that is none."""
    return [
        (row.line, dict(row.fields)) if isinstance(row, Row) else str(row).partition("\n")[0]
        for row in rows_of(path, data)
    ]


ONE = [(1, {"a": 1}), (3, {"a": 2})]


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1}\n\n{"a": 2}\n',
        b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a": 2}\r\n',
        b'{"a": 1}\n   \n{"a": 2}',
    ],
    ids=["plain", "mark and CRLF", "no last line break"],
)
def test_json_lines(tmp_path: Path, data: bytes) -> None:
    for name in ("r.jsonl", "r.json"):
        assert told(tmp_path / name, data) == ONE


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1},\n\n{"a": 2}]',
        '{"v": 1, "data": [{"a": 1},\n\n{"a": 2}]}',
        '{"data": [{"a": 1}\n,\n{"a": 2}]}',
    ],
)
def test_arrays_in_json_files_know_their_lines(tmp_path: Path, text: str) -> None:
    assert told(tmp_path / "r.json", text) == ONE


BAD_LINES = {
    "broken": (b'{"a": 1', "invalid JSON"),
    "not an object": (b"[1]", "an array, not an object"),
    "null": (b"null", "null, not an object"),
    "not UTF-8": (b'{"a": "\xff"}', "not UTF-8"),
    "half a character": (rb'{"a": ["\ud800"]}', "lone surrogate"),
    "half a character, encoded": (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
    "a number of 5000 digits": (b'{"a": ' + b"1" * 5000 + b"}", "invalid row"),
    "too deep": (b"[" * 100_000, "nested too deeply"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_bad_line_is_an_error_and_other_lines_are_read(tmp_path: Path, case: str) -> None:
    line, said = BAD_LINES[case]
    first, bad, last = told(tmp_path / "r.jsonl", b'{"a": 1}\n' + line + b'\n{"a": 2}\n')
    assert (first, last) == ((1, {"a": 1}), (3, {"a": 2}))
    assert bad.startswith(f"{tmp_path}/r.jsonl:2: ")
    assert said in bad


def test_surrogate_pairs_and_nan(tmp_path: Path) -> None:
    line = r'{"a": "\ud83d\ude00", "b": NaN}'
    assert told(tmp_path / "r.jsonl", line) == [(1, {"a": "😀", "b": None})]


def test_a_later_row_of_the_kind_of_an_own_file_is_data(tmp_path: Path) -> None:
    mined = {"kind": "pearl-mined"}
    assert told(tmp_path / "r.jsonl", f'{{"a": 1}}\n{json.dumps(mined)}') == [
        (1, {"a": 1}),
        (2, mined),
    ]
    with pytest.raises(DataError, match="a file of mined drafts, not data"):
        rows_of(tmp_path / "r.jsonl", json.dumps(mined))


def test_broken_array_ends_at_the_error(tmp_path: Path) -> None:
    good, wrong, broken = told(tmp_path / "r.json", '[{"a": 1},\n 2,\n{"a": }]')
    assert good == (1, {"a": 1})
    assert ":2: " in wrong
    assert "a number, not an object" in wrong
    assert ":3: invalid JSON" in broken
    assert told(tmp_path / "r.json", '[{"a": 1},\n')[1].endswith(
        ":2: invalid JSON: the array is not closed"
    )


def test_csv(tmp_path: Path) -> None:
    text = '\ufeffq, b\r\n"one\r\ntwo, ""three""",1\r\n\r\nfour,  \r\n'
    assert told(tmp_path / "r.csv", text) == [
        (2, {"q": 'one\r\ntwo, "three"', "b": "1"}),
        (5, {"q": "four", "b": None}),
    ]
    assert told(tmp_path / "r.tsv", "q\tb\nx,y\tz\n") == [(2, {"q": "x,y", "b": "z"})]


def test_bad_lines_of_a_csv(tmp_path: Path) -> None:
    short, strict, good, unclosed = told(tmp_path / "r.csv", 'a,b\n1\n"x"y,2\n3,4\n"open,5\n')
    assert "r.csv:2: 1 cells, where the header has 2" in short
    assert "r.csv:3: invalid CSV: " in strict
    assert good == (4, {"a": "3", "b": "4"})
    assert "r.csv:5: invalid CSV: unexpected end" in unclosed


@needs("pyarrow")
def test_parquet(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "r.parquet"
    table = pyarrow.table({"a": [[1], None], "x": [0.5, float("nan")], "b": [b"raw", None]})
    parquet.write_table(table, path)
    assert [(row.line, row.fields) for row in read_rows(str(path)) if isinstance(row, Row)] == [
        (1, {"a": [1], "x": 0.5, "b": "b'raw'"}),
        (2, {"a": None, "x": None, "b": None}),
    ]


UNREADABLE = {
    "empty": ("r.jsonl", b"", "no rows"),
    "blank": ("r.jsonl", b"\n \n", "no rows"),
    "an empty array": ("r.json", b"[]", "no rows"),
    "a header alone": ("r.csv", b"a,b\n", "no rows"),
    "a broken header": ("r.csv", b'"a"b,c\n1,2\n', ":1: invalid CSV"),
    "a column twice": ("r.csv", b"a,a\n1,2\n", "two columns have the name 'a'"),
    "UTF-16": ("r.jsonl", '{"a": 1}'.encode("utf-16"), "not UTF-8"),
    "binary": ("r.csv", bytes(range(256)) * 4, "binary"),
    "invalid Parquet": ("r.parquet", b"PAR1 no", "invalid Parquet"),
    "an empty Parquet": ("r.parquet", b"", "invalid Parquet"),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[needs("pyarrow")] * ("Parquet" in case)) for case in UNREADABLE],
)
def test_unreadable_file_is_one_error(tmp_path: Path, case: str) -> None:
    name, data, said = UNREADABLE[case]
    with pytest.raises(DataError) as caught:
        rows_of(tmp_path / name, data)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/{name}")
    assert len(str(caught.value).splitlines()) <= 2


@pytest.mark.parametrize("name", ["absent.csv", "a b?", "no\0name", "x" * 5000, "/absent/folder"])
def test_a_missing_file(name: str) -> None:
    with pytest.raises(DataError):
        list(read_rows(name))


def test_a_file_has_no_splits(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"a": 1}')
    with pytest.raises(UsageError, match="no splits"):
        list(read_rows(str(path), "train"))


# --- datasets ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of data files: two splits."""
    (tmp_path / "train.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    (tmp_path / "test.jsonl").write_text('{"a": 3}\n')
    return tmp_path


def fields_of(name: Path, split: str | None = None) -> list[Any]:
    return [row.fields for row in read_rows(str(name), split) if isinstance(row, Row)]


@needs("datasets")
def test_a_folder_of_data_files(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = sorted(folder.rglob("*"))
    assert fields_of(folder, "train") == [{"a": 1}, {"a": 2}]
    assert fields_of(folder, "test") == [{"a": 3}]
    assert capfd.readouterr() == ("", "")
    assert sorted(folder.rglob("*")) == before


@needs("datasets")
def test_saved_datasets(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import datasets

    one = datasets.Dataset.from_list([{"q": {"x": [1]}}])
    one.save_to_disk(tmp_path / "one")
    datasets.DatasetDict(train=one, dev=one).save_to_disk(tmp_path / "two")
    capfd.readouterr()
    assert fields_of(tmp_path / "one") == [{"q": {"x": [1]}}]
    assert fields_of(tmp_path / "two", "dev") == [{"q": {"x": [1]}}]
    assert capfd.readouterr() == ("", "")


@needs("datasets")
@pytest.mark.parametrize(
    ("split", "said"),
    [(None, "--split is missing"), ("trian", "did you mean 'train'"), ("zzz", "splits: ")],
)
def test_split_is_required_and_checked(folder: Path, split: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fields_of(folder, split)


@needs("datasets")
def test_datasets_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError) as empty:
        fields_of(tmp_path)
    (tmp_path / "train.jsonl").write_text('{"a": 1')
    with pytest.raises(DataError) as broken:
        fields_of(tmp_path)
    for error in (empty, broken):
        assert str(error.value).startswith(f"{tmp_path}: the dataset cannot be read: ")
        assert len(str(error.value).splitlines()) == 2


@needs("datasets")
@pytest.mark.parametrize(
    "name", ["no-such/dataset", pytest.param("nothing", marks=pytest.mark.slow)]
)
def test_missing_dataset_without_a_hub_is_an_error_at_once(name: str) -> None:
    code = f"from pearl.data.rows import read_rows; list(read_rows({name!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"{name}: no such file, and no hub can be reached" in done.stderr
    assert "Retrying" not in done.stderr


# --- columns ----------------------------------------------------------------------------------


def test_columns_are_renamed_to_fields() -> None:
    row = Row({"id": "x", "text": "Who?", "keep": 1}, "f", 1)
    (named,) = rename([row], {"question": "text", "reference": "text"}, ["question", "reference"])
    assert isinstance(named, Row)
    assert named.fields == {"id": "x", "question": "Who?", "reference": "Who?", "keep": 1}


def test_an_unknown_column_of_several_is_refused() -> None:
    with pytest.raises(UsageError, match="columns: text"):
        list(rename([Row({"text": "Who?"}, "f", 1)], {"question": "text,zzzz"}, ["question"]))


def test_later_rows_may_lack_a_column() -> None:
    rows = [Row({"t": "a"}, "f", 1), DataError("bad"), Row({}, "f", 3)]
    named = rename(rows, {"question": "t"}, ["question"])
    assert [json.dumps(r.fields) if isinstance(r, Row) else "bad" for r in named] == [
        '{"question": "a"}', "bad", '{"question": null}',
    ]  # fmt: skip


class Header(msgspec.Struct):
    kind: str = "a test of journals"
    v: int = 1
    model: str = "m"


class JournalRow(msgspec.Struct):
    id: int
    text: str = ""


ROWS = [
    JournalRow(id=0, text="first"),
    JournalRow(id=1, text="zwei\n\u2028 \U0001f511"),
    JournalRow(id=2),
]
WHOLE = b"".join(msgspec.json.encode(row) + b"\n" for row in (Header(), *ROWS))
HEADER_END = WHOLE.index(b"\n") + 1


def test_journal_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with path.open("w", encoding="utf-8") as file:
        write_journal(file, Header(), ROWS)
    assert path.read_bytes() == WHOLE
    assert read_journal(path, Header, JournalRow) == (Header(), ROWS)


def test_truncated_journal_gives_its_whole_rows(tmp_path: Path) -> None:
    """A row without its line break may be whole JSON and yet half a row: `12` of `123`."""
    path = tmp_path / "j.jsonl"
    for at in range(HEADER_END, len(WHOLE)):
        path.write_bytes(WHOLE[:at])
        rows = read_journal(path, Header, JournalRow)[1]
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
        read_journal(path, Header, JournalRow)


def test_missing_or_empty_journal_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_journal(tmp_path / "absent", Header, JournalRow)
    (tmp_path / "empty").touch()
    with pytest.raises(DataError, match="the file is empty"):
        read_journal(tmp_path / "empty", Header, JournalRow)
