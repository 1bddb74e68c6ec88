"""Drafts of actions → a small library: equivalent drafts are merged, malformed ones are dropped.

The stages: `reading` (file → drafts), `merging` (by rule, before any call), `rounds` (by the model,
in shards of similar drafts), `pruning` (by rule, down to the budget), `refinement` (library and
fate of every draft).
"""
