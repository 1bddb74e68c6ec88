"""Parse a program, `op(a, b), op(#0, b)` as in FinQA, or a number, strictly by `grammars/arithmetic.lark`."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from pearl.documents.numbers import UnclearNumberError
from pearl.errors import did_you_mean
from pearl.errors.patterns import lazy_pattern
from pearl.plugins.files import read_data

if TYPE_CHECKING:
    from lark import Lark, Token


class ProgramError(ValueError):
    """A program has no result."""


class BadTokenError(ProgramError):
    """A part of the text is not in the language."""


class MissingOperandError(ProgramError):
    """An operation lacks an operand, or names an unknown step or operand."""


class UnclearOperandError(MissingOperandError, UnclearNumberError):
    """The value of an operand is undecided or ambiguous."""


class NotGivenError(MissingOperandError):
    """An operand is not in the document, according to the step that looked for it."""


class DivisionByZeroError(ProgramError):
    """A divisor is 0, or 0 has a negative exponent."""


class MagnitudeError(ProgramError):
    """A number is too long, too large or too close to 0, or is not a real number."""


class UnknownRowError(ProgramError):
    """The table has no row of that name, or one of its cells is not a number."""


class AmbiguousRowError(UnknownRowError):
    """The table has several rows of that name."""


class UnfitUnitsError(ProgramError):
    """Operands are in units that cannot be added or compared."""


OPERATIONS = ("add", "subtract", "multiply", "divide", "exp", "greater")
TABLE_OPERATIONS = ("table_max", "table_min", "table_sum", "table_average")

MAX_TEXT = 4_000  # maximum characters of a program

MAX_STEPS = 64  # maximum steps of a program

MAX_DIGITS = 40  # maximum digits of a number: longer ones are not quantities

_WORD = lazy_pattern(r"(?<!\w)([A-Za-z_]\w*)\s*\(\Z|\A([A-Za-z_]\w*)\s*\(")
_ARITY = 2  # operands of every operation, as in FinQA


class Operand(Struct, frozen=True):
    """An operand of an operation."""

    kind: Literal["number", "constant", "step", "name", "row"]
    text: str
    value: Decimal | None = None
    unit: str = ""
    index: int = 0


class Step(Struct, frozen=True):
    """One operation with its operands: two, or the row of a table operation."""

    operation: str
    operands: tuple[Operand, ...]


class Program(Struct, frozen=True):
    """A parsed program."""

    steps: tuple[Step, ...]
    value: Operand | None = None

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands of all steps, in order."""
        alone = (self.value,) if self.value else ()
        return (*alone, *(operand for step in self.steps for operand in step.operands))


def parse(text: str) -> Program:
    """The steps of a program (Chen et al., FinQA 2021 and ConvFinQA 2022; `exp` is the power)."""
    from lark import UnexpectedInput

    if len(text) > MAX_TEXT:
        raise BadTokenError(f"the program is longer than {MAX_TEXT:,} characters")
    try:
        tree: Any = _parser().parse(text)
    except UnexpectedInput as error:
        is_end = getattr(getattr(error, "token", None), "type", "") == "$END"
        at = error.pos_in_stream
        raise _bad_token(text, len(text) if at is None or is_end else at) from None
    if len(tree.children) > MAX_STEPS:
        raise BadTokenError(f"the program has more than {MAX_STEPS} steps")
    steps: list[Step] = []
    for child in tree.children:
        if not hasattr(child, "children"):
            return Program((), _operand(child, 0))
        steps.append(_step(child.children, len(steps)))
    return Program(tuple(steps))


@cache
def _parser() -> Lark:
    from lark import Lark

    return Lark(read_data("grammars", "arithmetic.lark"), parser="lalr")


def _step(children: list[Token], index: int) -> Step:
    operation, *tokens = [child for child in children if child is not None]
    name = str(operation)
    tokens = [token for token in tokens if token.type != "NONE"]
    if name in TABLE_OPERATIONS:
        row = str(tokens[0]).strip().strip('"') if tokens else ""
        if not row or row.startswith("#"):
            raise MissingOperandError(f"step #{index}: {name} takes the name of a row")
        return Step(name, (Operand("row", row),))
    if len(tokens) != _ARITY:
        raise MissingOperandError(
            f"step #{index}: {name} takes {_ARITY} operands, not {len(tokens)}"
        )
    return Step(name, tuple(_operand(token, index) for token in tokens))


def _operand(token: Token, index: int) -> Operand:
    text = str(token)
    match token.type:
        case "STEP":
            if len(text) > MAX_DIGITS or (number := int(text[1:])) >= index:
                raise MissingOperandError(f"step #{index}: {text[:20]} is not an earlier step")
            return Operand("step", text, index=number)
        case "CONSTANT":
            digits = text.removeprefix("const_")
            return Operand("constant", text, _number(digits.replace("m", "-", 1)))
        case "PERCENT":
            return Operand("number", text, _number(text.rstrip("% \t\n")).scaleb(-2), "%")
        case "MONEY":
            sign, currency, digits = re.split(r"([$€£¥])", text, maxsplit=1)
            return Operand("number", text, _number(sign + digits.strip()), currency)
        case "NUMBER":
            return Operand("number", text, _number(text))
        case "NAME":
            return Operand("name", text)
        case _:
            raise MissingOperandError("the program is only 'none'")


def _number(digits: str) -> Decimal:
    if len(digits) > MAX_DIGITS:
        raise MagnitudeError(f"the number {digits[:20]}… has more than {MAX_DIGITS} digits")
    return Decimal(digits)


def _bad_token(text: str, at: int) -> BadTokenError:
    """The error at the offset where the text leaves the grammar."""
    if not text.strip():
        return BadTokenError("the program is empty")
    word = _WORD.search(text[: at + 1] if text[at : at + 1] == "(" else text[at:])
    rest = text[at:].lstrip()
    name = (word[1] or word[2]) if word else ""
    if name and name not in (*OPERATIONS, *TABLE_OPERATIONS):
        close = did_you_mean(name.lower(), (*OPERATIONS, *TABLE_OPERATIONS))
        advice = f"did you mean '{close}'?" if close else f"operations are {', '.join(OPERATIONS)}"
        return BadTokenError(f"unknown operation '{name[:40]}'; {advice}")
    text_there = repr(rest[:20]) if rest else "the end"
    return BadTokenError(f"{text_there} at character {at:,} is not in the language")
