"""Six plans over collections, from the file to the answer: generated documents, hidden labels.

Not a word of an entry betrays its label: the scripted model looks it up in the table that the
document was made with, and the answer is computed here a second time from that table.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pearl import Document, Pearl
from pearl.actions.library import library_names, load_library
from pearl.actions.operators import with_operators
from pearl.documents.document import Source, join
from pearl.documents.sources import with_sources
from pearl.dsl.checker import compile_plan
from pearl.dsl.decoding.forms import plan_form
from pearl.dsl.decoding.grammar import indexed_grammar, static_grammar
from pearl.dsl.nodes import Argument, Declared, ListLiteral, Plan, Reference, String, print_plan
from pearl.dsl.parser import parse
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanError
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask, ItemsTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index
from pearl.runs.executors import Task
from pearl.runs.forecast import forecast
from tests.dsl.sampling import admits, counted
from tests.models import item_lines
from tests.root import ROOT

PLANS = {path.stem: path for path in sorted((ROOT / "tests" / "plans").glob("*.plan"))}


@pytest.mark.parametrize("library", library_names())
@pytest.mark.parametrize("path", PLANS.values(), ids=PLANS)
def test_a_plan_is_valid_and_canonical_with_every_library(path: Path, library: str) -> None:
    text = path.read_text(encoding="utf-8")
    checked = compile_plan(text, with_operators(load_library(library)))
    assert checked.notes == ()
    assert f"{print_plan(checked.plan)}\n" == text


@pytest.mark.parametrize("path", PLANS.values(), ids=PLANS)
def test_decoders_can_write_the_plan(path: Path) -> None:
    plan = parse(path.read_text(encoding="utf-8"))
    known = with_operators(load_library("seed"))
    text = print_plan(replace(plan, question=None))
    assert admits(static_grammar(known), text)
    library = known.extended(plan.new_actions)
    assert admits(indexed_grammar(library), counted(plan, library))
    as_json = {"new_actions": [], "steps": [*_as_json_steps(plan, library)]}
    assert text.endswith(plan_form(library).text_of(as_json).partition("\n\n")[2])


def _as_json_steps(plan: Plan, library: ActionLibrary) -> Iterator[dict[str, Any]]:
    for step in plan.steps:
        action = library[step.action]
        names = [parameter.name for parameter in action.parameters[: action.min_arity]]
        given = [_as_json(argument) for argument in step.arguments]
        arguments = dict(zip(names, given, strict=False))
        if action.is_variadic:
            arguments["more"] = given[len(names) :]
        yield {
            "output": step.output, "action": step.action, "arguments": arguments,
            "purpose": step.explanation,
        }  # fmt: skip


def _as_json(argument: Argument) -> Any:
    match argument:
        case Reference():
            return {"output": argument.name}
        case ListLiteral():
            return [_as_json(item) for item in argument.items]
        case _:
            return argument.value


@dataclass
class Labelled:
    """A model that knows about each item what stands in a table, by the step that asks."""

    says: Mapping[str, Callable[[str], str]]
    asked: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: Request) -> str:
        task = request.task
        if isinstance(task, ActionTask):
            queries = '{"entries": ["seal broke", "pump stopped"]}'
            return queries if task.document is None else "Summed up."
        assert isinstance(task, ItemsTask)
        self.asked[task.output] += 1
        if task.n_picks:
            say = self.says[task.output]
            ranked = sorted(range(len(task.items)), key=lambda i: int(say(task.items[i])))
            return "\n".join(str(i + 1) for i in ranked[: task.n_picks])
        return item_lines(request, self.says[task.output])


def run(
    name: str, document: Document, says: Mapping[str, Callable[[str], str]]
) -> tuple[Answer, Labelled]:
    model = Labelled(says)
    plan = PLANS[name].read_text(encoding="utf-8")
    answer = asyncio.run(Pearl(Scripted(model)).execute(plan, document))
    open_plan, values = with_parameters(parse(plan))
    assert values
    pearl = Pearl(Scripted(Labelled(says)))
    again = asyncio.run(pearl.execute(open_plan, document, parameters=values))
    assert [(s.output, s.text) for s in again.steps] == [(s.output, s.text) for s in answer.steps]
    assert (again.text, again.row_evidence) == (answer.text, answer.row_evidence)
    _is_same_over_a_source(plan, document, says, answer)
    task = Task("", lambda: document, plan=open_plan, parameters=values)
    literal = Task("", lambda: document, plan=plan)
    costs = [forecast(pearl, [each]).total.calls for each in (task, literal)]
    assert costs[0] == costs[1]
    return answer, model


def _is_same_over_a_source(
    plan: str, document: Document, says: Mapping[str, Callable[[str], str]], answer: Answer
) -> None:
    """The document as one of two sources gives the same, in its own places; the other is never read."""
    assert "CTX" in plan
    head, gap, rest = plan.replace("CTX", "data").partition("\n\n")
    text = f"{head}{gap}Sources:\n- other\n- data{gap}{rest}"
    sources = {"other": Document("Nobody reads this.", "other.txt"), "data": document}
    again = asyncio.run(Pearl(Scripted(Labelled(says))).execute(text, sources=sources))

    def plain(said: str) -> str:
        return said.replace("data: ", "").replace("data", "CTX")

    assert [plain(step.text) for step in again.steps] == [
        step.text.replace("data", "CTX") for step in answer.steps
    ]
    shown = [each.to_dict()["evidence"] for each in (answer, again)]
    assert all(each["source"].startswith("data: ") for each in shown[1])
    assert str(shown[0]).replace("data", "CTX") == plain(str(shown[1]))
    read_by = [place["document"] for place in again.provenance["sources"]]
    assert all(name.startswith("data: ") for name in read_by)
    assert [each.coverage for each in again.steps] == [each.coverage for each in answer.steps]
    files = (f"data: {name}" for name in dict(document.parts) or [document.name])
    assert {*read_by} <= {*files, f"data: {document.name}"}
    joined = with_sources(None, [Source(*each) for each in sources.items()])
    pearl = Pearl(Scripted(Labelled(says)))
    tasks = Task("", lambda: document, plan=plan), Task("", lambda: joined, plan=text)
    costs = [forecast(pearl, [task]).total for task in tasks]
    assert costs[0].calls == costs[1].calls


def with_parameters(plan: Plan) -> tuple[str, dict[str, str]]:
    """The plan with a parameter for every text that one may stand for, and their values."""
    library, values = with_operators(load_library("seed")), dict[str, str]()
    for i, step in enumerate(plan.steps):
        for j, argument in enumerate(step.arguments):
            if not isinstance(argument, String):
                continue
            name = f"given_{i}_{j}"
            arguments = (*step.arguments[:j], Reference(name), *step.arguments[j + 1 :])
            step_with = msgspec.structs.replace(step, arguments=arguments)
            steps = (*plan.steps[:i], step_with, *plan.steps[i + 1 :])
            parameters = (*plan.parameters, Declared(name, "a text"))
            candidate = replace(plan, steps=steps, parameters=parameters)
            with suppress(PlanError):
                compile_plan(print_plan(candidate), library)
                plan, step = candidate, step_with
                values[name] = argument.value
    return print_plan(plan), values


# --- entries of users, with dates --------------------------------------------------------------

LABELS = ("abbreviation", "entity", "human being", "location", "numeric value")


@dataclass(frozen=True)
class Entry:
    date: str
    user: str
    text: str
    label: str


def entry(i: int) -> Entry:
    label = LABELS[(i * i + i // 3 + 2) % 5]
    date = f"2023-{1 + (i * 7) % 12:02}-{1 + (i * 5) % 28:02}"
    return Entry(date, str(1000 + i % 9), f"What of number {i}?", label)


ENTRIES = [entry(i) for i in range(200)]
WINDOW = Document(
    "\n".join(f"Date: {e.date} || User: {e.user} || Instance: {e.text}" for e in ENTRIES),
    "window.txt",
)
LABEL_OF = {e.text: e.label for e in ENTRIES}


def test_counting() -> None:
    answer, model = run("counting", WINDOW, {"label": LABEL_OF.__getitem__})
    counts = Counter(e.label for e in ENTRIES)
    least, n = counts.most_common()[-1]
    assert list(counts.values()).count(n) == 1
    assert answer.text.startswith(least)
    assert model.asked == {"label": 7}  # 200 different texts, 32 a call


def test_timeline() -> None:
    answer, _ = run("timeline", WINDOW, {"label": LABEL_OF.__getitem__})
    before = [e.label == "entity" for e in ENTRIES if e.date < "2023-06-01"]
    after = [e.label == "entity" for e in ENTRIES if e.date > "2023-06-01"]
    share, other = sum(before) / len(before), sum(after) / len(after)
    assert answer.text == ("more" if share > other else "less" if share < other else "same")


def test_pairs() -> None:
    answer, _ = run("pairs", WINDOW, {"label": LABEL_OF.__getitem__})
    have = {e.user for e in ENTRIES if e.label in ("human being", "location")}
    barred = {e.user for e in ENTRIES if e.label == "human being" and e.date <= "2023-01-06"}
    left = sorted(have - barred)
    assert barred
    assert len(left) > 2
    wanted = [set(pair) for pair in combinations(left, 2)]
    assert [set(re.findall(r"\d+", line)) for line in answer.text.splitlines()] == wanted


# --- letters, clauses, turns --------------------------------------------------------------------


def test_letters() -> None:
    drugs = {
        f"Letter of patient {i}.": ("warfarin", "apixaban", "warfarin", "")[i % 4]
        for i in range(40)
    }
    document = join([Document(text, f"{i}.txt") for i, text in enumerate(drugs)])

    def drug(item: str) -> str:
        return next(said for text, said in drugs.items() if text in item)

    says = {"bled": lambda item: "yes" if drug(item) else "no", "drug": drug}
    answer, model = run("letters", document, says)
    counted, _, gist = answer.text.partition("\n\n")
    assert re.findall(r"\w+", counted) == ["warfarin", "20", "apixaban", "10"]
    assert gist == "Summed up."
    assert model.asked == {"bled": 2, "drug": 1}


def test_clauses() -> None:
    days = {"Exit": 90, "Convenience": 30, "Renewal": 60}
    names = ("Scope", "Exit", "Fees", "Convenience", "Law", "Renewal")
    text = "\n\n".join(f"## {name}\n\nThe parties agree on {name.lower()}." for name in names)

    def of(item: str) -> int | None:
        return next((n for name, n in days.items() if name in item), None)

    says = {
        "exits": lambda item: "yes" if of(item) else "no",
        "days": lambda item: str(of(item)),
        "party": lambda item: "customer" if of(item) == 90 else "either",
    }
    answer, _ = run("clauses", Document(text, "contract.md"), says)
    table, _, least = answer.text.rpartition("\n\n")
    assert least == "30"
    rows = [[cell.strip() for cell in line.split("|")[2:4]] for line in table.splitlines()]
    assert rows[0] == ["party", "days"]
    assert rows[2:] == [["customer", "90"], ["either", "30"], ["either", "60"]]


def test_complaints() -> None:
    harm = {"it burned me": 1, "it stains": 3, "it rattles": 4, "it leaks acid": 2}
    said = ["good morning", *harm, "thank you"]
    text = "\n".join(f"{('Ann', 'Ben')[i % 2]}: Well, {line}." for i, line in enumerate(said))

    def of(item: str) -> int | None:
        return next((n for line, n in harm.items() if line in item), None)

    says = {
        "complaints": lambda item: "yes" if of(item) else "no",
        "worst": lambda item: str(of(item)),
        "harm": lambda item: f"harm {of(item)}",
    }
    answer, _ = run("complaints", Document(text, "call.txt"), says)
    lines = answer.text.splitlines()
    assert [line.split("|")[2].strip() for line in lines[2:]] == ["harm 1", "harm 2", "harm 3"]
    assert "it burned me" in lines[2]


# --- reports of a corpus --------------------------------------------------------------------------


def test_causes() -> None:
    telling = {3: "the seal broke", 11: "sand got in", 12: "the seal was dry", 30: "a fuse"}
    usual = "of the water works.\n\nNobody was hurt.\n\nThe seal of the letter was red."
    reports = {
        f"report{i}.txt": f"Report {i} {usual}"
        + (f"\n\nThe pump stopped: {telling[i]}." if i in telling else "")
        for i in range(40)
    }
    corpus = Index.build(CorpusDocument(*report) for report in reports.items()).document("works")
    says = {
        "best": lambda item: "0" if "pump" in item else "1",
        "cause": lambda item: item.partition(": ")[2].rstrip("."),
        "done": lambda item: "it was mended",
    }
    answer, model = run("causes", corpus, says)
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in answer.text.splitlines()]
    assert rows[0] == ["Document", "cause", "done"]
    found = {(name, cause) for name, cause, _ in rows[2:6]}
    assert found == {(f"report{i}.txt", cause) for i, cause in telling.items()}
    assert {row.source for row in answer.row_evidence} == {f"report{i}.txt" for i in telling}
    assert all({"passages"} == set(dict(row.ranks)) for row in answer.row_evidence)
    assert "among the 30 that match" in answer.text
    assert model.asked == {"best": 1, "cause": 1, "done": 1}
