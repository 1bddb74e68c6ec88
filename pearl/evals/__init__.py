"""Samples × methods × seeds → an `EvalLog`; a log → scores, intervals and tests.

`runner` writes the log line by line, `scorers` decide what is right, `stats` says how sure one can
be. Whatever reads a log calls no model.
"""
