"""Programs of arithmetic → numbers that show how they came about.

- `program`: the text of a program → its steps, strictly by `grammars/arithmetic.lark`;
- `evaluation`: steps → a result in exact decimal arithmetic, with a unit and every step shown;
- `operands`: numbers and rows of a program → the cells or the places of a document they come from;
- `faults`: what can be wrong, one type each.
"""
