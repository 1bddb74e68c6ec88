"""Question + library + examples → messages that request a plan or its repair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from pearl.documents.document import DocumentKind, Source
from pearl.documents.rows import shortened
from pearl.documents.table import table_rows
from pearl.dsl.nodes import Declared, print_action, print_plan
from pearl.dsl.signatures import Action
from pearl.errors import Diagnostic, render_diagnostics
from pearl.errors.escaping import counted
from pearl.llm import Message
from pearl.llm.messages import PLAN_ASKED
from pearl.planner.prompt_selection import Shown, is_on_rows

_PLANNER = """\
You write plans that answer questions about a long document. You do not see the document: in a \
plan it is called CTX. A plan is a list of steps. Each step calls one action, and each action is \
carried out later by a reader who sees the document and the arguments, nothing else."""

_RULES = """\
How to write the plan:
- Begin with a line "New actions:" and below it "- None". Only where no listed action will do, put one line \
"- NAME(CTX, X) : definition" there instead for each that you need.
- Then a blank line, then the steps, numbered from 1: 1. output = ACTION(arguments) : what the step is for
- Take as few steps as the question needs: one where a listed action finds what is asked, and more where a question \
has several parts or one thing has to be found before another.
- An argument is CTX, the output of an earlier step, a string in straight double quotes, a number, \
or a list of those in square brackets. A string names no output and no step. Calls are not nested.
- Give every action exactly the arguments of its signature, every step an output name of its own.
- The answer is made of every output that no other step uses, so use up what does not belong to it.
- A date or a time that has to be worked out takes a step for each date that the document states, then DATE_DIFF, \
DATE_ADD or DATE_SUBTRACT; "years" is an age.
{trying}{composing}- Reply with the plan alone."""

_TRYING = """\
- What may go by another name, or stand elsewhere, takes a step for each, then FIRST_FOUND(a, b): b is read only if a \
finds nothing.
"""

_COMPOSING = """\
- If results answer different parts of the question, end with answer = ANSWER("<the question>", a, b). \
CONCAT is for texts that a later step reads.
"""

_ROW_RULES = """\
How to count, select, group or compare the entries of a document:
- Begin with SPLIT; what it returns goes where ROWS stands, or in place of CTX. \
EACH_NAME(ROWS, X) carries out NAME(CTX, X) for each row.
- CLASSIFY, MAP, RESOLVE and a new action NAME(ROWS, X) add a field with the name of their output to each \
row: after 2. topic = CLASSIFY(rows, ["a", "b"], "the topic") come WHERE(topic, "topic", "is", "a") and \
GROUP(topic, "topic"). To rate rows, CLASSIFY them with "1" to "5".
- WHERE selects by what is written in a field (date, user, name), before FILTER, CLASSIFY or MAP judge \
what has to be understood. RESOLVE comes before GROUP where names may be written in several ways.
- LOOKUP(CTX, QUESTION) is for tables: it selects, sorts, counts and adds up by their columns.
- Never ask for a count: COUNT, GROUP and SHARE compute it; the largest group is NTH(groups, "count", 1)."""

_CORPUS_RULES = """\
CTX is a collection of documents that may be too long to be read whole:
- RETRIEVE(CTX, QUERY, K) gives the K passages that match best, with a field Document each; they go where \
ROWS stands, or in place of CTX. An action with CTX itself is shown the passages that match its arguments.
- A query has the words that a passage would use. A question of several parts takes a list of queries, or \
SUBQUERIES. Where words alone do not tell which are right, RETRIEVE some 50 and take the TOP of them.
- RETRIEVE leaves out all but K: to count, add up or list "all", begin with SPLIT(CTX, "document") or "paragraph", \
then WHERE and FILTER."""

_TABLE_RULES = """\
CTX is a table, and may be too long to be read whole:
- LOOKUP(CTX, QUESTION) answers whatever its columns tell: which rows, how many, sums, means, the most, the first, \
what stands in a row. Give it the question as it was asked; its own model sees the columns, you do not.
- One question takes one LOOKUP: never select, sort or count again what it gives. Several questions take one each.
- Where cells are long texts that have to be understood, begin with SPLIT(CTX, "record"), then FILTER or CLASSIFY."""

_ASKED_ON = """\
The question is asked on {day}{year}. Where it counts a period from that day ("last year", "two quarters ago") or from \
another one ("the year before"), write the period itself in the plan, as the document names it: "2023", "Q1 2024"."""

_GIVEN = """\
Parameters, whose texts are given when the plan is run; the question has their names in braces:
{names}
Where the text matters, pass the name, without quotes and braces, as the output of an earlier step: alone, or beside a text \
in a list, as ["the end of", {name}]. Only ANSWER takes the question with the braces."""

_SOURCES = """\
The plan is answered from these sources. Their names stand where a signature or a rule says CTX, and what is said of a \
collection or a table holds for those that are one:
{names}
Read a source only for what its description says that it is about, as few of them as the question needs, and each in steps of its own; \
the name is given without quotes. A question of which they have nothing is one step: answer = NO_SOURCE("<the question>")."""


class Rejected(Struct, frozen=True):
    """A valid plan whose run gave no right answer; it contains no text of the document."""

    plan: str
    failure: Literal["wrong", "failed", "undecided"] = "wrong"
    step: str = ""


def material(heading: str, shown: Shown, rules: str) -> list[str]:
    """The shared part of planning prompts: rules, actions under a heading, actions on rows, examples."""
    actions = shown.library.values()
    explained = [a for a in actions if shown.explained is None or a.name in shown.explained]
    on_rows = [action for action in explained if is_on_rows(action)]
    named = [a.signature for a in actions if a not in explained and not is_on_rows(a)]
    plans = "\n\n".join(print_plan(example.plan) for example in shown.examples)
    return [
        rules,
        _listed(heading, (action for action in explained if action not in on_rows)),
        *([f"{heading}, each as its name says: {'; '.join(named)}"] if named else []),
        *([_ROW_RULES, _listed("Actions on rows", on_rows)] if on_rows else []),
        *([_CORPUS_RULES] if any(action.searches for action in on_rows) else []),
        *([f"Examples:\n\n{plans}"] if plans else []),
    ]


def _listed(heading: str, actions: Iterable[Action]) -> str:
    return "\n".join([f"{heading}:", *(f"- {print_action(action)}" for action in actions)])


def asked_on(as_of: date | None, fiscal_year_end: tuple[int, int]) -> str:
    """The sentence in a planning prompt about the day of the question; "" without a date.

    Example:
        >>> asked_on(date(2024, 11, 5), (9, 30)).partition(". ")[0]
        'The question is asked on 2024-11-05, in fiscal 2025 (fiscal years end on 09-30)'
    """
    if as_of is None:
        return ""
    month, day = fiscal_year_end
    year = ""
    if fiscal_year_end != (12, 31):
        is_over = (as_of.month, as_of.day) > fiscal_year_end
        year = f", in fiscal {as_of.year + is_over} (fiscal years end on {month:02}-{day:02})"
    return _ASKED_ON.format(day=as_of.isoformat(), year=year)


def told_sources(sources: Sequence[Source]) -> str:
    """The part of a planning prompt about the sources, without their text; "" without sources."""
    if not sources:
        return ""
    rules = [_TABLE_RULES] if any(each.document.kind == "table" for each in sources) else []
    names = "\n".join(f"- {each.name} : {_format_source(each)}" for each in sources)
    return "\n\n".join([*rules, _SOURCES.format(names=names)])


MAX_ABOUT = 300  # Maximum characters of a description


@lru_cache(maxsize=32)
def _format_source(source: Source) -> str:
    document = source.document
    n = sum(len(table.rows) for table in table_rows(document)) if document.kind == "table" else 0
    what = (
        f"corpus of {counted(len(document.parts), 'document')}"
        if document.kind == "corpus"
        else document.kind
    )
    rows = f" of {counted(n, 'row')}" if n else ""
    about = shortened(source.about, MAX_ABOUT)
    return f"{what}{rows}, {len(document.text):,} characters{f': {about}' if about else ''}"


def given_later(parameters: Sequence[Declared]) -> str:
    """The part of a planning prompt about the plan's parameters; "" without parameters."""
    names = "\n".join(f"- {each.name} : {each.about}" for each in parameters)
    return _GIVEN.format(names=names, name=parameters[0].name) if names else ""


def plan_messages(
    question: str, shown: Shown, day: str = "", kind: DocumentKind = "document"
) -> tuple[Message, ...]:
    """Request a plan; unless shortened, the text before the question is the same for all questions."""
    actions = shown.library.values()
    composing = _COMPOSING if any(action.composes for action in actions) else ""
    trying = _TRYING if any("tries" in action.traits for action in actions) else ""
    asks_table = kind == "table" and any(action.asks_table for action in actions)
    parts = [
        *material("Actions", shown, _RULES.format(composing=composing, trying=trying)),
        *([_TABLE_RULES] if asks_table else []),
        PLAN_ASKED,
        f"Question: {question}",
        *([day] if day else []),
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
    """Request the steps of a plan after its new actions."""
    return (
        *messages,
        Message("assistant", header),
        Message(
            "user",
            "Now write the steps of this plan and nothing else, numbered from 1, and end after the steps that find what "
            "is asked, without ANSWER: it is added. Outputs are named v1 and so on, those that are numbers n1 and so on.",
        ),
    )


def rejection_messages(rejected: Sequence[Rejected]) -> tuple[Message, ...]:
    """Messages that follow the first prompt after valid plans gave no right answer."""
    messages: list[Message] = []
    for one in rejected:
        where = f"its step '{one.step}'" if one.step else "it"
        why = {
            "wrong": "It was run over the document, and the answer it gave was wrong.",
            "failed": f"Run over the document, {where} failed.",
            "undecided": f"Run over the document, {where} was undecided: what a step replied could not be used.",
        }[one.failure]
        told = (
            f"This plan is valid. {why} Write another plan for the same question that gets at the "
            "answer in a different way. Reply with the plan alone."
        )
        messages += [Message("assistant", one.plan), Message("user", told)]
    return tuple(messages)
