"""Every file of `pearl/actions/calculators/` is a computation with a name."""

from __future__ import annotations

import pytest

from pearl.actions.calculators import CALCULATORS, load_calculator, program_of
from pearl.actions.native.calculate import ACTION


@pytest.mark.parametrize("name", CALCULATORS)
def test_a_calculator_uses_each_of_its_operands(name: str) -> None:
    calculator = load_calculator(name)
    called = {each.text for each in program_of(name).operands if each.kind == "name"}
    assert called == {operand.name for operand in calculator.OPERANDS}
    assert isinstance(calculator.IS_PERCENTAGE, bool)


@pytest.mark.parametrize("name", CALCULATORS)
def test_the_planner_is_told_of_it_and_of_its_operands(name: str) -> None:
    names = ", ".join(operand.name for operand in load_calculator(name).OPERANDS)
    assert f"{name} ({names})" in ACTION.definition
    assert name in ACTION.parameters[0].choices
