"""Steps that a model carries out row by row, end to end over a scripted model."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import Callable

import pytest

from pearl import Document, Pearl
from pearl.documents.table import markdown
from pearl.errors import ExecutionError, ModelError, ModelErrorKind
from pearl.interpreter.answer import Answer
from pearl.interpreter.row_steps import MAX_ROUNDS
from pearl.llm import Completion, Constrains, ItemsTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index
from tests.models import Reading, item_keys, item_lines

LABELS = {"apple": "fruit", "beet": "root", "carrot": "root", "date": "fruit", "egg": "other"}

Reply = Callable[[str], str | None]


def entries(n: int, words: tuple[str, ...] = tuple(LABELS)) -> Document:
    """A line each: `Date: ... || User: ... || Item: word number`."""
    return Document(
        "\n".join(
            f"Date: 2023-{1 + i % 12:02}-{1 + i % 28:02} || User: {i % 7} || Item: {words[i % len(words)]} {i}"
            for i in range(n)
        )
    )


class Oracle:
    """Reads item prompts and answers each item by its text; some replies leave items out."""

    def __init__(self, say: Reply, n_dropped: int = 0) -> None:
        self.say = say
        self.n_dropped = n_dropped
        self.asked: list[list[str]] = []

    def __call__(self, request: Request) -> str:
        prompt = request.messages[-1].content
        items = re.findall(r"<item (\d+)>\n(.*?)\n</item \1>", prompt, re.DOTALL)
        texts = [text for _, text in items]
        self.asked.append(texts)
        dropped = texts[: self.n_dropped] if len(texts) > self.n_dropped else []
        return item_lines(request, lambda text: None if text in dropped else self.say(text))


def run(plan: str, document: Document, oracle: Oracle, **settings: object) -> Answer:
    model = Scripted(oracle)
    return asyncio.run(Pearl(model, **settings).execute(plan, document))  # type: ignore[arg-type]


COUNTING = """\
1. entries = SPLIT(CTX, "entry") : One row for each entry
2. texts = FIELD(entries, "Item") : The item alone
3. label = CLASSIFY(texts, ["fruit", "root", "other"], "the kind of food") : Label each
4. counts = GROUP(label, "label") : Count each label
5. ans = NTH(counts, "count", -1) : The least common"""


FILTERING = """\
1. rows = SPLIT(CTX, "line") : One row a line
2. fruits = FILTER(rows, "it is a fruit") : Those
3. ans = COUNT(fruits) : How many"""


def kind(text: str) -> str:
    return LABELS[text.split()[0]]


class Failing(Reading):
    """Has no whole reply to some requests: `why` says which and how."""

    def __init__(self, oracle: Oracle, why: Callable[[str], ModelError | None]) -> None:
        def reply(request: Request) -> str:
            text = oracle(request)
            if (error := why(text)) is not None:
                raise error
            return text

        super().__init__(reply)


def cut_off(reply: str) -> ModelError:
    return ModelError("cut off", kind="truncated", reply=reply)


def test_of_a_reply_that_is_cut_off_the_whole_values_count() -> None:
    oracle = Oracle(kind)

    def why(text: str) -> ModelError | None:
        lines = text.splitlines(keepends=True)
        return cut_off("".join(lines[:29]) + lines[29][:6]) if len(lines) == 32 else None

    answer = asyncio.run(Pearl(Failing(oracle, why)).execute(COUNTING, entries(40)))
    assert (answer.text, answer.status) == ("other", "answered")
    assert sorted(map(len, oracle.asked)) == [3, 8, 32]  # 30 began


def failing(error: ModelError, *, is_all: bool = False) -> Failing:
    """Fails at the whole batch, or always."""
    return Failing(Oracle(kind), lambda text: error if is_all or text.count("\n") == 31 else None)


@pytest.mark.parametrize("error_kind", ["truncated", "repetition", "empty", "refused", "filtered"])
@pytest.mark.usefixtures("_no_waits")
def test_one_batch_without_a_usable_reply_is_undecided(error_kind: ModelErrorKind) -> None:
    model = failing(ModelError("no reply", kind=error_kind))
    answer = asyncio.run(Pearl(model).execute(COUNTING, entries(40)))
    assert answer.status == "undecided"
    assert "32 of 40 rows are undecided" in answer.why


@pytest.mark.parametrize(
    "model", [failing(cut_off(""), is_all=True), failing(ModelError("cut off", kind="bad_request"))]
)
def test_no_usable_reply_at_all_or_a_failing_server_is_an_error(model: Failing) -> None:
    with pytest.raises(ExecutionError, match="cut off"):
        asyncio.run(Pearl(model).execute(COUNTING, entries(40)))


def test_the_verdicts_on_rows_are_in_the_result_and_in_the_trace() -> None:
    said = {"Ann, 63": "yes", "Ben, 40": "no", "Eve": "Not stated."}
    answer = run(FILTERING, Document("\n".join(said)), Oracle(said.__getitem__))
    step = answer.to_dict()["steps"][1]
    assert (step["state"], step["verdicts"]) == ("found", {"yes": 1, "not stated": 1, "no": 1})
    (event,) = (e for e in answer.trace if e.event == "step_finished" and e.step == "fruits")
    assert event.verdicts == step["verdicts"]


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ("{value}", "there is no line with the number of an item in it"),
        ("{number}: {value}", "item "),
        ("{place}: {value}", "there is no "),
        ("{key} {next_value} and", "item "),
        ("{number} {next_words} {value}", "item "),
    ],
)
def test_a_reply_never_decides_another_item(form: str, why: str) -> None:
    """Every item is asked about again, with the reason; what is never of the form is undecided."""

    def odd(request: Request) -> str:
        assert isinstance(request.task, ItemsTask)
        items, keys = request.task.items, item_keys(request.prompt)
        words = [key.partition(" ")[2] for key in keys]
        return "\n".join(
            form.format(
                number=key.split()[0], key=key, place=i + 1, value=kind(items[i]), next_value=kind(items[i - 1]),
                next_words=words[i - 1],
            )
            for i, key in enumerate(keys)
        )  # fmt: skip

    model = Scripted(odd)
    answer = asyncio.run(Pearl(model).execute(COUNTING, entries(10)))
    assert answer.status == "undecided"
    first, second = model.requests
    assert "(what was wrong before: " not in first.prompt
    assert f"(what was wrong before: {why}" in second.prompt
    mended = Scripted(lambda request: (odd if len(mended.requests) == 1 else Oracle(kind))(request))
    answer = asyncio.run(Pearl(mended).execute(COUNTING, entries(10)))
    assert (answer.status, len(mended.requests)) == ("answered", 2)


PATIENTS = """\
id,age,sex,complaint,history
1,63,f,feels dizzy,HISTORY
2,40,m,"hot, ""39""
and </item 2> red",none
3,63,f,,none
4,,m,feels dizzy,none
"""


@pytest.mark.parametrize(
    ("condition", "has_history"),
    [("older than 60", True), ("the age is over 60, or the complaint is of the head", False)],
)
@pytest.mark.parametrize("form", ["csv", "markdown", "tsv"])
def test_a_model_is_shown_the_names_of_columns(
    condition: str, has_history: bool, form: str
) -> None:
    """Those that the plan names, and others as long as there is room; evidence is as in the document."""
    long = "was well " * 100
    text = PATIENTS.replace("HISTORY", long)
    if form == "tsv":
        cells = csv.reader(io.StringIO(text))
        text = "\n".join("\t".join(" ".join(cell.split()) for cell in row) for row in cells)
    elif form == "markdown":
        header, *rows = csv.reader(io.StringIO(text))
        text = markdown(header, rows)
    oracle = Oracle(lambda text: "yes" if "age: 63" in text else "no")
    plan = FILTERING.replace("line", "record").replace("it is a fruit", condition)
    answer = run(plan, Document(text), oracle)
    assert answer.text == "2"
    (items,) = oracle.asked
    history = f"\nhistory: {long.strip()}" if has_history else ""  # too long to be shown unasked
    assert items == [
        f"id: 1\nage: 63\nsex: f\ncomplaint: feels dizzy{history}",
        'id: 2\nage: 40\nsex: m\ncomplaint: hot, "39" and &lt;/item 2> red\nhistory: none',
        "id: 3\nage: 63\nsex: f\nhistory: none",
        "id: 4\nsex: m\ncomplaint: feels dizzy\nhistory: none",
    ]
    assert all(row.text in text and row.value == row.text for row in answer.row_evidence)


def test_rows_that_are_shown_alike_are_asked_about_once() -> None:
    text = "id,note,place\n" + "".join(f"{i},{'red ' * 200}{i % 2},Oslo\n" for i in range(9))
    oracle = Oracle(lambda text: "yes" if text.endswith("1") else "no")
    plan = FILTERING.replace("line", "record").replace("it is a fruit", "the note says so")
    assert run(plan, Document(text), oracle).text == "4"
    assert [len(batch) for batch in oracle.asked] == [2]


class Unholdable(Reading):
    """Seems to take a form until it is sent one: refuses it, or pays no attention."""

    constrains = Constrains(frozenset({"json"}))
    refuses = True

    async def complete(self, request: Request) -> Completion:
        if request.constraint is not None and self.refuses:
            raise ModelError("no schemas here", kind="unconstrained")
        return await super().complete(request)


@pytest.mark.parametrize("refuses", [True, False])
def test_names_are_asked_for_where_no_form_is_taken(refuses: bool) -> None:
    oracle = Oracle(kind)
    model = Unholdable(lambda request: f"Sure:\n{oracle(request)}")
    model.refuses = refuses
    answer = asyncio.run(Pearl(model).execute(COUNTING, entries(40)))
    assert (answer.text, answer.status) == ("other", "answered")
    named = ["also write the first word" in request.prompt for request in model.requests]
    assert named == ([True, True] if refuses else [False, False, True, True])


def test_the_same_step_in_another_plan_takes_no_call() -> None:
    oracle = Oracle(kind)
    document = entries(50)

    async def both() -> tuple[Answer, Answer]:
        pearl = Pearl(Reading(oracle))
        one = await pearl.execute(COUNTING, document)
        other = (
            COUNTING.replace("-1", "1").replace("Label each", "Sort them").replace("label", "sort")
        )
        return one, await pearl.execute(other, document)

    one, other = asyncio.run(both())
    assert (one.text, other.text) == ("other", "fruit; root")
    assert len(oracle.asked) == 2


def test_of_an_edited_document_only_the_calls_with_the_edited_line_are_made_again() -> None:
    oracle = Oracle(kind)
    document = entries(64)
    edited = Document(document.text.replace("Item: beet 1\n", "Item: egg 1000\n"))

    async def both() -> None:
        pearl = Pearl(Reading(oracle))
        await pearl.execute(COUNTING, document)
        await pearl.execute(COUNTING, edited)

    asyncio.run(both())
    (again,) = oracle.asked[2:]
    assert (len(again), "egg 1000" in again) == (32, True)


@pytest.mark.parametrize(
    ("said", "n", "notes"),
    [
        ("yes", "1", ()),
        (
            "Not stated.",
            "0 of the 2 rows that state it; 1 does not state it",
            ("long: 0 yes, 2 no, 1 not stated",),
        ),
    ],
)
def test_a_row_longer_than_the_window_is_read_in_parts(
    said: str, n: str, notes: tuple[str, ...]
) -> None:
    plan = """\
1. rows = SPLIT(CTX, "line") : One row a line
2. long = FILTER(rows, "it is about a boat") : Those about boats
3. ans = COUNT(long) : How many"""
    long = "There was a boat. " * 2_000

    def say(request: Request) -> str:
        if isinstance(request.task, ItemsTask):
            return item_lines(request, lambda text: "no")
        return said

    document = Document(f"One.\n{long}\nTwo.")
    answer = asyncio.run(Pearl(Scripted(say), window=4_096).execute(plan, document))
    assert (answer.text, answer.notes) == (n, notes)
    assert answer.steps[1].n_calls > 3


def test_a_row_that_just_fits_a_batch_is_asked_about_once() -> None:
    document = Document("apple " * 400)
    is_alone = set[frozenset[bool]]()
    for window in range(1_220, 1_320):
        model = Reading(lambda r: "1: yes" if isinstance(r.task, ItemsTask) else "yes")
        asyncio.run(Pearl(model, window=window, max_output_tokens=100).execute(FILTERING, document))
        is_alone.add(frozenset(isinstance(r.task, ItemsTask) for r in model.requests))
    assert is_alone == {frozenset({True}), frozenset({False})}


def test_top_is_a_tournament() -> None:
    plan = """\
1. rows = SPLIT(CTX, "line") : One row a line
2. best = TOP(rows, "the number", 3) : The three first
3. ans = FIRST(best) : The first"""

    document = Document("\n".join(f"number {i * 37 % 101:03}" for i in range(101)))
    answer = asyncio.run(Pearl(Scripted(picking)).execute(plan, document))
    assert answer.text == "number 000"
    assert answer.steps[1].text.splitlines() == ["- number 000", "- number 001", "- number 002"]
    assert answer.steps[1].n_calls <= -(-101 // 32) + 1


def picking(request: Request) -> str:
    """Chooses the items that are first in the alphabet."""
    assert isinstance(request.task, ItemsTask)
    items = request.task.items
    first = sorted(range(len(items)), key=items.__getitem__)[: request.task.n_picks]
    return "\n".join(str(i + 1) for i in first)


TOP = """\
1. rows = SPLIT(CTX, "line") : One row a line
2. ans = TOP(rows, "early in the alphabet", 3) : The first ones"""


def test_rows_that_cannot_be_compared_in_one_call_are_not_ranked() -> None:
    document = Document("\n".join(f"{letter} {'word ' * 100}".strip() for letter in "zyxwvutabc"))
    small = Scripted(picking)
    with pytest.raises(ExecutionError, match="no 4 of them fit one call"):
        asyncio.run(Pearl(small, window=1_000, max_output_tokens=200).execute(TOP, document))
    assert not small.requests
    wide = Pearl(Scripted(picking), window=1_300, max_output_tokens=200)
    answer = asyncio.run(wide.execute(TOP, document))
    assert [line[2] for line in answer.text.splitlines()] == ["a", "b", "c"]


def test_equal_rows_share_a_place_of_the_first_ones() -> None:
    document = Document("\n".join(["beet", "apple", "apple", "date", "carrot", "carrot"]))
    answer = asyncio.run(Pearl(Scripted(picking)).execute(TOP, document))
    assert answer.text == "- apple\n- apple\n- beet"


@pytest.mark.parametrize("n_dropped", [0, 20])
def test_a_token_budget_holds_for_all_calls_of_a_step(n_dropped: int) -> None:
    oracle = Oracle(lambda text: "yes", n_dropped)
    document = entries(100)

    def ask(token_budget: int) -> tuple[Answer, int]:
        model = Scripted(oracle)
        pearl = Pearl(model)
        answer = asyncio.run(pearl.execute(FILTERING, document, token_budget=token_budget))
        count = pearl.limits.counter.count
        return answer, sum(count(request.prompt) for request in model.requests)

    with pytest.raises(
        ExecutionError, match=r"a budget of 1,000 tokens is too small: .*its 100 rows"
    ):
        ask(1_000)
    assert not oracle.asked
    answer, n_tokens = ask(50_000)
    assert (answer.text, answer.status) == ("100", "answered")
    budget = n_tokens if not n_dropped else n_tokens - 1
    answer, n_tokens = ask(budget)
    assert n_tokens <= budget
    assert (answer.status == "answered") == (not n_dropped)


@pytest.mark.parametrize("others", [[], ["beet"], ["apple again " * 1_000]])
def test_a_row_longer_than_a_token_budget_is_read_only_if_it_is_the_only_one(
    others: list[str],
) -> None:
    model = Reading(lambda r: "1: yes" if isinstance(r.task, ItemsTask) else "yes")
    document = Document("\n".join(["apple " * 3_000, *others]))
    pearl = Pearl(model, window=2_000, max_output_tokens=200)
    execution = pearl.execute(FILTERING, document, token_budget=3_000)
    if not others:
        assert asyncio.run(execution).text == "1"
    else:
        with pytest.raises(ExecutionError, match="its 2 rows need more than the 3,000 tokens"):
            asyncio.run(execution)
    assert len(model.requests) == (not others)
    assert all(pearl.limits.counter.count(each.prompt) <= 3_000 for each in model.requests)


def test_rows_are_asked_about_again_as_long_as_that_brings_replies() -> None:
    never = Oracle(lambda text: None if "egg" in text else "yes")
    answer = run(FILTERING, entries(10), never)
    assert answer.text == "8 (2 undecided)"
    assert [len(asked) for asked in never.asked] == [10, 2, 2]
    sizes = []

    def last_two(request: Request) -> str:
        keys = item_keys(request.prompt)
        sizes.append(len(keys))
        return "\n".join(f"{key} yes" for key in keys[-2:])

    model = Scripted(last_two)
    answer = asyncio.run(Pearl(model).execute(FILTERING, entries(20)))
    assert sizes == list(range(20, 20 - 2 * MAX_ROUNDS, -2))
    assert answer.text == f"{2 * MAX_ROUNDS} ({20 - 2 * MAX_ROUNDS} undecided)"


@pytest.mark.parametrize(
    ("text", "steps", "coverage"),
    [
        ("apple\n\nbeet\n", ['rows = SPLIT(CTX, "line")'], 1),
        ("apple\n\nbeet\n", ['all = SPLIT(CTX, "line")', 'rows = FILTER(all, "it is red")'], 1),
        ("A: beet || B: 1\nA: apple || B: 2", ['all = SPLIT(CTX, "record")', 'rows = FIELD(all, "A")'], 9 / 32),
        ("apple", ['rows = CLASSIFY(["a", "b"], ["yes", "no"], "its kind")'], None),
    ],
)  # fmt: skip
def test_coverage_is_what_was_shown_of_the_document(
    text: str, steps: list[str], coverage: float | None
) -> None:
    lines = [*steps, 'ans = FILTER(rows, "it is a fruit")']
    plan = "\n".join(f"{i}. {line} : It" for i, line in enumerate(lines, 1))
    answer = run(plan, Document(text), Oracle(lambda text: "yes" if "apple" in text else "no"))
    assert answer.coverage == coverage
    if len(steps) == 2 and coverage == 1:  # a later step is shown less
        assert (answer.steps[2].coverage or 1) < 1


@pytest.mark.parametrize("unit", ["document", "paragraph"])
def test_the_headings_of_joined_files_are_no_part_that_was_not_read(unit: str) -> None:
    plan = f"""\
1. rows = SPLIT(CTX, "{unit}") : One row each
2. ans = FILTER(rows, "it is a fruit") : Those
3. red = FILTER(ans, "it is red") : Those of them"""
    files = [CorpusDocument(f"{name}.txt", f"{name}\n\n{name}\n\n") for name in ("apple", "beet")]
    answer = run(
        plan, Index.build(files).document(), Oracle(lambda text: "yes" if "apple" in text else "no")
    )
    assert answer.steps[1].coverage == 1
    assert 0.4 < (answer.steps[2].coverage or 0) < 0.6


@pytest.mark.parametrize(
    ("labels", "is_data"),
    [('["fruit", "root"]', False), ("said", True), ('["fruit", said]', True)],
)
def test_labels_are_data_where_a_model_said_them(labels: str, is_data: bool) -> None:
    plan = f"""\
1. rows = SPLIT(CTX, "line") : One row a line
2. said = FIND_EVENT(CTX, "the kinds of food") : Kinds
3. ans = CLASSIFY(rows, {labels}, "its kind") : Label"""

    def reply(request: Request) -> str:
        return (
            "1: fruit" if isinstance(request.task, ItemsTask) else '{"entries": ["fruit", "root"]}'
        )

    model = Scripted(reply)
    answer = asyncio.run(Pearl(model).execute(plan, Document("apple")))
    assert answer.text.endswith("- apple: fruit")
    (task,) = (r.task for r in model.requests if isinstance(r.task, ItemsTask))
    assert ("LABELS" in task.inputs) == is_data
