"""Programs of arithmetic → numbers, with a formula that shows every step.

- `program`: the text of a program → its steps, strictly by `grammars/arithmetic.lark`; its faults;
- `evaluation`: steps → a result in exact decimal arithmetic, with a unit and every step shown;
- `matching`: two texts → the rule by which they are the same number.
"""
