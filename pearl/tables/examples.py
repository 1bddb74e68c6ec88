"""Examples of questions with their queries: those most like a question are shown with it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pearl.documents.document import read_bytes
from pearl.documents.passages import terms
from pearl.errors import DataError
from pearl.retrieval.postings import Postings
from pearl.tables.samples import Texts
from pearl.tables.specification import read_query

SHIPPED = Path(__file__).with_name("examples.toml")


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its query."""

    question: str
    query: str
    explanation: str


class Examples:
    """A book of examples.

    Example:
        >>> book = Examples.read(SHIPPED)
        >>> book.like("How many bakeries are there?", 1)[0].question
        'How many libraries are there in Easton?'
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = tuple(examples)

    @classmethod
    def read(cls, path: Path) -> Examples:
        """Read a TOML file of `[[example]]` with `question`, `query` and `explanation`."""
        try:
            said = tomllib.loads(read_bytes(str(path), str(path)).decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"it is no TOML: {error}", path=path) from error
        examples = []
        for number, one in enumerate(said.get("example", ()), 1):
            try:
                example = Example(one["question"], one["query"], one.get("explanation", ""))
                read_query(json.loads(example.query))
            except (KeyError, TypeError, ValueError) as error:
                raise DataError(
                    f"example {number} is none: {error}",
                    path=path,
                    help="an example has a question, a query in JSON and an explanation",
                ) from error
            examples.append(example)
        return cls(examples)

    def like(self, question: str, k: int = 2) -> list[Example]:
        """The `k` examples whose questions are most like a question; others where too few are.

        Words such as `how many` and `not` count: they say what kind of query it is.
        """
        best = self._texts.best(terms(question), k)
        rest = [i for i in range(len(self.examples)) if i not in best]
        return [self.examples[i] for i in (*best, *rest)[:k]]

    @cached_property
    def _texts(self) -> Texts:
        return Texts(Postings.build(example.question for example in self.examples))
