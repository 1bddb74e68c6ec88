"""Stories and essays, as in QuALITY: questions with four options each.

Reads the official files, with an article and its `questions` per line (fields:
https://github.com/nyu-mll/quality, "Data README"), and the flat layout of hubs
(`emozilla/quality`), with a question per row: `article, question, options`, `answer` counted from 0 or
`gold_label` from 1, `hard`. `gold` (preferred if present), `reference`, `subsets` and `gold_passages` are read as in `generic`.
Rows with neither an article nor questions are read as in `generic`.

Subsets: `hard` questions were missed by most annotators in a hurry (`difficult`). `long` ones need,
in the mean of the annotators' `untimed_eval2_context` (1 a sentence or two ... 3 a third of the
passage, 4 most of it), at least 3, the others are `short`: the split of the PEARL paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from msgspec.structs import replace

from pearl.data.domains import Domain, Source, generic
from pearl.data.rows import Names, Row, from_rows, kind, rename
from pearl.data.samples import Sample
from pearl.documents.document import Document, read_as
from pearl.errors import DataError

DOMAIN = Domain(
    "Stories and essays, as in QuALITY",
    library="quality",
    examples="quality",
    formats=(frozenset({"article", "questions"}), frozenset({"article", "question", "options"})),
)

LONG_FROM = 3  # Mean of `untimed_eval2_context` from which a question is `long`

FIELDS = (
    "article", "article_id", "set_unique_id", "questions", "question_unique_id", "answer",
    "gold_label", "difficult", "hard", "validation", *generic.FIELDS,
)  # fmt: skip

_MARKS = (
    "<html", "<body", "<div", "<p>", "<p ", "</p>", "<br>", "<br/>", "<br ", *(f"<h{n}" for n in range(1, 7)),
)  # fmt: skip
_N_OPTIONS = 4  # of every question
_YES = ("true", "yes", "1", "1.0")
_NO = ("false", "no", "0", "0.0")


def read(source: Source) -> Iterator[Sample | DataError]:
    """The samples of a file or a dataset."""
    reader = _ArticleReader()
    rows = rename(source.rows(), source.columns, FIELDS)
    return from_rows(rows, reader.samples)


class _ArticleReader:
    """State across rows: used ids, and one document per article."""

    def __init__(self) -> None:
        self._names = Names()
        self._articles: dict[tuple[str | None, str], Document] = {}

    def samples(self, row: Row) -> Iterator[Sample | DataError]:
        """The samples of a row."""
        if "questions" in row.fields:
            yield from self._nested(row)
        elif "article" in row.fields:
            number = row.name("question_unique_id") or row.name("id") or str(row.line)
            yield self._sample(row, number, self._article(row))
        else:
            yield generic.make_sample(row, self._names)

    def _nested(self, row: Row) -> Iterator[Sample | DataError]:
        questions = row.fields["questions"]
        if not isinstance(questions, list):
            raise row.error(f"'questions' is {kind(questions)}, not an array")
        article = self._article(row)
        prefix = row.name("set_unique_id") or row.name("article_id") or str(row.line)
        for number, fields in enumerate(questions, start=1):
            try:
                if not isinstance(fields, dict):
                    raise row.error(f"{kind(fields)}, not an object")
                question = replace(row, fields=fields)
                id = question.name("question_unique_id") or f"{prefix}_{number}"
                yield self._sample(question, id, article)
            except DataError as error:
                yield row.within(f"question {number}", error)

    def _article(self, row: Row) -> Document:
        """The article; rows with the same article share one document."""
        name, raw = row.name("article_id"), row.text("article")
        key = name, raw or ""
        if key not in self._articles:
            if raw is not None and any(mark in raw.casefold() for mark in _MARKS):
                row = replace(row, fields={"article": read_as("html", raw.encode(), row.path)})
            shown = name or f"article {len(self._articles) + 1}"
            self._articles[key] = generic.inline(row, "article", shown, self._names)
        return self._articles[key]

    def _sample(self, row: Row, id: str, article: Document) -> Sample:
        text = row.text("question")
        if text is None:
            raise row.error("the question is blank")
        question = " ".join(text.split())
        options = generic.read_array(row, "options")
        if len(options) != _N_OPTIONS:
            raise row.error(f"{len(options)} options, not {_N_OPTIONS}")
        return Sample(
            self._names.claim_id(id, row),
            question,
            article,
            options,
            _gold(row, options),
            row.text("reference"),
            _subsets(row) | generic.read_subsets(row),
            gold_passages=generic.read_array(row, "gold_passages"),
        )


def _gold(row: Row, options: tuple[str, ...]) -> int | None:
    gold = generic.read_gold(row, options)
    if gold is not None:
        return gold
    for field, first in (("gold_label", 1), ("answer", 0)):
        value = row.fields.get(field)
        if value is None:
            continue
        number: Any = value
        if isinstance(value, str) and value.strip().isdecimal():
            number = int(value)  # from a table
        if isinstance(number, bool) or number not in range(first, first + _N_OPTIONS):
            raise row.error(f"'{field}' is {value!r}, not {first} to {first + _N_OPTIONS - 1}")
        return int(number) - first
    return None


def _subsets(row: Row) -> frozenset[str]:
    subsets = {"hard"} if _is(row, "difficult") or _is(row, "hard") else set()
    validation = row.fields.get("validation")
    said = [
        each.get("untimed_eval2_context") for each in validation or () if isinstance(each, dict)
    ]
    needed = [float(each) for each in said if isinstance(each, int | float)]
    if needed:
        subsets.add("long" if fmean(needed) >= LONG_FROM else "short")
    return frozenset(subsets)


def _is(row: Row, field: str) -> bool:
    """Whether a field is true; absent and null count as false."""
    value = row.fields.get(field)
    said = str(value).strip().casefold()
    if value is not None and said not in (*_YES, *_NO):
        raise row.error(f"'{field}' is {value!r}, not true or false")
    return said in _YES
