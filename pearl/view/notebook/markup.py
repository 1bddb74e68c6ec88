"""HTML of one object, as a notebook shows it: `_repr_html_`.

Texts are escaped where they are put into an element, so what documents, models and users write can be
no markup. There are no scripts, no addresses and no style but that of the elements themselves; colours
are the notebook's own, or ones that can be seen on light and dark. What is long is shortened.
"""

from __future__ import annotations

import re
from html import escape

from pearl.errors.escaping import escaped

SOFT = "opacity:.75"
MONO = (
    # Notebooks override the style of `pre`: they break words and change the font.
    "font-family:monospace;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;"
    "color:inherit;background:rgba(128,128,128,.1);padding:.4em .6em;margin:.4em 0"
)
MARK = "color:inherit;background:rgba(255,196,0,.28);padding:0 .15em"

_FRAME = "border-left:3px solid #7a8794;padding:.1em 0 .1em .9em;margin:.3em 0;max-width:62em"
_NOT_TYPESET = "tex2jax_ignore mathjax_ignore"
"""Else notebooks read what is between two dollar signs as a formula."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Html(str):
    """Markup, which stays as it is where it is put into an element; any other text is escaped."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: str | float) -> Html:
    """An element of HTML or SVG.

    Example:
        >>> element("p", "a < b ", element("b", "c"), stroke_width=2)
        '<p stroke-width="2">a &lt; b <b>c</b></p>'
    """
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_safe(str(value))}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{said}>{joined(*content)}</{name}>")


def joined(*content: str) -> Html:
    """Texts, which are escaped, and elements, one after the other."""
    return Html("".join(each if isinstance(each, Html) else _safe(each) for each in content))


def card(*content: str) -> Html:
    """The frame around what a notebook shows of an object."""
    return element("div", *content, class_=_NOT_TYPESET, style=_FRAME)


def lines(text: str, most: int = 4_000) -> Html:
    """A text with its lines and blanks as they are, at most so many characters of it."""
    return element("pre", shortened(text, most), style=MONO)


def shortened(text: str, most: int) -> str:
    """The beginning of a text, and how much is left out.

    Example:
        >>> shortened("abcdef", 4)
        'abcd… (2 more characters)'
    """
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]}… ({left:,} more characters)"


def _safe(text: str) -> str:
    text = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped(text))
    return escape(text)
