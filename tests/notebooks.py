"""HTML as a notebook renders it."""

from __future__ import annotations

import re

from hypothesis import strategies as st
from lxml import etree

OURS = frozenset({
    "div", "span", "p", "b", "pre", "code", "sup", "small", "ul", "ol", "li", "table", "tbody", "tr", "td",
    "details", "summary", "svg", "title", "desc", "path", "g", "rect", "text",
})  # fmt: skip
"""Elements that may be in it."""

ATTRIBUTES = frozenset({
    "class", "style", "colspan", "start", "viewBox", "width", "height", "role", "aria-label", "d", "fill",
    "stroke", "stroke-opacity", "x", "y", "rx", "font-size",
})  # fmt: skip

PIECES = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</pre>", "]]>", "<!--", "\"'>", "&lt;",
    "javascript:alert(1)", "</svg><b>", "\x00", "\x1b[31m", "\ud800", "$x$", "\u202e", "\n", "{{x}}",
)  # fmt: skip

texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=6).map("".join)
"""Texts that somebody might send to run something."""


def parsed(html: str) -> etree._Element:
    """It as XML, which it is: all is closed, and nothing but our elements and attributes is there."""
    html.encode()  # a notebook is written in UTF-8
    html = re.sub("[\ufffe\uffff]", "", html)  # in HTML, but not in XML
    tree = etree.fromstring(html, etree.XMLParser(huge_tree=True))
    for each in tree.iter():
        assert each.tag in OURS, each.tag
        assert ATTRIBUTES.issuperset(each.attrib), each.attrib
        style = each.get("style", "")
        assert not re.search(r"url\(|expression|[<>\\]", style), style
    return tree
