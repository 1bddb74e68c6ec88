"""Shapes of replies as models write them: read as what they say, asked again, or taken for no answer.

The shapes are lines of tests/replies/*.toml, whose first lines say what the values mean; a new shape is a new line.
Every reply is sent to the step or the prompt that it answers, by a model that gives it again when it is asked again.
"""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pearl.actions.library import read_library
from pearl.actions.values import items_of, number_of
from pearl.documents.document import Document
from pearl.documents.evidence import find_quotes, quoted_line
from pearl.documents.numbers import quantity
from pearl.documents.rows import Rows
from pearl.dsl import nodes
from pearl.dsl.nodes import Plan, Reference
from pearl.dsl.parser import parse
from pearl.dsl.signatures import ValueType
from pearl.errors import ExecutionError, ModelError, PlanningError
from pearl.interpreter.parts import AnswerPart
from pearl.interpreter.results import StepResult
from pearl.llm import ItemsTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.replies.step_replies import read_reply, without_fences
from tests.figures import FIGURES
from tests.models import Reading, item_keys
from tests.root import ROOT
from tests.suite import Trial

TITLE = "shapes of replies: "


def corpus(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "tests" / "replies" / f"{name}.toml").read_text(encoding="utf-8"))


def report(
    trial: Trial, n_shapes: int, wrong: list[str], at_once: list[bool], share: float
) -> None:
    """The shapes that are read wrongly are shown where the test fails."""
    print(*wrong, sep="\n")  # noqa: T201
    trial.figure("shapes", n_shapes)
    trial.figure("wrong values accepted", len(wrong), at_most=0)
    if at_once:
        trial.figure("values read at once", round(sum(at_once) / len(at_once), 3), at_least=share)


# ---------------------------------------------------------------------------------------------
# Steps: numbers, lists, verdicts, labels, texts

STEP_LIBRARY = read_library(
    """\
FIND_FIGURE(CTX, X) -> Number : Find the figure of X in CTX
LIST_ALL(CTX, X) -> List : List every X of CTX
IS_TRUE(CTX, X) -> Bool : Say whether X is true of CTX
FIND_REASON(CTX, X) : Find the reason why X happens
""",
    "corpus",
)
STORY = Document(
    "The farmer has a dog, a cat, a fox and a hen. The dog saw the cat. The fox ran. The captain turned back at dusk.\n"
    "In 2010 the RSU expense was $138.0 million, in 2009 it was $124.0 million.\nRSU expense 138.0 124.0\n",
    "story.txt",
)
NO_VALUE = ("again", "nothing", "refused")


def number(result: StepResult) -> str:
    value = number_of(result.value)
    return str(int(value)) if value == int(value) else str(value)


def label(result: StepResult) -> str:
    assert isinstance(result.value, Rows)
    return str(result.value[0].fields["a"])


def entries(result: StepResult) -> str:
    return "|".join(items_of(result.value))


STEPS: dict[str, tuple[str, Callable[[StepResult], str], float]] = {
    "numbers": ('FIND_FIGURE(CTX, "the RSU expense for 2010")', number, 1),
    "lists": ('LIST_ALL(CTX, "animal")', entries, 1),
    "verdicts": ('IS_TRUE(CTX, "the captain turns back")', lambda result: result.text, 1),
    "labels": (
        'CLASSIFY(["The captain turned back at dusk."], ["noon", "dusk", "dawn", "no time given"], "the time")',
        label,
        0.9,
    ),
    "texts": ('FIND_REASON(CTX, "the captain turns back")', lambda result: result.text, 1.0),
}
"""The step that the replies answer, its value as the corpus writes it, and the share of the values in the form that is
asked for, if the corpus has a group of them, to be read at once."""


def step_reading(reply: str, kind: str) -> tuple[str, bool, bool]:
    """What is read of a reply, whether at once, and whether the answer is marked as uncertain."""
    call, written, _ = STEPS[kind]
    model = Reading(lambda request: reply)
    try:
        answer = asyncio.run(
            Pearl(model, library=STEP_LIBRARY, check="off", first_wait_s=0.001).execute(
                f"1. a = {call} : Do it", STORY
            )
        )
    except (ExecutionError, ModelError):
        return "refused", False, True
    (result,) = answer.steps
    read = {"undecided": "again", "found": ""}.get(result.state, result.state)
    return read or written(result), len(model.requests) == 1, answer.is_unsure


def failing(error: ModelError) -> Scripted:
    def reply(request: Request) -> str:
        raise error

    return Scripted(reply)


@pytest.mark.row("R38", TITLE + "steps")
@pytest.mark.parametrize("kind", STEPS)
def test_no_reply_is_read_wrongly(trial: Trial, kind: str) -> None:
    wrong: list[str] = []
    at_once: list[bool] = []
    n_again = n_unsure = 0
    shapes = [(family, *shape) for family, group in corpus(kind).items() for shape in group.items()]
    for family, reply, value in shapes:
        wanted = reply if value == "answer" else value
        got, is_first, is_unsure = step_reading(reply, kind)
        # To be undecided is always safe, but texts have no form that they could miss; without a quote they are uncertain.
        is_safe = got == "again" if kind != "texts" else is_unsure and wanted in NO_VALUE
        n_unsure += wanted in NO_VALUE and is_unsure and got not in NO_VALUE
        if got != wanted and not is_safe and not (got == "refused" and wanted == "again"):
            wrong.append(f"{family}: {reply!r} is read as {got!r}, not as {wanted!r}")
        if wanted not in NO_VALUE or (kind, family, wanted) == ("lists", "form", "nothing"):
            n_again += got == "again"
            if family == "form" or "form" not in corpus(kind):
                at_once.append(got == wanted and is_first)
                if not at_once[-1]:
                    print(f"not read at once: {family}: {reply!r}")  # noqa: T201
    trial.figure("values asked for again", n_again)
    trial.figure("texts without a value marked as uncertain", n_unsure)
    report(trial, len(shapes), wrong, at_once, STEPS[kind][2])


def quotes_of(reply: str) -> tuple[str, ...]:
    return read_reply(reply, ValueType.LIST).quotes[-1:]


def test_a_list_in_any_form_is_kept_in_one() -> None:
    """With "- " before entries and "> " before quotes: the evidence of each entry is found so."""
    for reply, value in corpus("lists")["form"].items():
        read = read_reply(reply, ValueType.LIST)
        if value not in NO_VALUE:
            lines = [line for line in without_fences(read.plain) if line.strip()]
            assert [line for line in lines if not line.startswith(("- ", "> "))] == [], reply
            again = read_reply(read.plain, ValueType.LIST)
            assert (again.value, {*again.quotes}) == (read.value, {*read.quotes}), reply


def unquoted(reply: str) -> str:
    return "\n".join(line for line in without_fences(reply) if quoted_line(line) is None)


def test_a_text_that_is_a_list_has_entries() -> None:
    """In all plain forms of lists that are read, with the passages that "- " and "> " would give them."""

    def part(reply: str) -> AnswerPart:
        pearl = Pearl(Scripted(lambda _: reply), library=STEP_LIBRARY, check="off")
        return asyncio.run(pearl.execute('1. a = FIND_REASON(CTX, "x") : Do', STORY)).parts[0]

    n = 0
    for reply, value in [shape for group in corpus("lists").values() for shape in group.items()]:
        read = read_reply(reply, ValueType.LIST)
        if read.value == value.split("|") and not read.is_formed:
            found, (dog, *_) = part(reply), read.value
            assert found.value == read.value, reply
            same = part(read.plain)
            assert (found.text, found.entries) == (same.text, same.entries), reply
            bare, marked = map(unquoted, (reply, read.plain))
            assert part(json.dumps({"answer": bare})) == part(json.dumps({"answer": marked})), reply
            divided = f"{bare}\n\n> The fox ran.\n\n> The dog saw the cat."  # by blank lines
            assert find_quotes(divided) == find_quotes(read_reply(divided, ValueType.LIST).plain)
            below = reply.replace(dog, f"{dog}\n> The fox ran.", 1)
            assert part(below).entries == part(read_reply(below, ValueType.LIST).plain).entries
            n += 1
    assert n > 9


@pytest.mark.parametrize("kind", [kind for kind in STEPS if "form" in corpus(kind)])
def test_of_a_form_that_is_cut_off_the_whole_entries_are_kept(kind: str) -> None:
    wrong: list[str] = []
    shapes = [shape for shape in corpus(kind)["form"].items() if shape[1] not in NO_VALUE]
    cut = [(r, v, r.rfind(v.split("|")[-1]) + 1 or -9) for r, v in shapes]
    # Within the last quote, if it stands behind the entries
    cut += [(r, v, at + 3) for r, v, end in cut for q in quotes_of(r) if (at := r.rfind(q)) > end]
    for reply, value, end in cut:
        *whole, last = value.split("|") if kind == "lists" else [value]
        error = ModelError("cut", kind="truncated", reply=reply[:end])
        step, written, _ = STEPS[kind]
        pearl = Pearl(failing(error), library=STEP_LIBRARY, check="off", first_wait_s=0.001)
        answer = asyncio.run(pearl.execute(f"1. a = {step} : Do it", STORY))
        (result,) = answer.steps
        got = written(result).split("|") if result.state == "found" else []
        if got not in (whole, [*whole, last]) or "cut off at its limit" not in answer.why:
            wrong.append(f"{error.reply!r} is read as {got}, not as {whole}: {answer.why}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.row("R38", TITLE + "numbers that native actions compute with")
def test_every_native_action_takes_the_same_number(trial: Trial) -> None:
    plan = (
        '1. a = FIND_FIGURE(CTX, "the RSU expense", "2010") : Find\n'
        '2. b = FIND_FIGURE(CTX, "the RSU expense", "2009") : Find\n'
        "3. y = SUM([a, b]) : Add\n4. z = MAX([a, b]) : Compare"
    )
    wrong: list[str] = []
    shapes = [shape for group in corpus("numbers").values() for shape in group.items()]
    for reply, value in shapes:
        model = Scripted(lambda request, reply=reply: reply)
        pearl = Pearl(model, library=FIGURES, first_wait_s=0.001)
        try:
            *_, y, z = asyncio.run(pearl.execute(plan, STORY)).steps
        except (ExecutionError, ModelError):
            continue
        read = [quantity(step.text).number for step in (y, z) if step.state == "found"]
        number = Decimal(value if value not in NO_VALUE else "NaN")
        if read not in ([], [2 * number, number]):
            wrong.append(f"{reply!r}: {[step.text for step in (y, z)]}")
    report(trial, len(shapes), wrong, [], 0)


# ---------------------------------------------------------------------------------------------
# Rows

ITEMS = (
    "Ann coughs by day",
    "Bob is well",
    "Cid is hot, 39 degrees",
    "Dan has red spots",
    "Eve coughs at night",
    "Fay is hot, 40 degrees",
)
SYMPTOMS = ("cough", "no symptom", "fever", "rash", "cough", "fever")
ROW_STEPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "yes_no": ('FILTER(rows, "the patient coughs")', ("yes", "no", "no", "no", "yes", "no")),
    "label": (
        'CLASSIFY(rows, ["cough", "fever", "rash", "no symptom"], "the symptom")',
        SYMPTOMS,
    ),
    "rating": (
        'CLASSIFY(rows, ["0", "3", "4", "5", "7", "9"], "how ill the patient is")',
        ("4", "0", "7", "3", "5", "9"),
    ),
    "line": ('MAP(rows, "the symptom")', SYMPTOMS),
}


def shaped(shape: str, values: tuple[str, ...], keys: list[str]) -> str:
    def mark(match: re.Match[str]) -> str:
        # A model cannot count up to a random number: it copies that of the item that it looks at.
        return keys[int(match[2] or match[1]) - 1]

    text = re.sub(r"\{v(\d)\}", lambda match: values[int(match[1]) - 1], shape)
    return re.sub(r"\{(\d)(?::(\d))?\}", mark, text)


def row_reading(shape: str, kind: str) -> tuple[list[str | None], int]:
    """The value of every item in the end, None for undecided, and the number of calls."""
    call, values = ROW_STEPS[kind]
    truth = dict(zip(ITEMS, values, strict=True))

    def reply(request: Request) -> str:
        keys = item_keys(request.prompt)
        if len(model.requests) == 1:
            return shaped(shape, values, keys)
        task = request.task
        assert isinstance(task, ItemsTask)
        return "\n".join(
            f"{key}: {truth[item]}" for key, item in zip(keys, task.items, strict=True)
        )

    model = Scripted(reply)
    plan = f'1. rows = SPLIT(CTX, "line") : Lines\n2. x = {call} : Read each'
    answer = asyncio.run(
        Pearl(model, first_wait_s=0.001).execute(plan, Document("\n".join(ITEMS), "ward.txt"))
    )
    rows = answer.steps[-1].value
    assert isinstance(rows, Rows)
    if kind == "yes_no":
        read: dict[str, str | None] = dict.fromkeys(ITEMS, "no")
        read |= {row.text: "yes" for row in rows} | {row.text: None for row in rows.undecided}
    else:
        read = {row.text: row.fields["x"] for row in (*rows, *rows.doubtful)}
    return [read[item] for item in ITEMS], len(model.requests)


@pytest.mark.row("R38", TITLE + "numbered items")
@pytest.mark.parametrize("kind", ROW_STEPS)
def test_no_item_takes_a_wrong_value(trial: Trial, kind: str) -> None:
    wrong: list[str] = []
    at_once: list[bool] = []
    shapes = [
        (group, *shape) for group, shapes in corpus("rows").items() for shape in shapes.items()
    ]
    for group, shape, name in shapes:
        got, n_calls = row_reading(shape, kind)
        if kind == "line":  # a remark in a free line is a part of it
            got = [value and re.split(r" [-(]", value)[0] for value in got]
        if any(a not in (None, b) for a, b in zip(got, ROW_STEPS[kind][1], strict=True)):
            wrong.append(f"{name}: {got}")
        if group == "at once":
            at_once.append(n_calls == 1)
    report(trial, len(shapes), wrong, at_once, 1)


# ---------------------------------------------------------------------------------------------
# Plans, parts of questions, queries

PLAN_LIBRARY = read_library(
    """\
LIST_ALL(CTX, X) -> List : List every X of CTX
FIND_REASON(CTX, X) : Find the reason why X happens
COUNT(LIST) -> Number : Count the entries of LIST
CONCAT(S1, S2, ...) : Join
""",
    "corpus",
)
QUESTION = "How many animals does the farmer have, and why does the captain turn back?"
CLINICS = Document(
    "Clinic,City,Wait\nH&C,Tel Aviv,12\nEye House,Haifa,3\nSea House,Haifa,30\nLod Clinic,Lod,5\n",
    "clinics.csv",
)
LOOKUP = (
    '1. x = LOOKUP(CTX, "Which clinics in Haifa have a wait of less than 20 days?") : Look it up'
)


def calls(plan: Plan) -> object:
    """What a plan computes, whatever its outputs are called."""
    made: dict[str, object] = {}
    for step in plan.steps:
        arguments = [
            [made[i.name] if isinstance(i, Reference) and i.name in made else i for i in items]
            for items in map(nodes.items_of, step.arguments)
        ]
        made[step.output] = (step.action, arguments)
    read = {reference.name for step in plan.steps for reference in step.references()}
    return [call for output, call in made.items() if output not in read]


def plan(model: Scripted) -> object:
    return calls(
        asyncio.run(Pearl(model, library=PLAN_LIBRARY, first_wait_s=0.001).plan(QUESTION)).plan
    )


def query(model: Scripted) -> object:
    answer = asyncio.run(Pearl(model, first_wait_s=0.001).execute(LOOKUP, CLINICS))
    rows = answer.steps[-1].value
    return [row.fields.get("Clinic") for row in rows] if isinstance(rows, Rows) else None


STEPS_OF_PLAN = (
    'animals = LIST_ALL(CTX, "animal of the farmer") : List the animals',
    "number = COUNT(animals) : Count them",
    'reason = FIND_REASON(CTX, "the captain turns back") : Find why',
    "ans = CONCAT(number, reason) : Put them together",
)
ANSWERS = {
    "plans": "\n".join(f"{i}. {step}" for i, step in enumerate(STEPS_OF_PLAN, start=1)),
    "queries": '{"select": ["Clinic"], "where": {"all": [{"column": "City", "op": "is", "value": "Haifa"}, {"column": "Wait", "op": "less than", "value": 20}]}}',
}
"""What `{answer}` stands for."""
STRUCTURES: dict[str, tuple[Callable[[Scripted], object], object]] = {
    "plans": (plan, calls(parse("New actions:\n- None\n\n" + ANSWERS["plans"]))),
    "queries": (query, ["Eye House"]),
}
"""What a model's replies are read as, and what is right."""


def structure_reading(reply: str, kind: str) -> tuple[object, bool]:
    """The value of a reply that is given whenever the model is asked, None for no value, and whether it is read at once."""
    model = Scripted(lambda request: reply)
    try:
        value = STRUCTURES[kind][0](model)
    except (PlanningError, ModelError, ExecutionError):
        return None, False
    return value, len(model.requests) == 1


@pytest.mark.row("R38", TITLE + "plans and queries")
@pytest.mark.parametrize("kind", STRUCTURES)
def test_no_structure_is_read_wrongly(trial: Trial, kind: str) -> None:
    shapes = [(family, *shape) for family, group in corpus(kind).items() for shape in group.items()]
    right = STRUCTURES[kind][1]
    wrong: list[str] = []
    at_once: list[bool] = []
    for family, shape, reads in shapes:
        reply = shape.replace("{answer}", ANSWERS[kind])
        for i, step in enumerate(STEPS_OF_PLAN, start=1):
            reply = reply.replace(f"{{{i}}}", step)
        value, is_first = structure_reading(reply, kind)
        if value is not None and (value != right or reads == "refused"):
            wrong.append(f"{family}: {reply!r} is read as {value}")
        if reads not in ("again", "refused"):
            at_once.append(value == right and is_first)
    report(trial, len(shapes), wrong, at_once, 0.9)
