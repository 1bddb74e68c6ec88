"""Broken plans, written by hand: every error, where it stands, and the text after the fixes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from pearl.actions.library import load_library, read_actions, read_library
from pearl.dsl.checker import diagnose, mend_plan
from pearl.dsl.parser import read
from pearl.errors import render_diagnostics

CORPUS = Path(__file__).with_name("negative.txt")
REPLIES = Path(__file__).with_name("replies")

MAX_STEPS = 6

LIBRARY = read_library(
    "FIND(CTX, X) : Find X\nFIND_EVENT(CTX, X) : Find the event X\n"
    "FIND_EMOTION(CTX, X, Y) : Find what X feels for Y\nCOMPARE(CTX, X, Y) : Compare X and Y\n"
    "SUMMARIZE(CTX) : Sum up CTX\n検索(CTX, X) : Find X\nCONCAT(S1, S2, ...) : Join\n"
    "COUNT(ITEMS) : Count\nSUM(NUMBERS) : Add up\nUNION(A, B, ...) : Unite\n",
    "corpus",
)

_UNSEEN = {"TAB": "\t", "CR": "\r", "LF": "\n", "BOM": "\ufeff"}
_PLACEHOLDER = re.compile(r"\{(TAB|CR|LF|BOM|U\+[0-9A-F]{4,6}|\d+\*.)\}")


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    errors: tuple[str, ...]
    mended: str | None


def _expanded(text: str) -> str:
    def meant(match: re.Match[str]) -> str:
        key = match[1]
        if key in _UNSEEN:
            return _UNSEEN[key]
        if key.startswith("U+"):
            return chr(int(key[2:], 16))
        n, character = key.split("*")
        return character * int(n)

    return _PLACEHOLDER.sub(meant, text)


def _cases() -> list[Case]:
    cases = []
    for part in re.split(r"^=== ", CORPUS.read_text(encoding="utf-8"), flags=re.M)[1:]:
        body = re.sub(r"\n\n# \d+\. .*\n\Z", "\n", part.rstrip("\n") + "\n")
        name, _, rest = body.removesuffix("\n").partition("\n")
        text, *tail = re.split(r"^--- ", rest, flags=re.M)
        errors, _, mended = "\n".join(row.rstrip("\n") for row in tail).partition("\n>>> mended\n")
        cases.append(
            Case(
                name,
                _expanded(text.removesuffix("\n")),
                tuple(errors.split("\n")),
                _expanded(mended) if mended else None,
            )
        )
    return cases


CASES = _cases()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_error_its_place_its_message_and_the_text_after_all_fixes(case: Case) -> None:
    if case.name.startswith("[actions]"):
        text, found = case.text, read_actions(case.text)[1]
    else:
        reading = read(case.text)
        text, found = reading.text, diagnose(reading, LIBRARY, max_steps=MAX_STEPS)
    errors = [diagnostic for diagnostic in found if diagnostic.severity == "error"]
    places = [(*d.span.position(text), d.code) for d in errors]
    shown = [f"{line}:{column} {code}" for line, column, code in sorted(places)]
    assert shown == list(case.errors), render_diagnostics(found, text)
    for diagnostic in found:
        assert not diagnostic.message.endswith(".")
        assert diagnostic.message.isprintable()
        assert len(diagnostic.message) < 160
        assert diagnostic.render(text).count("\n") <= 4
        assert diagnostic.help or diagnostic.fix
    if case.mended:
        assert mend_plan(case.text, LIBRARY, max_steps=MAX_STEPS)[0] == case.mended


@pytest.mark.parametrize("path", sorted(REPLIES.glob("*.reply")), ids=lambda path: path.stem)
def test_whole_replies_of_models(path: Path) -> None:
    reading = read(path.read_text(encoding="utf-8"), tolerant=True)
    mended, _ = mend_plan(reading.text, load_library("quality"))
    found = diagnose(read(mended), load_library("quality"))
    errors = [f"error: {d.message} [{d.code}]" for d in found if d.severity == "error"]
    shown = "\n".join([mended.rstrip(), *errors])
    assert shown == path.with_suffix(".read").read_text(encoding="utf-8").rstrip()
