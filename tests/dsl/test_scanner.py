"""The scanner finds nothing exactly where the grammar accepts, and its mends make lines acceptable."""

from __future__ import annotations

import random

import pytest

from pearl.dsl.scanner import STEP_HELP, Scan, scan_action, scan_step
from pearl.errors import Span, apply_fixes
from tests.dsl.sampling import accepts
from tests.dsl.strategies import AWKWARD
from tests.examples import times

LINES = {
    "step": (
        '1. a = FIND(CTX, "the \\"key\\" \\u00e9") : Find it',
        '12. é = 検索(CTX, [b, "c", -1.5], 3): x',
        "2. n = F() : x",
    ),
    "action": ("- COUNT_X(CTX, X) : Count X", "- JOIN(S1, S2, ...): Join", "- TODAY() : x"),
    "library_action": ("FIND(CTX,X)#Find X", "JOIN(S1, S2, ...) : Join", "F(X) #", "F()"),
}

PIECES = (
    *AWKWARD, " : ", ": ", ", ", " = ", '\\"', "\\u00e9", "\\ud83d\\ude00", "\\d", "CTX", "FIND(",
    "...", "…", "1. ", "1) ", "Step 1: ", "- ", "**", "  ", '"x"', "1.5", "123456789012345.6",
    " for x in y", " # ", " // ", " - ", "(text)", "X=", "\x00", "\x07", "\ud800", "\ufffe",
)  # fmt: skip


def scan(line: str, start: str) -> Scan:
    span = Span(0, len(line))
    if start == "step":
        return scan_step(line, span, 1)
    return scan_action(line, span, in_library=start == "library_action")


def is_accepted(line: str, start: str) -> bool:
    if start == "action":
        return line.startswith("- ") and accepts(line[2:], start)
    return accepts(line, start)


def broken(line: str, chance: random.Random) -> str:
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        begin = chance.randrange(len(line) + 1)
        end = min(len(line), begin + chance.choice((0, 0, 1, 1, 2, 5)))
        piece = chance.choice(
            (chance.choice(PIECES), chance.choice(PIECES), "", line[begin:end] * 2)
        )
        line = line[:begin] + piece + line[end:]
    return line


@pytest.mark.parametrize("start", LINES)
def test_finds_nothing_exactly_where_the_grammar_accepts(start: str) -> None:
    chance = random.Random(0)
    n_accepted = 0
    n_lines = times(8_000)
    for _ in range(n_lines):
        line = broken(chance.choice(LINES[start]), chance)
        found = scan(line, start).found
        assert (not found) == is_accepted(line, start), line
        n_accepted += not found
        assert [d.span for d in found] == sorted(d.span for d in found)
        if found and all(d.fix for d in found):
            mended = apply_fixes(line, [d.fix for d in found if d.fix])
            # a call within a call becomes a step of its own
            assert all(is_accepted(each, start) for each in mended.split("\n")), (line, mended)
    assert 0.1 < n_accepted / n_lines < 0.9  # both sides are tried


@pytest.mark.parametrize(
    ("line", "number", "mended"),
    [
        ("a = F() : x", 3, "3. a = F() : x"),
        ("a = F() : x", 1_000_000, "999999. a = F() : x"),
        ("7) a = F() : x", 3, "7. a = F() : x"),
        ("0. a = F() : x", 3, "3. a = F() : x"),
        (f"{'9' * 5000}. a = F() : x", 3, "3. a = F() : x"),
    ],
)
def test_numbers_steps(line: str, number: int, mended: str) -> None:
    found = scan_step(line, Span(0, len(line)), number).found
    assert apply_fixes(line, [d.fix for d in found if d.fix]) == mended


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ('1. the key = FIND(CTX, "key") : x', "write one word: the_key = ..."),
        ('1. the-key = FIND(CTX, "key") : x', "write one word: the_key = ..."),
        ('1. the key\'s = FIND(CTX, "key") : x', STEP_HELP),
        ("1. answer the question", STEP_HELP),  # no name, but prose
    ],
)
def test_advice_on_names_of_several_words(line: str, advice: str) -> None:
    (found,) = scan_step(line, Span(0, len(line)), 1).found
    assert found.help == advice
