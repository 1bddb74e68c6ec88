"""The arithmetic that a plan executed, as a program of FinQA, and the comparison of two programs.

Source:
    Chen et al., FinQA (2021) and ConvFinQA (2022): program accuracy and execution accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from pearl.actions.arithmetic.evaluation import PLACES, evaluate, plain
from pearl.actions.arithmetic.program import Operand, Program, ProgramError, parse
from pearl.actions.calculators import load_calculator, program_of
from pearl.actions.values import as_text
from pearl.documents.numbers import Quantity, find_quantity
from pearl.documents.table.quantities import read_quantity
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.nodes import Argument, Number, Reference, Step, String
from pearl.interpreter.answer import Answer
from pearl.interpreter.results import StepResult

_EVALUATE, _CALCULATE = "EVALUATE", "CALCULATE"
_COMMUTATIVE = frozenset({"add", "multiply"})


def carried_out(answer: Answer, checked: CheckedPlan) -> str:
    """The program that leads to an answer: its EVALUATE and CALCULATE steps, joined.

    If the answer is a number that a step read, the program is that number, as for questions that ask for a
    figure of the document. Numbers keep their form, without their scale if all numbers of a calculation have
    the same one.
    """
    if len(answer.outputs) != 1:
        return ""
    return _Writer(answer, checked).program(answer.outputs[0])


def executed(program: str) -> str | None:
    """The value of a program to `PLACES` decimals, as its authors compute it: without units."""
    try:
        result = evaluate(_bare(parse(program)))
    except ProgramError:
        return None
    if isinstance(result.value, bool):
        return "yes" if result.value else "no"
    return plain(Decimal(repr(round(float(result.value), PLACES))))


def is_same(one: str, other: str) -> bool:
    """Whether two programs compute the same in the same way.

    These do not count: names of steps, steps that the last one does not need, the form of numbers (`5%`, 0.05;
    `const_100`, 100), and the order of the operands of additions and multiplications.
    """
    try:
        programs = parse(one), parse(other)
    except ProgramError:
        return False
    numbering: dict[tuple[object, ...], int] = {}
    first, second = (_numbered(program, numbering) for program in programs)
    return first == second


def _numbered(program: Program, numbering: dict[tuple[object, ...], int]) -> int:
    """The number of a computation: equal computations have the same one."""
    done: list[int] = []

    def of(operand: Operand) -> int:
        if operand.kind == "step":
            return done[operand.index]
        value = operand.text.casefold() if operand.value is None else operand.value.normalize()
        return numbering.setdefault((operand.kind == "row", value), len(numbering))

    if program.value is not None:
        return of(program.value)
    for step in program.steps:
        operands = [of(operand) for operand in step.operands]
        if step.operation in _COMMUTATIVE:
            operands.sort()
        done.append(numbering.setdefault((step.operation, *operands), len(numbering)))
    return done[-1]


def _bare(program: Program) -> Program:
    """The program with the units of its numbers removed."""
    if program.value is not None:
        return Program((), _without_unit(program.value))
    steps = (
        type(step)(step.operation, tuple(map(_without_unit, step.operands)))
        for step in program.steps
    )
    return Program(tuple(steps))


def _without_unit(operand: Operand) -> Operand:
    return Operand(operand.kind, operand.text, operand.value, "", operand.index)


def figure(text: str) -> Quantity | None:
    """The only number of a text; None if it has none or several."""
    return read_quantity(text, decimal=".") or find_quantity(text)


@dataclass
class _Writer:
    """Writes the program of an answer, step by step."""

    answer: Answer
    checked: CheckedPlan
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._steps = {step.output: step for step in self.checked.plan.steps}
        self._results = {result.output: result for result in self.answer.steps}
        self._known: dict[str, str] = {}

    def program(self, output: str) -> str:
        """The program of a step."""
        step, result = self._steps.get(output), self._results.get(output)
        if step is None or result is None:
            return ""
        if step.action in (_EVALUATE, _CALCULATE):
            try:
                operand = self._computed(step)
            except (ProgramError, ValueError):
                return ""
            return ", ".join(self.written) or operand
        is_read = not result.is_native and result.state == "found"
        found = figure(result.text) if is_read else None
        return "" if found is None else _written(found, found.scale)

    def _computed(self, step: Step) -> str:
        """Write the steps of a computation once; returns the operand for its result."""
        if step.output not in self._known:
            write = self._evaluated if step.action == _EVALUATE else self._calculated
            self._known[step.output] = write(step)
        return self._known[step.output]

    def _evaluated(self, step: Step) -> str:
        return self._put(parse(self._text(step.arguments[-1]).strip()), {})

    def _calculated(self, step: Step) -> str:
        name, *arguments = step.arguments
        called = self._text(name)
        operands = load_calculator(called).OPERANDS
        given: dict[str, str | Quantity] = {}
        for operand, argument in zip(operands, arguments, strict=True):
            source = self._steps.get(argument.name) if isinstance(argument, Reference) else None
            if source is not None and source.action in (_EVALUATE, _CALCULATE):
                given[operand.name] = self._computed(source)
                continue
            found = figure(self._text(argument))
            if found is None:
                raise ValueError(f"{operand.name} is not a number")
            given[operand.name] = found
        scales = {each.scale for each in given.values() if isinstance(each, Quantity)}
        common = scales.pop() if len(scales) == 1 else 0
        names = {
            name: each if isinstance(each, str) else _written(each, common)
            for name, each in given.items()
        }
        return self._put(program_of(called), names)

    def _put(self, program: Program, names: dict[str, str]) -> str:
        """Append the steps of a program."""
        first = len(self.written)

        def written(operand: Operand) -> str:
            if operand.kind == "step":
                return f"#{first + operand.index}"
            return names.get(operand.text, operand.text) if operand.kind == "name" else operand.text

        if program.value is not None:
            return written(program.value)
        for step in program.steps:
            shown = [*map(written, step.operands), *(["none"] if len(step.operands) == 1 else [])]
            self.written.append(f"{step.operation}({', '.join(shown)})")
        return f"#{len(self.written) - 1}"

    def _text(self, argument: Argument) -> str:
        """The value of an argument as text."""
        match argument:
            case String() | Number():
                return str(argument.value)
            case Reference():
                return _value(self._results[argument.name])
            case _:
                raise ValueError("a list is not an operand")


def _value(result: StepResult) -> str:
    """The value of a step; for a single row, the value of the row."""
    rows = result.value if result.rows is result.value else None
    if rows is not None and len(rows) == 1:
        return rows[0].value or ""
    return as_text(result.value)


def _written(found: Quantity, scale: int) -> str:
    """A number in the form of a program."""
    if found.unit == "%":
        return f"{plain(found.value)}%"
    return plain(found.amount.scaleb(-scale))
