"""Documents of any kind: JSON Lines, CSV, Parquet and datasets whose columns are fields of a sample.

A row is a question about a document (`document`, its text, or `document_path`, relative to the
file), a question alone, or a document alone. `options` is an array of texts; a cell of a table has
it as JSON, or several columns hold it together (`options=A,B,C,D`). `gold` is the letter of an
option, else an option's own text, else its number **counted from 1**. `subsets` is an array of
names, or one name; `gold_passages` an array of the texts of the document that hold the answer. The default `id` is the line number. Rows with the same text share one document,
named by `document_name` or else by the id of the first of them.

Other fields are kept with the sample.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pearl import plugins
from pearl.data.domains import Domain, Source, load_domain
from pearl.errors import DataError, UsageError

if TYPE_CHECKING:  # the modules that read data are imported when data is read
    from pearl.data.rows import Names, Row
    from pearl.data.samples import Sample
    from pearl.data.storage import StoredFile
    from pearl.documents.document import Document

DOMAIN = Domain("Documents of any kind", library="seed", examples="generic")

FIELDS = (
    "id", "question", "document", "document_path", "document_name", "options", "gold", "reference",
    "subsets", "gold_passages",
)  # fmt: skip


def read(source: Source) -> Iterator[Sample | DataError]:
    """The samples of a file or a dataset."""
    return read_as(source, make_sample)


def read_as(source: Source, make: Callable[[Row, Names], Sample]) -> Iterator[Sample | DataError]:
    """Read a source with `make` as the constructor of samples."""
    from pearl.data.rows import Position, from_rows, rename

    position = source.position or Position()
    rows = rename(source.rows(position), source.columns, FIELDS)
    return from_rows(rows, lambda row: [make(row, position.names)])


def make_sample(row: Row, names: Names) -> Sample:
    """Create the sample of a row."""
    from pearl.data.samples import LETTERS, Sample

    if not {"document", "document_path"} & row.fields.keys():
        for domain, fields in _formats():  # Their documents would be ignored silently
            if fields <= row.fields.keys():
                raise UsageError(
                    f"{row.path}: rows with {', '.join(sorted(fields))} are read by another domain",
                    help=f"--domain {domain}; or --column document=... says which field is the document",
                )
    id = row.name("id") or row.place
    question = " ".join((row.text("question") or "").split())
    document: Document | Path | StoredFile | None
    if row.text("document") is None:
        document = row.file("document_path")
    else:
        document = inline(row, "document", row.text("document_name") or id, names)
    if not question and document is None:
        raise row.error(
            "the row has no question, document or document_path",
            help=f"its fields: {', '.join(row.fields)}; map them with --column question=NAME",
        )
    options = read_array(row, "options")
    if len(options) == 1 or len(options) > len(LETTERS):
        raise row.error(f"options: {len(options)}, not 2 to {len(LETTERS)}")
    gold = read_gold(row, options)
    reference, subsets = row.text("reference"), read_subsets(row)
    extra = {name: value for name, value in row.fields.items() if name not in FIELDS}
    return Sample(
        names.claim_id(id, row), question, document, options, gold, reference, subsets, extra,
        gold_passages=read_array(row, "gold_passages"),
    )  # fmt: skip


@cache
def _formats() -> list[tuple[str, frozenset[str]]]:
    """Pairs of a domain and the fields that identify its row format."""
    names = plugins.names("pearl.data.domains")
    return [(name, fields) for name in names for fields in load_domain(name).formats]


def inline(row: Row, field: str, name: str, names: Names) -> Document:
    """The document in a field, with a unique name."""
    document = row.document(field, name)
    if row.home is not None:  # as the ids
        return document
    claimed = names.claim(document.digest, name, row.line)
    return document if claimed == name else replace(document, name=claimed)


def read_subsets(row: Row) -> frozenset[str]:
    """The names in `subsets`, an array or one name."""
    value = row.fields.get("subsets")
    if isinstance(value, str) and value.strip() and not value.lstrip().startswith("["):
        return frozenset({value.strip()})
    return frozenset(read_array(row, "subsets"))


def read_array(row: Row, field: str) -> tuple[str, ...]:
    """The texts of an array; a table cell holds it as JSON."""
    value: Any = row.fields.get(field)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise row.error(f"'{field}' is text, not a JSON array") from None
    if value is None:
        return ()
    if not isinstance(value, list):
        from pearl.data.rows import kind

        raise row.error(f"'{field}' is {kind(value)}, not an array")
    for number, text in enumerate(value, start=1):
        if not isinstance(text, str) or not text.strip():
            raise row.error(f"'{field}': item {number} is not text")
    return tuple(value)


def read_gold(row: Row, options: tuple[str, ...]) -> int | None:
    """The index of the option that `gold` names by letter, by text or by number from 1."""
    value = row.fields.get("gold")
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a table with missing values has integers as floats
    gold = row.name("gold") if value is None or isinstance(value, str) else str(value)
    if gold is None:
        return None
    if not options:
        raise row.error("'gold' needs 'options'", help="use 'reference' for an answer in words")
    from pearl.data.samples import LETTERS

    letters = LETTERS[: len(options)]
    if len(gold) == 1 and gold.upper() in letters:
        return letters.index(gold.upper())
    stripped = [option.strip() for option in options]
    if gold in stripped:
        return stripped.index(gold)
    if gold.isdecimal() and 1 <= int(gold) <= len(options):
        return int(gold) - 1
    raise row.error(
        f"gold: '{gold}' is not one of the {len(options)} options",
        help=f"its letter (A to {letters[-1]}), its text, or its number from 1",
    )
