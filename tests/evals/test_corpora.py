"""Samples that are asked of a corpus, in place of their documents."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pearl import Document, Pearl
from pearl.data.samples import Sample
from pearl.errors import DataError, ModelError
from pearl.evals import conversations
from pearl.evals.log import EvalLog, EvalRecord, FoundGold
from pearl.evals.runner import OWN, AskedCorpus, Evaluation, corpus_of_samples, evaluate, found
from pearl.llm import ActionTask, PlanTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index
from tests.evals.evallogs import header, record

PAGES = [
    Document(f"Of mill {n}.\n\n| item | 2008 |\n| --- | --- |\n| rent of mill {n} | {n}00 |\n\nThe end of {n}.", f"p{n}")
    for n in range(1, 6)
]  # fmt: skip


def sample(n: int, *gold: str) -> Sample:
    return Sample(
        f"q{n}", f"What was the rent of mill {n}?", PAGES[n - 1], reference=f"{n}00",
        gold_passages=gold or (f"| rent of mill {n} | {n}00 |",),
    )  # fmt: skip


SAMPLES = [sample(n) for n in range(1, 6)]


def shown(corpus: AskedCorpus | None, *methods: str, **settings: Any) -> tuple[list[str], EvalLog]:
    """The prompts of the calls that read, and the log of a scripted evaluation."""
    prompts: list[str] = []

    def reply(request: Request) -> str:
        assert isinstance(request.task, ActionTask)
        prompts.append(request.prompt)
        return "300"

    async def main() -> EvalLog:
        pearl = Pearl(Scripted(reply), **settings)
        asked = Evaluation(methods, corpus=corpus, scorer="numeric")
        records = [one async for one in evaluate(pearl, SAMPLES[2:3], asked)]
        return EvalLog(header(methods=methods), tuple(records))

    return prompts, asyncio.run(main())


def test_a_method_is_shown_the_corpus_and_the_oracle_the_right_page() -> None:
    corpus = corpus_of_samples(SAMPLES)
    (alone,), _ = shown(None, "direct")
    assert "Of mill 3." in alone
    assert "Of mill 2." not in alone
    (together,), log = shown(corpus, "direct")
    assert all(f"Of mill {n}." in together for n in range(1, 6))
    assert (log.records[0].document, log.records[0].retrieved) == ("p3", None)  # it fits whole
    (oracle,), _ = shown(corpus, "oracle")
    assert "| item | 2008 |\n| --- | --- |\n| rent of mill 3 | 300 |" in oracle
    assert "mill 2" not in oracle
    assert "Of mill 3." not in oracle


def test_passages_of_steps_are_compared_with_gold_passages() -> None:
    (prompt,), log = shown(corpus_of_samples(SAMPLES), "retrieve", window=600)
    known = log.records[0].retrieved
    assert known is not None
    assert (known.n_gold, known.n_gold_found, known.n_right) == (1, 1, 1)
    assert 1 < known.n_passages < 15
    assert "rent of mill 3" in prompt
    (score,) = conversations.retrieval(log)
    assert (score.stage, score.n, score.recall) == ("retrieved", 1, 1.0)
    assert score.precision == 1 / known.n_passages


FAILING = """\
New actions:
- None

1. found = RETRIEVE(CTX, "rent of mill 3", 4) : Find it
2. ans = MAP(found, "the rent") : Read it
"""


@pytest.mark.parametrize(("plan", "n_found"), [(FAILING, 1), ("I have no plan.", 0)])
def test_a_failed_answer_counts_with_what_was_found_before(plan: str, n_found: int) -> None:
    def reply(request: Request) -> str:
        if isinstance(request.task, PlanTask):
            return plan
        raise ModelError("the server refuses", kind="bad_request")

    async def main() -> EvalRecord:
        asked = Evaluation(("pearl",), corpus=corpus_of_samples(SAMPLES), scorer="numeric")
        (record,) = [one async for one in evaluate(Pearl(Scripted(reply)), SAMPLES[2:3], asked)]
        return record

    failed = asyncio.run(main())
    assert failed.status == "failed"
    full = FoundGold(n_gold=1, n_gold_found=1, n_passages=4, n_right=1)
    records = (failed, record("q1", method="pearl", retrieved=full))
    (score,) = conversations.retrieval(EvalLog(header(methods=("pearl",)), records))
    assert (score.n, score.n_unknown, score.recall) == (2, 0, (1 + n_found) / 2)


def measured(asked: Sample, corpus: AskedCorpus, plan: str) -> dict[str, FoundGold]:
    async def main() -> dict[str, FoundGold]:
        answer = await Pearl().execute(plan, corpus.document)
        return found(answer, asked, corpus)

    return asyncio.run(main())


RETRIEVE = """\
New actions:
- None

1. found = RETRIEVE(CTX, "rent of mill 3", 4) : Find it
2. ans = COUNT(found) : How many
"""


def test_a_passage_of_another_document_is_not_right() -> None:
    asked = sample(3, "| rent of mill 3 | 300 |", "The end of 3.", "Of mill 3.")
    own = corpus_of_samples(SAMPLES)
    known = measured(asked, own, RETRIEVE)["retrieved"]
    assert (known.n_gold, known.n_passages) == (3, 4)
    assert 1 <= known.n_gold_found == known.n_right <= 3
    other = Index.build(
        CorpusDocument("p2" if page.name == "p3" else f"other {page.name}", page.text)
        for page in PAGES
    )
    renamed = AskedCorpus(other.document("pages"), "pages")
    # No document is called p3 there: the passage counts wherever it is. Of sample 2, p2 is another page.
    assert measured(asked, renamed, RETRIEVE)["retrieved"] == known
    wrong = measured(sample(2, "| rent of mill 2 | 200 |"), renamed, RETRIEVE)["retrieved"]
    assert (wrong.n_gold_found, wrong.n_right) == (0, 0)


def test_reranked_passages_are_a_stage_of_their_own() -> None:
    plan = """\
New actions:
- None

1. found = RETRIEVE(CTX, "rent of mill 3", 4) : Find it
2. best = RERANK(found, "What was the rent of mill 3?", 1) : The best
3. ans = COUNT(best) : How many
"""
    stages = measured(sample(3), corpus_of_samples(SAMPLES), plan)
    assert set(stages) == {"retrieved", "reranked"}
    assert stages["retrieved"].n_passages > stages["reranked"].n_passages
    unknown = Sample("q", "Which?", PAGES[0], reference="1")
    assert measured(unknown, corpus_of_samples(SAMPLES), plan) == {}


def test_documents_in_files_are_read_once_and_absent_ones_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One.")
    here = Sample("a", "Which?", tmp_path / "a.txt", reference="1")
    corpus = corpus_of_samples([here, here, *SAMPLES])
    assert len(corpus.document.parts) == 6
    assert corpus.document.name == OWN
    with pytest.raises(DataError, match="no sample has a document"):
        corpus_of_samples([Sample("b", "Which?")])
    with pytest.raises(DataError, match=r"absent\.txt"):
        corpus_of_samples([Sample("b", "Which?", tmp_path / "absent.txt")])


def test_another_corpus_makes_other_rows() -> None:
    def keys(corpus: AskedCorpus | None) -> list[tuple[str, ...]]:
        units = Evaluation(("direct",), corpus=corpus).units(SAMPLES)
        return [(unit.source, *unit.depends_on) for unit in units]

    all_of_them, fewer = corpus_of_samples(SAMPLES), corpus_of_samples(SAMPLES[:4])
    assert keys(all_of_them) == keys(corpus_of_samples(SAMPLES))
    for one, other, alone in zip(keys(all_of_them), keys(fewer), keys(None), strict=True):
        assert len({one, other, alone}) == 3


def test_records_that_searched_nothing_are_counted_apart() -> None:
    hits = FoundGold(n_gold=2, n_gold_found=1, n_passages=4, n_right=2)
    nothing = FoundGold(n_gold=1, n_gold_found=0, n_passages=0, n_right=0)
    records = [
        record("q1", retrieved=hits), record("q2", retrieved=nothing), record("q3", status="failed"),
    ]  # fmt: skip
    (score,) = conversations.retrieval(EvalLog(header(methods=("pearl",)), tuple(records)))
    assert (score.n, score.n_unknown) == (2, 1)
    assert (score.precision, score.recall, score.passages) == (0.25, 0.25, 2.0)
