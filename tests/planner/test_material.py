"""What a planning prompt shows: the whole library, or what is nearest to the question."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from pearl import Pearl, plugins
from pearl.actions.library import load_library
from pearl.data.domains import load_domain
from pearl.documents.document import DocumentKind
from pearl.dsl.nodes import print_action
from pearl.llm import PlanTask
from pearl.llm.backends.scripted import Scripted
from pearl.planner.examples import callable_with, read_bank
from pearl.planner.prompt import plan_messages
from pearl.planner.prompt_selection import N_EXAMPLES, PlannerMaterial, is_on_rows
from pearl.trace import PlanAttempted, Trace

QUESTIONS = [
    "Why did the captain turn the ship around?",
    "How many complaints about noise were entered in May?",
    "How does Marcia feel about her husband at the end?",
]
PLAN = 'New actions:\n- None\n\n1. ans = FIND(CTX, "it") : Find it'
SEARCHING = {"RETRIEVE", "LOOKUP", "SPLIT"}
ASKED = "Write the plan for this question."


def material(domain: str, nearest: int | None = None) -> PlannerMaterial:
    known = load_domain(domain)
    return PlannerMaterial(load_library(known.library), known.examples, nearest)


def prompt(own: PlannerMaterial, question: str, kind: DocumentKind = "document") -> str:
    return plan_messages(question, own.shown(question, kind), kind=kind)[-1].content


@pytest.mark.parametrize("kind", ["document", "corpus", "table"])
@pytest.mark.parametrize("domain", plugins.names("pearl.data.domains"))
def test_the_whole_library_is_explained_in_one_order_and_the_question_is_last(
    domain: str, kind: DocumentKind
) -> None:
    own = material(domain)
    prompts = [prompt(own, question, kind) for question in QUESTIONS]
    # All questions share what servers cache: everything before them.
    first, last = min(prompts), max(prompts)
    shared = first[
        : next(i for i, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1)
    ]
    assert ASKED in shared
    assert [text.partition(ASKED)[2] for text in prompts] == [
        f"\n\nQuestion: {q}" for q in QUESTIONS
    ]
    actions = list(own.actions_for(kind).values())
    ordered = [a for a in actions if not is_on_rows(a)] + [a for a in actions if is_on_rows(a)]
    places = [shared.index(f"\n- {print_action(action)}\n") for action in ordered]
    assert places == sorted(places)
    shown = own.shown("", kind).examples
    lengths = [len(example.plan.steps) for example in shown]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 1
    usable = callable_with(own.examples, own.actions_for(kind))
    assert len(shown) == min(N_EXAMPLES, len(usable))
    calls = {
        kind: {s.action for e in examples for s in e.plan.steps}
        for kind, examples in (("shown", shown), ("all", usable))
    }
    n_least = 2 / 3 * len(calls["all"])
    assert len(calls["shown"]) >= n_least, "the plans shown call few actions: add to a long plan"
    assert calls["shown"] & SEARCHING == calls["all"] & SEARCHING
    assert max(places) < shared.index(f"Examples:\n\nQuestion: {shown[0].question}")


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("domain", plugins.names("pearl.data.domains"))
def test_a_shortened_prompt_has_what_is_near_and_the_plain_actions(domain: str, n: int) -> None:
    own = material(domain, n)
    for question in QUESTIONS:
        shown, text = own.shown(question), prompt(own, question)
        assert len(shown.examples) == n + 2
        assert shown.notes == ()  # by choice
        called = {step.action for example in shown.examples for step in example.plan.steps}
        for name in (called & own.library.keys()) | {"FIND"}:
            assert f"\n- {print_action(own.actions[name])}\n" in text
        for action in own.actions_for().values():
            assert action.signature in text or is_on_rows(action)
    assert len(text) < len(prompt(material(domain), question))


def test_actions_on_rows_are_in_a_shortened_prompt_if_a_near_example_has_them() -> None:
    own = material("generic", 1)
    assert "Actions on rows" in prompt(own, QUESTIONS[1])
    assert "Actions on rows" not in prompt(own, "Who set up the mill, and what made them do it?")
    for kind in ("corpus", "table"):
        assert "Actions on rows" in prompt(own, "Who set up the mill?", kind)  # type: ignore[arg-type]


def planned(pearl: Pearl, question: str = QUESTIONS[0]) -> tuple[str, list[str], list[str]]:
    """The prompt, the notes of the first attempt and those for people."""
    model, trace = pearl.client.model, Trace()
    asyncio.run(pearl.plan(question, trace=trace))
    while not isinstance(model, Scripted):
        model = model._model  # type: ignore[attr-defined]
    (attempt,) = (event for event in trace if isinstance(event, PlanAttempted))
    (asked,) = (each for each in model.requests if isinstance(each.task, PlanTask))
    return asked.messages[-1].content, list(attempt.notes), list(pearl.planner.notes)


@pytest.mark.parametrize("window", [2_000, 4_096, 8_192, 32_768, None])
def test_a_prompt_that_does_not_fit_the_window_is_shortened_and_says_so(window: int | None) -> None:
    pearl = Pearl(Scripted(lambda _: PLAN, window=window), domain="quality")
    text, notes, told = planned(pearl)
    assert "\n- FIND(CTX, X) : " in text
    assert notes == told
    if window is None or window > 20_000:
        assert not told
        return
    assert "shortened to fit the window" in told[0]
    assert window == 2_000 or pearl.client.counter.count(text) <= 0.75 * window


MINED = """\
# stands for: FIND_REASON x3, FIND_REASONS, IDENTIFY_CAUSE,
#   LIST_ALL (seed)
EXPLAIN(CTX, WHAT) : Explain why WHAT

CONCAT(S1, S2, ...) : Join S1 and S2
"""


def test_examples_call_what_stands_for_an_action_that_the_library_lacks(tmp_path: Path) -> None:
    said = re.sub(r"\bX\b", "WHO", load_library("seed")["IDENTIFY"].definition)
    text = f"{MINED}\nSEEK(CTX, WHO) : {said[0].lower() + said[1:]}\n"
    (tmp_path / "mine.actions").write_text(text, encoding="utf-8")
    seek = PLAN.replace("FIND(", "SEEK(")
    pearl = Pearl(Scripted(lambda _: seek), library=tmp_path / "mine.actions", domain="generic")
    bank = {example.question: example.plan for example in read_bank("generic")}
    calls = {
        (old.action, new.action)
        for example in pearl.material.examples
        for old, new in zip(bank[example.question].steps, example.plan.steps, strict=True)
        if old.action != new.action
    }
    assert calls == {("FIND_REASON", "EXPLAIN"), ("IDENTIFY", "SEEK"), ("LIST_ALL", "EXPLAIN")}
    n_left = len(bank) - len(pearl.material.examples)
    assert 0 < n_left < len(bank)
    asyncio.run(pearl.plan("Why?"))
    (said,) = pearl.planner.notes
    assert said.startswith(
        f"{n_left} of {len(bank)} examples call actions that this library lacks: "
    )
    for name in said.partition(": ")[2].split(", "):
        assert name == "..." or name in load_library("seed")
