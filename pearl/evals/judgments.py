"""Files → topics (queries to be tried) and judgments (which documents are right for each).

Topics: JSONL, CSV, TSV or Parquet with `id` and `text`, or lines `id<TAB>text` without a header, as
of MS MARCO. Judgments ("qrels"): lines `topic 0 document relevance`, as of TREC; the same without
the second column, parted by blanks or tabs; or rows with `query_id`, `doc_id`, `relevance`. The
names of columns that BEIR uses are known, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pearl.data.rows import Row, kind, read_file
from pearl.documents.kinds import ROW_SUFFIXES
from pearl.documents.readers.text import decode
from pearl.errors import DataError

_ROWS = {*ROW_SUFFIXES} - {".tsv"}  # which may be judgments in the form of TREC
_TOPIC = ("id", "_id", "query_id", "query-id", "qid")
_TEXT = ("text", "query", "question")
_JUDGED_TOPIC = ("query_id", "query-id", "qid", "topic")
_DOCUMENT = ("doc_id", "corpus-id", "corpus_id", "document", "docid", "docno")
_RELEVANCE = ("relevance", "score", "rel")
_WHOLE = re.compile(r"-?\d{1,9}(\.0+)?")


@dataclass(frozen=True, slots=True)
class Topic:
    """A query that is tried."""

    id: str
    text: str
    history: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True, slots=True)
class Judgments:
    """How relevant documents are."""

    grades: Mapping[str, Mapping[str, int]]
    n_repeated: int = 0
    n_conflicting: int = 0


def read_topics(path: str | Path) -> tuple[Topic, ...]:
    """The topics of a file, in order."""
    path = Path(path)
    topics: dict[str, Topic] = {}
    for row in _rows(path, _TOPIC, _TEXT):
        topic = Topic(
            _field(row, _TOPIC),
            _field(row, _TEXT),
            _texts(row, "history"),
            _texts(row, "filters"),
            row.name("group") or "",
        )
        if topic.id in topics:
            raise row.error(f"there is a topic '{topic.id}' already", help="give each an id")
        topics[topic.id] = topic
    return tuple(topics.values())


def read_judgments(path: str | Path) -> Judgments:
    """The judgments of a file."""
    path = Path(path)
    grades: dict[str, dict[str, int]] = {}
    n_repeated = n_conflicting = 0
    for row in _rows(path, _JUDGED_TOPIC, _DOCUMENT, _RELEVANCE):
        known = grades.setdefault(_field(row, _JUDGED_TOPIC), {})
        document, relevance = _field(row, _DOCUMENT), _relevance(row)
        if document in known:
            n_repeated += relevance == known[document]
            n_conflicting += relevance != known[document]
            relevance = max(relevance, known[document])
        known[document] = relevance
    return Judgments(grades, n_repeated, n_conflicting)


def _rows(path: Path, *names: tuple[str, ...]) -> Iterator[Row]:
    """The rows of a file; where lines have no header, columns are called by the first of `names`."""
    is_rows = path.suffix.lower() in _ROWS
    for row in read_file(path) if is_rows else _lines(path, names):
        if isinstance(row, DataError):
            raise row
        yield row


def _lines(path: Path, names: tuple[tuple[str, ...], ...]) -> Iterator[Row]:
    try:
        text = decode(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror}", path=path, help="check the path"
        ) from None
    columns, n_rows = [kinds[0] for kinds in names], 0
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        cells = line.strip().split("\t")
        if number == 1 and all(any(name in cells for name in kinds) for kinds in names):
            columns = cells
            continue
        if len(columns) == 2:  # the text of a topic may have tabs
            cells = line.strip().split("\t", 1)
        elif len(cells) == 1:
            cells = line.split()
        if len(columns) == 3 and len(cells) == 4:
            del cells[1]  # TREC's second column says nothing
        if len(cells) != len(columns):
            raise DataError(
                f"{len(cells)} columns, not {len(columns)}", path=path, line=number,
                help=f"{', '.join(columns)}, parted by tabs; or rows of JSONL",
            )  # fmt: skip
        n_rows += 1
        yield Row(dict(zip(columns, map(str.strip, cells), strict=True)), str(path), number)
    if not n_rows:
        raise DataError("the file has no rows", path=path, help="give a file with data in it")


def _field(row: Row, names: tuple[str, ...]) -> str:
    """The text or whole number of the first field that the row has."""
    for name in names:
        if (value := row.name(name)) is not None:
            return value
    raise row.error(f"there is no '{names[0]}'", help=f"it may be called {', '.join(names)}")


def _texts(row: Row, field: str) -> tuple[str, ...]:
    value = row.fields.get(field)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise row.error(f"'{field}' is {kind(value)}, not a list of texts")
    return tuple(value)


def _relevance(row: Row) -> int:
    value = next((row.fields[name] for name in _RELEVANCE if name in row.fields), None)
    match value:
        case int() | float() if not isinstance(value, bool) and float(value).is_integer():
            return int(value)
        case str() if _WHOLE.fullmatch(value):
            return int(value.partition(".")[0])
        case _:
            raise row.error(
                f"relevance {value!r} is no whole number",
                help="0 is not relevant, 1 and more is relevant",
            )
