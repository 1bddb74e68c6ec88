"""Examples and domains."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import plugins
from pearl.actions.library import load_library
from pearl.actions.operators import with_operators
from pearl.data.domains import load_domain
from pearl.dsl.parser import parse
from pearl.errors import DataError
from pearl.planner.examples import Example, asked_again, load_examples, read_bank, select


@pytest.mark.parametrize("name", plugins.names("pearl.data.domains"))
def test_every_domain_has_a_library_and_examples_that_fit_it(name: str) -> None:
    domain = load_domain(name)
    library = with_operators(load_library(domain.library))
    examples = load_examples(domain.examples, library)
    assert list(examples) == list(read_bank(domain.examples))
    assert len(examples) >= 5
    assert len({example.question for example in examples}) == len(examples)


def test_a_bank_can_be_any_folder(tmp_path: Path) -> None:
    library = load_library("seed")
    plan = tmp_path / "one.plan"
    plan.write_text('Question: What is it?\n\n1. a = FIND(CTX, "it") : Find\n', encoding="utf-8")
    assert [e.question for e in load_examples(tmp_path, library)] == ["What is it?"]
    plan.write_text('1. a = FIND(CTX, "it") : Find\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"one\.plan:1: an example must begin with"):
        load_examples(tmp_path, library)
    plan.write_text("nothing", encoding="utf-8")
    with pytest.raises(DataError, match=r"one\.plan:1: not a plan"):
        load_examples(tmp_path, library)
    with pytest.raises(DataError, match="cannot find a folder"):
        load_examples(tmp_path / "absent", library)


# --- banks ------------------------------------------------------------------------------------

PLAN = parse('1. a = FIND(CTX, "it") : Find')

questions = st.lists(
    st.sampled_from(["Why", "did", "Ada", "leave", "the", "boat", "How", "many", "dogs", "are", "there"]),
    min_size=1, max_size=5,
).map(" ".join)  # fmt: skip
banks = st.lists(questions, max_size=8, unique=True).map(
    lambda found: [Example(question, PLAN) for question in found]
)


@given(banks, questions, st.integers(0, 10), st.integers(0, 4))
def test_the_nearest_and_a_few_unlike_ones(
    bank: list[Example], question: str, n_nearest: int, n_unlike: int
) -> None:
    found = select(bank, question, n_nearest, n_unlike)
    assert found == select(bank, question, n_nearest, n_unlike)
    assert len(found) == min(len(bank), n_nearest + n_unlike)
    assert len(set(found)) == len(found)
    assert set(found) <= set(bank)


@given(questions, st.sampled_from(["{}?", "  {} ?", "“{}”", "{}...", "\t{}\n"]), st.booleans())
def test_a_question_is_the_same_however_it_is_written(
    question: str, form: str, is_upper: bool
) -> None:
    asked = form.format(question.upper() if is_upper else question.replace(" ", "  "))
    bank = [Example(f"{question}?", PLAN)]
    bank.append(Example(f"{question} tomorrow?", PLAN))
    assert asked_again(bank, [asked, f"{question} today?"]) == bank[:1]


def test_a_bank_is_read_whole_even_if_its_plans_call_unknown_actions(tmp_path: Path) -> None:
    for name, action in (("b", "FIND"), ("a", "NOWHERE_DEFINED")):
        text = f'Question: {name}?\n\n1. a = {action}(CTX, "it") : Find\n'
        (tmp_path / f"{name}.plan").write_text(text, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no plan", encoding="utf-8")
    assert [example.question for example in read_bank(tmp_path)] == ["a?", "b?"]
    assert [e.question for e in load_examples(tmp_path, load_library("seed"))] == ["b?"]
    (tmp_path / "empty").mkdir()
    assert read_bank(tmp_path / "empty") == ()


def test_a_plan_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.plan").write_bytes(b"Question: caf\xe9?\n")
    with pytest.raises(DataError, match=r"bad\.plan"):
        read_bank(tmp_path)
    (tmp_path / "bad.plan").unlink()
    (tmp_path / "folder.plan").mkdir()
    with pytest.raises(DataError, match=r"folder\.plan"):
        read_bank(tmp_path)


@pytest.mark.parametrize("target", ["pipe", "/dev/zero"])
def test_a_bank_has_plain_files_only(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.plan").symlink_to(target)
    with pytest.raises(DataError, match="is not a regular file"):
        read_bank(tmp_path)
