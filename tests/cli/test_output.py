"""Answers as they are printed: on a terminal by Rich, elsewhere as Rich prints them there, without it."""

from __future__ import annotations

import io
import os
import re
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from pearl.cli import output, terminal
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.answer import Answer
from pearl.interpreter.results import StepResult
from pearl.llm import Usage
from pearl.trace import Trace

WORDS = st.sampled_from(
    ["Ada", "sold", "the boat,", "12", "1.", "2)", "3.5", "well-known", "a_b", "**bold**", "[^1]", "[^12]", "(x)",
     "#", "&amp;", "<b>", "`c`", "漢字", "😀", "it’s", "\n", "\n\n", "- item", "end.", "$3", "2*3", "> 2", "|", "~",
     "\x1b[31m", "\x07", "\r\n", "  ", "\\", '"so"'],
)  # fmt: skip
ANSWERS = st.lists(WORDS, min_size=1, max_size=40).map(" ".join)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


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


@given(ANSWERS)
@example("Ada sold the boat [^1] because it leaked.")
@example("12")
@example("12. March")
def test_text_that_needs_no_markdown_is_laid_out_as_markdown_is(text: str) -> None:
    shown = printed(text, Screen())
    with patch.object(output, "_PLAIN", lazy_pattern(r"(?!)")):
        assert printed(text, Screen()) == shown


def test_no_line_on_a_screen_ends_in_blanks_that_would_be_copied() -> None:
    shown = printed(
        "# Boats\n\n- **Ada** sold it\n- Ben\n\n| a | b |\n|---|---|\n| 1 | 2 |", Screen()
    )
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown).split("\n")
    assert lines == [line.rstrip() for line in lines]
    assert any("Ben" in line for line in lines)


def test_a_line_of_a_value_is_not_cut_at_the_edge_of_a_screen() -> None:
    value = "word " * 60
    step = StepResult("v", "FIND", value, False, "whole", 1.0, 1)
    screen = Screen()
    with patch.dict(os.environ, TERM="xterm-256color", COLUMNS="80"):
        output.print_steps([step], screen)
    assert value.strip() in screen.getvalue()


def test_a_reader_of_a_pipe_gets_each_line_at_once() -> None:
    pipe = io.BytesIO()
    printer = terminal.Printer(io.TextIOWrapper(pipe, "utf-8"))
    printer.print("Ada ", ("sold\x1b", "bold"), " it")
    assert pipe.getvalue() == b"Ada sold\\u001b it\n"
