"""Compute programs of arithmetic: numbers, and formulas that show every step.

- `program`: parse the text of a program strictly by `grammars/arithmetic.lark`, and report its faults;
- `evaluation`: compute the steps in exact decimal arithmetic, with a unit and the whole formula;
- `matching`: decide whether two texts state the same number, and by which rule.
"""
