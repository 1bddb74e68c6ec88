"""Ask a model whether each passage supports its claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, normalise
from pearl.documents.passages import sentences, sentences_near
from pearl.documents.rows import shortened
from pearl.documents.units import section, turn
from pearl.dsl.decoding.constraint import (
    Constraint,
    JsonForm,
    closed_object,
)
from pearl.dsl.nodes import Step
from pearl.errors import UNUSABLE_KINDS, ModelError, Span
from pearl.interpreter.context import ContextLimits
from pearl.interpreter.model_calls import Asker
from pearl.interpreter.prompt import check_messages
from pearl.interpreter.requests import PROMPT_MARGIN
from pearl.interpreter.results import Checks, StepResult
from pearl.llm import CheckTask, Request
from pearl.llm.concurrency import gather
from pearl.llm.reply_limits import reply_limit
from pearl.replies.items import form_flaw
from pearl.replies.raw import json_objects
from pearl.trace import Purpose

Verdict = Literal["supported", "contradicted", "not stated", "not checked"]
"""The verdict on a claim by its passage; *not checked* if no model has judged it."""

REFUSED: Mapping[Verdict, str] = {
    "not stated": "the checker: the passage does not say it",
    "contradicted": "the checker: the passage says something else",
}
"""Verdict → the reason why a value is undecided."""

_OF_MODELS: Mapping[str, Verdict] = {each: each for each in get_args(Verdict)[:3]}

MAX_CLAIMS = 40  # Maximum claims in one request

MAX_QUOTE, MAX_AROUND = 2_000, 240
"""Maximum characters of a quote in a passage, and of the text shown on each side of it."""

MAX_ABOVE, MAX_HEAD = 20_000, 80
"""Maximum characters before a passage that are searched for its section and speaker, and maximum characters of a heading."""


class Claim(NamedTuple):
    """A sentence to check, and the passage that should support it, with its quotes marked."""

    text: str
    passage: str


class Checked(Struct, frozen=True):
    """The verdicts on claims, in order, and the name of the checker; `why` is the reason for each *not checked*."""

    verdicts: list[Verdict]
    by: str = ""
    why: str = ""


def passage_of(
    document: Document, evidence: Sequence[Evidence], beside: tuple[int, int] = (1, 1)
) -> str:
    """Show quotes to a checker: heading, speaker, the surrounding sentences, and each quote marked as `[[...]]` unless it is the whole passage."""
    shown: list[tuple[Span, list[Span]]] = []
    for quote in sorted(dict.fromkeys(each.span for each in evidence), key=lambda s: s.start):
        around = sentences_around(document, quote, beside)
        if shown and around.start <= shown[-1][0].end:
            last, quotes = shown.pop()
            inside = [] if quote.start < quotes[-1].end else [quote]
            shown.append((Span(last.start, max(last.end, around.end)), [*quotes, *inside]))
        else:
            shown.append((around, [quote]))
    pieces: list[str] = []
    for around, quotes in shown:
        low = max(0, around.start - MAX_ABOVE) if len(document.text) > 2 * MAX_ABOVE else 0
        high = around.end + MAX_ABOVE if low else len(document.text)
        at = around.start - low
        # A speaker in capitals also counts as a heading.
        heads = dict.fromkeys(text for a, b, text in _heads(document.text[low:high]) if a < at < b)
        pieces += [*(h for h in heads if h not in pieces), _marked(document.text, around, quotes)]
    return "\n...\n".join(pieces)


@lru_cache(maxsize=64)
def _heads(text: str) -> list[tuple[int, int, str]]:
    """The sections and speaker turns of a text: start, end, and heading or speaker."""
    found = []
    for unit, name in ((section, "Section"), (turn, "Speaker")):
        with suppress(ValueError):  # The text does not contain it
            pieces = unit.split(text)
            found += [
                (start, end, shortened(of[name], MAX_HEAD)) for start, end, of in pieces if of[name]
            ]
    return found


def _marked(text: str, around: Span, quotes: Sequence[Span]) -> str:
    pieces, at = [], around.start
    (quote, *others) = quotes
    beside = text[at : quote.start] + text[quote.end : around.end]
    if not others and quote.end - quote.start <= MAX_QUOTE and not any(map(str.isalnum, beside)):
        return text[at : around.end].strip()
    for quote in quotes:
        end = min(quote.end, quote.start + MAX_QUOTE)
        more = " ..." if end < quote.end else ""
        pieces += [text[at : quote.start], f"[[{text[quote.start : end]}{more}]]"]
        at = quote.end
    return "".join([*pieces, text[at : around.end]]).strip()


def _near(document: Document, quote: Span, beside: tuple[int, int] = (0, 0)) -> list[Span]:
    """The sentences that contain or surround a quote; the first and the last one may be cut."""
    low = max(0, quote.start - 2 * MAX_AROUND)
    window = document.text[low : quote.end + 2 * MAX_AROUND]
    near = sentences_near(window, quote.start - low, quote.end - low, beside)
    return [Span(low + start, low + end) for start, end in near]


def is_copy(text: str, document: Document, evidence: Sequence[Evidence]) -> bool:
    """Whether every sentence of a text is a whole, quoted sentence of the document; a part of a sentence may mean something else."""
    own = {
        _bare(document.text[s.start : s.end])
        for each in evidence
        for s in _near(document, each.span)
    }
    return own.issuperset(_bare(text[s.start : s.end]) for s in sentences(text))


def _bare(sentence: str) -> str:
    return normalise(sentence).strip(" .。")


def sentences_around(document: Document, quote: Span, beside: tuple[int, int]) -> Span:
    """The span of the sentences around a quote, with `beside[0]` sentences before and `beside[1]` after."""
    near = _near(document, quote, beside) or [quote]
    return Span(
        max(min(near[0].start, quote.start), quote.start - MAX_AROUND),
        min(max(near[-1].end, quote.end), quote.end + MAX_AROUND),
    )


async def check_claims(
    asker: Asker, claims: Sequence[Claim], *, step: Step, question: str = "", n_spent: int = 0
) -> Checked:
    """Ask the checker about claims. Equal claims are sent once; a claim with a blank passage is "not stated"."""
    blank = {claim for claim in claims if not claim.passage.strip()}
    wanted = [claim for claim in dict.fromkeys(claims) if claim not in blank]
    found: dict[Claim, Verdict] = dict.fromkeys(blank, "not stated")
    checker = asker.checker
    if checker is None or not wanted:
        verdicts = [found.get(claim, "not checked") for claim in claims]
        return Checked(verdicts, why="no model checks it" if wanted else "")
    limits, count = checker.calls.limits, checker.calls.limits.counter.count
    frame = count(_request(checker, step, [], question).prompt) + PROMPT_MARGIN
    batches: list[list[Claim]] = []
    left, why, share = 0, "", limits.max_prompt_tokens
    for claim in wanted:
        n = count("\n".join(claim)) + CLAIM_TOKENS
        if limits.prompt_tokens is not None and frame + n > limits.prompt_tokens:
            why = "a passage does not fit the model's window"
            continue
        if not batches or len(batches[-1]) == MAX_CLAIMS or n > left:
            if share is not None and n_spent + frame + n > share:
                why = "the token budget leaves no room for it"
                break
            batches.append([])
            n_spent += frame
            left = (limits.prompt_tokens or 1 << 40) - frame
        batches[-1].append(claim)
        left, n_spent = left - n, n_spent + n
        if share is not None:
            left = min(left, share - n_spent)
    asked = await gather([_ask(step, batch, question, asker, checker) for batch in batches])
    for batch, reply in zip(batches, asked, strict=True):
        found |= zip(batch, reply.verdicts, strict=True)
    return Checked(
        [found.get(claim, "not checked") for claim in claims], checker.name,
        next((reply.why for reply in asked if reply.why), why),
    )  # fmt: skip


SHARE, FRAME, MARKS = 0.15, 950, 70
"""The check of a text may be this share of its length; the characters of a request without claims, and of the tags around a claim."""
MIN_ROOM, SHORT = 6_000, 20_000
"""Texts shorter than `SHORT` may have checks of `MIN_ROOM` characters, which cost little."""


def room_of(n_characters: int) -> float:
    """Maximum characters of the claims about a text together with their passages."""
    return SHARE * n_characters - FRAME if n_characters > SHORT else MIN_ROOM


def length_of(claims: Iterable[Claim]) -> int:
    """The characters that claims and their passages take in a request."""
    return sum(len(claim.text) + len(claim.passage) + MARKS for claim in claims)


def frame_costs(limits: ContextLimits) -> tuple[int, int]:
    """Maximum tokens of a request without claims and passages, and of its reply."""
    task = CheckTask("", ((" ", " "),) * MAX_CLAIMS)
    frame = sum(limits.counter.count(message.content) for message in check_messages(task))
    return frame, reply_limit(task, limits.window, limits.max_output_tokens)


def with_checks(result: StepResult, checked: Checked, note: str = "") -> StepResult:
    """Add the checks to a result, and a flaw if calls of the checker failed."""
    checks = Checks(checked.by, why=checked.why)
    return replace(
        result, checks=checks, notes=(*checks.notes, *filter(None, [note])),
        truncated=result.truncated or checks.failure,
    )  # fmt: skip


CLAIM_TOKENS = 32  # Tokens reserved for the tags around a claim and its passage


def _request(checker: Asker, step: Step, claims: Sequence[Claim], question: str) -> Request:
    task = CheckTask(step.output, tuple(claims), question)
    limits = checker.calls.limits
    most = reply_limit(task, limits.window, limits.max_output_tokens)
    return Request(check_messages(task), task, max_output_tokens=most)


async def _ask(
    step: Step, claims: Sequence[Claim], question: str, asker: Asker, checker: Asker
) -> Checked:
    """Send one request; it is repeated once if its reply leaves a claim without a verdict."""
    request: Request | None = _request(checker, step, claims, question)
    constraint = check_constraint(len(claims))
    found: dict[int, Verdict] = {}
    why = ""
    purposes: tuple[Purpose, ...] = ("check", "again")
    for purpose in purposes:
        if request is None:  # A repetition, with the reply and its flaw, does not fit
            break
        try:
            completion = await checker.ask(
                step, purpose, request, constraint, lambda text: form_flaw(text, constraint)
            )
        except ModelError as error:
            # If another model checks, the run goes on without it; if the main model fails, other
            # calls would fail, too.
            if error.kind not in UNUSABLE_KINDS and checker is asker:
                raise
            why = error.message
            break
        found, why = read_verdicts(completion.text, len(claims))
        if not why:
            break
        request = checker.calls.again(request, completion.text, why, None)
    verdicts = [found.get(number, "not checked") for number in range(1, len(claims) + 1)]
    return Checked(verdicts, checker.name, why)


def read_verdicts(text: str, n: int) -> tuple[dict[int, Verdict], str]:
    """Read the verdict on each of `n` claims by its number, and the flaw of the reply; "" for none.

    A reply that names a claim twice, or one that does not exist, may have all of its numbers wrong.

    Example:
        >>> read_verdicts('{"verdicts": [{"id": 1, "verdict": "supported"}]}', 3)
        ({1: 'supported'}, 'it has no verdict on claim 2')
        >>> read_verdicts('{"verdicts": [{"id": 3, "verdict": "supported"}]}', 2)
        ({}, 'it has a verdict on claim 3, which does not exist')
    """
    try:
        objects = [each for each in json_objects(text) if "verdicts" in each]
    except (ValueError, RecursionError) as error:
        return {}, f"its JSON is broken: {error}"
    if len(objects) != 1 or not isinstance(objects[0]["verdicts"], list):
        return {}, "it is not one JSON object with a list 'verdicts'"
    found: dict[int, Verdict] = {}
    numbers = {str(number): number for number in range(1, n + 1)}
    for entry in objects[0]["verdicts"]:
        if not isinstance(entry, dict):
            return {}, "an entry of 'verdicts' is no object"
        said = str(entry.get("id"))
        verdict = " ".join(str(entry.get("verdict")).replace("_", " ").split()).casefold()
        if said not in numbers:
            return {}, f"it has a verdict on claim {said[:20]}, which does not exist"
        if numbers[said] in found:
            return {}, f"it has two verdicts on claim {said}"
        if verdict not in _OF_MODELS:
            return {}, f"'{verdict[:20]}' is no verdict"
        found[numbers[said]] = _OF_MODELS[verdict]
    missing = [said for said, number in numbers.items() if number not in found]
    return found, f"it has no verdict on claim {missing[0]}" if missing else ""


@lru_cache(maxsize=MAX_CLAIMS)
def check_constraint(n: int) -> Constraint:
    """The constraint on replies about `n` claims."""
    entry = closed_object({
        "id": {"type": "integer", "enum": list(range(1, n + 1))},
        "verdict": {"type": "string", "enum": list(_OF_MODELS)},
    })  # fmt: skip
    schema = closed_object({"verdicts": {"type": "array", "items": entry, "maxItems": n}})
    return Constraint("verdicts", json_form=JsonForm(schema, is_read_by_caller=True))
