"""Does reading a document take time in proportion to its length, whatever the text?

    python experiments/bench/text_scaling.py [CHARACTERS]

Cuts texts that are made to be slow to cut into sentences and terms, estimates the tokens of prose, and
asks the embedded model for a step over a story: CHARACTERS (400,000) and a quarter of that. Prints one
JSON line: for every kind the seconds of the long text and the ratio to the short one; linear is 4,
quadratic 16.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable

from pearl import Document, Pearl
from pearl.documents.passages import sentences, terms
from pearl.documents.tokens import estimate

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


def cut(text: str) -> None:
    """Both ways a text is cut."""
    sentences(text)
    terms(text)


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
