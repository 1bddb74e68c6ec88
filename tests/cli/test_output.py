"""Answers as they are printed: on a terminal by Rich, elsewhere as Rich prints them there, without it."""

from __future__ import annotations

import io
import os
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from pearl.cli import output, terminal
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.answer import Answer
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
