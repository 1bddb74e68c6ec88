"""Corpora in folders, and a comparison of indexes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pearl.documents.passages import Stem, analyzer
from pearl.retrieval import SearchSettings
from pearl.retrieval.index import Index
from pearl.retrieval.methods import Query, find_method
from pearl.retrieval.postings import Postings, PostingsBuilder

_TIMES = count(1_000_000_000)

QUERIES = ("salt", "salt lake", "iron salt sea", "zebra")


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder of exactly these files; what is written gets a time of its own."""
    folder.mkdir(exist_ok=True)
    for path in folder.rglob("*.*"):
        name = str(path.relative_to(folder))
        if path.is_file() and not name.startswith(".") and name not in files:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            os.utime(path, (next(_TIMES), next(_TIMES)))


def rows(*pairs: tuple[object, str]) -> str:
    """JSON Lines of ids and texts; an id of None is left out."""
    every = ({"id": id, "text": text} if id is not None else {"text": text} for id, text in pairs)
    return "".join(f"{json.dumps(row)}\n" for row in every)


def postings_of(passages: Iterable[str | Sequence[str]], stem: Stem = "english") -> Postings:
    """An inverted index of passages, given as texts or as terms."""
    passages = list(passages)
    builder = PostingsBuilder(stem if any(isinstance(each, str) for each in passages) else None)
    for each in passages:
        builder.add(each) if isinstance(each, str) else builder.add_tokens(each)
    return builder.finish()


def found(
    index: Index, query: str, mask: NDArray[np.bool_] | None = None
) -> list[tuple[int, float]]:
    """All passages that match, with their scores."""
    terms = dict.fromkeys(analyzer(index.stem)(query), 1.0)
    ranking = find_method("bm25").rank(Query(terms, mask=mask), index, SearchSettings(), 1_000)
    return list(zip(ranking.passages.tolist(), ranking.scores.tolist(), strict=True))


def assert_same(one: Index, other: Index) -> None:
    """Make sure that two indexes cannot be told apart by what they find."""
    assert list(one.passages) == list(other.passages)
    assert list(one.documents) == list(other.documents)
    odd = np.arange(len(one.passages)) % 2 == 1
    for query in QUERIES:
        assert found(one, query) == found(other, query)
        assert found(one, query, odd) == found(other, query, odd)
        for term in query.split():
            a, b = one.terms.postings(term), other.terms.postings(term)
            assert [x.tolist() for x in a] == [x.tolist() for x in b]
    assert one.terms.lengths.tolist() == other.terms.lengths.tolist()
    assert one.terms.mean_length == other.terms.mean_length
