"""Model → Model: what every backend would otherwise do for itself. One wrapper is one file.

A wrapper is a `Model` with the name, window and notice of the one it wraps. `pearl.llm.client` puts
them around a model, once for a whole run, so that its calls learn from each other's refusals.
"""
