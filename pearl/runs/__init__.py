"""Many tasks: the store, executors, what is recorded and resumed, forecasts."""
