"""`ResultRecord` → one HTML file: the answer beside the document, with its evidence highlighted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, placed
from pearl.dsl.nodes import Argument, ListLiteral, Number, Plan, Reference, Step, String
from pearl.dsl.parser import parse
from pearl.errors import PlanError, Span
from pearl.interpreter.answer import Answer
from pearl.llm import Usage
from pearl.llm.prices import Prices, read_prices
from pearl.trace import RunFinished, Spent, spent
from pearl.view.page import bars, draw_plan, n_at_once, render_page
from pearl.view.result import Place, Result, ShownStep, read_result
from pearl.view.sources import ResultRecord, record_of_answer

MAX_WHOLE = 5_500_000
"""Maximum characters of a text that is shown whole; a longer one is shown around its marks."""

AROUND = 2_000
"""Characters before and after a mark of a longer text."""


BLOCK = 20_000
"""Minimum characters of a block."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the text."""

    text: str
    marks: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """Characters of the text that are not shown."""

    n: int


def highlighted(
    text: str, marks: Sequence[tuple[int, Span]], *, most: int = MAX_WHOLE
) -> list[Piece | Gap]:
    """Cut a text where marks begin and end; marks may overlap."""
    shown = _shown(text, [span for _, span in marks], most)
    cuts = {at for span in shown for at in (span.start, span.end)}
    for _, span in marks:
        cuts |= {span.start, span.end}
    order = sorted(cut for cut in cuts if 0 <= cut <= len(text))
    pieces: list[Piece | Gap] = []
    at = 0
    for start, end in pairwise(order):
        if not any(span.start <= start and end <= span.end for span in shown):
            continue
        if start > at:
            pieces.append(Gap(start - at))
        covering = sorted(n for n, span in marks if span.start <= start and end <= span.end)
        begins = sorted(n for n, span in marks if span.start == start and span.end >= end)
        pieces.append(Piece(text[start:end], tuple(covering), tuple(begins)))
        at = end
    if at < len(text):
        pieces.append(Gap(len(text) - at))
    return pieces


def blocks(pieces: Iterable[Piece | Gap], *, size: int = BLOCK) -> list[list[Piece | Gap]]:
    r"""Group pieces into blocks that end with an unmarked line.

    Browsers lay out only the blocks near the visible part: a text of a million characters appears
    three times as fast.
    """
    found: list[list[Piece | Gap]] = [[]]
    n = 0
    for piece in pieces:
        text = "" if isinstance(piece, Gap) or piece.marks else piece.text
        at = 0
        while (end := text.find("\n", max(at, at + size - n)) + 1) > 0:
            found[-1].append(Piece(text[at:end]))
            found.append([])
            at, n = end, 0
        if isinstance(piece, Gap) or piece.marks:
            found[-1].append(piece)
        elif at < len(text):
            found[-1].append(Piece(text[at:]))
        n += 0 if isinstance(piece, Gap) else len(piece.text) - at
    return [block for block in found if block]


def _shown(text: str, spans: Sequence[Span], most: int) -> list[Span]:
    """The parts of a text that are shown: all, or the surroundings of the marks."""
    if len(text) <= most:
        return [Span(0, len(text))]
    around = [Span(max(0, s.start - AROUND), min(len(text), s.end + AROUND)) for s in spans]
    joined: list[Span] = []
    for span in sorted(around or [Span(0, min(AROUND, len(text)))], key=lambda each: each.start):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


MAX_ROWS = 1_000
"""Maximum rows behind an answer on the page; `--rows FILE` has all."""

MAX_BARS = 400
"""Maximum calls and waits that are drawn."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place of evidence, numbered from 1, with its span in the shown document."""

    number: int
    place: Place
    span: Span | None


def answer_page(answer: Answer, document: Document) -> str:
    """The page of an answer.

    Args:
        answer: With its trace.
        document: The document of the question.

    Example:
        >>> import asyncio
        >>> from pearl import Pearl
        >>> document = Document("Ada sold the boat because it leaked. <b>Then</b> she slept.")
        >>> answer = asyncio.run(Pearl().ask("Why did Ada sell the boat?", document))
        >>> page = answer_page(answer, document)
        >>> "&lt;b&gt;Then&lt;/b&gt;" in page, "<script" in page
        (True, False)
    """
    return result_page(record_of_answer(answer, document))


def result_page(record: ResultRecord, *, prices: Prices | None = None) -> str:
    """The page of a result, also of a failed or unfinished one.

    Its texts come from the row, its trace and the document, checked and escaped. It has no scripts, and
    its policy allows only its own style, by hash. The page lists missing data.
    """
    result = read_result(record, max_rows=MAX_ROWS)
    problems = list(result.problems)
    marks = _marks(result, record.document, problems)
    plan = _parsed(result.plan, problems)
    steps = {step.output: step for step in result.steps}
    has_end = result.error or any(isinstance(event, RunFinished) for event in record.events)
    if record.events and not has_end:
        problems.insert(0, "Its trace has no end: the run was killed, failed, or is still running.")
    calls = bars(record.events)
    last_s = max([result.seconds or 0.0, *(bar.end_s for bar in calls)]) or 1.0
    seconds = {s.output: s.finished.duration_s for s in result.steps if s.finished}
    prices = prices or read_prices()
    price = prices.of(result.model)
    calls_made = spent(record.events)
    usage = _usage(result, calls_made)
    return render_page(
        "answer",
        result.question or result.document or "A result",
        result=result,
        problems=problems,
        document=record.document,
        pieces=_pieces(result, marks),
        marks=marks,
        drawing=draw_plan(plan, seconds) if plan else None,
        steps=list(_with_arguments(plan, steps)),
        usage=usage,
        prices_of=prices.as_of.isoformat(),
        cost_usd=None if price is None or usage is None else price.cost_usd(usage),
        spent=calls_made,
        of_rows=marks[result.n_quoted :],
        n_at_once=n_at_once(calls),
        bars=calls[:MAX_BARS],
        n_bars_left=max(0, len(calls) - MAX_BARS),
        last_s=last_s,
        blocks=[]
        if record.document is None
        else blocks(
            highlighted(record.document.text, [(m.number, m.span) for m in marks if m.span])
        ),
    )


def _marks(result: Result, document: Document | None, problems: list[str]) -> list[_Mark]:
    """Every place, with its span in the document if the document surely has it there."""
    if document is None:
        if result.document:
            problems.append(
                f"The document, {result.document}, was not found, so the evidence is not shown in it."
            )
        return [_Mark(number, place, None) for number, place in enumerate(result.places, start=1)]
    is_same = result.started is not None and result.started.document_sha256 == document.digest
    if result.started is not None and not is_same:
        problems.append(
            "The document has changed since the run; marks that no longer fit are not shown."
        )
    first = dict(reversed(document.parts))  # the first part of a name counts
    marks: list[_Mark] = []
    n_lost = 0
    for number, place in enumerate(result.places, start=1):
        span = None
        if place.span is not None:
            at = first.get(place.source, 0)
            span = Span(at + place.span.start, at + place.span.end)
            if span.end > len(document.text) or (
                not is_same and document.text[span.start : span.end] != place.text
            ):
                span = None
                n_lost += 1
        marks.append(_Mark(number, place, span))
    if n_lost and result.started is None:
        problems.append(f"Places missing from the document: {n_lost:,}. It may have changed since.")
    return marks


def _pieces(result: Result, marks: Sequence[_Mark]) -> list[tuple[str, int | None]]:
    """The pieces of the answer; quotes have the number of their mark."""
    quoted = [
        Evidence(m.place.text, Span(m.number, m.number), m.place.steps, "exact", "", Span(0, 0))
        for m in marks[: result.n_quoted]
        if not m.place.note
    ]
    pieces, _ = placed(result.answer, quoted)
    return [(text, None if each is None else each.span.start) for text, each in pieces]


def _parsed(text: str, problems: list[str]) -> Plan | None:
    if not text.strip():
        return None
    try:
        return parse(text)
    except PlanError as error:
        problems.append(f"Its plan cannot be read: {error.message.splitlines()[0]}.")
        return None


def _with_arguments(
    plan: Plan | None, results: dict[str, ShownStep]
) -> Iterable[tuple[ShownStep, Step | None, list[list[tuple[str, str]]]]]:
    """The steps of the plan with their results, then steps that the plan does not have."""
    named = set()
    for step in plan.steps if plan else ():
        named.add(step.output)
        known = results.get(step.output)
        shown = known or ShownStep(step.output, step.action, state="not begun")
        yield shown, step, [list(_argument_texts(each)) for each in step.arguments]
    for output, each in results.items():
        if output not in named:
            yield each, None, []


def _usage(result: Result, calls_made: Spent) -> Usage | None:
    """Tokens of the row, else of all calls in the trace; None if unknown."""
    if result.n_input_tokens is not None and result.n_output_tokens is not None:
        cached = min(result.n_cached_tokens or 0, result.n_input_tokens)
        usage = Usage(result.n_input_tokens, result.n_output_tokens, cached)
    elif result.events:
        usage = calls_made.usage
    else:
        return None
    is_sent = calls_made.n_calls > calls_made.n_cached and result.model != "extractive"
    return None if is_sent and not usage.n_tokens else usage


def _argument_texts(argument: Argument) -> Iterable[tuple[str, str]]:
    """An argument as texts, each with the output that it refers to or ""."""
    match argument:
        case Reference():
            yield argument.name, "" if argument.is_context else argument.name
        case String():
            yield f'"{argument.value}"', ""
        case Number():
            yield str(argument.value), ""
        case ListLiteral():
            yield "[", ""
            for i, item in enumerate(argument.items):
                if i:
                    yield ", ", ""
                yield from _argument_texts(item)
            yield "]", ""
