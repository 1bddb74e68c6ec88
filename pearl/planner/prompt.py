"""Question + library + examples → messages that request a plan or its repair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pearl.actions.native import is_operator
from pearl.documents.document import DocumentKind
from pearl.dsl.nodes import print_action, print_plan
from pearl.dsl.signatures import Action, ActionLibrary
from pearl.errors import Diagnostic, render_diagnostics
from pearl.llm import Message
from pearl.planner.examples import Example
from pearl.planner.material import nearest_first
from pearl.planner.understanding import PLACEHOLDER

_PLANNER = """\
You write plans that answer questions about a long document. You do not see the document: in a \
plan it is called CTX. A plan is a list of steps. Each step calls one action, and each action is \
carried out later by a reader who sees the document and the arguments, nothing else."""

_RULES = """\
How to write the plan:
- Begin with a line "New actions:" and below it "- None", or one line "- NAME(CTX, X) : definition" \
for every action you need that is not listed. Prefer the listed ones.
- Then a blank line, then the steps, numbered from 1: 1. output = ACTION(arguments) : what the step is for
- An argument is CTX, the output of an earlier step, a string in straight double quotes, a number, \
or a list of those in square brackets. A string names no output and no step. Calls are not nested.
- Give every action exactly the arguments of its signature, every step an output name of its own.
- The answer is made of every output that no other step uses, so use up what does not belong to it.
{composing}- Reply with the plan alone."""

_COMPOSING = """\
- If results answer different parts of the question, end with answer = ANSWER("<the question>", a, b). \
CONCAT is for texts that a later step reads.
"""

_ROW_RULES = """\
How to count, select, group or compare the entries of a document:
- Begin with SPLIT; what it returns goes where ROWS stands, or in place of CTX. \
EACH_NAME(ROWS, X) carries out NAME(CTX, X) for each row.
- CLASSIFY, MAP, RATE and a new action NAME(ROWS, X) add a field with the name of their output to each \
row: after 2. topic = CLASSIFY(rows, ["a", "b"], "the topic") come WHERE(topic, "topic", "is", "a") and \
COUNT_BY(topic, "topic").
- WHERE selects by what is written in a field (date, user, name), before FILTER, CLASSIFY or MAP judge \
what has to be understood.
- LOOKUP(CTX, QUESTION) is for tables: it selects, sorts, counts and adds up by their columns.
- Never ask for a count: COUNT, COUNT_BY, COUNT_OF, SHARE_OF and MOST compute it."""

_CORPUS_RULES = """\
CTX is a collection of documents that may be too long to be read whole:
- RETRIEVE(CTX, QUERY, K) gives the K passages that match best, with a field Document each; they go where \
ROWS stands, or in place of CTX. An action with CTX itself is shown the passages that match its arguments.
- A query has the words that a passage would use. A question of several parts takes a list of queries, or \
SUBQUERIES. Where words alone do not tell which are right, RETRIEVE some 50 and RERANK them.
- RETRIEVE leaves out all but K: to count, add up or list "all", begin with SPLIT(CTX, "document") or "paragraph", \
then WHERE and FILTER."""

_TABLE_RULES = """\
CTX is a table, and may be too long to be read whole:
- LOOKUP(CTX, QUESTION) answers whatever its columns tell: which rows, how many, sums, means, the most, the first, \
what stands in a row. Give it the question as it was asked; its own model sees the columns, you do not.
- One question takes one LOOKUP: never select, sort or count again what it gives. Several questions take one each.
- Where cells are long texts that have to be understood, begin with SPLIT(CTX, "record"), then FILTER or CLASSIFY."""

_EARLIER = "ANSWER_1 and the like stand for answers to earlier questions: copy them into strings as they are."

_N_EXPLAINED = 15
"""Actions that are explained in a full prompt.

Of the actions that the published plans of 28 questions call, 81 % are among the 15 nearest of 81 (`experiments/prompts.py`).
"""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A valid plan whose run gave no right answer; it holds no text of the document."""

    plan: str
    failure: Literal["wrong", "failed", "undecided"] = "wrong"
    step: str = ""


def material(
    heading: str,
    library: ActionLibrary,
    rules: str,
    examples: Sequence[Example],
    question: str = "",
) -> list[str]:
    """The shared part of planning prompts: rules, actions under a heading, examples."""
    on_rows = [a for a in library.values() if is_operator(a) and not a.composes]
    searches = any(action.searches for action in on_rows)
    others = [action for action in library.values() if action not in on_rows]
    named: list[Action] = []
    if question:
        called = [step.action for example in examples for step in example.plan.steps]
        near = nearest_first(question, others, called)
        others, named = near[:_N_EXPLAINED], near[_N_EXPLAINED:]
    plans = "\n\n".join(print_plan(example.plan) for example in examples)
    return [
        rules,
        *([_ROW_RULES] if on_rows else []),
        *([_CORPUS_RULES] if searches else []),
        *([_listed("Actions on rows", on_rows)] if on_rows else []),
        _listed(heading, others),
        *(
            [f"{heading}, each as its name says: {'; '.join(action.signature for action in named)}"]
            if named
            else []
        ),
        *([f"Examples:\n\n{plans}"] if plans else []),
    ]


def _listed(heading: str, actions: Iterable[Action]) -> str:
    return "\n".join([f"{heading}:", *(f"- {print_action(action)}" for action in actions)])


def plan_messages(
    question: str,
    library: ActionLibrary,
    examples: Sequence[Example] = (),
    card: str = "",
    advice: str = "",
    kind: DocumentKind = "document",
) -> tuple[Message, ...]:
    """Request a plan; rules and actions on rows come first, as a common prefix of all questions."""
    composing = _COMPOSING if any(action.composes for action in library.values()) else ""
    rules = _RULES.format(composing=composing)
    parts = [
        *material("Actions", library, rules, examples, question),
        *(
            [_TABLE_RULES]
            if kind == "table" and any(a.asks_table for a in library.values())
            else []
        ),
        "Write the plan for this question.",
        *([f"What CTX consists of: {card}"] if card else []),
        f"Question: {question}",
        *([_EARLIER] if PLACEHOLDER.search(question) else []),
        *([advice] if advice else []),
    ]
    return Message("system", _PLANNER), Message("user", "\n\n".join(parts))


def repair_messages(
    messages: tuple[Message, ...], plan: str, diagnostics: Sequence[Diagnostic]
) -> tuple[Message, ...]:
    """Request the repair of a plan, given all of its diagnostics."""
    errors = render_diagnostics(diagnostics, plan, "plan")
    return (
        *messages,
        Message("assistant", plan or "(no plan)"),
        Message(
            "user",
            f"This plan cannot be used:\n\n{errors}\n\n"
            "Write the whole plan again with every one of these mended. Reply with the plan alone.",
        ),
    )


def steps_messages(messages: tuple[Message, ...], header: str) -> tuple[Message, ...]:
    """Request the steps of a plan whose new actions are known."""
    return (
        *messages,
        Message("assistant", header),
        Message(
            "user",
            "Now write the steps of this plan and nothing else, numbered from 1. Name their outputs "
            "v1, v2, v3, ...; only outputs that are numbers are named n1, n2, ... instead.",
        ),
    )


def rejection_messages(rejected: Sequence[Rejected]) -> tuple[Message, ...]:
    """Messages that follow the first prompt after valid plans have failed."""
    return tuple(
        message
        for one in rejected
        for message in (
            Message("assistant", one.plan),
            Message(
                "user",
                f"This plan is valid. {_in_vain(one)} "
                "Write another plan for the same question that gets at the answer in a different way. "
                "Reply with the plan alone.",
            ),
        )
    )


def _in_vain(rejected: Rejected) -> str:
    if rejected.failure == "wrong":
        return "It was run over the document, and the answer it gave was wrong."
    where = f"its step '{rejected.step}'" if rejected.step else "it"
    if rejected.failure == "failed":
        return f"Run over the document, {where} failed."
    return f"Run over the document, {where} was undecided: what a step replied could not be used."
