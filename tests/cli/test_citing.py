"""Numbers of evidence in answers, and the lines of the document around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.cli.output import MAX_LINE, MAX_QUOTE, Line, Surroundings
from pearl.documents.document import from_text, join
from pearl.documents.evidence import Evidence, StepReply, collect
from pearl.errors import Span
from pearl.interpreter.parts import cited, marked
from tests.cli.emulator import Emulator
from tests.cli.terminal import Terminal, child
from tests.cli.test_terminal import on_a_terminal

STORY = """\
Nils left the harbour at dawn.

It was cold.
He sold the boat because the hull was rotten. Nobody asked.
The price was low.
"""
WHY = "Why did Nils sell the boat?"


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


def test_what_leaves_something_out_is_no_passage_of_the_answer() -> None:
    quote = "> He sold the boat ... the hull was rotten."
    found, _ = collect([StepReply("a", quote)], from_text(STORY))
    assert found[0].omitted
    assert cited(quote, dict(enumerate(found, start=1))) == [(quote, ())]


@given(st.lists(st.sampled_from([*STORY.split("\n"), "> It was cold.", "cold", '"cold"', "", "x"])))
def test_the_text_stays_and_every_number_is_of_some_evidence(lines: list[str]) -> None:
    text = "\n".join(lines)
    pieces = cited(text, dict(enumerate(BEHIND, start=1)))
    assert "".join(said for said, _ in pieces) == text
    assert {n for _, marks in pieces for n in marks} <= {1, 2, 3}


def around(text: str, quote: str, n: int) -> list[Line]:
    return Surroundings(from_text(text), n).of(evidence(text, quote)[0])


def test_lines_before_and_after() -> None:
    quoted = Line("He sold the boat because ", "the hull was rotten", ". Nobody asked.")
    near = [Line("It was cold."), quoted, Line("The price was low.")]
    assert around(STORY, "the hull was rotten", 1) == near
    assert around(STORY, "the hull was rotten", 5) == [
        Line("Nils left the harbour at dawn."),
        *near,
    ]
    assert around(STORY, "dawn.\n\nIt was", 0) == [
        Line("Nils left the harbour at ", "dawn."), Line("", "It was", " cold.")
    ]  # fmt: skip


def test_only_lines_of_the_same_file() -> None:
    both = join([from_text("one\ntwo", "a"), from_text("three\nfour", "b")], "both")
    found = evidence(both.text, "two", "three")
    assert Surroundings(both, 3).of(found[0]) == [Line("one"), Line("", "two")]
    assert Surroundings(both, 3).of(found[1]) == [Line("", "three"), Line("four")]


def test_a_document_that_has_changed_since_shows_nothing() -> None:
    found = evidence(STORY, "the hull was rotten")[0]
    assert Surroundings(from_text(f"Once {STORY}"), 2).of(found) == []
    assert Surroundings(from_text("x"), 2).of(found) == []


@given(st.integers(0, 3), st.integers(0, 60_000), st.integers(0, 60_000), st.sampled_from(" \n"))
def test_long_lines_are_cut(n: int, before: int, after: int, blank: str) -> None:
    text = f"{'a' * before}{blank}the quote{blank}{'b' * after}"
    lines = around(text, "the quote", n)
    assert "".join(line.quote for line in lines) == "the quote"
    for line in lines:
        assert len(line.before) <= MAX_LINE + 2
        assert len(line.after) <= MAX_LINE + 2
    if blank == " " and before > MAX_LINE:
        assert lines[0].before.startswith("…a")
        assert lines[0].before.endswith("a ")


def test_a_document_of_one_line_is_not_printed_whole() -> None:
    text = "word " * 1_000_000 + "the quote" + " word" * 100
    lines = around(text, "the quote", 100)
    assert len(lines) == 1
    assert sum(len(f"{line.before}{line.quote}{line.after}") for line in lines) < 3 * MAX_LINE
    long = around(text, text[: 10 * MAX_QUOTE], 1)
    assert sum(len(line.quote) for line in long) <= MAX_QUOTE + 3


# --- commands -------------------------------------------------------------------------------------


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "story.txt").write_text(STORY, encoding="utf-8")
    return tmp_path


SHOWN = """\
    It was cold.
  > He sold the boat because the hull was rotten. Nobody asked.
    The price was low.
"""


def test_ask_and_execute_print_numbers_and_lines(
    story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pearl = Terminal(story, capsys)
    said = pearl("ask", WHY, "story.txt", "--context-lines", "1")
    answer, _, below = said.partition("\nEvidence\n")
    assert answer == "He sold the boat because the hull was rotten. [1]\n"
    assert below == f"[1] story.txt, characters 45-90; answer\n{SHOWN}"
    (story / "why.plan").write_text('1. a = FIND_REASON(CTX, "Nils selling the boat") : x\n')
    (story / "other.txt").write_text(STORY, encoding="utf-8")
    said = pearl("execute", "why.plan", "story.txt", "other.txt", "--context-lines", "1")
    assert said.count(SHOWN) == 2
    said = pearl("execute", "why.plan", "story.txt", "other.txt")
    assert "  > " not in said
    assert '"answer": "He sold the boat because the hull was rotten."' in pearl(
        "execute", "why.plan", "story.txt", "--json"
    )
    pearl("execute", "why.plan", "story.txt", "--json", "--context-lines", "1", code=2)
    pearl("execute", "why.plan", "story.txt", "--out", "x.jsonl", "--context-lines", "1", code=2)


def test_chat_prints_them_with_answers_and_by_evidence(story: Path) -> None:
    said = child("chat", "story.txt", "--context-lines", "1", stdin=f"{WHY}\n/evidence\n".encode())
    assert said.stdout.decode().count(SHOWN) == 2
    assert "because the hull was rotten. [1]\n" in said.stdout.decode()


@pytest.mark.slow
def test_what_a_document_says_around_a_quote_is_not_obeyed(story: Path) -> None:
    evil = STORY.replace("It was cold.", "It was \x1b]0;owned\x07\u202ecold \x9b1m.")
    (story / "story.txt").write_text(evil, encoding="utf-8")
    said = on_a_terminal(story, ("ask", WHY, "story.txt", "--context-lines", "1"))
    assert r"\u202ecold \u009b1m." in said
    assert "\x1b]" not in said
    assert "\x1b[1;36m [1]\x1b[0m" in said, "a number of the document has no such colour"
    terminal = Emulator(120)
    terminal.feed(said)
    assert "rotten. [1]" in terminal.screen
