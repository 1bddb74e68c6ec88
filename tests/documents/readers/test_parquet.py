"""Parquet files, made with pyarrow."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pearl.documents.document import Document, load, read_as
from pearl.documents.table import find_tables
from pearl.errors import DataError
from tests.skips import NO_LARGE

pyarrow = pytest.importorskip("pyarrow", reason=NO_LARGE)
parquet = pytest.importorskip("pyarrow.parquet", reason=NO_LARGE)


def save(columns: dict[str, list[Any]]) -> bytes:
    buffer = BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def test_rows_are_a_table() -> None:
    data = save({"city": ["Oslo", "a|b"], "n": [1, None], "x": [1.5, 2.0], "of": [["a"], []], "is": [True, None]})  # fmt: skip
    text = read_as("parquet", data, "a.parquet")
    assert text == (
        "| city | n | x | of | is |\n| --- | --- | --- | --- | --- |\n"
        '| Oslo | 1 | 1.5 | ["a"] | true |\n| a\\|b |  | 2 | [] |  |'
    )
    (table,) = find_tables(Document(text, "a.parquet"))
    assert table.cell(2, "city").text == "a|b"


def test_a_long_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEARL_MAX_DOCUMENT_MB", "0.1")
    with pytest.raises(DataError, match=r"longer than the limit of 0\.1 MB"):
        read_as("parquet", save({"a": ["x" * 100] * 10_000}), "a.parquet")


@pytest.mark.parametrize("data", [b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_damaged_files_are_refused(data: bytes) -> None:
    with pytest.raises(DataError, match="damaged or not what"):
        read_as("parquet", data, "a.parquet")


def test_a_file_is_read_by_the_child_process(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(save({"city": ["Oslo"], "n": [1]}))
    assert load(path).text == "| city | n |\n| --- | --- |\n| Oslo | 1 |"
