"""Does reading take time in proportion to the length of the text, whatever the text?

    python experiments/bench/plan_scaling.py [CHARACTERS]

Reads texts made to be slow to read (runs of quotes, parentheses, blanks, broken steps, ...) of
CHARACTERS (200,000) and of a quarter of that, both ways, and checks them. Prints one JSON line: for
every kind the seconds of the long text and the ratio to the short one; linear is 4, quadratic 16.
"""

from __future__ import annotations

import gc
import json
import sys
import time

from pearl.actions.library import load_library
from pearl.dsl.checker import diagnose
from pearl.dsl.parser import read

CALL = "1. ans = FIND(CTX, "
STEP = CALL + '"x") : y\n'

TEXTS = {
    # name: (what comes before, what is repeated, what comes after); {} counts
    "steps": ("", '{}. a{} = FIND(CTX, "x") : y\n', ""),
    "steps with lapses": ("", "{}) a{} = FIND( CTX, 'x')\n", ""),
    "steps that mean nothing": ("", "{}. a{} = FINDX(b{}) : y\n", ""),
    "declarations": ("New actions:\n", "- F{}(X) : y\n", "\n" + STEP),
    "declarations without a heading": ("", "- F{}(X) : y\n", STEP),
    "bullets": ("", "- F(X) : y\n", ""),
    "numbered prose": ("", "1. foo\n", "\n" + STEP),
    "names": (CALL, "a{}, ", "b) : x"),
    "the same name": (CALL, "a, ", "b) : x"),
    "parameters": ("New actions:\n- F(", "X, ", "...) : y"),
    "quotes": ("", '"', ""),
    "quotes in a call": (CALL, '"', ""),
    "quoted words in a string": (CALL + '"', ' "a" b', '")'),
    "quoted words in a string not closed": (CALL + '"', ' "a" b', ""),
    "smart quotes": (CALL, "“", ""),
    "single quotes and blanks": (CALL + "'a", "' ", ""),
    "backslashes": ("", "\\", ""),
    "backslashes in a string": (CALL + '"', "\\", '")'),
    "unknown escapes": (CALL + '"', "\\d", '") : x'),
    "characters in two halves": (CALL + '"', "\\ud83d\\ude00", '") : x'),
    "control characters": (CALL + '"', "\x07a", '") : x'),
    "opening parentheses": ("", "(", ""),
    "opening parentheses in a call": (CALL, "(", ""),
    "closing parentheses": (CALL + '"x"', ")", " : x"),
    "parentheses after a call": (CALL + '"x") (', ").", "x"),
    "brackets": (CALL, "[", ""),
    "items": (CALL + "[", "a,", ""),
    "commas": (CALL, ",", ""),
    "blanks": ("", " ", ""),
    "blanks in a call": (CALL, " ", ""),
    "blanks after a call": (CALL + '"x")', " ", "x"),
    "blanks after a number": ("1", " ", "x"),
    "blanks in a heading": ("new", " ", "x"),
    "digits": ("", "1", ""),
    "digits in a call": (CALL, "1", ""),
    "a = ": ("", "a = ", ""),
    "a = in lines": ("", "a = \n", ""),
    "capitals": ("1. ", "A", ""),
    "words": ("1. ", "A ", ""),
    "marks": ("", "*", "question"),
    "marks after a step": (f'**{CALL}"x") : x', " *", "x"),
    "line breaks": ("", "\n", ""),
    "fences": ("", "```\n", ""),
    "steps in fences": ("", '```\n{}. a{} = FIND(CTX, "x") : y\n```\n', ""),
    "headings": ("", "New actions:\n", ""),
    "a question": ("Question: ", "x", "\x07"),
}

LIBRARY = load_library("seed")


def text_of(kind: str, length: int) -> str:
    """A text of one kind, of about so many characters."""
    before, unit, after = TEXTS[kind]
    units = (unit.replace("{}", str(i)) for i in range(1, length // len(unit)))
    return before + "".join(units) + after


def seconds(text: str) -> float:
    """CPU time of reading a text strictly and tolerantly, and of checking it."""
    gc.disable()  # a collection visits what the rest of the process holds, and more text means more collections
    try:
        began = time.process_time()
        for tolerant in (False, True):
            diagnose(read(text, tolerant=tolerant), LIBRARY)
        return time.process_time() - began
    finally:
        gc.enable()


def main() -> None:
    """Measure every kind."""
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    seconds(STEP)
    kinds = {}
    for kind in TEXTS:
        short, long = (seconds(text_of(kind, n)) for n in (length // 4, length))
        kinds[kind] = {"seconds": round(long, 3), "ratio": round(long / max(short, 1e-4), 1)}
    slowest = max(kinds, key=lambda kind: kinds[kind]["ratio"])
    print(json.dumps({"characters": length, "largest_ratio": slowest, **kinds}))


if __name__ == "__main__":
    main()
