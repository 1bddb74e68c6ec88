"""Training questions with a gold answer → a bank of examples whose plans reached it.

A plan is written, run over the document and its answer mapped to the options. Only a plan that
reaches the gold option enters the bank; a wrong one goes back to the planner with that fact, up to
a number of times. The planner is never told what is right.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Literal

from pearl.data.journal import Frozen
from pearl.data.samples import Sample
from pearl.dsl.parser import parse
from pearl.dsl.printer import print_plan
from pearl.errors import ExecutionError, ModelError, PearlError
from pearl.interpreter.context import ContextOverflowError
from pearl.llm import Usage
from pearl.pipeline import Pearl
from pearl.planner.examples import Example, spread
from pearl.planner.writer import Rejected
from pearl.runs.executors import Listener
from pearl.runs.identity import RunConfig
from pearl.runs.scheduling import as_completed
from pearl.trace import Trace

__all__ = ["CurationHeader", "CurationRow", "Try", "choose_bank", "curate", "trainable"]


class Try(Frozen):
    """One plan and what came of it."""

    plan: str
    answer: str = ""
    reply: str = ""
    choice: int | None = None
    """The option, counted from 0; None where the answer named none, or the plan failed."""
    error: str | None = None


class CurationHeader(RunConfig):
    """What a bank is made from, and with what."""

    kind: Literal["pearl-curation"] = "pearl-curation"
    v: Literal[1] = 1
    data: str
    retries: int


class CurationRow(Frozen):
    """A training question and every plan that was tried for it."""

    id: str
    index: int
    """Place in the data, from 0."""
    question: str
    gold: int
    outcome: Literal["kept", "wrong", "repeated", "failed"]
    """`kept`: the last plan reached the gold answer; `wrong`: none did; `repeated`: the planner came
    back with a plan that was wrong before; `failed`: there was no plan, no reply, or no room for the document."""
    tries: tuple[Try, ...] = ()
    error: str | None = None
    usage: Usage = Usage()


def trainable(samples: Iterable[Sample]) -> list[Sample]:
    """The samples that a bank can be made from: those with question, document and gold option."""
    return [
        sample
        for sample in samples
        if sample.question and sample.document is not None and sample.gold is not None
    ]


async def curate(
    pearl: Pearl,
    samples: Sequence[Sample],
    *,
    retries: int = 2,
    done: Collection[str] = (),
    until: Callable[[Iterator[tuple[int, Sample]]], Iterator[tuple[int, Sample]]] = iter,
    listener: Listener | None = None,
) -> AsyncGenerator[CurationRow, None]:
    """Try every sample; rows come as they are done. Closing it cancels the rest.

    Args:
        pearl: Model, library and the bank that the planner is shown meanwhile.
        samples: As `trainable` picks them.
        retries: How often a wrong plan goes back.
        done: Ids that need not be tried again.
        until: May end the work early; what is under way is finished.
        listener: Told of every event of every sample.
    """
    done = frozenset(done)
    todo = ((i, sample) for i, sample in enumerate(samples) if sample.id not in done)

    async def one(item: tuple[int, Sample]) -> CurationRow:
        return await _try(pearl, *item, retries, listener)

    async with aclosing(as_completed(until(todo), one, pearl.client.settings.concurrency)) as rows:
        async for row in rows:
            yield row


async def _try(
    pearl: Pearl, index: int, sample: Sample, retries: int, listener: Listener | None
) -> CurationRow:
    trace = Trace(sample.id, (lambda event: listener(sample.id, event)) if listener else None)
    tries: list[Try] = []
    outcome: Literal["kept", "wrong", "repeated", "failed"] = "wrong"
    problem: str | None = None
    try:
        document = await asyncio.to_thread(sample.load)
        for _ in range(retries + 1):
            rejected = [Rejected(each.plan, _told(each.error)) for each in tries]
            checked = await pearl.plan(sample.question, rejected=rejected, trace=trace)
            plan = print_plan(checked.plan)
            if any(plan == each.plan for each in tries):
                outcome = "repeated"
                break
            try:
                answer = await pearl.execute(checked, document, trace=trace)
            except ExecutionError as error:
                if isinstance(error.__cause__, ModelError | ContextOverflowError):
                    raise  # the server failed, or the window is too small, not the plan
                tries.append(Try(plan=plan, error=error.message))
                continue
            if answer.why:
                tries.append(Try(plan=plan, error=answer.why))
                continue
            choice = await pearl.choose(
                sample.question, sample.options, answer=answer.text, trace=trace
            )
            tries.append(
                Try(plan=plan, answer=answer.text, reply=choice.reply, choice=choice.index)
            )
            if choice.index == sample.gold:
                outcome = "kept"
                break
    except PearlError as error:
        outcome, problem = "failed", error.message
    assert sample.gold is not None
    return CurationRow(
        id=sample.id,
        index=index,
        question=sample.question,
        gold=sample.gold,
        outcome=outcome,
        tries=tuple(tries),
        error=problem,
        usage=trace.usage,
    )


def _told(error: str | None) -> str | None:
    """A failure as the planner is told of it: without the value, which comes from the document."""
    if error is None:
        return None
    step, mark, problem = error.partition("): ")
    return step + mark + re.sub(r"""(['"]).*""", "a value", problem, flags=re.DOTALL)


def choose_bank(rows: Iterable[CurationRow], max_examples: int) -> list[Example]:
    """The examples of a bank: all that were kept, or those of them that are least like one another.

    The same rows give the same bank, in whatever order they come.
    """
    kept = sorted((row for row in rows if row.outcome == "kept"), key=lambda row: row.index)
    examples: dict[str, Example] = {}
    for row in kept:  # a question that is asked twice is one example
        plan = parse(row.tries[-1].plan)
        examples.setdefault(row.question, Example(row.question, plan))
    return spread(list(examples.values()), max_examples)
