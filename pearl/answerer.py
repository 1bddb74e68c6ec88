"""Results of the steps → `Answer`: the text, the steps it came from, and verified quotes.

The answer is every output that no step consumes, in step order, joined by a blank line (the rule of
the published system). So every step contributes, and every step's quotes are evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Literal

from pearl.dsl.graph import PlanGraph
from pearl.errors import Span
from pearl.evidence import Quote, Verifier, find_quotes
from pearl.interpreter import StepResult
from pearl.llm import Usage
from pearl.sources import Document
from pearl.trace import Trace

__all__ = ["Answer", "Evidence", "compose"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage of the document that steps quote.

    Attributes:
        text: The passage as the document has it.
        span: Where, in characters of the document's text.
        source: The file it is in: the document itself, or one of several read together.
        source_span: Where in that file's text; the same as `span` for a single document.
        steps: Outputs of the steps that quote it.
        match: `exact`, or `normalised` for blanks, quote marks and hyphenation.
    """

    text: str
    span: Span
    steps: tuple[str, ...]
    match: Literal["exact", "normalised"]
    source: str
    source_span: Span


@dataclass(frozen=True)
class Answer:
    """An answer that says where it comes from.

    Attributes:
        text: The answer.
        evidence: Verified passages, in the order in which the answer's steps quote them.
        unverified: Quotes that are not in the document, with the step that made them.
        steps: Every step with its value, in plan order.
        method: `plan`, or `direct` where no valid plan could be had and a fallback was asked for.
    """

    question: str
    text: str
    plan: str
    method: Literal["plan", "direct"]
    document: str
    steps: tuple[StepResult, ...]
    evidence: tuple[Evidence, ...]
    unverified: tuple[tuple[str, str], ...]
    model: str
    usage: Usage
    duration_s: float
    trace: Trace = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def coverage(self) -> float | None:
        """The least share of the document that any reading step was shown; None if none reads."""
        return min((s.coverage for s in self.steps if s.coverage is not None), default=None)

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON data: one row of a results file."""
        return {
            "status": "answered",
            "question": self.question,
            "document": self.document,
            "answer": self.text,
            "method": self.method,
            "model": self.model,
            "plan": self.plan,
            "evidence": [
                {
                    "text": e.text,
                    "start": e.source_span.start,
                    "end": e.source_span.end,
                    "source": e.source,
                    "match": e.match,
                    "steps": list(e.steps),
                }
                for e in self.evidence
            ],
            "unverified_quotes": [{"step": s, "text": q} for s, q in self.unverified],
            "steps": [
                {
                    "output": s.output,
                    "action": s.action,
                    "value": s.value,
                    "native": s.is_native,
                    "context": s.context,
                    "coverage": s.coverage,
                    "calls": s.n_calls,
                }
                for s in self.steps
            ],
            "coverage": self.coverage,
            "usage": {
                "input_tokens": self.usage.n_input_tokens,
                "output_tokens": self.usage.n_output_tokens,
                "cached_tokens": self.usage.n_cached_tokens,
                **_implausible(self.usage),
            },
            "duration_s": round(self.duration_s, 3),
        }

    def _repr_html_(self) -> str:
        """The answer for a notebook."""
        evidence = "".join(
            f"<li>{escape(e.text)} <small>({escape(e.source)}, characters "
            f"{e.source_span.start:,}&ndash;{e.source_span.end:,}; {escape(', '.join(e.steps))})</small></li>"
            for e in self.evidence
        )
        flagged = "".join(
            f"<li><b>not in the document:</b> {escape(quote)} <small>({escape(step)})</small></li>"
            for step, quote in self.unverified
        )
        steps = "".join(
            f"<tr><td><code>{escape(s.output)}</code></td><td><code>{escape(s.action)}</code></td>"
            f"<td style='text-align:left;white-space:pre-wrap'>{escape(s.text)}</td></tr>"
            for s in self.steps
        )
        return (
            f"<p><b>{escape(self.question)}</b></p>"
            f"<p style='white-space:pre-wrap'>{escape(self.text)}</p>"
            f"<p>Evidence</p><ol>{evidence}</ol><ul>{flagged}</ul>"
            f"<details><summary>Plan and steps ({escape(self.model)})</summary>"
            "<pre style='font-family:monospace;white-space:pre-wrap;word-break:normal'>"
            f"{escape(self.plan)}</pre><table>{steps}</table></details>"
        )


def _implausible(usage: Usage) -> dict[str, int]:
    """How many calls were counted by us for what the server said cannot be; mostly there is none."""
    n = usage.n_implausible_calls
    return {"implausible_calls": n} if n else {}


def compose(
    graph: PlanGraph,
    results: Sequence[StepResult],
    document: Document,
    *,
    method: Literal["plan", "direct"],
    model: str,
    usage: Usage,
    duration_s: float,
    trace: Trace,
) -> Answer:
    """Put the answer together and verify every quote of every model step."""
    by_output = {result.output: result for result in results}
    shown = [by_output[name].text for name in graph.checked.outputs]
    evidence, unverified = _evidence(results, document)
    return Answer(
        question=graph.checked.plan.question or "",
        text="\n\n".join(text for text in shown if text.strip()),
        plan=str(graph.checked),
        method=method,
        document=document.name,
        steps=tuple(results),
        evidence=evidence,
        unverified=unverified,
        model=model,
        usage=usage,
        duration_s=duration_s,
        trace=trace,
    )


def _evidence(
    results: Sequence[StepResult], document: Document
) -> tuple[tuple[Evidence, ...], tuple[tuple[str, str], ...]]:
    verifier = Verifier(document.text)
    found: dict[Span, Evidence] = {}
    unverified: list[tuple[str, str]] = []
    for result in results:
        if result.is_native:
            continue  # its quotes, if any, are those of the steps it was made from
        reads_document = result.coverage is not None
        for quote in _quotes(result.text, verifier):
            if quote.match == "missing":
                if reads_document:  # other steps may well quote what earlier ones wrote
                    unverified.append((result.output, quote.text))
                continue
            for span in quote.spans:
                _add(found, span, result.output, quote, document)
    return tuple(found.values()), tuple(unverified)


def _quotes(reply: str, verifier: Verifier) -> Iterator[Quote]:
    """The quotes of a reply, looked up.

    A run of block-quote lines is one passage if the document has it so; else each line is a quote
    of its own, as the prompt asks for.
    """
    for text in find_quotes(reply):
        quote = verifier.verify(text)
        if quote.is_verified or "\n" not in text:
            yield quote
        else:
            yield from (verifier.verify(line) for line in text.split("\n") if line.strip())


def _add(
    found: dict[Span, Evidence], span: Span, step: str, quote: Quote, document: Document
) -> None:
    before = found.get(span)
    if before is not None:
        if step not in before.steps:
            found[span] = replace(before, steps=(*before.steps, step))
        return
    assert quote.match != "missing"
    source, start = document.locate(span.start)
    found[span] = Evidence(
        document.text[span.start : span.end],
        span,
        (step,),
        quote.match,
        source,
        Span(start, start + span.end - span.start),
    )
