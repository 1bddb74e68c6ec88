"""Question + table → a typed query → the rows and figures it asks for, each with its row numbers.

The way of a question: `lookup` (what a model is shown, and what becomes of its reply) → one of
two notations, `specification` (JSON) or `sql` (run by a locked database in a child process) → `checking` (columns and values) →
`compiling` (parameterised SQL) → `running` (result). `terms`, `samples` and `examples` choose what of
a table is shown to the model: a table of any length takes a few hundred tokens.
"""
