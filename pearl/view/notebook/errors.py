"""Errors and diagnostics, as notebooks show them: the source line with its place underlined."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.errors import PearlError
from pearl.errors.diagnostics import Diagnostic, excerpt
from pearl.view.notebook.markup import MONO, SOFT, Html, card, element, joined, shortened

MAX_DIAGNOSTICS = 15
MAX_ATTEMPTS = 4
MAX_TEXT = 200
"""Characters of a message that are shown."""

_UNDERLINED = "font-weight:bold;text-decoration:underline wavy #d9480f;text-underline-offset:.2em"


def error_html(error: PearlError) -> Html:
    """An error with what it says to do, and with every diagnostic that it has."""
    text = getattr(error, "text", None)
    diagnostics: Sequence[Diagnostic] = getattr(error, "diagnostics", ())
    attempts = [a for a in getattr(error, "attempts", ()) if a.diagnostics][-MAX_ATTEMPTS:]
    if diagnostics:
        told = [diagnostics_html(diagnostics, text)]
    else:
        told = [element("p", shortened(error.message, 4 * MAX_TEXT)), *_help(error.help)]
        told += [diagnostics_html(a.diagnostics, a.text, most=4) for a in attempts]
    return card(element("b", type(error).__name__), *told)


def diagnostics_html(
    diagnostics: Sequence[Diagnostic], text: str | None, *, most: int = MAX_DIAGNOSTICS
) -> Html:
    """Diagnostics, one after the other."""
    left = len(diagnostics) - most
    more = [element("p", f"… and {left:,} more", style=SOFT)] if left > 0 else []
    return joined(*(diagnostic_html(each, text) for each in diagnostics[:most]), *more)


def diagnostic_html(diagnostic: Diagnostic, text: str | None = None) -> Html:
    """A diagnostic, with its place underlined in its line where the text is at hand."""
    span = diagnostic.span
    place = f"characters {span.start:,}-{span.end:,}"
    source = []
    if text is not None:
        line, column = span.position(text)
        place = f"{line}:{column}"
        shown, lead, width = excerpt(diagnostic.span, text)
        marked = element("span", shown[lead : lead + width] or " ", style=_UNDERLINED)
        source = [
            element("pre", f"{line} | {shown[:lead]}", marked, shown[lead + width :], style=MONO)
        ]
    fix = []
    if diagnostic.fix is not None:
        replacement = element("code", shortened(diagnostic.fix.replacement, MAX_TEXT))
        fix = [element("div", "fix: ", replacement, style=SOFT)]
    head = element(
        "div", element("b", diagnostic.severity), f" {place}: ",
        shortened(diagnostic.message, MAX_TEXT),
        element("span", f" [{shortened(diagnostic.code, 60)}]", style=SOFT),
    )  # fmt: skip
    return element("div", head, *source, *_help(diagnostic.help), *fix, style="margin:.4em 0")


def _help(help: str | None) -> list[Html]:
    return [element("div", f"help: {shortened(help, MAX_TEXT)}", style=SOFT)] if help else []
