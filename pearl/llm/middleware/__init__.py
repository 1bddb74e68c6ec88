"""Model → Model: functions common to all backends. One wrapper is one file.

A wrapper is a `Model` with the name, window and notice of the one it wraps. `pearl.llm.client`
composes them around a model once per run, so that all calls share their state.
"""
