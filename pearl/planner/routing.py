"""A question → its parts and its difficulty → a plan by rule, if the rules suffice."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pearl.actions.calculators import CALCULATORS, calculator_of, load_calculator
from pearl.documents.passages import terms
from pearl.dsl.checker import MAX_STEPS, CheckedPlan, compile_plan
from pearl.dsl.decoding.constraint import (
    Constraint,
    JsonForm,
    closed_object,
    ordered_json,
    require,
    schema_grammar,
)
from pearl.dsl.nodes import Argument, ListLiteral, Number, Plan, Reference, Step, String, print_plan
from pearl.dsl.signatures import CTX, ActionLibrary
from pearl.errors import UNUSABLE_KINDS, ModelError, PlanError, did_you_mean
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Completion, DecomposeTask, Message, Model, Request, Usage
from pearl.llm.fallback import ConstraintFallback, ConstraintLevel, reply_fallback
from pearl.llm.messages import constrained
from pearl.llm.reply_limits import reply_limit
from pearl.planner.material import free_output
from pearl.replies.json_objects import json_objects
from pearl.trace import QuestionRouted, Trace, constraint_refused

MAX_PARTS = 24
MAX_TEXT = 300
"""Maximum characters of a field."""
MAX_LABEL = 160

ARITHMETIC = {
    "add": "sum", "subtract": "difference", "multiply": "product", "divide": "ratio", "greater": "greater",
}  # fmt: skip
"""Operations of arithmetic programs → the names of their calculators."""

Gives = Literal["text", "number", "list", "yes or no"]
GIVES: tuple[Gives, ...] = Gives.__args__  # type: ignore[attr-defined]

_Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TEXT)]
_Said = Annotated[_Text, StringConstraints(min_length=1)]
_Id = Annotated[str, StringConstraints(pattern="^p[1-9][0-9]?$")]
_POSSESSIVE = lazy_pattern(r"['’](?:s\b)?")
_YEAR = lazy_pattern(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")
_NUMBER = lazy_pattern(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_ALONE = lazy_pattern(
    r"(?<![\w.,])(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?![\w%]|[.,][0-9]"
    r"|\s*(?:%|(?:percent|per\s+cent|points?|hundred|thousand|million|billion|trillion)\b))",
    re.I,
)
"""A plain number of a question: not that of `Q3`, `5 %` or `3 million`."""
_QUALIFIERS = lazy_pattern(
    r"\b(?:excluding|excludes?|exclusive|except|without|including|inclusive|before|after|adjusted|adjusting"
    r"|not|only|besides|(?:net|gross)(?!\s+(?:change|difference|increase|decrease|growth)\b))\b",
    re.I,
)
"""Words that change the meaning of a figure: `sales excluding Brazil` are not sales."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: _Id


class Figure(_Part):
    """One figure of one period, as the question names it; "" for an entity or period that it does not name."""

    kind: Literal["figure"]
    metric: _Said
    entity: _Text = ""
    period: _Text = ""


class Calculation(_Part):
    """A calculation with earlier parts, by their ids, and constants."""

    kind: Literal["calculation"]
    operation: _Said
    operands: Annotated[tuple[_Said, ...], Field(min_length=1, max_length=8)]

    @property
    def calculator(self) -> str:
        """The calculator's name."""
        return ARITHMETIC.get(self.operation, self.operation)


class Other(_Part):
    """Any other part: a question in words, and the type of its answer."""

    kind: Literal["other"]
    question: _Said
    gives: Gives = "text"


Part = Figure | Calculation | Other


class Decomposition(BaseModel):
    """A question in parts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    parts: Annotated[
        tuple[Annotated[Part, Field(discriminator="kind")], ...],
        Field(min_length=1, max_length=MAX_PARTS),
    ]
    level: Annotated[int, Field(ge=1, le=5, strict=True)]


def read_decomposition(reply: str) -> Decomposition:
    r"""Parse the parts in a reply.

    Example:
        >>> reply = '{"parts": [{"id": "p1", "kind": "figure", "metric": "sales"}], "level": 1}'
        >>> read_decomposition(f"Sure:\n```json\n{reply}\n```").parts[0].metric
        'sales'
    """
    try:
        objects = json_objects(reply)
        if not objects:
            raise ValueError("the reply has no parts: it must be one JSON object")
        if any(each != objects[0] for each in objects):
            raise ValueError("the reply has several objects; write only one")
        return Decomposition.model_validate(objects[0])
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where[:MAX_LABEL] or 'the reply'}: {first['msg']}") from None
    except RecursionError:
        raise ValueError("the reply is nested too deeply") from None


def flaws(parts: Sequence[Part], question: str) -> Iterator[str]:
    """Contradictions between the parts, and between the parts and the question."""
    words = _words(question)
    known = _known_terms(question)
    before: set[str] = set()
    for part in parts:
        if part.id in before:
            yield f"{part.id}: the id is used twice"
        match part:
            case Figure():
                entity = _words(part.entity)
                if entity and f" {' '.join(entity)} " not in f" {' '.join(words)} ":
                    yield f"{part.id}: the question names no entity '{part.entity}'"
                if not set(_words(part.period)) <= set(words):
                    yield f"{part.id}: the question names no period '{part.period}'"
                if not terms(part.metric):
                    yield f"{part.id}: the metric has no word"
                if not known.issuperset(terms(part.metric)):
                    yield f"{part.id}: the question names no '{part.metric}'"
            case Calculation():
                yield from _flaws_of(part, parts, before, question)
            case Other():
                pass
        before.add(part.id)
    answered = " ".join(str(value) for part in parts for value in part.model_dump().values())
    if left := sorted(set(_YEAR.findall(question)) - set(_YEAR.findall(answered))):
        yield f"no part is about {', '.join(left)}, which the question names"
    qualified = {word.lower() for word in _QUALIFIERS.findall(question)} - {*_words(answered)}
    if qualified:
        yield f"no part says '{min(qualified)}', as the question does; where it fits no figure, make it 'other'"


def _flaws_of(
    part: Calculation, parts: Sequence[Part], before: set[str], question: str
) -> Iterator[str]:
    """The flaws in the operation or the operands of a calculation."""
    name = part.calculator
    if name not in CALCULATORS:
        close = did_you_mean(part.operation, CALCULATORS)
        advice = f"did you mean '{close}'?" if close else f"operations are {', '.join(CALCULATORS)}"
        yield f"{part.id}: unknown operation '{part.operation}'; {advice}"
        return
    names = [operand.name for operand in load_calculator(name).OPERANDS]
    if len(part.operands) != len(names):
        yield f"{part.id}: {name} takes {len(names)} operands ({', '.join(names)}), not {len(part.operands)}"
    if len(set(part.operands)) < len(part.operands):
        yield f"{part.id}: an operand is repeated"
    figures = {each.id: each for each in parts if isinstance(each, Figure)}
    new, old = (figures.get(operand) for operand in (*part.operands, "", "")[:2])
    if name in ("difference", "percentage change") and new and old and new.period and old.period:
        backwards = rf"\bfrom\s+{re.escape(new.period)}\s+to\s+{re.escape(old.period)}\b"
        if re.search(backwards, question, re.I):
            yield f"{part.id}: a change from {new.period} to {old.period} begins with {old.id}, the later one"
    others = {each.id for each in parts if isinstance(each, Other)}
    named = {number.replace(",", "") for number in _ALONE.findall(question)}
    named -= {number for number in named if _YEAR.fullmatch(number)}
    for operand in part.operands:
        if _NUMBER.fullmatch(operand):
            is_count = Decimal(operand) in range(2, len(figures) + 1)
            if not (is_count or operand == "100" or operand in named):
                yield f"{part.id}: the question names no number {operand}"
        elif operand not in before:
            yield f"{part.id}: '{operand}' is neither an earlier part nor a number"
        elif operand in others:
            yield f"{part.id}: {operand} is not a figure, so nothing can be computed from it; make {part.id} 'other' as well"


def _known_terms(question: str) -> frozenset[str]:
    """Terms that a metric may use: those of the question, and of the operands of its calculators."""
    own = terms(question)
    phrase = f" {' '.join(own)} "
    operands = (
        text
        for name in CALCULATORS
        if any(
            f" {' '.join(terms(form))} " in phrase
            for form in (name, *load_calculator(name).METRICS)
        )
        for operand in load_calculator(name).OPERANDS
        for text in (operand.name, operand.also)
    )
    return frozenset([*own, *(term for text in operands for term in terms(text))])


def _words(text: str) -> list[str]:
    """Words without case, punctuation and possessives."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return re.findall(r"\w+", _POSSESSIVE.sub(" ", plain))


def level_of(parts: Sequence[Part]) -> int:
    """The difficulty of a question with these parts, from 1 to 5."""
    if any(isinstance(part, Other) for part in parts):
        return 5
    operations = [part.calculator for part in parts if isinstance(part, Calculation)]
    operations += [
        name
        for part in parts
        if isinstance(part, Figure) and (name := calculator_of(part.metric)) is not None
    ]
    if not operations:
        return min(2, len(parts))
    return 3 if len(operations) == 1 and operations[0] not in ("sum", "greater") else 4


def label(part: Part, parts: Sequence[Part]) -> str:
    """A part in words."""
    known = {each.id: each for each in parts}
    text = _label(part, known)
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"


def _label(part: Part, known: dict[str, Part], depth: int = 0) -> str:
    if isinstance(part, Other):
        return part.question
    if isinstance(part, Figure):
        return _subject(part) + (f" in {part.period}" if part.period else "")
    name = part.calculator
    operands = [known.get(operand, operand) for operand in part.operands]
    match operands:
        case [Figure(period=now) as new, Figure(period=before) as old] if (
            name in ("difference", "percentage change")
            and now and before and _subject(new) == _subject(old)
        ):  # fmt: skip
            change = "change" if name == "difference" else name
            return f"{change} in {_subject(new)} from {before} to {now}"
    if depth > 3:  # each nesting level may be as long as all levels below it
        return name
    texts = [each if isinstance(each, str) else _label(each, known, depth + 1) for each in operands]
    return f"{name} of {' and '.join(texts)}"


def _subject(part: Figure) -> str:
    return f"{part.metric} of {part.entity}" if part.entity else part.metric


def shown(parts: Sequence[Part]) -> tuple[str, ...]:
    """A line for each part, with its id."""
    return tuple(
        f"{part.id}: {part.calculator}({', '.join(part.operands)})"
        if isinstance(part, Calculation)
        else f"{part.id}: {label(part, parts)}{f' ({part.gives})' if isinstance(part, Other) else ''}"
        for part in parts
    )


MAX_REPAIRS = 2
"""Maximum repairs of a reply."""

_MAX_FLAWS = 6

_HEAD = """\
You say what a question about reports and tables consists of. You do not see them, and you do not answer the question."""

_BODY = f"""\
Reply with one JSON object: {{"parts": [...], "level": N}}. Each part has an id, p1, p2, ... in order, and is one of
- {{"id": "p1", "kind": "figure", "metric": ..., "entity": ..., "period": ...}}: one figure of one period. Use the words \
of the question; "" for an entity or a period that it does not name. For two periods make two parts.
- {{"id": "p2", "kind": "calculation", "operation": ..., "operands": [...]}}: what is computed from earlier parts, by \
their ids, and from numbers of the question.
- {{"id": "p3", "kind": "other", "question": ..., "gives": {
    " or ".join(f'"{one}"' for one in GIVES)
}}}: anything else \
that is asked for, in words. Where you are not sure, use this.
Operations with their operands in order: {
    "; ".join(
        f"{name} ({', '.join(each.name for each in load_calculator(name).OPERANDS)})"
        for name in CALCULATORS
    )
}. A change from one year to a later one is the difference of the later and the earlier figure.
Operating margins and current ratios are figures here: what they are computed from is put in later.
Level: 1 for one figure, 2 for several, 3 for one operation, 4 for sums, comparisons and several operations, 5 for \
anything else. Every part that no other part uses belongs to the answer, in their order.

Examples:

Question: By how much did the freight revenue of Norfolk Lines change from 2011 to 2012, and what was its headcount in 2012?
{{"parts": [{{"id": "p1", "kind": "figure", "metric": "freight revenue", "entity": "Norfolk Lines", "period": "2012"}}, \
{{"id": "p2", "kind": "figure", "metric": "freight revenue", "entity": "Norfolk Lines", "period": "2011"}}, \
{{"id": "p3", "kind": "calculation", "operation": "difference", "operands": ["p1", "p2"]}}, \
{{"id": "p4", "kind": "figure", "metric": "headcount", "entity": "Norfolk Lines", "period": "2012"}}], "level": 3}}

Question: Why did the margin fall in 2009?
{{"parts": [{{"id": "p1", "kind": "other", "question": "Why did the margin fall in 2009?", "gives": "text"}}], "level": 5}}"""


@dataclass(frozen=True, slots=True)
class Decomposed:
    """The parts of a question, or why they are unknown."""

    decomposition: Decomposition | None
    usage: Usage
    flaw: str = ""
    n_calls: int = 1
    n_cached: int = 0


async def decompose(
    question: str,
    library: ActionLibrary,
    model: Model,
    *,
    max_output_tokens: int | None = None,
    fallback: ConstraintFallback | None = None,
    trace: Trace | None = None,
) -> Decomposed:
    """Request the parts of a question."""
    fallback = fallback or reply_fallback(model.constrains)
    constraint = decomposition_constraint()
    messages = first = decompose_messages(question)
    usage, flaw, n_cached = Usage(), "", 0

    for round in range(MAX_REPAIRS + 1):
        task = DecomposeTask(question, library, round)
        limit = reply_limit(task, model.window, max_output_tokens)
        request = Request(messages, task, limit)

        async def ask(level: ConstraintLevel, request: Request = request) -> Completion:
            return await model.complete(constrained(request, constraint, level.by))

        def refused(level: ConstraintLevel, error: ModelError) -> None:
            if trace is not None:
                trace.append(constraint_refused(level.name, error))

        try:
            completion, _ = await fallback.ask(ask, refused, _flaw)
        except ModelError as error:
            if error.kind not in UNUSABLE_KINDS:
                raise
            usage += error.usage or Usage()
            return Decomposed(None, usage, error.message, round + 1, n_cached)
        usage += completion.usage
        n_cached += completion.is_remembered
        try:
            decomposition = read_decomposition(completion.text)
            problems = tuple(flaws(decomposition.parts, question))
        except ValueError as error:
            problems = (str(error),)
        else:
            if not problems:
                return Decomposed(decomposition, usage, "", round + 1, n_cached)
        flaw = "; ".join(problems[:_MAX_FLAWS])
        messages = repair_messages(first, completion.text, problems[:_MAX_FLAWS])
    return Decomposed(None, usage, flaw, MAX_REPAIRS + 1, n_cached)


def _flaw(text: str) -> str | None:
    """Why a reply does not follow the form; None if it does."""
    try:
        read_decomposition(text)
    except ValueError as error:
        return str(error)
    return None


def decompose_messages(question: str) -> tuple[Message, ...]:
    """Request the parts; the question comes last, after the common prefix."""
    return Message("system", _HEAD), Message("user", f"{_BODY}\n\nQuestion: {question}")


def repair_messages(
    messages: tuple[Message, ...], reply: str, wrong: tuple[str, ...]
) -> tuple[Message, ...]:
    """Request a corrected reply, given its flaws."""
    listed = "\n".join(f"- {each}" for each in wrong)
    return (
        *messages,
        Message("assistant", reply),
        Message(
            "user",
            f"These parts cannot be used:\n{listed}\nReply with the corrected JSON object alone.",
        ),
    )


_FIELDS = {
    "figure": {"metric": "TEXT", "entity": "TEXT", "period": "TEXT"},
    "calculation": {"operation": "OPERATION", "operands": "operands"},
    "other": {"question": "TEXT", "gives": "GIVES"},
}
"""The fields of each kind of part, with their forms."""
_ORDER = ("parts", "level", "id", "kind", *(name for each in _FIELDS.values() for name in each))
_OPERAND = r"(?:p[1-9][0-9]?|[0-9]{1,9}(?:\.[0-9]{1,9})?)"
_HINT = (
    'An object with "parts", each {"id", "kind": "figure", "metric", "entity", "period"}, {"id", "kind": '
    '"calculation", "operation", "operands"} or {"id", "kind": "other", "question", "gives"}, and "level".'
)


def decomposition_constraint() -> Constraint:
    """The constraint on a reply."""
    schema = _schema()

    def text_of(value: Any) -> str:
        require(value, schema)
        return ordered_json(value, _ORDER)

    return Constraint("parts", schema_grammar(schema), JsonForm(schema, text_of, _HINT))


def _schema() -> dict[str, Any]:
    def text(pattern: str) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{pattern}$"}

    def several(items: dict[str, Any], most: int) -> dict[str, Any]:
        return {"type": "array", "items": items, "minItems": 1, "maxItems": most}

    forms = {
        "TEXT": text(r"[^\u0000-\u001f\u007f]{0,300}"),
        "OPERATION": {"enum": list(CALCULATORS)},
        "operands": several(text(_OPERAND), 4),
        "GIVES": {"enum": list(GIVES)},
    }
    parts = [
        closed_object({
            "id": text("p[1-9][0-9]?"), "kind": {"enum": [kind]},
            **{name: forms[form] for name, form in fields.items()},
        })
        for kind, fields in _FIELDS.items()
    ]  # fmt: skip
    levels = {"enum": [1, 2, 3, 4, 5]}
    return closed_object({"parts": several({"anyOf": parts}, MAX_PARTS), "level": levels})


N_PASSAGES = 10
"""Number of passages of a corpus that are read for one figure."""

_ADVICE = "The question seems to consist of these parts; their ids are no names of outputs:"
_MAX_NAME_WORDS = 4


@dataclass(frozen=True, slots=True)
class Route:
    """How to plan a question."""

    plan: CheckedPlan | None = None
    advice: str = ""


async def route(
    question: str,
    library: ActionLibrary,
    model: Model,
    *,
    max_steps: int = MAX_STEPS,
    max_output_tokens: int | None = None,
    fallback: ConstraintFallback | None = None,
    trace: Trace | None = None,
) -> Route:
    """Decide how to plan a question."""
    if not is_routable(library):
        return Route()
    reply = await decompose(
        question, library, model,
        max_output_tokens=max_output_tokens, fallback=fallback, trace=trace,
    )  # fmt: skip
    decomposition, plan, level = reply.decomposition, None, 5
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = (f"its parts are not known: {reply.flaw}",)
    if decomposition is not None:
        level = level_of(decomposition.parts)
        differs = (
            f"level {decomposition.level} according to the model; its parts have level {level}"
        )
        notes = () if level == decomposition.level else (differs,)
        lines = shown(decomposition.parts)
        plan = compose(question, decomposition, library, max_steps=max_steps) if level < 5 else None
    if trace is not None:
        trace.append(
            QuestionRouted(
                level=level, parts=lines, by="planner" if plan is None else "rule", notes=notes,
                usage=reply.usage, n_calls=reply.n_calls, n_cached=reply.n_cached,
            )
        )  # fmt: skip
    if plan is not None or len(lines) < 2:  # a single part is the question itself
        return Route(plan)
    return Route(None, "\n".join([_ADVICE, *(f"- {line}" for line in lines)]))


def is_routable(library: ActionLibrary) -> bool:
    """Whether plans by rule can look up figures with a library."""
    find = library.get("FIND_FIGURE")
    return find is not None and find.reads_context and find.accepts(3)


def compose(
    question: str,
    decomposition: Decomposition,
    library: ActionLibrary,
    *,
    max_steps: int = MAX_STEPS,
) -> CheckedPlan | None:
    """The plan that looks up the figures and computes with them."""
    draft = _Draft(library, question)
    parts = decomposition.parts
    try:
        for part in parts:
            draft.add(part, parts)
    except _NotPlannedError:
        return None
    used = {o for part in parts if isinstance(part, Calculation) for o in part.operands}
    results = [part for part in parts if part.id not in used]
    if len(results) > 1:
        pieces: list[Argument] = []
        for part in results:
            heading = label(part, parts)
            pieces += [String(f"{heading[0].upper()}{heading[1:]}:"), draft.outputs[part.id]]
        draft.step("ans", "CONCAT", "Give each answer with what it is, in their order", *pieces)
    plan = Plan(tuple(draft.steps), question=question)
    try:
        return compile_plan(print_plan(plan), library, max_steps=max_steps)
    except PlanError:
        return None


_LESS = lazy_pattern(r"lower|lowest|less|least|smaller|smallest|fewer|fewest", re.I)
_WHICH = lazy_pattern(
    rf"\b(?:which|who|whose|or)\b(?![^?]{{0,300}}\bthan\b)[^?]{{0,300}}?\b({_LESS.pattern}|greater|greatest|higher|highest|larger|largest"
    r"|bigger|biggest|more|most)\b",
    re.I,
)
"""Matches a question that asks for the name of the greater or the lesser of two."""


class _NotPlannedError(Exception):
    """The rules cannot plan these parts."""


@dataclass(slots=True)
class _Draft:
    """An unfinished plan."""

    library: ActionLibrary
    question: str = ""
    steps: list[Step] = field(default_factory=list)
    outputs: dict[str, Reference] = field(default_factory=dict)
    figures: dict[tuple[str, str], Reference] = field(default_factory=dict)

    def add(self, part: Part, parts: Sequence[Part]) -> None:
        """Add the steps of a part."""
        if isinstance(part, Calculation):
            operands: list[Argument] = [
                self.outputs.get(each) or Number(float(each) if "." in each else int(each))
                for each in part.operands
            ]
            if part.calculator == "greater" and (which := _WHICH.search(self.question)):
                known = {each.id: label(each, parts) for each in parts}
                names = [String(known.get(operand, operand)) for operand in part.operands]
                operands += names[::-1] if _LESS.fullmatch(which[1]) else names
            result = self.calculate(part.calculator, label(part, parts), part.calculator, operands)
        elif isinstance(part, Figure):
            result = self.metric(part, label(part, parts))
        else:
            raise _NotPlannedError
        self.outputs[part.id] = result

    def metric(self, part: Figure, said: str) -> Reference:
        """Add a figure, computed if a calculator has it as its result."""
        name = calculator_of(part.metric)
        if name is None:
            return self.figure(part.metric, "", part)
        operands = [
            self.figure(each.name, each.also, part) for each in load_calculator(name).OPERANDS
        ]
        return self.calculate(name, said, f"{name} {part.period}", operands)

    def figure(self, metric: str, also: str, part: Figure) -> Reference:
        """Add a step that looks up a figure, once for all parts that use it."""
        if not part.period:
            raise _NotPlannedError
        of = f" of {part.entity}" if part.entity else ""
        what = f"{metric}{f' (or {also})' if also else ''}{of}"
        if (what, part.period) in self.figures:
            return self.figures[what, part.period]
        name = f"{metric} {part.period}"
        where: Argument = Reference(CTX)
        if "RETRIEVE" in self.library and self.library["RETRIEVE"].searches:
            queries = tuple(
                String(f"{part.entity} {each} {part.period}".strip())
                for each in (metric, also)
                if each
            )
            about = f"Find passages about {metric}{of} in {part.period}"
            where = self.step(
                f"passages {name}", "RETRIEVE", about,
                Reference(CTX), ListLiteral(queries), Number(N_PASSAGES),
            )  # fmt: skip
        result = self.step(
            name, "FIND_FIGURE", f"Look up {metric}{of} for {part.period}",
            where, String(what), String(part.period),
        )  # fmt: skip
        self.figures[what, part.period] = result
        return result

    def calculate(
        self, calculator: str, said: str, name: str, operands: Sequence[Argument]
    ) -> Reference:
        """Add a step that computes."""
        return self.step(name, "CALCULATE", f"Compute the {said}", String(calculator), *operands)

    def step(self, name: str, action: str, explanation: str, *arguments: Argument) -> Reference:
        """Add a step under a free name."""
        if action not in self.library:
            raise _NotPlannedError
        output = free_output(_output(name), self.steps)
        self.steps.append(Step(output, action, tuple(arguments), explanation))
        return Reference(output)


def _output(text: str) -> str:
    """The name of an output, from its description."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    kept = words if len(words) <= _MAX_NAME_WORDS + 1 else [*words[:_MAX_NAME_WORDS], words[-1]]
    name = "_".join(word[:20] for word in kept)
    return name if name[:1].isalpha() else f"figure_{name}".rstrip("_")
