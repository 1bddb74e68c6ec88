"""Run methods on samples, which gives an `EvalLog` (`runner`, `scorers`), and compute scores and tests (`stats`)."""
