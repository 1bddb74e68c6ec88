"""Checkers that know what is true by how the claims were made, and the product run with them."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pearl import Answer, Document, Pearl
from pearl.documents.record import FieldResult
from pearl.dsl.fields import Field
from pearl.llm import Request
from tests.checking.claims import HARD, Composition, Entry, Extraction, Listing, Sentence, Value
from tests.models import Reading

Case = Composition | Extraction | Listing
COPIED = ("str", "date", "int", "number")
"""Types of values that stand in the text."""
Kind = Literal["honest", "lying in 5 %", "always yes", "always no", "silent"]

_BLOCK = re.compile(r"<(claim|passage) (\d+)>(.*?)</\1 \2>", re.S)


def squeezed(text: str) -> str:
    """The letters and digits of a text, without marks of quotes."""
    return "".join(filter(str.isalnum, re.sub(r"</?\w+>", " ", text).casefold()))


def _tells(claim: str, value: Any) -> bool:
    """Whether a claim says a value, or all that one entry of a list says."""
    if isinstance(value, list):
        return any(all(_tells(claim, each) for each in entry.values()) for entry in value)
    if isinstance(value, bool):
        words = {"yes", "true"} if value else {"no", "false"}
        return not words.isdisjoint(re.findall(r"\w+", claim.casefold()))
    return squeezed(str(value)) in squeezed(claim)


def _place(claim: str, field: Field) -> int:
    """Where a claim names a field; -1 if it does not."""
    names = [field.name, *(inner.name for inner in field.fields)]
    return max(squeezed(claim).find(squeezed(name)) for name in names)


@dataclass
class Checker:
    """Replies to the requests of a checker, and keeps the claims that it cannot place."""

    kind: Kind = "honest"
    seed: int = 1
    has_quotes: bool = True
    """Whether the reader gives a value that it copies with its quote, or alone until it is asked again."""
    requests: list[Request] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    """Claims about fields that do not say of whom they are."""
    n_spared: int = 0
    """Lies that it lied about."""

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)

    def reply(self, request: Request, case: Case) -> str:
        """The reply to a request about the claims of a case."""
        self.requests.append(request)
        if self.kind == "silent":
            return "I have looked at all of them, and they seem fine to me."
        blocks = {(name, int(n)): text for name, n, text in _BLOCK.findall(request.prompt)}
        verdicts = [
            {"id": n, "verdict": self._verdict(text, blocks["passage", n], case)}
            for (name, n), text in blocks.items()
            if name == "claim"
        ]
        return json.dumps({"verdicts": verdicts})

    def _verdict(self, claim: str, passage: str, case: Case) -> str:
        said = self.said(claim, case)
        if said is None:
            self.unknown.append(claim)
            return "not stated"
        if self.kind.startswith("always"):
            return "supported" if self.kind == "always yes" else "not stated"
        sources = said.sources if isinstance(said, Entry) else (said.source,)
        is_here = all(squeezed(source) in squeezed(passage) for source in sources)
        is_true = is_here and (
            said.kind in ("", "citation") or (isinstance(said, Entry) and said.kind in HARD)
        )
        if self.kind == "lying in 5 %" and self._draw.random() < 0.05:
            is_true = not is_true
            self.n_spared += is_true
        return "supported" if is_true else "contradicted" if is_here else "not stated"

    def said(self, claim: str, case: Case) -> Sentence | Value | Entry | None:
        """What a claim is about: the sentence itself, or the field that it names first with its value."""
        if isinstance(case, Composition):
            wanted = squeezed(claim)
            return next((each for each in case.sentences if squeezed(each.text) == wanted), None)
        if isinstance(case, Listing):
            # a cell that Python refused is not in the claim
            return next((each for each in case.entries if _tells(claim, each.cells[0][1])), None)
        if squeezed(case.subject.value) not in squeezed(claim):
            self.unnamed.append(claim)
        named = [
            (place, each)
            for each in case.values
            if (place := _place(claim, each.field)) >= 0 and _tells(claim, each.value)
        ]
        if named:
            return min(named, key=lambda pair: pair[0])[1]
        subject = case.subject
        is_of_subject = _place(claim, subject.field) >= 0 and _tells(claim, subject.value)
        return subject if is_of_subject else None


@dataclass
class Outcome:
    """What became of the claims of some cases."""

    n_true: int = 0
    refused: list[str] = field(default_factory=list)
    """True claims that the answer does not have, each with why."""
    n_lies: int = 0
    accepted: list[tuple[str, str]] = field(default_factory=list)
    """Lies that the answer has, with their kinds, and not as unchecked."""
    unchecked: list[tuple[str, str]] = field(default_factory=list)
    """Claims that the answer has and says of that they are not checked."""

    def count(self, said: Sentence | Value | Entry, told: str, state: Shown, why: str) -> None:
        """Count one claim."""
        if state == "unchecked":
            self.unchecked.append((said.kind, told))
        if said.kind:
            self.n_lies += 1
            if state == "shown":
                self.accepted.append((said.kind, told))
        else:
            self.n_true += 1
            if state == "left out":
                self.refused.append(f"{told}: {why}")


Shown = Literal["shown", "unchecked", "left out"]


def model_for(case: Case, checker: Checker) -> Reading:
    """A reader and composer that write what the case says, and its checker."""

    def reply(request: Request) -> str:
        if "<claim 1>" in request.prompt:
            return checker.reply(request, case)
        if isinstance(case, Extraction):
            is_alone = not checker.has_quotes and not request.task.is_quoted  # type: ignore[union-attr]
            return json.dumps(
                {
                    each.field.name: each.value
                    if is_alone and not each.field.is_list and each.field.type in COPIED
                    else _told(each)
                    for each in (case.subject, *case.values)
                }
            )
        if isinstance(case, Listing):
            rows = [
                {name: {"value": value, "quote": quote} for name, value, quote in each.cells}
                for each in case.entries
            ]
            return json.dumps({"rows": rows})
        name, _, number = request.task.output.partition("_")  # type: ignore[union-attr]
        if name != "part":
            numbers = {fact: _number(fact, request.prompt) for fact in case.facts}
            cited = ((each.text, numbers[case.facts[each.cites]]) for each in case.sentences)
            return " ".join(f"{text} [{number}]" for text, number in cited)
        fact = case.facts[int(number)]
        return f"{fact}\n> {fact}"

    return Reading(reply)


def _number(quote: str, prompt: str) -> str:
    """The number of a quote in the request to a composer."""
    (number,) = re.findall(rf'^\[(\d+)\] "{re.escape(quote)}"$', prompt, re.M)
    return number


def _told(value: Value) -> Any:
    if value.field.fields:
        return [
            {name: {"value": each, "quote": value.quote} for name, each in entry.items()}
            for entry in value.value
        ]
    return {"value": value.value, "quote": value.quote}


def plan_of(case: Case) -> str:
    """The plan of a case."""
    if isinstance(case, Extraction):
        schema = case.schema.replace('"', "'")
        return f'1. record = EXTRACT(CTX, "{schema}") : Take the fields'
    if isinstance(case, Listing):
        return f'1. people = EXTRACT_ALL(CTX, "{case.schema}") : List the people'
    names = [f"part_{i}" for i in range(len(case.facts))]
    steps = [
        f'{i + 1}. {name} = FIND_REASON(CTX, "matter {i + 1}") : Tell of matter {i + 1}'
        for i, name in enumerate(names)
    ]
    last = f'{len(names) + 1}. answer = ANSWER("What happened?", {", ".join(names)}) : Answer'
    return "\n".join(["Question: What happened?", "", *steps, last])


async def run_one(case: Case, checker: Checker, **settings: Any) -> Answer:
    """The answer of the product to a case."""
    pearl = Pearl(model_for(case, checker), **settings)
    return await pearl.execute(plan_of(case), Document(case.document, "file.txt"))


def judge(case: Case, answer: Answer, outcome: Outcome) -> None:
    """Count what became of the claims of a case; of an answer with a hard lie, that lie alone."""
    if isinstance(case, Composition):
        pieces = {" ".join(text.split()) for text, _ in answer.composed}
        for each in case.sentences:
            if each.kind in HARD or not case.is_hard:
                state = _stated(answer, " ".join(each.text.split()) in pieces)
                outcome.count(each, each.text, state, "; ".join(answer.notes))
        return
    if isinstance(case, Listing):
        rows = [tuple(row.fields.values()) for row in answer.row_evidence]
        for entry in case.entries:
            cells = tuple(
                ("no", "yes")[value] if isinstance(value, bool) else str(value)
                for _, value, _ in entry.cells
            )
            state = _stated(answer, cells in rows)
            outcome.count(entry, str(entry.cells), state, answer.why)
        return
    assert answer.record is not None
    for value in (case.subject, *case.values):
        result = answer.record.fields[value.field.name]
        told = f"{value.field.name} = {value.value!r}: {value.quote}"
        outcome.count(value, told, _state(result), result.why)


def _stated(answer: Answer, is_shown: bool) -> Shown:
    if not is_shown:
        return "left out"
    return "unchecked" if "meaning was not checked" in " ".join(answer.notes) else "shown"


def _state(result: FieldResult) -> Shown:
    """Whether a value is in the record, or any whole entry of a list."""
    entries = [list(entry.values()) for entry in result.entries] or [[result]]
    whole = [entry for entry in entries if all(each.state == "found" for each in entry)]
    if not whole:
        return "left out"
    is_open = any(each.basis == "judged" for entry in whole for each in entry)
    return "unchecked" if is_open else "shown"


def run_all(cases: Sequence[Case], checker: Checker, **settings: Any) -> Outcome:
    """What became of the claims of all cases."""
    outcome = Outcome()

    async def run() -> None:
        for case in cases:
            judge(case, await run_one(case, checker, **settings), outcome)

    asyncio.run(run())
    return outcome
