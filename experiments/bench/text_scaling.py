"""Does reading a document take time in proportion to its length, whatever the text?

    python experiments/bench/text_scaling.py [CHARACTERS]

Cuts texts that are made to be slow to cut into sentences and terms, entries and sections, estimates the
tokens of prose, and asks the embedded model for a step over a story: CHARACTERS (400,000) and a quarter of that. Prints one
JSON line: for every kind the seconds of the long text and the ratio to the short one; linear is 4,
quadratic 16.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from pearl import Document, Pearl
from pearl.documents.passages import sentences, terms
from pearl.documents.tokens import estimate
from pearl.documents.units import entry, section

ROUNDS = 3
"""The fastest of so many counts."""

PROSE = (
    "Ada sold the mill in 1911 because the river had dried up. Nobody in the village knew who "
    "had bought it, and those who asked were told to wait. "
)
PLAN = '1. ans = FIND_REASON(CTX, "Ada sold the mill") : Find why'

# name: (what is repeated, what comes after)
ODD = {
    "one word": ("a", ""),
    "stops": (".", ""),
    "open quotes": ("“", "a. b"),
    "titles": ("Dr. ", ""),
    "speech": ('"a. ', ""),
    "lines of capitals": ("A\n", ""),
    "capitals": ("Aa ", ":"),
    "blanks": (" ", "a"),
}

FORMS = {
    "records": ("User: 7 || Text: yes\n", ""),
    "blocks": ("User: 7\nText: yes\n\n", ""),
    "rows": ("a,b\n", ""),
    "open cells": ('a,b\n"', ""),
    "open objects": ('{"a":1,\n', ""),
    "nested objects": ('{"a":\n', ""),
    "objects": ('{"a": 1}\n', ""),
    "bars": ("|", ""),
    "tables": ("a|b\n-|-\n", ""),
    "one name": ("a: b || ", ""),
    "turns": ("Ann: a\nBob: b\n", ""),
    "brackets": ("[", ""),
    "headings": ("1.2 Aa\n", ""),
    "items": ("- a\n\n\n", ""),
    "line ends": ("\n", "a"),
}
"""Texts that look like what units look for."""


def cut(text: str) -> None:
    """Both ways a text is cut."""
    sentences(text)
    terms(text)


def rows(text: str) -> None:
    """Both ways that look for the most forms; that there are none has to be found out, too."""
    for unit in (entry, section):
        with suppress(ValueError):
            unit.split(text)


def step(text: str) -> None:
    """A step of the embedded model, the document's index included."""
    asyncio.run(Pearl("extractive").execute(PLAN, Document(text)))


def seconds(work: Callable[[str], object], text: str) -> float:
    """Processor time of the fastest of some rounds."""
    found = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work(text)
        found.append(time.process_time() - began)
    return min(found)


def main() -> None:
    """Measure every kind."""
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    kinds: dict[str, tuple[Callable[[str], object], str, str]] = {
        **{f"sentences of {name}": (cut, *parts) for name, parts in ODD.items()},
        "sentences of prose": (cut, PROSE, ""),
        **{f"rows of {name}": (rows, *parts) for name, parts in (ODD | FORMS).items()},
        "estimate of prose": (estimate, PROSE, ""),
        "step over prose": (step, PROSE, ""),
    }
    step(PROSE)  # imports
    result = {}
    for name, (work, part, end) in kinds.items():
        short, long = (seconds(work, part * (n // len(part)) + end) for n in (length // 4, length))
        result[name] = {"seconds": round(long, 4), "ratio": round(long / max(short, 1e-6), 1)}
    print(json.dumps({"characters": length, **result}))


if __name__ == "__main__":
    main()
