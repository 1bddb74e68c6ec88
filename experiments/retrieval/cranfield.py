"""Cranfield: nDCG@10, MAP and recall@60 of every method.

    python experiments/retrieval/cranfield.py --data FOLDER [--embeddings openai:MODEL]

FOLDER has `cran.all.1400`, `cran.qry` and `cranqrel`. Queries are numbered in the order of `cran.qry`. `cranqrel` codes relevance from 1,
a complete answer, to 4, of minimum interest: the gain is 5 - code, and all four are relevant where
relevance is yes or no (MAP, recall). Code -1 is there once for each query, for the paper that the query came
from as it seems: not relevant, as trec_eval takes what is below 0.

A document is its text, which begins with the title.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from measures import Judgments, RetrievalScores, Topic, evaluate_retrieval, print_scores

from pearl.llm.embedders import create_embedder
from pearl.retrieval import Embedder, SearchSettings
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.methods.hybrid import LEGS
from pearl.retrieval.search import Searcher

MEASURES = ("nDCG@10", "AP", "R@60")
STEMS = ("english", "porter", "none")


def records(text: str) -> Iterator[tuple[str, str]]:
    """Number and text of each record."""
    for record in re.split(r"^\.I ", text, flags=re.M)[1:]:
        number, _, rest = record.partition("\n")
        yield number.strip(), rest.partition(".W\n")[2].strip()


def collection(folder: Path) -> tuple[list[CorpusDocument], list[Topic], Judgments]:
    """Documents (two of them are empty and left out), topics and judgments."""
    read = {name: (folder / name).read_text() for name in ("cran.all.1400", "cran.qry", "cranqrel")}
    documents = [CorpusDocument(n, text) for n, text in records(read["cran.all.1400"]) if text]
    topics = [Topic(str(i), q) for i, (_, q) in enumerate(records(read["cran.qry"]), start=1)]
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in read["cranqrel"].splitlines():
        topic, document, code = line.split()
        grades[topic][document] = 5 - int(code) if int(code) > 0 else 0
    return documents, topics, grades


async def lexical(
    documents: Sequence[CorpusDocument], topics: Sequence[Topic], judgments: Judgments
) -> list[RetrievalScores]:
    """`bm25` by stem."""
    scores = []
    for stem in STEMS:
        index = Index.build(documents, Cutting("document"), stem)
        searchers = {f"bm25, {stem}": Searcher(SearchSettings(stem=stem))}
        scores += await evaluate_retrieval(index, topics, judgments, searchers, MEASURES)
    return scores


async def semantic(
    documents: Sequence[CorpusDocument],
    topics: Sequence[Topic],
    judgments: Judgments,
    embedder: Embedder,
) -> list[RetrievalScores]:
    """`hybrid` and its legs."""
    index = Index.build(documents, Cutting("document"))
    searchers = {name: Searcher(SearchSettings(name), embedder) for name in (*LEGS, "hybrid")}
    return await evaluate_retrieval(index, topics, judgments, searchers, MEASURES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--embeddings", help="for dense and hybrid, as openai:MODEL")
    args = parser.parse_args()
    documents, topics, judgments = collection(args.data)
    print(f"{len(documents):,} documents, {len(topics)} queries")
    scores = asyncio.run(lexical(documents, topics, judgments))
    if args.embeddings:
        embedder = create_embedder(args.embeddings)
        scores += asyncio.run(semantic(documents, topics, judgments, embedder))
    print_scores(scores)


if __name__ == "__main__":
    main()
