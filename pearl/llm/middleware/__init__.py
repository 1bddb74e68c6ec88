"""Model → Model: what every backend would otherwise do for itself. One wrapper is one file.

A wrapper is a `Model` with the name, window and notice of the one it wraps. Wait outside of the
limit, `Retrying(Limited(model, 8))`: a call that waits then leaves its place to another. One
`Limited` and one `CircuitBreaker` are for a whole run, so that its calls learn from each other's refusals.
"""
