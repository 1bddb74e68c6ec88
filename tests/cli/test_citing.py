"""Numbers of evidence in answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.evidence import Evidence
from pearl.errors import Span
from pearl.interpreter.parts import cited, marked

STORY = """\
Nils left the harbour at dawn.

It was cold.
He sold the boat because the hull was rotten. Nobody asked.
The price was low.
"""


def evidence(document: str, *texts: str) -> list[Evidence]:
    found = [Span(document.index(text), document.index(text) + len(text)) for text in texts]
    return [
        Evidence(text, span, ("a",), "exact", "d", span)
        for text, span in zip(texts, found, strict=True)
    ]


def with_marks(text: str, behind: list[Evidence]) -> str:
    return marked(cited(text, dict(enumerate(behind, start=1))))


BEHIND = evidence(STORY, "the hull was rotten", "Nils left the harbour at dawn.", "cold")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("> Nils left the harbour at dawn.\nThen.", "> Nils left the harbour at dawn.[^2]\nThen."),
        ("He sold it, for the hull was rotten, he says.", "He sold it, for the hull was rotten[^1], he says."),
        ('As he says: "the hull was\nrotten".', 'As he says: "the hull was\nrotten"[^1].'),
        ("It was cold.", "It was cold."),  # one word is no quote
        ("It was “cold” there.", "It was “cold”[^3] there."),
        ("the hull was rotten; nils left the harbour at dawn", "the hull was rotten[^1]; nils left the harbour at dawn"),
        ("Shown in [^7]: the hull was rotten", "Shown in [7]: the hull was rotten[^1]"),
        ("Nothing.", "Nothing."),
        ("", ""),
    ],
)  # fmt: skip
def test_passages_of_an_answer_have_their_numbers(text: str, shown: str) -> None:
    assert with_marks(text, BEHIND) == shown


@given(st.lists(st.sampled_from([*STORY.split("\n"), "> It was cold.", "cold", '"cold"', "", "x"])))
def test_the_text_stays_and_every_number_is_of_some_evidence(lines: list[str]) -> None:
    text = "\n".join(lines)
    pieces = cited(text, dict(enumerate(BEHIND, start=1)))
    assert "".join(said for said, _ in pieces) == text
    assert {n for _, marks in pieces for n in marks} <= {1, 2, 3}


# --- commands -------------------------------------------------------------------------------------
