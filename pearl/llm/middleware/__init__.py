"""Model → Model: wrappers for all backends. `pearl.llm.client` composes them once per run, so that calls share their state."""
