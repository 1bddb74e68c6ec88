"""A document, as notebooks show it: what it is, how it begins and how it ends."""

from __future__ import annotations

from pearl.documents.document import Document, part_spans
from pearl.view.notebook.markup import SOFT, Html, card, element, lines, shortened

FIRST, LAST = 1_200, 400
"""Characters of the beginning and of the end that are shown, both together whole."""

FIRST_LINES, LAST_LINES = 12, 5

MAX_NAME, MAX_PARTS = 200, 20


def document_html(document: Document) -> Html:
    """A document; of a long one its beginning and its end."""
    text = document.text
    n_lines = text.count("\n") + 1
    facts = [
        f"{len(text):,} character{'' if len(text) == 1 else 's'}",
        f"{n_lines:,} line{'' if n_lines == 1 else 's'}",
    ]
    if document.pages:
        facts.append(f"{len(document.pages):,} pages")
    if document.kind != "document":
        facts.append(f"asked as a {document.kind}")
    head = element(
        "div", element("b", shortened(document.name, MAX_NAME)),
        element("span", f" {', '.join(facts)}", style=SOFT),
    )  # fmt: skip
    if len(text) <= FIRST + LAST and n_lines <= FIRST_LINES + LAST_LINES:
        return card(head, *_parts(document), lines(text))
    first = "\n".join(text[:FIRST].split("\n")[:FIRST_LINES])
    last = "\n".join(text[max(len(first), len(text) - LAST) :].split("\n")[-LAST_LINES:])
    left = element("div", f"… {len(text) - len(first) - len(last):,} characters …", style=SOFT)
    return card(head, *_parts(document), lines(first), left, lines(last))


def _parts(document: Document) -> list[Html]:
    """The files that it is joined of, each with its size."""
    if not document.parts:
        return []
    items = [
        element("li", f"{shortened(name, MAX_NAME)}, {span.end - span.start:,} characters")
        for name, span in part_spans(document.text, document.parts)[:MAX_PARTS]
    ]
    left = len(document.parts) - MAX_PARTS
    more = [element("div", f"… and {left:,} more", style=SOFT)] if left > 0 else []
    said = f"{len(document.parts):,} part{'' if len(document.parts) == 1 else 's'}"
    return [element("details", element("summary", said), element("ol", *items), *more)]
