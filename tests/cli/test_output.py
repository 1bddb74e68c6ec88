"""Answers as they are printed: on a terminal by Rich, elsewhere as Rich prints them there, without it."""

from __future__ import annotations

import io
import json
import os
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from pearl.cli import output, terminal
from pearl.interpreter.answer import Answer
from pearl.llm import Usage
from pearl.trace import Trace

WORDS = st.sampled_from(
    ["Ada", "sold", "the boat,", "12", "1.", "2)", "3.5", "well-known", "a_b", "**bold**", "[^1]", "[^12]", "(x)",
     "#", "&amp;", "<b>", "`c`", "漢字", "😀", "it’s", "\n", "\n\n", "- item", "end.", "$3", "2*3", "> 2", "|", "~",
     "\x1b[31m", "\x07", "\r\n", "  ", "\\", '"so"'],
)  # fmt: skip
ANSWERS = st.lists(WORDS, min_size=1, max_size=40).map(" ".join)


def printed(text: str, file: io.StringIO) -> str:
    answer = Answer("Why?", text, "", (), "plan", "a.txt", (), (), (), "m", Usage(), 0.0, Trace())
    with patch.dict(os.environ, TERM="xterm-256color", COLUMNS="80"):
        output.print_answer(answer, file)
    return file.getvalue()


@given(ANSWERS)
def test_without_a_terminal_the_text_is_that_of_rich(text: str) -> None:
    class ByRich(terminal.Printer):
        def __init__(self, file: io.StringIO) -> None:
            self.console = terminal.new_console(file=file)

    shown = printed(text, io.StringIO())
    with patch.object(output, "Printer", ByRich):
        assert printed(text, io.StringIO()) == shown


def test_a_reader_of_a_pipe_gets_each_line_at_once() -> None:
    pipe = io.BytesIO()
    printer = terminal.Printer(io.TextIOWrapper(pipe, "utf-8"))
    printer.print("Ada ", ("sold\x1b", "bold"), " it")
    assert pipe.getvalue() == b"Ada sold\\u001b it\n"


def test_an_answer_is_printed_with_all_that_is_to_be_known_of_it() -> None:
    def passage(match: str, text: str, start: int, step: str, **others: object) -> dict[str, Any]:
        end = start + len(text)
        return {"match": match, "text": text, "start": start, "end": end, "source": "a.txt", "steps": [step], **others}  # fmt: skip

    rows = [passage("row", f"Item: {i}", 100 + 10 * i, "n", value=f"Item: {i}") for i in range(7)]
    rows[1] |= {"value": None, "state": "undecided"}
    answer = Answer.from_json(json.dumps({
        "question": "Who?", "answer": "Ada sold it; Ben", "markdown": "**Ada** sold it[^1]; Ben", "plan": "1. a = ...",
        "status": "undecided", "why": "it is unclear", "method": "direct", "parameters": {"year": "2024"},
        "coverage": 0.25, "notes": ["a note", "it is unclear"],
        "steps": [
            {"output": "a", "action": "FIND", "value": "Ada sold it", "context": "retrieve", "coverage": 0.25},
            {"output": "b", "action": "FIND", "value": "Nothing found.", "context": "retrieve", "coverage": 0.2, "state": "nothing"},
            {"output": "n", "action": "COUNT", "value": "2", "native": True},
        ],
        "evidence": [passage("exact", "Ada sold it", 0, "a"), passage("exact", "Ben was there", 20, "a", page=3), *rows],
        "unverified_quotes": [{"step": "a", "text": "Cy left", "reason": "missing"}],
    }))  # fmt: skip
    shown = io.StringIO()
    output.print_answer(answer, shown, with_steps=True)
    said = shown.getvalue()
    for line in (
        "a = FIND (retrieve, 25 % of the document)", "n = COUNT (computed)", "year = 2024", "Ada sold it [1]; Ben",
        "Answered in one step, without a plan.", "Undecided: it is unclear", "[1] a.txt, characters 0-11; a",
        "[2] Ben was there  (a.txt, page 3, characters 20-33; a)", "Rows behind it: 7 rows, 1 of them undecided",
        "[4] undecided: Item: 1  (a.txt, characters 110-117; n)", "... and 2 more; --rows FILE.csv writes all of them",
        "step 'b' found nothing", "Read: 25 % of the document, the passages that match best", "Note: a note",
        "not in the document: Cy left  (a)",
    ):  # fmt: skip
        assert f"{line}\n" in said
    assert "Note: it is unclear" not in said
