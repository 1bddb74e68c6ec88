"""Parquet files → a table in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from pearl.documents.document import check_size
from pearl.documents.table import markdown
from pearl.errors import DataError
from pearl.plugins.extras import install_hint

SUFFIXES = (".parquet",)

IS_TABLE = True

_BATCH = 4_096


def recognises(data: bytes) -> bool:
    """Whether the bytes begin as a Parquet file does."""
    return data.startswith(b"PAR1")


def read(data: bytes, path: str) -> str:
    """The rows of a file."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError:
        raise DataError(
            "Parquet files need pyarrow, which is not installed",
            path=path,
            help=install_hint("data"),
        ) from None
    try:
        file = ParquetFile(BytesIO(data))
        names = file.schema_arrow.names
        return markdown(names, _rows(file, path))
    except DataError:
        raise
    except (ArrowException, OSError, ValueError) as error:
        raise DataError(
            "the file is damaged or not Parquet", path=path, help="write it again"
        ) from error


def _rows(file: Any, path: str) -> Iterator[list[str]]:
    """The rows; their text is checked against the limit, because a small file can have a text of any length."""
    n_characters = 0
    for batch in file.iter_batches(batch_size=_BATCH):
        columns = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            row = [_shown(value) for value in values]
            n_characters += sum(map(len, row))
            check_size(n_characters, "text is longer", path, "select rows or columns")
            yield row


def _shown(value: Any) -> str:
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
