"""Parquet files, read as a table in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from pearl.documents.document import check_size
from pearl.documents.table import markdown

SUFFIXES = (".parquet",)
BEGINS = (b"PAR1",)

IS_TABLE = True

_BATCH = 4_096  # rows to read at once

EXTRA = "data"


def read(data: bytes, path: str) -> str:
    """The rows of a file."""
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(BytesIO(data))

    def rows() -> Iterator[list[str]]:
        # One at a time: their cells take ten times the memory of the text.
        n_characters = 0
        for batch in file.iter_batches(batch_size=_BATCH):
            columns = [column.to_pylist() for column in batch.columns]
            for values in zip(*columns, strict=True):
                row = [_format_value(value) for value in values]
                n_characters += sum(map(len, row))
                # A small file can unpack to a text of any length.
                check_size(n_characters, "text is longer", path, "select rows or columns")
                yield row

    return markdown(file.schema_arrow.names, rows())


def _format_value(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case bytes():
            return f"({len(value):,} bytes)"
        case list() | dict():
            return json.dumps(value, ensure_ascii=False, default=str)
        case float():
            return "" if value != value else repr(value).removesuffix(".0")
        case _:
            return str(value)
