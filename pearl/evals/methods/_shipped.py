"""The shipped methods: one call or a plan over a document, baselines and ablations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from msgspec import Struct

from pearl.evals.methods import Effort, Prediction, answered, chosen

if TYPE_CHECKING:
    from pearl.data.samples import Sample
    from pearl.documents.document import Document
    from pearl.pipeline import Pearl
    from pearl.planner.examples import Example
    from pearl.trace import Trace

    Predict = Callable[[Pearl, Sample, Document, Effort, Trace], Awaitable[Prediction]]


class _ShippedMethod(Struct, frozen=True):
    DESCRIPTION: str
    predict: Predict
    NEEDS_OPTIONS: bool = False
    NEEDS_PASSAGES: bool = False


async def _closed(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    return await chosen(pearl, sample, None, effort, trace)


def _reading(arguments: Callable[[Effort], dict[str, Any]]) -> Predict:
    """A method that answers in words over the document, then maps the answer to the options."""

    async def predict(
        pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
    ) -> Prediction:
        answer = await pearl.answer(sample.question, document, trace=trace, **arguments(effort))
        return await answered(pearl, sample, answer, trace)

    return predict


_direct = _reading(lambda effort: {"token_budget": effort.token_budget})

# Under a budget only as many of the best parts are read as fit, with the call that merges their results.
_map_reduce = _reading(
    lambda effort: {
        "context": "map-reduce",
        "part_tokens": effort.part_tokens,
        "token_budget": effort.token_budget,
    }
)

_retrieve = _reading(
    lambda effort: {
        "token_budget": min(effort.token_budget or effort.part_tokens, effort.part_tokens)
    }
)


async def _oracle(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """`direct` over the gold passages, or over the sample's own document if it has none."""
    from pearl.documents.document import from_text

    if sample.gold_passages:
        shown = "\n\n".join(_with_heads(sample.gold_passages, document.text))
        document = from_text(shown, document.name)
    return await _direct(pearl, sample, document, effort, trace)


def _with_heads(passages: Sequence[str], text: str) -> Iterator[str]:
    """The passages; rows of one table are joined below its head, which names the columns."""
    lines = text.split("\n")
    places = {line: i for i, line in reversed(list(enumerate(lines)))}
    tables: dict[int, list[str]] = {}
    for passage in passages:
        first = places.get(passage) if passage.startswith("|") else None
        if first is None:
            yield passage
            continue
        while first > 0 and lines[first - 1].startswith("|"):
            first -= 1
        tables.setdefault(first, lines[first : first + 2]).append(passage)
    yield from ("\n".join(dict.fromkeys(table)) for table in tables.values())


async def _pearl(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    answer = await pearl.ask(
        sample.question,
        document,
        token_budget=effort.token_budget,
        trace=trace,
    )
    status: Literal["answered", "fell_back"] = (
        "answered" if answer.method == "plan" else "fell_back"
    )
    return await answered(pearl, sample, answer, trace, status)


# The ablations are those of Sun et al., PEARL: Prompting Large Language Models to Plan and Execute Actions Over Long
# Documents (2023).


async def _unexecuted(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    from pearl.dsl.nodes import print_plan

    checked = await pearl.planner.write(
        sample.question, pearl.calls(trace, "planner"), kind=document.kind, trace=trace
    )
    steps = " ".join(line for line in print_plan(checked.plan).splitlines() if line[:1].isdigit())
    asked = (
        f"{sample.question} Answer by these steps, and say only what the last one gives: {steps}"
    )
    answer = await pearl.answer(asked, document, token_budget=effort.token_budget, trace=trace)
    return await answered(pearl, sample, answer, trace)


_DRAFTED: WeakKeyDictionary[Pearl, Pearl] = WeakKeyDictionary()
_LOCKS: WeakKeyDictionary[Pearl, asyncio.Lock] = WeakKeyDictionary()


async def _unrefined(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample; the first one pays for the drafts."""
    async with _LOCKS.setdefault(pearl, asyncio.Lock()):
        if pearl not in _DRAFTED:
            _DRAFTED[pearl] = await _with_drafts(pearl, trace)
    return await _pearl(_DRAFTED[pearl], sample, document, effort, trace)


async def _with_drafts(pearl: Pearl, trace: Trace) -> Pearl:
    """Make a `Pearl` whose examples are plans for the questions of the bank, planned without examples."""
    from pearl.errors import PlanningError
    from pearl.planner.examples import Example

    examples = pearl.material.examples
    other = pearl.unshared(*pearl.drawn, scope="eval unrefined")
    other.material.examples = ()

    async def draft(question: str) -> Example | None:
        try:
            checked = await other.planner.write(
                question, other.calls(trace, "planner"), trace=trace
            )
        except PlanningError:
            return None
        return Example(question, checked.plan)

    drafts = await asyncio.gather(*(draft(each.question) for each in examples))
    final = pearl.unshared(*pearl.drawn, scope="eval unrefined")
    final.material.examples = tuple(each for each in drafts if each is not None)
    return final


PLUGINS = {
    "closed": _ShippedMethod(
        "one call with the options and without the document: a baseline",
        _closed,
        NEEDS_OPTIONS=True,
    ),
    "cot": _ShippedMethod(
        "one call over the document with the options shown; reasons, then the letter",
        partial(chosen, is_reasoned=True),
        NEEDS_OPTIONS=True,
    ),
    "direct": _ShippedMethod(
        "one call over the document, answer in words, then mapped to the options", _direct
    ),
    "map-reduce": _ShippedMethod(
        "one call for each part, results merged, answer in words, then mapped to the options",
        _map_reduce,
    ),
    "mcq": _ShippedMethod(
        "one call over the document with the options shown; the letter alone",
        chosen,
        NEEDS_OPTIONS=True,
    ),
    "oracle": _ShippedMethod(
        "one call over the gold passages of the sample, answer in words, then mapped",
        _oracle,
        NEEDS_PASSAGES=True,
    ),
    "pearl": _ShippedMethod(
        "plan, run over the document, answer in words, then mapped to the options", _pearl
    ),
    "retrieve": _ShippedMethod(
        "one call over the best passages, answer in words, then mapped to the options", _retrieve
    ),
    "unexecuted": _ShippedMethod(
        "as pearl without execution: one call over the document with the plan in the prompt, then mapped",
        _unexecuted,
    ),
    "unrefined": _ShippedMethod(
        "as pearl with examples that the model drafted for the bank's questions, unrefined",
        _unrefined,
    ),
}
