"""The plan language: a text becomes a tree, a checked plan and a graph. Pure: no model, no clock, no network."""
