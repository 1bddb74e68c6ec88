"""Model → Model: functions common to all backends; `pearl.llm.client` composes the wrappers once per run, so calls share state."""
