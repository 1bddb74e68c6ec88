"""Step results → `Answer`: the text, its steps, and verified quotes.

The answer is every output that no step consumes, in step order, joined by a blank line (the rule of
the published system). So every step contributes, the quotes of all steps are evidence, and one
undecided step makes the answer undecided.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from pearl.actions.estimates import is_estimate
from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, StepReply, Unverified, collect
from pearl.documents.rows import shortened
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import ListLiteral, Step, String
from pearl.interpreter.agreement import Agreement
from pearl.interpreter.row_evidence import RowEvidence, ranks_at, row_evidence
from pearl.interpreter.step_result import StepResult
from pearl.llm import Usage
from pearl.notebooks import ShownInNotebooks
from pearl.planner.understanding import Understood
from pearl.trace import AnswerStatus, Trace

MAX_TOLD = 80
"""Characters of a quote in the reason for a status."""

UNSURE = frozenset({"undecided", "degraded", "refused"})
"""States of what is no answer, or of one that may lack something or be wrong."""
_HOW_MANY = re.compile(
    r"\bhow many\b|\b(?:what|which|give|tell|find|state|count|determine|is|was)\b[^.?!]{0,40}\bthe (?:total )?number of\b"
    r"|\bwie ?viele?\b|\bcombien de\b|\bcu[aá]nt[oa]s\b|\bquant[ie]\b|\bquant[oa]s\b|\bhoeveel\b|\bсколько\b|多少|几个|いくつ|何人|몇",
    re.I,
)
_NUMBER = re.compile(
    r"\d|[一二三四五六七八九十百零两]|\b(?:zero|none|no|nobody|neither|never|nothing|once|twice|thrice|one|two|three|four|five|six|seven|eight|"
    r"nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty\b[\w-]*|hundreds?|thousands?|millions?|billions?|dozens?|couple|pair|half|nil|single|only|both|"
    r"keine?r?|null|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|\w+zehn|\w+zig|hundert|tausend|"
    r"aucune?|deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|cent|mille|ning[uú]n\w*|uno|dos|tres|cuatro|cinco|seis|siete|ocho|"
    r"nueve|diez|nessun\w*|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|dois|duas|oito|dez)\b",
    re.I,
)
_NO_NUMBER = re.compile(
    r"\[\d{1,4}\]|\b(?:chapter|page|section|part|step) \d+"
    r"|\b(?:in|since|from|until|by|before|after|during|[a-z]{1,5}(?:ber|uary)|march|april|may|june|july|august),? (?:1[5-9]|20)\d\d\b",
    re.I,
)
_ARTICLE = r"\b(?:an?|eine?[rsn]?|une?|una?|uma?)"


@dataclass(frozen=True)
class Answer(ShownInNotebooks):
    """An answer with its evidence.

    Attributes:
        question: As it was asked.
        text: The answer.
        evidence: Passages of the document, in the order in which the steps quote them.
        unverified: Quotes that could not be verified, with their step and the reason.
        rows: The rows that the answer is computed from, in the order of the document.
        steps: Every step with its value, in plan order.
        outputs: The steps that form the answer: those whose output no other step uses.
        method: `plan`, or `direct` if there was no valid plan and the fallback was enabled.
        understood: How the question was understood; None where it was planned as it was asked.
        agreement: How far independent plans agree; None where one was written.
    """

    question: str
    text: str
    plan: str
    outputs: tuple[str, ...]
    method: Literal["plan", "direct"]
    document: str
    steps: tuple[StepResult, ...]
    evidence: tuple[Evidence, ...]
    unverified: tuple[Unverified, ...]
    model: str
    usage: Usage
    duration_s: float
    trace: Trace = field(repr=False, compare=False)
    rows: tuple[RowEvidence, ...] = field(default=(), repr=False)
    understood: Understood | None = None
    agreement: Agreement | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def status(self) -> AnswerStatus:
        """`refused` if the model refused a step.

        `undecided` if a step of the answer is, or any step that has no value therefore, or if
        different answers of several plans are equally frequent. `nothing_found` if no step of the
        answer found anything. `degraded` if the answer may lack something or be wrong: a reply was
        cut off, a quote is not in the document, a part found nothing, or it says no number where
        one is asked for.
        """
        return self._judged[0]

    @property
    def why(self) -> str:
        """Why it is refused, undecided or degraded, with the first step that is; else ""."""
        return self._judged[1]

    @property
    def has_answer(self) -> bool:
        """Whether its text answers the question, be it that nothing was found."""
        return self.status not in ("undecided", "refused")

    @property
    def is_unsure(self) -> bool:
        """Whether it is no answer, or one that may lack something or be wrong."""
        return self.status in UNSURE

    @cached_property
    def _judged(self) -> tuple[AnswerStatus, str]:
        if self.agreement is not None and self.agreement.is_tied:
            return "undecided", self.agreement.why
        refused = [step for step in self.steps if step.state == "refused"]
        if refused:
            return "refused", _told(refused[0], refused[0].why)
        shown = [step for step in self.steps if step.output in self.outputs]
        unsure = [step for step in self.steps if step.state == "undecided"]
        if any(step.is_void or step in shown for step in unsure):
            first = next((step for step in unsure if not step.is_native), unsure[0])
            return "undecided", _told(first, first.why)
        cut = next((step for step in self.steps if step.truncated), None)
        if cut is not None:
            return "degraded", _told(cut, cut.truncated)
        if all(step.state == "nothing" for step in shown):
            return "nothing_found", ""
        flaw = self._flaw()
        return ("degraded", flaw) if flaw else ("answered", "")

    def _flaw(self) -> str:
        """What is wrong with an answer that was found; "" if nothing is."""
        for quote in self.unverified:
            if quote.reason in ("missing", "apart", "negation"):
                return f"step '{quote.step}': {quote.why}: '{shortened(quote.text, MAX_TOLD)}'"
        for step in self.steps:
            if step.state == "nothing" and isinstance(step.value, str) and step.value in self.text:
                return _told(step, "nothing was found for this part of the answer")
        if (asked := _HOW_MANY.search(self.question)) and not _says_number(
            self.text, self.question[asked.end() :]
        ):
            return "the question asks how many, and the answer says no number"
        return ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What its text does not say of how it was computed: how dates were read, how it was searched, what was left out."""
        every = (each for step in self.steps for each in (step.rows, step.fetched))
        notes = (note for each in every if each is not None for note in each.notes)
        return tuple(note for note in dict.fromkeys(notes) if not is_estimate(note))

    @property
    def coverage(self) -> float | None:
        """The smallest fraction of the document that a reading step was shown, or None.

        Steps that read row by row count as one: a later one reads the rows that an earlier one has kept.
        """
        read = [(s.context == "rows", s.coverage) for s in self.steps if s.coverage is not None]
        by_row = [coverage for is_by_row, coverage in read if is_by_row]
        whole = [coverage for is_by_row, coverage in read if not is_by_row]
        return min([*whole, *([max(by_row)] if by_row else [])], default=None)

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON data: one row of a results file."""
        return {
            "status": self.status,
            "question": self.question,
            **_understood(self.understood),
            "document": self.document,
            "answer": self.text,
            **({"why": self.why} if self.why else {}),
            "method": self.method,
            "model": self.model,
            "plan": self.plan,
            "evidence": [
                *(each.to_json() for each in self.evidence),
                *(row.to_json() for row in self.rows),
            ],
            "unverified_quotes": [quote.to_json() for quote in self.unverified],
            **({"notes": list(self.notes)} if self.notes else {}),
            **({} if self.agreement is None else {"agreement": self.agreement.to_json()}),
            "steps": [step.to_json() for step in self.steps],
            "coverage": self.coverage,
            "usage": {
                "input_tokens": self.usage.n_input_tokens,
                "output_tokens": self.usage.n_output_tokens,
                "cached_tokens": self.usage.n_cached_tokens,
                **_implausible(self.usage),
            },
            "duration_s": round(self.duration_s, 3),
        }


def _says_number(text: str, counted: str) -> bool:
    """Whether a text says a number, be it "a dog" where dogs are counted; marks and years are none.

    Example:
        >>> _says_number("He has a dog.", " dogs has he?"), _says_number("He ran a mile in 1957.", " dogs has he?")
        (True, False)
    """
    if _NUMBER.search(_NO_NUMBER.sub("", text)):
        return True
    nouns = "|".join(re.escape(word[:3]) for word in re.findall(r"[^\W\d_]{3,}", counted)[:3])
    return bool(nouns) and bool(re.search(rf"{_ARTICLE} (?:\w+ ){{0,2}}(?:{nouns})", text, re.I))


def _told(step: StepResult, why: str) -> str:
    return f"step '{step.output}' ({step.action}): {why}"


def _understood(understood: Understood | None) -> dict[str, Any]:
    """The question as it was planned, with its notes; nothing where it was planned as it was asked."""
    if understood is None:
        return {}
    return {"understood": {"question": understood.question, "notes": list(understood.notes)}}


def _implausible(usage: Usage) -> dict[str, int]:
    """The number of calls whose reported usage was implausible and was replaced by our own count."""
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
    """Compose the answer and verify every quote of every model step."""
    by_output = {result.output: result for result in results}
    # Quotes in native steps come from their input steps.
    replies = [
        StepReply(result.output, result.reply, _given(step, by_output))
        for step, result in zip(graph.steps, results, strict=True)
        if not result.is_native
    ]
    shown = [by_output[name] for name in graph.checked.outputs]
    unsure = [result for result in results if result.is_void]
    if unsure and not any(result.state in ("undecided", "refused") for result in shown):
        shown.insert(0, unsure[0])  # a later step used it
    evidence, unverified = collect(replies, document)
    fetched = [(each.output, each.fetched) for each in results if each.fetched is not None]
    if fetched:
        evidence = tuple(
            replace(each, ranks=ranks_at(fetched, each.span.start)) for each in evidence
        )
    outputs = [
        (name, rows) for name in graph.checked.outputs if (rows := by_output[name].rows) is not None
    ]
    return Answer(
        question=graph.checked.plan.question or "",
        text="\n\n".join(result.text for result in shown if result.text.strip()),
        plan=graph.text,
        outputs=graph.checked.outputs,
        method=method,
        document=document.name,
        steps=tuple(results),
        evidence=evidence,
        unverified=unverified,
        model=model,
        usage=usage,
        duration_s=duration_s,
        trace=trace,
        rows=row_evidence(
            outputs, document, fetched, [each.cited for each in results if each.cited is not None]
        ),
    )


def _given(step: Step, results: Mapping[str, StepResult]) -> tuple[str, ...]:
    """Inputs of a step other than the document: texts of the plan and earlier outputs."""
    items = [
        item
        for argument in step.arguments
        for item in (argument.items if isinstance(argument, ListLiteral) else (argument,))
    ]
    texts = [item.value for item in items if isinstance(item, String)]
    outputs = [
        results[each.name].reply or results[each.name].text
        for each in step.references()
        if not each.is_context
    ]
    return (*texts, *outputs)
