"""Samples × methods × seeds → an `EvalLog`; a log → scores, intervals and tests.

`runner` appends to the log, `scorers` score answers, `stats` computes intervals and tests. Reading
a log never calls a model.
"""
