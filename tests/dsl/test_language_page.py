"""What docs/language.md shows is what the readers do."""

from __future__ import annotations

import re

import pytest

from pearl.actions import by_row, by_search, native
from pearl.actions.library import load_library, read_actions
from pearl.actions.operators import EXTRACT, EXTRACT_ALL, LOOKUP, with_operators
from pearl.dsl.checker import compile_plan
from pearl.dsl.parser import parse, read
from tests.root import ROOT

PAGE = (ROOT / "docs/language.md").read_text(encoding="utf-8")
LIBRARY = with_operators(load_library("seed"))

LENIENCIES = re.findall(r"^\| `([^\n]*)` \| `(1\. [^\n]*)` \|$", PAGE, re.M)
assert len(LENIENCIES) >= 20


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.M | re.S)


@pytest.mark.parametrize("text", blocks("plan"))
def test_plans_are_valid(text: str) -> None:
    assert compile_plan(text, LIBRARY).notes == ()


@pytest.mark.parametrize(("written", "meant"), LENIENCIES)
def test_leniencies(written: str, meant: str) -> None:
    reading = read(written, tolerant=True)
    assert reading.notes
    assert reading.plan == parse(meant)
    assert read(written).errors


def test_native_actions() -> None:
    rows = re.findall(r"^\| `([A-Z]+\(.*?\))` \| (\w+) \|", PAGE, re.M)
    known = native.known().values()
    on_lists = [each for each in known if each.name not in LIBRARY or not native.is_operator(each)]
    assert sorted(rows) == sorted((each.signature, str(each.returns)) for each in on_lists)


def test_actions_on_rows() -> None:
    """Each has its line, and there is no other."""
    section = PAGE[PAGE.index("\n## Rows\n") : PAGE.index("\n## Two readers\n")]
    lines = re.findall(r"^\| (`[A-Z].*?`) \|", section, re.M)
    named = {name for line in lines for name in re.findall(r"`(.*?)`", line)}
    known = {
        *native.known().values(), *by_row.known().values(), *by_search.known().values(),
        LOOKUP, EXTRACT, EXTRACT_ALL,
    }  # fmt: skip
    on_rows = {
        each.signature
        for each in known
        if each.name in LIBRARY and native.is_operator(each) and "tries" not in each.traits
    }
    assert named == on_rows | {"NAME(ROWS, ...)", "EACH_NAME(ROWS, ...)"}


def test_action_files() -> None:
    (text,) = blocks("actions")
    actions, found = read_actions(text)
    assert (len(actions), found) == (5, [])
