"""Quotes of replies, as the evidence of an answer: collected, shown, measured."""

from __future__ import annotations

import importlib.util
import json
import random
from types import ModuleType

import pytest

from pearl import Document
from pearl.documents.document import from_text, join
from pearl.documents.evidence import Evidence, StepReply, Unverified, collect, placed, quoted_line
from pearl.documents.evidence.collecting import DOUBTS
from pearl.interpreter.row import Passage, QuoteData
from tests.root import ROOT

TEXT = "The committee did not approve the merger. Nils sold the boat, which was old, to Ana.\n"


def collected(reply: str, *given: str) -> tuple[tuple[Evidence, ...], tuple[Unverified, ...]]:
    return collect([StepReply("a", reply, given)], Document(TEXT))


def test_an_elided_passage_is_shown_whole() -> None:
    (found,), unverified = collected("> Nils sold the boat ... to Ana.")
    assert not unverified
    assert (found.text, found.match) == ("Nils sold the boat, which was old, to Ana.", "elided")
    assert found.marked == "Nils sold the boat[left out: , which was old,] to Ana."
    row = json.loads(json.dumps(Passage.of(found).to_dict()))
    (gone,) = row["omitted"]
    assert TEXT[gone["start"] : gone["end"]] == gone["text"] == ", which was old,"
    assert TEXT[row["start"] : row["end"]] == row["text"]


@pytest.mark.parametrize(
    ("reply", "given", "reason"),
    [
        ('"no such thing"', "", "missing"),
        ('"boats of Nils"', "the boats of Nils, and others", "given"),
        ('He says "the".', "the", "short"),
        ("> Nils sold the … did not approve", "", "apart"),
    ],
)
def test_every_unverified_quote_has_a_reason(reply: str, given: str, reason: str) -> None:
    _, (flagged,) = collected(reply, given)
    assert QuoteData.of(flagged).to_dict() == {"step": "a", "text": flagged.text, "reason": reason}
    assert flagged.why == DOUBTS[reason]


def test_lines_of_a_block_quote_may_be_quotes_of_their_own() -> None:
    found, (flagged,) = collected(
        "> Nils sold the boat\n> The committee did not\n> It rained here."
    )
    assert [each.text for each in found] == ["Nils sold the boat", "The committee did not"]
    assert {each.match for each in found} == {"exact"}
    assert flagged.text == "It rained here."
    found, (flagged,) = collected("> Nils sold\n> the boat\n>\n> It rained.\n> The committee did")
    assert [each.text for each in found] == ["Nils sold the boat", "The committee did"]
    assert flagged.text == "It rained."


def test_a_passage_that_two_steps_quote_is_one() -> None:
    replies = [
        StepReply("a", "> Nils sold the boat"),
        StepReply("b", "“Nils sold the boat”, he says."),
    ]
    (found,), _ = collect(replies, Document(TEXT))
    assert found.steps == ("a", "b")


def test_omissions_are_placed_in_the_file_they_are_in() -> None:
    document = join([from_text("Nothing is here.", "a"), from_text(TEXT, "b")], "both")
    (found,), _ = collect([StepReply("x", "> Nils sold the boat … to Ana.")], document)
    row = Passage.of(found).to_dict()
    assert row["source"] == "b"
    assert TEXT[row["omitted"][0]["start"] : row["omitted"][0]["end"]] == ", which was old,"


def test_evidence_is_placed_where_the_answer_quotes_it() -> None:
    answer = "He did:\n> Nils sold the\n> boat\n\n> The committee did not approve\n\nSo it was."
    found, _ = collected(f"{answer}\nNot “approve the merger”.")
    pieces, others = placed(answer, found)
    assert "\n".join(text for text, _ in pieces) == answer
    assert [(text, each.text) for text, each in pieces if each] == [
        ("> Nils sold the\n> boat", "Nils sold the boat"),
        ("> The committee did not approve", "The committee did not approve"),
    ]
    assert [each.text for each in others] == ["approve the merger"]


def test_an_elided_passage_is_never_left_out_of_the_evidence() -> None:
    answer = "> Nils sold the boat ... to Ana."
    found, _ = collected(answer)
    assert placed(answer, found) == ([(answer, None)], list(found))


@pytest.mark.parametrize("line", [">5 mg", ">= 5", ">$5", "a > b", "-> here", "", "2. one"])
def test_other_lines_are_no_quotes(line: str) -> None:
    assert quoted_line(line) is None


# The measure, a slice of it


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = ROOT / "experiments/bench/quotes.py"
    spec = importlib.util.spec_from_file_location("quotes", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_true_quotes_are_verified_and_false_ones_are_not(bench: ModuleType) -> None:
    rng = random.Random(7)
    sources = [bench.Source(text) for text in bench.shipped()]
    for make in bench.TRUE:
        for case in bench.made(make, 6, rng, sources):
            matches, refused = bench.results(case)
            assert matches, (make.__name__, case.reply)
            assert not refused, (make.__name__, case.reply)
    for make in bench.FALSE:
        for case in bench.made(make, 6, rng, sources):
            matches, refused = bench.results(case)
            assert "exact" not in matches, (make.__name__, case.reply)
            assert refused, (make.__name__, case.reply)
