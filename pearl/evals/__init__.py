"""Samples × methods × seeds → an `EvalLog` (`runner`, `scorers`); a log → scores, intervals and tests (`stats`), without a call."""
