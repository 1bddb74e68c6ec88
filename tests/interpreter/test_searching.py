"""Steps that search, and steps over a corpus that is longer than the window."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pearl import Document, Pearl
from pearl.documents.document import from_text
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask, CheckTask, ItemsTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index, IndexedDocument
from pearl.trace import Retrieved, Trace
from tests.figures import FIGURES
from tests.models import Reading, item_lines, verdicts
from tests.server import Canned, Seen, Server

GOATS = "\n\n".join(f"Paragraph {i} of the goats on hill {i}, and of their way home." for i in range(200))  # fmt: skip
A = f"{GOATS}\n\nThe bees of Ada swarmed in May.\n\n{GOATS}"
B = f"{GOATS}\n\nNils sold the bees in June."


def corpus(**texts: str) -> IndexedDocument:
    documents = (CorpusDocument(f"{name}.txt", text) for name, text in texts.items())
    return Index.build(documents).document("both")


def run(
    plan: str, document: Document, model: Any = "extractive", **settings: Any
) -> tuple[Answer, Trace]:
    trace = Trace()

    async def execute() -> Answer:
        async with Pearl(model, **settings) as pearl:
            return await pearl.execute(plan, document, trace=trace)

    return asyncio.run(execute()), trace


def searches(trace: Trace) -> list[Retrieved]:
    return [event for event in trace if isinstance(event, Retrieved)]


def shown(request: Request) -> str:
    assert isinstance(request.task, ActionTask)
    return request.task.document or ""


def test_rows_that_were_found_are_evidence_with_document_span_and_rank() -> None:
    answer, trace = run('1. found = RETRIEVE(CTX, "bees", 5) : Find them', corpus(a=A, b=B))
    assert {row.source for row in answer.row_evidence} == {"a.txt", "b.txt"}
    for row in answer.row_evidence:
        assert row.span is not None
        source = {"a.txt": A, "b.txt": B}[row.source]
        assert source[row.span.start : row.span.end] == row.text
        rank = row.fields["rank"]
        assert f"; rank {rank} in found; found" in row.where
        assert row.ranks == {"found": int(rank or 0)}
    (event,) = searches(trace)
    assert (event.step, event.queries, event.method, event.k, event.n_hits) == (
        "found", ("bees",), "bm25", 5, 2,
    )  # fmt: skip
    assert {p.document for p in event.passages} == {"a.txt", "b.txt"}
    assert Trace.from_jsonl("", trace.to_jsonl()).to_jsonl() == trace.to_jsonl()


def test_a_count_among_the_best_passages_says_so() -> None:
    plan = '1. found = RETRIEVE(CTX, "goats", 7) : Find them\n2. n = COUNT(found) : Count them'
    answer, _ = run(plan, corpus(a=A, b=B))
    assert answer.text == "7 (among the 7 that match 'goats' best; more match)"


def test_nothing_found_is_no_error() -> None:
    answer, trace = run('1. found = RETRIEVE(CTX, "zebras", 5) : Find them', corpus(a=A, b=B))
    assert answer.status == "nothing_found"
    assert searches(trace)[0].n_hits == 0


def test_rows_by_a_model_and_text_as_document_go_on_from_what_was_found() -> None:
    def reply(request: Request) -> str:
        if isinstance(request.task, ItemsTask):
            return item_lines(request, lambda item: "yes" if "sold" in item else "no")
        return shown(request)

    plan = """\
1. found = RETRIEVE(CTX, "bees", 5) : Find them
2. sold = FILTER(found, "it says that something was sold") : Which
3. ans = SUMMARIZE(sold) : Tell it"""
    answer, _ = run(plan, corpus(a=A, b=B), Scripted(reply))
    assert answer.text == "# b.txt\n\nNils sold the bees in June."


def test_each_step_over_a_corpus_is_shown_its_own_passages_under_their_names() -> None:
    model = Scripted(lambda request: "x")
    plan = """\
1. swarm = FIND_EVENT(CTX, "bees swarmed in May") : What did they do
2. sale = FIND_EVENT(CTX, "bees sold in June") : Who sold them"""
    answer, trace = run(plan, corpus(a=A, b=B), model, window=2_500, max_output_tokens=100)
    texts = {each.task.output: shown(each) for each in model.requests}  # type: ignore[union-attr]
    assert set(texts) == {"swarm", "sale"}
    assert "swarmed in May" in texts["swarm"]
    assert "# b.txt\n\n" in texts["sale"]
    for text in texts.values():
        places = [text.find(name) for name in ("# a.txt\n", "# b.txt\n") if name in text]
        assert places == sorted(places), "in the order of the corpus"
    assert all(step.context == "retrieve" and 0 < (step.coverage or 0) < 1 for step in answer.steps)
    assert {event.step for event in searches(trace)} == {"swarm", "sale"}
    for request in model.requests:
        assert Pearl().limits.counter.count(request.prompt) <= 2_400


def test_a_corpus_that_fits_is_shown_in_full_and_one_document_part_by_part() -> None:
    model = Scripted(lambda request: "x")
    plan = '1. a = FIND_EVENT(CTX, "bees") : Find'
    answer, _ = run(plan, corpus(a="Bees.", b="Goats."), model, window=2_500)
    assert answer.steps[0].context == "full"
    answer, _ = run(plan, from_text(A, "a.txt"), model, window=2_500, max_output_tokens=100)
    assert answer.steps[0].context == "map-reduce"


def test_a_quote_from_a_passage_that_was_searched_has_its_rank() -> None:
    model = Scripted(lambda request: "In June.\n> Nils sold the bees in June.")
    plan = '1. ans = FIND_EVENT(CTX, "bees sold") : Find'
    answer, _ = run(plan, corpus(a=A, b=B), model, window=2_500, max_output_tokens=100)
    (evidence,) = answer.evidence
    assert evidence.source == "b.txt"
    assert dict(evidence.ranks) == {"ans": 1}
    assert "; rank 1 in ans; ans" in evidence.where


def test_what_matches_nothing_shows_the_beginning_of_the_corpus() -> None:
    model = Scripted(lambda request: "x")
    plan = '1. ans = FIND_EVENT(CTX, "zebras") : Zebras'
    _answer, trace = run(plan, corpus(a=A, b=B), model, window=2_500, max_output_tokens=100)
    assert shown(model.requests[0]).startswith("# a.txt\n\nParagraph 0 of")
    assert searches(trace)[0].n_hits == 0


def test_of_a_passage_that_is_longer_than_the_window_the_best_chunks_are_shown() -> None:
    words = " ".join(f"goat{i}" for i in range(3_000))
    model = Scripted(lambda request: "x")
    long = corpus(a=f"{words} the bees of Ada {words}", b=B)
    plan = '1. ans = FIND_EVENT(CTX, "bees of Ada") : Find'
    run(plan, long, model, window=2_500, max_output_tokens=100)
    assert "the bees of Ada" in shown(model.requests[0])


# --- tables beside prose ----------------------------------------------------------------------

ROWS_OF_MILL = "\n".join(f"| rent of year {n} | {n} |" for n in range(1_000, 1_400))


def mill(n: int) -> CorpusDocument:
    table = f"| mill {n} | 2012 |\n|---|---|\n| wages | {n}77 |"
    if n == 3:
        table = f"| mill {n} | rent |\n|---|---|\n{ROWS_OF_MILL}"
    prose = "The millers of the valley went on strike because of the pay in their mill"
    other = "| other | x |\n|---|---|\n| no | 1 |"
    return CorpusDocument(f"mill{n}.txt", f"{prose} {n}.\n\n{table}\n\n{other}\n\n{GOATS}")


@pytest.mark.parametrize(
    "plan",
    [
        '1. wages = FIND_FIGURE(CTX, "wages, or rent of year 1200, and strike of the millers", "2012") : Look up',
        """1. passages = RETRIEVE(CTX, "millers strike pay", 4) : Search
2. wages = FIND_FIGURE(passages, "wages, or rent of year 1200", "2012") : Look up""",
    ],
)
def test_prose_of_a_document_is_shown_with_its_table_that_matches(plan: str) -> None:
    document = Index.build(map(mill, range(4))).document("mills")
    model = Scripted(lambda request: "Nothing found.")
    run(plan, document, model, library=FIGURES, window=8_000, looks=0)
    prompt = model.requests[-1].prompt
    for n in range(3):
        assert f"strike because of the pay in their mill {n}" in prompt
        assert f"# mill{n}.txt" in prompt
        assert f"| wages | {n}77 |" in prompt
    assert "| no | 1 |" not in prompt  # no word of it is asked for
    assert "| rent of year 1200 | 1200 |" in prompt
    assert "| rent of year 1001 | 1001 |" not in prompt  # of a long table the rows around the best


# --- figures of companies ---------------------------------------------------------------------


REPORTS = Index.build(
    [
        CorpusDocument("lmt.txt", "Lockheed Martin, 2012.\n\n| item | 2012 |\n|---|---|\n| net sales | 8,347 |"),
        CorpusDocument("p2.txt", "| item | 2012 |\n|---|---|\n| net sales | 512 |", {"company": "Norfolk Lines"}),
        CorpusDocument("p3.txt", "Notes.\n\n| item | 2012 |\n|---|---|\n| net sales | 77 |"),
    ]
).document("reports")  # fmt: skip


@pytest.mark.parametrize(
    ("company", "n", "status"),
    [
        ("Lockheed Martin", "8,347", "answered"),  # at the beginning of its document
        ("Norfolk Lines", "512", "answered"),  # in its metadata
        ("Norfolk Lines", "8,347", "undecided"),
        ("Contoso", "77", "undecided"),
    ],
)
@pytest.mark.parametrize("how", ["passages", "CTX"])
def test_the_checker_sees_the_company_of_a_figure(
    how: str, company: str, n: str, status: str
) -> None:
    def reply(request: Request) -> str:
        if not isinstance(request.task, CheckTask):
            return f"{n}\n> | net sales | {n} |"
        ((claim, passage),) = request.task.claims
        assert claim == f"net sales of {company} 2012: {n}"
        return verdicts("supported" if company in passage else "not stated")

    plan = f"""1. passages = RETRIEVE(CTX, "net sales 2012", 9) : Search
2. sales = FIND_FIGURE({how}, "net sales of {company}", "2012") : Look up
3. ans = SUM([sales]) : Add"""
    answer, _ = run(plan, REPORTS, Reading(reply), library=FIGURES)
    assert answer.status == status
    assert ("the checker" in answer.why) == (status == "undecided")


# --- embeddings -------------------------------------------------------------------------------


def embedded(seen: Seen) -> Canned:
    texts = seen.body["input"]
    return Canned({"data": [{"index": i, "embedding": [1.0, i]} for i in range(len(texts))]})


def test_without_an_address_of_their_own_embeddings_are_on_the_server_of_the_model(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_MODEL", "sk-of-the-model")
    openai_server.answer = embedded
    run(
        '1. found = RETRIEVE(CTX, "bees", 1) : Find them', corpus(a="Bees.", b="Goats."),
        "openai:m", base_url=openai_server.url, api_key_env="KEY_OF_MODEL",
        ranker="dense", embeddings="openai:e",
    )  # fmt: skip
    assert {seen.path for seen in openai_server.requests} == {"/v1/embeddings"}
