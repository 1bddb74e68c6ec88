"""Texts that say only that the document does not state the answer; in JSON replies, null says so."""

from __future__ import annotations

EDGES = " \t\n*_`\"'“”.:!()[]{}-•–"  # Meaningless marks around a value
_NOTHING = "nothing found"  # Plain form of this reply, with or without what is missing: "Nothing found: a dog."
_WORDS = frozenset({
    _NOTHING, "none", "null", "n/a", "unknown", "unanswerable", "not applicable", "not known", "not stated", "not given",
    "not mentioned", "not specified", "not provided",
})  # fmt: skip


def says_not_stated(text: str) -> bool:
    """Whether a text as a whole means *not stated*."""
    said = text.strip(EDGES).casefold()
    return said in _WORDS or (said.startswith(f"{_NOTHING}:") and "\n" not in said)
