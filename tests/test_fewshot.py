"""Examples and domains."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl import plugins
from pearl.actions.library import load_library, read_library
from pearl.domains import load_domain
from pearl.errors import DataError
from pearl.fewshot import load_examples


@pytest.mark.parametrize("name", plugins.names("pearl.domains"))
def test_every_domain_has_a_library_and_examples_that_fit_it(name: str) -> None:
    domain = load_domain(name)
    library = load_library(domain.library)
    examples = load_examples(domain.examples, library)
    assert len(examples) >= 5
    assert len({example.question for example in examples}) == len(examples)


def test_examples_that_call_what_the_library_lacks_are_left_out() -> None:
    library = read_library("SUMMARIZE(CTX) : Sum up\nCONCAT(S1, S2, ...) : Join", "small")
    for example in load_examples("quality", library):
        assert {s.action for s in example.plan.steps} <= {
            *library, *(a.name for a in example.plan.new_actions)
        }  # fmt: skip


def test_a_bank_can_be_any_folder(tmp_path: Path) -> None:
    library = load_library("seed")
    plan = tmp_path / "one.plan"
    plan.write_text('Question: What is it?\n\n1. a = FIND(CTX, "it") : Find\n', encoding="utf-8")
    assert [e.question for e in load_examples(tmp_path, library)] == ["What is it?"]
    plan.write_text('1. a = FIND(CTX, "it") : Find\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"one\.plan:1: an example begins with"):
        load_examples(tmp_path, library)
    plan.write_text("nothing", encoding="utf-8")
    with pytest.raises(DataError, match=r"one\.plan: not a plan"):
        load_examples(tmp_path, library)
    with pytest.raises(DataError, match="no folder"):
        load_examples(tmp_path / "absent", library)
