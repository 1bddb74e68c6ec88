"""Lay out the Markdown of answers for a terminal. Links, pictures and HTML stay text: a reply is untrusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.text import Text
from rich.theme import Theme

from pearl.cli.terminal import MARK_STYLE
from pearl.errors.escaping import escaped
from pearl.interpreter.parts import MARK
from pearl.view.markdown import parsed

_THEME = Theme({"markdown.mark": MARK_STYLE, "markdown.code": "cyan", "markdown.h1": "bold"})


class _LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _PlainCode(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Padding(Text(str(self.text).rstrip()), (0, 0, 0, 4))


class _Answer(Markdown):
    elements: ClassVar = {
        **Markdown.elements, "heading_open": _LeftHeading, "fence": _PlainCode,
    }  # fmt: skip
    inlines = {*Markdown.inlines, "mark"}  # noqa: RUF012

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = tokens
        for token in self.parsed:
            token.children = list(_with_marks(token.children or ())) or None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(_THEME):
            yield from super().__rich_console__(console, options)


def _with_marks(tokens: Sequence[Token]) -> Iterator[Token]:
    """Split evidence numbers off as tokens of their own, and keep line breaks."""
    for token in tokens:
        if token.type == "softbreak":
            token.type = "hardbreak"
        if token.type != "text":
            yield token
            continue
        for at, part in enumerate(MARK.split(token.content)):
            if at % 2:
                yield Token("mark", "mark", 0, content=f" [{part}]")
            else:
                yield Token("text", "", 0, content=part)


def laid_out(text: str) -> Markdown | None:
    """The text for a terminal; None if it has characters that Markdown would drop."""
    tokens = parsed(escaped(text), {})
    return None if tokens is None else _Answer(tokens)
