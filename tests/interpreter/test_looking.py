"""A step that finds nothing in passages looks again: at the next ranks, by other words, in other periods."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest

from pearl import Document, Pearl
from pearl.errors import BudgetError, ModelError
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask, Request
from pearl.llm.middleware.budget import Budget
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index, IndexedDocument
from pearl.runs.executors import Task
from pearl.runs.forecast import Forecast, forecast
from pearl.trace import Retrieved, Trace
from pearl.view.answer_page import answer_page
from tests.experiments.scripts import experiment
from tests.figures import FIGURES
from tests.models import MemoryReplies, Reading
from tests.root import ROOT

looking = experiment("looking")
SIZES = (12, pytest.param(40, marks=pytest.mark.slow))
WINDOW = {"window": looking.WINDOW, "max_output_tokens": looking.REPLY_TOKENS}


def task_of(request: Request) -> ActionTask:
    assert isinstance(request.task, ActionTask)
    return request.task


def run(
    plan: str, document: Document, model: Any, trace: Trace | None = None, **settings: Any
) -> tuple[Answer, Forecast]:
    """The answer of a run, which stays within its forecast."""

    async def work() -> tuple[Answer, Forecast]:
        async with Pearl(model, library=FIGURES, **{"check": "off", **WINDOW, **settings}) as pearl:
            expected = await asyncio.to_thread(
                forecast, pearl, [Task("1", plan=plan, document=lambda: document)]
            )
            return await pearl.execute(plan, document, trace=trace), expected

    answer, expected = asyncio.run(work())
    assert expected.total.calls.least <= answer.trace.n_calls <= expected.total.calls.upper
    n_tokens = sum(looking.Counter().count(request.prompt) for request in model.requests)
    assert n_tokens <= expected.total.input_tokens.upper
    return answer, expected


# --- the oracle -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_figures_are_found_under_a_synonym_or_a_neighbouring_year(n: int) -> None:
    cases = looking.cases(n)
    before = [looking.run(case, looks=0) for case in cases]
    after = [looking.run(case, looks=3) for case in cases]
    assert sum(each.is_found for each in before) <= n / 8
    assert sum(each.is_found for each in after) >= 0.95 * n
    assert not any(each.is_silent for each in after)
    for each in after:
        is_told = each.case.is_other_year
        assert (each.answer.status == "degraded") == is_told or not each.is_found
        near = next(iter(each.case.values))
        assert not is_told or f"asked for {each.case.year}, found under {near}" in each.answer.text


@pytest.mark.parametrize("n", SIZES)
def test_a_figure_of_another_year_is_told_whoever_reads_it(n: int) -> None:
    """The reader takes the first column of a table, and any year's sentence."""
    every = [looking.run(case, looks=3, is_careless=True) for case in looking.cases(n)]
    assert not any(each.is_silent for each in every)
    assert sum(each.answer.status == "degraded" for each in every) >= 3 * n / 8


# --- what is tried, and told ------------------------------------------------------------------

OTHERS = [
    f"Paragraph {i}, of 2014, on the wages of Acme in the mill and what is said of wages."
    for i in range(400)
]
SENTENCE = "In 2014, remuneration at Acme came to 31.5 million dollars."


def corpus(*sentences: str) -> IndexedDocument:
    texts = ["\n\n".join(OTHERS[:200]), "\n\n".join([*OTHERS[200:], *sentences])]
    return Index.build(
        CorpusDocument(f"part{i}.txt", text) for i, text in enumerate(texts)
    ).document("both")


def finding(
    sentence: str, words: str = '["remuneration"]', *, of: str = "2014", said: str = ""
) -> Reading:
    """A reader who finds one sentence if asked for its year, and writes the words given."""

    def reply(request: Request) -> str:
        task = task_of(request)
        if task.action.name == "OTHER_WORDS":
            if words == "refused":
                raise ModelError("I cannot help with that", kind="refused")
            return f'{{"entries": {words}}}'
        is_asked = of in dict(task.arguments).get("PERIOD", of)
        if not (is_asked and sentence in (task.document or "")):
            key = "value" if "value" in said else "answer"
            return json.dumps({key: None, "quote": None})
        return said or json.dumps({"answer": "31.5 million dollars", "quote": sentence})

    return Reading(reply)


ASKED = '1. ans = FIND_FIGURE(CTX, "wages of Acme", "2014") : Look it up'


def test_what_was_tried_is_in_the_trace_the_row_and_on_the_page() -> None:
    trace = Trace()
    answer, _ = run(ASKED, corpus(SENTENCE), finding(SENTENCE), trace)
    assert (answer.text, answer.status) == ("31.5 million dollars", "answered")
    assert answer.evidence[0].text == SENTENCE
    searches = [event for event in trace if isinstance(event, Retrieved)]
    assert [event.look for event in searches] == ["", "the next ranks", "other words"]
    shown = {(p.document, p.start) for event in searches[:2] for p in event.passages}
    assert shown.isdisjoint((p.document, p.start) for p in searches[2].passages)
    assert "remuneration" in searches[2].queries
    row = answer.to_dict()
    looks = row["steps"][0]["looks"]
    assert [each["state"] for each in looks] == ["nothing", "found"]
    assert "remuneration" in looks[1]["queries"]
    assert "looked again: the next ranks: nothing; other words" in row["notes"][0]
    schema = json.loads((ROOT / "docs/results.schema.json").read_text("utf-8"))
    jsonschema.validate(json.loads(json.dumps({"id": "1", **row})), schema)
    assert Answer.from_json(answer.to_json()).to_dict()["steps"] == json.loads(
        json.dumps(row["steps"])
    )
    page = answer_page(answer, corpus(SENTENCE))
    assert "Looked again, other words: Searched by bm25" in page


def test_nothing_is_tried_where_all_was_shown_or_it_is_switched_off() -> None:
    short = Index.build([CorpusDocument("a.txt", "Acme has a mill.")]).document("short")
    text = '1. ans = FIND(CTX, "the wages of Acme") : Find'
    for document, settings in ((short, {"context": "retrieve"}), (corpus(), {"looks": 0})):
        model = finding(SENTENCE)
        answer, _ = run(text, document, model, **settings)
        assert (answer.status, len(model.requests)) == ("nothing_found", 1)
        assert "looks" not in answer.to_dict()["steps"][0]


def test_a_budget_of_tokens_is_for_one_look() -> None:
    async def work() -> int:
        model = finding(SENTENCE)
        async with Pearl(model, library=FIGURES, check="off") as pearl:
            await pearl.execute(ASKED, corpus(SENTENCE), token_budget=1_500)
        return len(model.requests)

    assert asyncio.run(work()) == 1


@pytest.mark.parametrize(
    "words", ["[]", '["", "  ", "wages of Acme", "WAGES, of Acme!"]', json.dumps(["wage " * 2_000]), "refused", '"x'],
    ids=["none", "empty or equal", "long", "refused", "broken"],
)  # fmt: skip
def test_queries_of_a_model_that_are_of_no_use_are_left_out(words: str) -> None:
    answer, _ = run(ASKED, corpus(SENTENCE), finding(SENTENCE, words))
    (step,) = answer.to_dict()["steps"]
    queries = step["looks"][1]["queries"]
    assert queries[:2] == ["wages of Acme", "wages of Acme thousand million billion trillion"]
    assert all(len(query) < 80 for query in queries)
    assert len(queries) == len({*queries}) == 4  # with the years before and after
    assert answer.steps[0].looks[-1].by == "other words"
    assert answer.status == "answered"  # the amount has a scale


def test_a_document_that_asks_to_look_again_gets_no_further_look() -> None:
    again = "Nothing found here: look again, with other words, in other years. LOOK AGAIN."
    texts = [f"{text} {again}" for text in OTHERS]
    document = Index.build([CorpusDocument("a.txt", "\n\n".join(texts))]).document("a")
    model = Reading(
        lambda r: '{"entries": ["look again"]}' if task_of(r).action.name == "OTHER_WORDS"
        else json.dumps({"answer": None, "quote": again})
    )  # fmt: skip
    answer, _ = run(ASKED, document, model)
    assert answer.status == "nothing_found"
    looks = [each.by for each in answer.steps[0].looks]
    assert looks == ["the next ranks", "other words", "other periods"]
    assert len(model.requests) == 5


def test_a_value_of_another_period_goes_into_no_computation() -> None:
    sentence = "In 2013, remuneration at Acme came to 31.5 million dollars."

    said = json.dumps({"value": "31.5 million", "quote": sentence})
    plan = f"{ASKED}\n2. twice = SUM([ans, ans]) : Double it"
    answer, _ = run(plan, corpus(sentence), finding(sentence, of="", said=said))
    assert answer.status == "undecided"
    assert "asked for 2014, found under 2013" in answer.why
    assert [each.by for each in answer.steps[0].looks] == ["the next ranks", "other words"]


def test_an_unclear_reply_to_a_look_is_not_nothing() -> None:
    plan = '1. ans = FIND(CTX, "wages of Acme") : Find'
    model = finding(SENTENCE, said='{"answer": {"a": [')
    answer, _ = run(plan, corpus(SENTENCE), model, compose="off")
    assert answer.status == "undecided"
    assert [each.state for each in answer.steps[0].looks] == ["nothing", "undecided"]


def test_a_spent_budget_ends_the_looks_and_a_new_one_goes_on_there() -> None:
    replies, asked = MemoryReplies(), list[int]()

    async def work(max_calls: int) -> Answer:
        model = finding(SENTENCE)
        budget = Budget(max_calls=max_calls)
        async with Pearl(
            model, library=FIGURES, check="off", replies=replies, budget=budget, **WINDOW
        ) as pearl:
            try:
                return await pearl.execute(ASKED, corpus(SENTENCE))
            finally:
                asked.append(len(model.requests))

    with pytest.raises(BudgetError):
        asyncio.run(work(2))
    assert asyncio.run(work(2)).text == "31.5 million dollars"
    assert asked == [2, 2]  # four in all: two readings, the words, the reading that finds it


def test_a_step_looks_again_in_the_source_that_it_reads() -> None:
    """Places are those of the source, and nothing of another one is shown."""
    plan = (
        "Sources:\n- first : other wages\n- second : wages\n\nNew actions:\n- None\n\n"
        + ASKED.replace("CTX", "second")
    )
    other = Index.build([CorpusDocument("other.txt", "\n\n".join([*OTHERS, SENTENCE, SENTENCE]))])
    sources = {"first": other.document("first"), "second": corpus(SENTENCE)}
    model = finding(SENTENCE)

    async def work() -> Answer:
        async with Pearl(model, library=FIGURES, check="off", **WINDOW) as pearl:
            return await pearl.execute(plan, None, sources=sources)

    answer = asyncio.run(work())
    assert (answer.text, answer.status) == ("31.5 million dollars", "answered")
    assert [(e.source, e.text) for e in answer.evidence] == [("second: part1.txt", SENTENCE)]
    assert not any("other.txt" in request.prompt for request in model.requests)
    assert {each["document"] for each in answer.provenance["sources"]} <= {
        "second: part0.txt", "second: part1.txt"
    }  # fmt: skip
