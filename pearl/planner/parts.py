"""The parts of a question: figures, what is computed from them, and what only a plan can find.

They come from a model, which is untrusted: a figure that the question does not ask for is refused.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pearl.actions.calculators import CALCULATORS, calculator_of, load_calculator
from pearl.data.samples import without_background
from pearl.documents.passages import terms
from pearl.errors import did_you_mean

MAX_PARTS = 24
MAX_TEXT = 300
"""Characters of a field at most."""
MAX_LABEL = 160

ARITHMETIC = {
    "add": "sum", "subtract": "difference", "multiply": "product", "divide": "ratio", "greater": "greater",
}  # fmt: skip
"""Operations of arithmetic programs, and the calculators that they are."""

Gives = Literal["text", "number", "list", "yes or no"]
GIVES: tuple[Gives, ...] = Gives.__args__  # type: ignore[attr-defined]

_Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TEXT)]
_Said = Annotated[_Text, StringConstraints(min_length=1)]
_Id = Annotated[str, StringConstraints(pattern="^p[1-9][0-9]?$")]
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.S)
_POSSESSIVE = re.compile(r"['’](?:s\b)?")
_YEAR = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_ALONE = re.compile(
    r"(?<![\w.,])(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?![\w%]|[.,][0-9]"
    r"|\s*(?:%|(?:percent|per\s+cent|points?|hundred|thousand|million|billion|trillion)\b))",
    re.I,
)
"""A number of a question that stands for itself: not that of `Q3`, `5 %` or `3 million`."""
_QUALIFIERS = re.compile(
    r"\b(?:excluding|excludes?|exclusive|except|without|including|inclusive|before|after|adjusted|adjusting"
    r"|not|only|besides|(?:net|gross)(?!\s+(?:change|difference|increase|decrease|growth)\b))\b",
    re.I,
)
"""Words that make another figure: `sales excluding Brazil` are not sales."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: _Id


class Figure(_Part):
    """One figure of one period, as the question names it; "" where it names no entity or period."""

    kind: Literal["figure"]
    metric: _Said
    entity: _Text = ""
    period: _Text = ""


class Calculation(_Part):
    """What is computed from earlier parts, by their ids, and from constants.

    `operation` is a calculator, or an operation of `ARITHMETIC`.
    """

    kind: Literal["calculation"]
    operation: _Said
    operands: Annotated[tuple[_Said, ...], Field(min_length=1, max_length=8)]

    @property
    def calculator(self) -> str:
        """The calculator's name."""
        return ARITHMETIC.get(self.operation, self.operation)


class Other(_Part):
    """What is neither: a question in words, and the kind of its answer."""

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
    r"""The parts that a reply names.

    Example:
        >>> reply = '{"parts": [{"id": "p1", "kind": "figure", "metric": "sales"}], "level": 1}'
        >>> read_decomposition(f"Sure:\n```json\n{reply}\n```").parts[0].metric
        'sales'
    """
    fenced = _FENCE.search(reply)
    text = fenced[1] if fenced else reply
    start = text.find("{")
    if start < 0:
        raise ValueError("the reply has no parts: it has to be one JSON object")
    try:
        said, _ = json.JSONDecoder().raw_decode(text, start)
        return Decomposition.model_validate(said)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where[:MAX_LABEL] or 'the reply'}: {first['msg']}") from None
    except RecursionError:
        raise ValueError("the reply is nested too deeply") from None


def flaws(decomposition: Decomposition, question: str) -> tuple[str, ...]:
    """What of the parts is not in the question, or does not fit together; () if nothing."""
    return tuple(_flaws(decomposition.parts, question))


def _flaws(parts: Sequence[Part], question: str) -> Iterator[str]:
    words = _words(question)
    known = _known_terms(question)
    before: set[str] = set()
    for part in parts:
        if part.id in before:
            yield f"{part.id}: the id is there twice"
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
    told = " ".join(str(value) for part in parts for value in part.model_dump().values())
    asked, _ = without_background(question)  # what it refers to may be about more
    if left := sorted(set(_YEAR.findall(asked)) - set(_YEAR.findall(told))):
        yield f"no part is about {', '.join(left)}, which the question names"
    qualified = {word.lower() for word in _QUALIFIERS.findall(question)} - {*_words(told)}
    if qualified:
        yield f"no part says '{min(qualified)}', as the question does; where it fits no figure, make it 'other'"


def _flaws_of(
    part: Calculation, parts: Sequence[Part], before: set[str], question: str
) -> Iterator[str]:
    """What is wrong with the operation or the operands of a calculation."""
    name = part.calculator
    if name not in CALCULATORS:
        close = did_you_mean(part.operation, CALCULATORS)
        advice = f"did you mean '{close}'?" if close else f"there are {', '.join(CALCULATORS)}"
        yield f"{part.id}: '{part.operation}' is no operation; {advice}"
        return
    names = [operand.name for operand in load_calculator(name).OPERANDS]
    if len(part.operands) != len(names):
        yield f"{part.id}: {name} takes {len(names)} operands ({', '.join(names)}), not {len(part.operands)}"
    if len(set(part.operands)) < len(part.operands):
        yield f"{part.id}: one operand is there twice"
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
            yield f"{part.id}: '{operand}' is no part before it, and no number"
        elif operand in others:
            yield f"{part.id}: {operand} is no figure, so that nothing is computed from it; make it 'other', too"


def _known_terms(question: str) -> frozenset[str]:
    """Terms that a metric may have: those of the question, and of operands of what it names."""
    own = terms(question)
    asked = f" {' '.join(own)} "
    operands = (
        text
        for name in CALCULATORS
        if any(
            f" {' '.join(terms(form))} " in asked for form in (name, *load_calculator(name).METRICS)
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
    """How difficult a question of these parts is.

    1 and 2: one figure, several; 3: one operation; 4: a sum, a comparison, several operations;
    5: anything else.

    Example:
        >>> level_of([Figure(id="p1", kind="figure", metric="operating margin")])
        3
    """
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
    """What a part gives, in words.

    Example:
        >>> figures = [Figure(id=f"p{i}", kind="figure", metric="sales", period=f"200{i}") for i in (1, 2)]
        >>> change = Calculation(id="p3", kind="calculation", operation="subtract", operands=("p2", "p1"))
        >>> label(change, figures)
        'change in sales from 2001 to 2002'
    """
    known = {each.id: each for each in parts}
    text = _label(part, known)
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"


def _label(part: Part, known: dict[str, Part], depth: int = 0) -> str:
    if isinstance(part, Other):
        return part.question
    if isinstance(part, Figure):
        return _subject(part) + (f" in {part.period}" if part.period else "")
    operands = [known.get(operand, operand) for operand in part.operands]
    name = part.calculator
    if name in ("difference", "percentage change"):
        new, old = operands
        if isinstance(new, Figure) and isinstance(old, Figure) and _is_change(new, old):
            change = "change" if name == "difference" else name
            return f"{change} in {_subject(new)} from {old.period} to {new.period}"
    if depth > 3:  # each level may be as long as all below it
        return name
    shown = [each if isinstance(each, str) else _label(each, known, depth + 1) for each in operands]
    return f"{name} of {' and '.join(shown)}"


def _is_change(new: Figure, old: Figure) -> bool:
    """Whether two figures are of one thing in two periods."""
    return bool(new.period and old.period) and _subject(new) == _subject(old)


def _subject(part: Figure) -> str:
    return f"{part.metric} of {part.entity}" if part.entity else part.metric


def shown(parts: Sequence[Part]) -> tuple[str, ...]:
    """A line for each part, with its id."""
    return tuple(_line(part, parts) for part in parts)


def _line(part: Part, parts: Sequence[Part]) -> str:
    match part:
        case Calculation():
            return f"{part.id}: {part.calculator}({', '.join(part.operands)})"
        case Other():
            return f"{part.id}: {label(part, parts)} ({part.gives})"
        case _:
            return f"{part.id}: {label(part, parts)}"
