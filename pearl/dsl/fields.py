"""The fields of a record: what `EXTRACT(CTX, FIELDS)` takes from a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FieldType = Literal["str", "text", "int", "number", "bool", "date", "label"]
"""`str` is copied from the document, `text` may be a summary, `label` is one of `Field.labels`."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record.

    Attributes:
        name: Its name; of a field of a nested object, with the names around it: `address.city`.
        type: The type of its value, or of each value of a list.
        is_optional: Whether a document need not state it.
        labels: The possible values of a `label`.
        description: What it means, in words.
        is_list: Whether it has several values.
        fields: The fields of each entry, for a list of objects; they are neither lists nor nested.
    """

    name: str
    type: FieldType = "str"
    is_optional: bool = False
    labels: tuple[str, ...] = ()
    description: str = ""
    is_list: bool = False
    fields: tuple[Field, ...] = ()
