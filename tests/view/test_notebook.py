"""Objects as notebooks show them: complete, bounded, and no text of them is markup."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from pearl import Answer, Document, Pearl
from pearl.documents.document import from_text, join
from pearl.documents.evidence import Unverified
from pearl.dsl.checker import check
from pearl.dsl.graph import build_graph
from pearl.dsl.nodes import Plan, Reference, Step, String
from pearl.dsl.parser import parse
from pearl.dsl.signatures import Action, ActionLibrary, Parameter
from pearl.errors import (
    Diagnostic,
    Fix,
    LibraryError,
    PearlError,
    PlanningError,
    PlanSyntaxError,
    Span,
)
from pearl.llm import Usage
from pearl.trace import CallFailed, ModelCalled, ModelWaited, PlanAttempted, StepFinished, Trace
from pearl.view.notebook import MAX_DRAWN
from tests.notebooks import OURS, parsed, texts

TEXT = 'ok\n2. b = FIND_EVNT(CTX, "it") : f\nlast'
SPAN = Span(TEXT.index("FIND"), TEXT.index("FIND") + 9)


def test_a_diagnostic_of_a_plan_underlines_its_place_in_its_line() -> None:
    found = Diagnostic("unknown-action", "no <action>", SPAN, help="a & b", fix=Fix(SPAN, "FIND"))
    tree = parsed(PlanSyntaxError(TEXT, [found])._repr_html_())
    assert etree.tostring(tree, method="text", encoding="unicode") == (
        "PlanSyntaxErrorerror 2:8: no <action> [unknown-action]"
        '2 | 2. b = FIND_EVNT(CTX, "it") : fhelp: a & bfix: FIND'
    )
    (underlined,) = tree.xpath(".//pre/span")
    assert underlined.text == "FIND_EVNT"
    alone = parsed(found._repr_html_())
    assert "characters 10-19" in "".join(alone.itertext())


def test_errors_show_all_that_they_know() -> None:
    found = [Diagnostic("a-code", f"message {n}", SPAN) for n in range(99)]
    told = "".join(parsed(PlanSyntaxError(TEXT, found)._repr_html_()).itertext())
    assert "message 14" in told
    assert "message 15" not in told
    assert "and 84 more" in told
    told = "".join(parsed(LibraryError("bad", diagnostics=found[:2])._repr_html_()).itertext())
    assert "message 1" in told

    class Attempt:
        text, diagnostics = TEXT, tuple(found[:1])

    told = "".join(parsed(PlanningError("none", attempts=[Attempt()])._repr_html_()).itertext())
    assert "message 0" in told
    assert "FIND_EVNT" in told
    told = "".join(parsed(PearlError("it broke", help="mend it")._repr_html_()).itertext())
    assert told == "PearlErrorit brokehelp: mend it"


def told_by(shown: Any) -> str:
    return "".join(parsed(shown._repr_html_()).itertext())


LIBRARY = ActionLibrary("mine", [Action("FIND", (Parameter("CTX"), Parameter("X")), "Find X")])
PLAN = """\
Question: Is a < b?

New actions:
- JOIN(A, B) : Join both

1. one = FIND(CTX, "x < y") : The first
2. two = FIND(CTX, "y") : The second
3. ans = JOIN(one, two) : Both"""


def test_a_plan_reads_as_it_is_printed() -> None:
    tree = parsed(parse(PLAN)._repr_html_())
    assert "".join(tree.itertext()).strip() == PLAN
    assert [each.text for each in tree.iter("b")] == ["FIND", "FIND", "JOIN"]


def test_a_graph_is_drawn_and_told() -> None:
    tree = parsed(build_graph(check(parse(PLAN), LIBRARY))._repr_html_())
    assert [each.text for each in tree.findall("./svg/g/text")] == [
        "1. one", "FIND", "2. two", "FIND", "3. ans", "JOIN",
    ]  # fmt: skip
    assert tree.find("./svg/path").get("d").count("M") == 2
    assert "Step 3, ans, JOIN, uses one, two." in tree.findtext("./svg/desc")
    assert PLAN in "".join(tree.find("details").itertext())


def test_a_short_document_is_shown_whole() -> None:
    assert (
        told_by(Document("One <b>\ntwo.", "a.txt")) == "a.txt 12 characters, 2 linesOne <b>\ntwo."
    )


def test_a_long_one_is_shown_by_its_beginning_and_its_end() -> None:
    told = told_by(Document("first " + "x" * 9_990 + " last"))
    assert "first xxx" in told
    assert told.endswith("x last")
    assert "… 8,401 characters …" in told
    told = told_by(Document("\n".join(f"line {n}" for n in range(1, 31))))
    assert "line 12… 105 characters …line 26" in told


def test_the_parts_of_joined_ones_are_listed_with_their_sizes() -> None:
    both = join([from_text("one", "a"), from_text("four", "<b>")], "both")
    told = told_by(both)
    assert "2 partsa, 3 characters<b>, 4 characters" in told
    many = Document("x" * 99, "many", parts=tuple((str(n), n) for n in range(99)))
    assert "19, 1 characters… and 79 more" in told_by(many)


def called(step: str, *, t_s: float = 1.0, took: float = 0.5) -> ModelCalled:
    return ModelCalled(
        t_s=t_s, step=step, purpose="step", model="m", duration_s=took, usage=Usage(10, 2)
    )


def trace_of(*events: object) -> Trace:
    trace = Trace("q-1")
    trace._events.extend(events)  # type: ignore[arg-type]
    return trace


def test_a_trace_is_its_calls_in_time_and_its_events() -> None:
    waited = ModelWaited(t_s=0.2, reason="429", wait_s=0.3, attempt=1)
    tree = parsed(trace_of(waited, called("a"), called("b", t_s=2.0, took=1.0))._repr_html_())
    told = "".join(tree.itertext())
    assert "Trace q-1 3 events, 2 calls, 20 tokens in, 4 out, 2.00 s" in told
    rows = tree.findall(".//tbody/tr")
    assert [row[1].text for row in rows] == ["model_waited", "model_called", "model_called"]
    said = "".join(rows[1].itertext())
    assert said.endswith("step: a; purpose: step; model: m; duration_s: 0.5; usage: 10 in, 2 out")
    bars = tree.findall("./svg/rect")
    assert [float(bar.get("x")) for bar in bars] == [280.0, 340.0, 440.0]
    assert [float(bar.get("width")) for bar in bars] == [60.0, 100.0, 200.0]
    assert "at most 1 at once" in told


DOCUMENT = Document("Ada sold the boat because it leaked. Ada slept. The boat was blue.", "a.txt")


@cache
def answer() -> Answer:
    async def main() -> Answer:
        async with Pearl() as pearl:
            return await pearl.ask("Why did Ada sell the boat?", DOCUMENT)

    return asyncio.run(main())


def test_numbered_marks_lead_from_the_answer_to_its_evidence() -> None:
    tree = parsed(answer()._repr_html_())
    marks = [each.text for each in tree.findall("./p/sup")]
    assert marks == [f" [{n}]" for n in range(1, len(marks) + 1)]
    quotes = tree.findall("./ol/li")
    assert marks[0] == " [1]"
    assert [each.findtext("span") for each in quotes] == [each.text for each in answer().evidence]
    assert "characters 0-36" in quotes[0].findtext("small")
    assert tree.find("./div/span").text == "answered"
    assert "1. " in tree.findtext("./details/pre")


def test_what_cannot_be_relied_on_is_said() -> None:
    doubtful = replace(
        answer(),
        unverified=(Unverified("a", "no such words", "missing"),),
        method="direct",
        evidence=(replace(answer().evidence[0], omitted=(Span(4, 8),)),),
    )
    told = "".join(parsed(doubtful._repr_html_()).itertext())
    assert "not in the document: no such words (a)" in told
    assert "answered directly" in told
    assert "[left out: sold]" in told


AMPS = "&" * 10**6
CHAIN = "\n".join([
    '1. s1 = FIND(CTX, "x") : f',
    *(f'{i}. s{i} = FIND([{", ".join(f"s{j}" for j in range(1, i))}], "x") : f' for i in range(2, 101)),
])  # fmt: skip


def huge_error() -> PearlError:
    found = Diagnostic("c", AMPS, Span(500_000, 10**6), help=AMPS, fix=Fix(SPAN, AMPS))
    return PlanSyntaxError(AMPS, [found] * 999)


def huge_plan() -> Plan:
    """Each step takes what every earlier one gives."""
    names = [f"s{i}" for i in range(300)]
    return Plan(
        tuple(
            Step(name, "JOIN", (*map(Reference, names[:i]), String("<" * 999)), "e" * 9_999)
            for i, name in enumerate(names)
        ),
        (Action("JOIN", (Parameter("A"), Parameter("...")), "Join"),),
    )


def huge_trace() -> Trace:
    return trace_of(
        *(called(f"{AMPS[:1_000]}{n}", t_s=float(n), took=n % 7) for n in range(10_000))
    )


def huge_answer() -> Answer:
    long = "\x1b" * 10**5
    (one, *_), (step, *_) = answer().evidence, answer().steps
    evidence = [replace(one, text=f"{long}{n}", source=long, steps=(long,)) for n in range(9)]
    return replace(
        answer(), question=long, text=long, plan=long, model=long, evidence=(*evidence,) * 11,
        unverified=(Unverified(long, long, "missing"),) * 99,
        steps=(replace(step, output=long, action=long, value=long),) * 99, outputs=(long,),
    )  # fmt: skip


HUGE: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "error": (huge_error, ["more"]),
    "plan": (huge_plan, ["and 260 more steps"]),
    "graph": (
        lambda: build_graph(check(parse(CHAIN), LIBRARY, max_steps=100)),
        [f"the first {MAX_DRAWN} of 100 steps", "without 1,370 of their dependencies"],
    ),
    "document": (
        lambda: Document(AMPS.replace("&", "&\n") * 50, AMPS[:10_000], parts=((AMPS[:10_000], 0),) * 999),
        ["100,000,000 characters, 50,000,001 lines"],
    ),
    "trace": (huge_trace, ["9,950 more", "the longest 30 of 10,000"]),
    "answer": (huge_answer, ["and 93 more"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", HUGE)
def test_what_is_huge_is_small_and_says_what_it_leaves_out(kind: str) -> None:
    make, told = HUGE[kind]
    shown = make()
    assert len(shown._repr_html_()) < 100_000
    text = told_by(shown)
    assert all(each in text for each in told)


@given(texts, texts, st.integers(0, 60), st.integers(0, 60))
def test_no_text_is_markup(text: str, other: str, start: int, length: int) -> None:
    step = Step(text, other, (String(text), Reference(other)), text)
    found = Diagnostic("c", other, Span(start, start + length), help=other)
    trace = trace_of(
        PlanAttempted(round=0, model=text, reply=other, notes=(text,), diagnostics=(other,)),
        called(text),
        ModelWaited(reason=text, wait_s=1.0, attempt=1),
        CallFailed(
            step=text, purpose="step", model=other, kind="transport", reply=text, duration_s=1.0,
            usage=Usage(),
        ),
        StepFinished(
            step=text, action=other, value=text, is_native=True, context="none", coverage=None,
            n_calls=0, usage=Usage(), duration_s=0.0,
        ),
    )  # fmt: skip
    trace.id = text
    one, last = answer().evidence[0], answer().steps[0]
    changed = replace(
        answer(), question=text, text=f"{one.text}\n{other}", plan=other, model=text,
        evidence=(replace(one, source=text, steps=(other,)), replace(one, text=other)),
        unverified=(Unverified(text, other, "missing"),),
        steps=(replace(last, output=text, action=other, value=text),), outputs=(text,),
    )  # fmt: skip
    for shown in (
        PlanSyntaxError(text, [found] * 3),
        Plan((step, step), (Action(other, (Parameter("A"),), text),), text),
        Document(text, other, parts=((other, 0),), pages=((other, 0),)),
        trace,
        changed,
    ):
        assert {each.tag for each in parsed(shown._repr_html_()).iter()} <= OURS
