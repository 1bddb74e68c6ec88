"""Drafts of actions → a small library: what does the same is merged, what is broken is dropped.

The line: `reading` (file → drafts), `merging` (by rule, before a model is asked), `rounds` (by the
model, in shards of what belongs together), `room` (by rule, where the model left too many),
`outcome` (library and account of every draft).
"""
