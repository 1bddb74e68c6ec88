"""Reading takes time in proportion to the length of the text, whatever the text."""

from __future__ import annotations

import time

import pytest

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
    "headings": ("", "New actions:\n", ""),
    "a question": ("Question: ", "x", "\x07"),
}

LIBRARY = load_library("seed")


def text_of(kind: str, length: int) -> str:
    before, unit, after = TEXTS[kind]
    units = (unit.replace("{}", str(i)) for i in range(1, length // len(unit)))
    return before + "".join(units) + after


def seconds(text: str) -> float:
    began = time.process_time()
    for tolerant in (False, True):
        diagnose(read(text, tolerant=tolerant), LIBRARY)
    return time.process_time() - began


@pytest.mark.slow
@pytest.mark.parametrize("kind", TEXTS)
def test_four_times_the_text_takes_about_four_times_as_long(kind: str) -> None:
    seconds(STEP)
    short = min(seconds(text_of(kind, 20_000)) for _ in range(3))
    long = seconds(text_of(kind, 80_000))
    assert long < 0.1 or long < 10 * short  # quadratic would be sixteen times


@pytest.mark.slow
@pytest.mark.parametrize("kind", TEXTS)
def test_a_megabyte_of_anything_is_read(kind: str) -> None:
    assert seconds(text_of(kind, 1_000_000)) < 200
