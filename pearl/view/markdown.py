"""Markdown of answers → HTML. HTML, links and pictures in it stay text, because answers are untrusted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from pearl.interpreter.parts import CITED

MAX_MARKDOWN = 50_000
"""Maximum characters that are rendered as Markdown; a longer text is shown unchanged."""

_OFF = (
    "link", "image", "autolink", "html_inline", "html_block", "reference", "entity", "code", "lheading",
)  # fmt: skip

_OTHERWISE = re.compile(
    r"\w\*+\w|(?<!\w)_+\w|\\[!-/:-@\[-`{-~]|^\s*\+\s*\d|^\s*>\s*[$€£]?\d[\d.,]*\s*%?\s*$|\A\s*[-*]\s*\S*\d\S*\s*\Z",
    re.M,
)
"""Text with characters that Markdown would drop: products, names with underscores, paths, signs and bounds of numbers."""
# The number of a list entry: "2. It leaked"
_NUMBERED = re.compile(r"^([ \t]*)(\d{1,9})[.)](?:\s|$)", re.M)


def parsed(text: str, env: dict[str, Any]) -> list[Any] | None:
    """The tokens of a text; None if they would not show all of its characters."""
    if len(text) > MAX_MARKDOWN or _OTHERWISE.search(text):
        return None
    last: dict[str, int] = {}  # Markdown renumbers the entries of a list
    for indent, number in _NUMBERED.findall(text):
        if int(number) not in (1, last.get(indent, 0) + 1):
            return None
        last[indent] = int(number)
    tokens: list[Any] = _parser().parse(text, env)
    # The parser drops deeply nested text, and cells beyond the columns of a table.
    n_shown = sum(_n_letters(token.content) for token in tokens)
    for token in tokens:  # the number of a list entry, or the language of code
        is_language = re.fullmatch(r"[A-Za-z+#-]{1,15}", token.info)
        if token.type == "list_item_open" or is_language:
            n_shown += _n_letters(token.info)
    return tokens if n_shown == _n_letters(text) else None


def rendered(text: str, link: Callable[[int], str] | None = None) -> Markup:
    """The HTML of a text; `link` makes the HTML of each evidence number `[^1]`."""
    env = {"link": link}
    tokens = parsed(text, env)
    if tokens is None:
        return Markup('<p class="plain">{}</p>').format(_linked(text, link))
    return Markup(_parser().renderer.render(tokens, _parser().options, env))


def _n_letters(text: str) -> int:
    return sum(map(str.isalnum, text))


@cache
def _parser() -> Any:
    # Imported on use: only commands that write pages need it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable(_OFF)

    def text(renderer: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
        return _linked(tokens[at].content, env["link"])

    def fence(renderer: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
        return f"<pre><code>{escape(tokens[at].content)}</code></pre>\n"

    parser.add_render_rule("text", text)
    parser.add_render_rule("fence", fence)
    parser.add_render_rule("heading_open", _constant("<h3>"))
    parser.add_render_rule("heading_close", _constant("</h3>\n"))
    table = '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>\n'
    parser.add_render_rule("table_open", _constant(table))
    parser.add_render_rule("table_close", _constant("</table></div>\n"))
    for cell in ("th_open", "td_open"):  # The page's policy forbids style attributes
        parser.add_render_rule(cell, _constant(f"<{cell[:2]}>"))
    return parser


def _linked(text: str, link: Callable[[int], str] | None) -> Markup:
    """A text with its evidence numbers as links."""
    pieces = [text] if link is None else CITED.split(text)  # text, number, text, ...
    shown = (link(int(p)) if link and i % 2 else escape(p) for i, p in enumerate(pieces))
    return Markup("".join(shown))


def _constant(html: str) -> Callable[..., str]:
    return lambda renderer, tokens, at, options, env: html
