"""The plan language: text → tree → checked plan → graph. Pure: no model, no clock, no network."""
