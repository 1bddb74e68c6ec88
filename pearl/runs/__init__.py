"""Runs of many tasks: sessions, the store, executors, resuming, forecasts."""
