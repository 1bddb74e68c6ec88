"""Rows that a model reduces to a text, in one request or in a tree of them."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from pearl import Answer, Document, Pearl
from pearl.dsl.graph import build_graph
from pearl.errors import ExecutionError
from pearl.interpreter.prompt_taint import flows
from pearl.llm import ActionTask, ItemsTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.runs.executors import Task
from pearl.runs.forecast import forecast
from tests.models import Reading, item_lines

WORDS = [
    "parcel",
    "ferry",
    "kettle",
    "ledger",
    "saddle",
    "mirror",
    "anchor",
    "button",
    "turbine",
    "blanket",
]
ALL = """\
1. rows = SPLIT(CTX, "entry") : The complaints
2. items = FIELD(rows, "Item") : What they say
3. main = REDUCE(items, "the main complaints, each with how often") : The main ones"""
GROUPED = """\
1. rows = SPLIT(CTX, "entry") : The complaints
2. shops = GROUP(rows, "Shop") : By shop
3. main = REDUCE(shops, "the main complaints") : The main ones of each"""


def complaints(n: int, seed: int = 0) -> Document:
    draw = random.Random(seed)
    return Document(
        "\n".join(
            f"Id: {i} || Shop: {draw.choice('NSEW')} || Item: My {draw.choice(WORDS)} came {i // 3} days late"
            for i in range(n)
        )
    )


class Reader:
    """Replies with a text and with quotes of the first lines of what it is shown; counts what it is asked."""

    def __init__(self, said: Callable[[ActionTask, list[str]], object] | None = None) -> None:
        self.said = said
        self.requests: list[Request] = []
        self.n_calls = 0

    def __call__(self, request: Request) -> str:
        task = request.task
        self.n_calls += 1
        if isinstance(task, ItemsTask):
            return item_lines(request, lambda text: "yes" if "parcel" in text else None)
        assert isinstance(task, ActionTask)
        self.requests.append(request)
        shown = "\n".join(task.parts) if task.parts is not None else task.document or ""
        quotes = re.findall(r"^(?:- (?:\(\d+ times\) )?|> )(.*)", shown, re.M)
        said = self.said(task, quotes) if self.said else None
        return json.dumps(said or {"answer": f"Late: {len(quotes)}.", "quote": quotes[:2]})

    @property
    def shown(self) -> list[str]:
        """The rows that requests show, in order."""
        texts = [task.document for task in self.tasks if task.parts is None]
        return [line.removeprefix("- ") for text in texts for line in (text or "").split("\n")]

    @property
    def tasks(self) -> list[ActionTask]:
        return [each.task for each in self.requests if isinstance(each.task, ActionTask)]


def run(
    plan: str, document: Document, model: Reader, window: int | None = None,
    max_prompt_tokens: int | None = None,
) -> Answer:  # fmt: skip
    async def main() -> Answer:
        async with Pearl(Reading(model), check="off") as pearl:
            pearl.limits = limits = replace(
                pearl.limits,
                window=window,
                max_output_tokens=400,
                max_prompt_tokens=max_prompt_tokens,
            )
            said = forecast(pearl, [Task("", lambda: document, plan=plan)]).total.calls
            answer = await pearl.execute(plan, document)
            is_open = answer.status == "undecided"  # a reply that cannot be read is asked for again
            assert is_open or said.least <= model.n_calls <= said.upper
            counts = (limits.counter.count(each.prompt) for each in model.requests)
            assert limits.prompt_tokens is None or max(counts, default=0) <= limits.prompt_tokens
            return answer

    return asyncio.run(main())


def test_rows_that_fit_are_one_request_and_equal_texts_stand_once_with_their_number() -> None:
    document = Document(
        "\n".join(f"Id: {i} || Item: The {WORDS[i % 2]} came late again" for i in range(5))
    )
    model = Reader()
    answer = run(ALL, document, model)
    times = ["(3 times) The parcel came late again", "(2 times) The ferry came late again"]
    assert model.shown == times
    assert (answer.status, answer.text, len(model.requests)) == ("answered", "Late: 2.", 1)
    quoted = [document.text[e.span.start : e.span.end] for e in answer.evidence]
    assert quoted == [line.partition(") ")[2] for line in times]
    # A quote with its number, as models copy lines, is of the row.
    model = Reader(lambda task, quotes: {"answer": "Late.", "quote": f"(2 times) {quotes[1]}"})
    answer = run(ALL, document, model)
    assert (answer.status, answer.evidence[0].text) == ("answered", "The ferry came late again")


def test_more_rows_are_read_in_parts_whose_results_are_merged_level_by_level() -> None:
    document = complaints(300)
    model = Reader()
    answer = run(ALL, document, model, window=1_100)
    leaves = [task for task in model.tasks if task.parts is None]
    merged = [task for task in model.tasks if task.parts is not None]
    assert len(leaves) > 8
    assert len(merged) > 2
    items = re.findall("Item: (.*)", document.text)
    assert sorted(re.sub(r"^\(\d+ times\) ", "", line) for line in model.shown) == sorted({*items})
    assert answer.status == "answered"
    note = rf"main: rows in {len(leaves)} parts, merged in \d levels"
    assert any(re.fullmatch(note, each) for each in answer.notes)
    assert len({e.text for e in answer.evidence} & {*items}) == len(answer.evidence) == 2


def test_what_no_row_says_is_shown_to_no_later_request_and_told() -> None:
    made_up = "Nobody has ever waited for a lighthouse."

    def said(task: ActionTask, quotes: list[str]) -> object:
        return {"answer": "Late.", "quote": [*quotes[:1], made_up]}

    model = Reader(said)
    answer = run(ALL, complaints(300), model, window=1_100)
    assert not any(made_up in request.prompt for request in model.requests)
    assert (answer.status, {q.text for q in answer.unverified}) == ("degraded", {made_up})
    # What stands in the document, but in no row of the group, bears nothing out.
    other = Reader(lambda task, quotes: {"answer": "Late.", "quote": "My parcel came 0 days late"})
    document = Document(
        "Shop: N || Item: My parcel came 0 days late\nShop: S || Item: My ferry came 1 days late"
    )
    answer = run(GROUPED, document, other)
    assert [
        (e.span.start, q.text) for e, q in zip(answer.evidence, answer.unverified, strict=True)
    ] == [(document.text.index("My"), "My parcel came 0 days late")]


@pytest.mark.parametrize("window", [None, 1_100])
def test_the_order_of_the_rows_changes_no_request(window: int | None) -> None:
    asked = []
    for how in ('"Id", "ascending"', '"Item", "descending"', '"Shop", "ascending"'):
        for plan in (ALL, GROUPED):
            model = Reader()
            first, _, rest = plan.replace("(rows,", "(order,").partition("\n")
            order = f"2. order = SORT(rows, {how}) : Another order"
            run(f"{first}\n{order}\n{rest}", complaints(80), model, window)
            asked.append((plan, sorted(request.prompt for request in model.requests)))
    assert asked[::2] == asked[:1] * 3
    assert asked[1::2] == asked[1:2] * 3


def test_each_group_is_read_whole_and_its_text_is_a_field() -> None:
    model = Reader(lambda task, quotes: {"answer": f"Late {len(quotes)}", "quote": quotes[0]})
    document = complaints(40)
    answer = run(
        f'{GROUPED}\n4. bad = WHERE(main, "main", "contains", "late") : Those', document, model
    )
    shops = [re.findall(r"Shop: (\w)", task.document or "") for task in model.tasks]
    assert sorted(map(set, shops), key=str) == [{shop} for shop in "ENSW"]
    assert sum(map(len, shops)) == 40
    sizes = {own[0]: len(own) for own in shops}
    assert sorted(answer.text.split("\n")) == [f"- {shop}: Late {sizes[shop]}" for shop in "ENSW"]
    assert len(answer.row_evidence) == 40
    assert sum(bool(row.quote) for row in answer.row_evidence) == 4
    assert [len(entry.evidence) for entry in answer.parts[0].entries] == [1] * 4
    assert answer.provenance["sources"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ('items = FIELD(rows, "Item") : Items\n3. shown = GROUP(items, "Shop") : By shop', ""),
        ("shown = EACH_SUMMARIZE(rows) : Gists", ": Late: 0."),
    ],
)
def test_rows_are_shown_whole_in_groups_and_before_what_was_said_of_them(
    made: str, said: str
) -> None:
    document, model = complaints(2), Reader()
    plan = f'1. rows = SPLIT(CTX, "entry") : Rows\n2. {made}\n4. main = REDUCE(shown, "what is late") : It'
    run(plan, document, model)
    assert sorted(model.shown[-2:]) == [f"{line}{said}" for line in document.text.split("\n")]


@pytest.mark.parametrize("group", ["", '4. shops = GROUP(some, "Shop") : By shop\n'])
@pytest.mark.parametrize("n", [0, 1])
def test_one_row_is_one_request_and_none_is_nothing_found(n: int, group: str) -> None:
    some = f'3. some = WHERE(items, "Id", "at most", "{n - 1}") : Some\n{group}'
    plan = ALL.replace("3. main", f"{some}5. main")
    plan = plan.replace("REDUCE(items", f"REDUCE({'shops' if group else 'some'}")
    model = Reader()
    answer = run(plan, complaints(9), model)
    assert (len(model.requests), answer.status) == (n, "answered" if n else "nothing_found")


def test_undecided_rows_are_not_read_and_told() -> None:
    model = Reader()
    plan = ALL.replace("REDUCE(items", "REDUCE(kept").replace(
        "3. main", '3. kept = FILTER(items, "it is of a parcel") : P\n4. main'
    )
    answer = run(plan, complaints(40), model)
    assert all("parcel" in line for line in model.shown)
    assert (answer.status, "rows are undecided and not in it" in answer.why) == ("degraded", True)


@pytest.mark.parametrize(("silent", "status"), [("N", "answered"), ("NSEW", "nothing_found")])
def test_a_group_whose_rows_say_nothing_of_it_says_so(silent: str, status: str) -> None:
    def said(task: ActionTask, quotes: list[str]) -> object:
        is_silent = any(f"Shop: {shop}" in (task.document or "") for shop in silent)
        return {"answer": None if is_silent else "Late", "quote": "" if is_silent else quotes[0]}

    answer = run(GROUPED, complaints(40), Reader(said))
    assert answer.status == status
    lines = (f"- {shop}: {'Nothing found.' if shop in silent else 'Late'}" for shop in "ENSW")
    assert sorted(answer.text.split("\n")) == list(lines)


def test_a_reply_that_is_of_no_use_leaves_its_group_undecided() -> None:
    model = Reader(
        lambda task, quotes: {"answer": ""} if "Shop: N" in (task.document or "") else None
    )
    answer = run(GROUPED, complaints(40), model)
    assert answer.status == "undecided"
    assert "- N: undecided" in answer.steps[-1].text.split("\n")


@pytest.mark.parametrize(
    ("plan", "verdict"),
    [
        (f'{ALL}\n4. sure = FIND(main, "how many are late") : Of them', "text crosses: step 3 -> step 4 (List of text)"),
        # A reply beside rows of the document is the text of a model.
        ('''1. said = FIND(CTX, "what is said") : It
2. rows = SPLIT(CTX, "line") : Rows
3. both = CONCAT(said, rows) : Both
4. last = FIND(both, "more") : Find''', "text crosses: step 3 -> step 4 (Text)"),
    ],
)  # fmt: skip
def test_a_text_made_of_rows_is_of_the_document_for_later_prompts(plan: str, verdict: str) -> None:
    found = flows(build_graph(Pearl(Scripted(Reader())).compile(plan)))
    assert (found["is_typed"], found["verdict"]) == (False, verdict)


def test_a_budget_that_the_rows_exceed_is_an_error_before_any_request() -> None:
    model = Reader()
    with pytest.raises(ExecutionError, match=r"requests about rows may need [0-9,]+ tokens"):
        run(ALL, complaints(300), model, max_prompt_tokens=2_000)
    assert model.requests == []


@pytest.mark.parametrize(
    "text",
    [
        "id,note\n7,feels quite dizzy\n8,sleeps badly since May\n",
        "| id | note |\n|---|---|\n| 7 | feels quite dizzy |\n| 8 | sleeps badly since May |\n",
    ],
)
def test_a_row_of_a_table_is_shown_with_the_names_of_its_fields_and_quoted_as_a_row(
    text: str,
) -> None:
    quoted = "badly since May"
    model = Reader(lambda task, quotes: {"answer": "Two.", "quote": [*quotes[:1], quoted]})
    plan = '1. rows = SPLIT(CTX, "record") : R\n2. main = REDUCE(rows, "complaints") : C'
    answer = run(plan, Document(text), model)
    assert model.shown == ["id: 7; note: feels quite dizzy", "id: 8; note: sleeps badly since May"]
    assert answer.status == "answered"
    assert [e.text for e in answer.evidence] == [text.split("\n")[-3], "badly since May"]
