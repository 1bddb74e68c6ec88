"""What a plan has to know of a document that it does not see: whether it is a table, or a corpus."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal, get_args

DocumentKind = Literal["document", "corpus", "table"]
"""A text, several documents whose passages are searched, or rows with columns."""

KINDS: tuple[DocumentKind, ...] = get_args(DocumentKind)

ROW_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
"""Suffixes of files that are read row by row."""

_RECORDS = ROW_SUFFIXES[:-1]
"""Suffixes of texts that are mostly tables."""
_BINARY = (".parquet", ".xlsx", ".xlsm")
_HEAD = 20_000
"""Characters in which the first records are looked for."""


def kind_by_name(name: str) -> DocumentKind:
    """What a file of that name probably is, before it is read.

    Example:
        >>> kind_by_name("a/directory.CSV"), kind_by_name("report.md")
        ('table', 'document')
    """
    return "table" if PurePath(name).suffix.lower() in (*_RECORDS, *_BINARY) else "document"


def is_table(text: str, path: str) -> bool:
    r"""Whether the text of a file is a table: its suffix says so, and it begins with records.

    A report with a table in it is none.

    Example:
        >>> is_table("City,Fee\nHaifa,120\nEilat,90\n", "fees.csv"), is_table("City,Fee\n", "fees.txt")
        (True, False)
        >>> is_table('{"fees": [{"city": "Haifa"}, {"city": "Eilat"}]}', "fees.json")
        True
    """
    suffix = PurePath(path).suffix.lower()
    if suffix not in _RECORDS:
        return False
    from pearl.documents.units.record import json_objects, split  # late: most documents are none

    if suffix == ".json" and json_objects.lists(text):
        return True
    head = text[:_HEAD]
    if len(text) > _HEAD and "\n" in head:
        head = head[: head.rindex("\n")]
    try:
        return len(split(head)) > (suffix == ".json")  # one object is no table
    except ValueError:
        return False
