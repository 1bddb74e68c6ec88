"""Terms of a query → more terms: synonyms of a thesaurus, or whatever a callable adds.

A thesaurus is a text file with a group of synonyms a line, by blanks; where entries have several
words, by commas: `IITD, Indian Institute of Technology Delhi`. A line that begins with `#` is a
comment. Groups are not joined: a word of two meanings is in two groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pearl.documents.document import read_bytes
from pearl.documents.passages import Stem
from pearl.errors import DataError
from pearl.retrieval.analysis import analyzer

Expansion = Callable[[Mapping[str, float]], Mapping[str, float]]
"""Terms with their weights → these and others with theirs."""

_Entry = tuple[str, ...]
"""The different terms of a word or phrase."""


@dataclass(frozen=True, slots=True)
class QueryThesaurus:
    """An `Expansion` by synonyms.

    An entry is found where the query has all its terms; each other entry of its group then adds its
    own, with `weight` times the least of their weights, shared among the terms of a phrase. A term
    of the query keeps its weight.

    Example:
        >>> thesaurus = QueryThesaurus(((("iitd",), ("indian", "institut", "delhi", "technolog")),), 0.5)
        >>> thesaurus({"iitd": 1.0})["delhi"], thesaurus({"indian": 1.0})
        (0.125, {'indian': 1.0})
    """

    groups: tuple[tuple[_Entry, ...], ...]
    weight: float = 0.5

    @classmethod
    def read(cls, path: Path, stem: Stem = "english", weight: float = 0.5) -> QueryThesaurus:
        """Read a file, for an index of a stemming."""
        analyse = analyzer(stem)
        groups = []
        for line, words in read_groups(path):
            entries = [tuple(dict.fromkeys(analyse(word))) for word in words]
            if () in entries or len(entries) < 2:
                what = "has one entry" if all(entries) else "has an entry without a word"
                raise DataError(
                    f"a group of synonyms {what}",
                    path=path,
                    line=line,
                    help="write two or more words by blanks, or phrases by commas",
                )
            groups.append(tuple(dict.fromkeys(entries)))
        return cls(tuple(groups), weight)

    def __call__(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Terms of a query with weights → these, and those of their synonyms."""
        added: dict[str, float] = {}
        for group in self.groups:
            found = [entry for entry in group if terms.keys() >= set(entry)]
            most = max((min(terms[term] for term in entry) for entry in found), default=0.0)
            for entry in group:
                share = self.weight * most / len(entry)
                for term in entry if share > 0 else ():
                    added[term] = max(share, added.get(term, 0.0))
        return {**terms, **{term: added[term] for term in added if term not in terms}}


def read_groups(path: Path) -> list[tuple[int, list[str]]]:
    """The lines of a thesaurus with their numbers from 1, each as its words or phrases."""
    groups = []
    for number, line in enumerate(read_bytes(str(path), str(path)).splitlines(), 1):
        try:
            row = line.decode("utf-8-sig").strip()
        except UnicodeDecodeError:
            raise DataError(
                "a thesaurus is a text in UTF-8", path=path, line=number, help="save it as UTF-8"
            ) from None
        if row and not row.startswith("#"):
            groups.append(
                (number, [s.strip() for s in row.split(",")] if "," in row else row.split())
            )
    return groups
