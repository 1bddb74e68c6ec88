"""What is wrong with a file in an editor, its fixes, and its canonical form."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.actions.library import format_library, read_actions
from pearl.dsl.checker import diagnose, mend_plan
from pearl.dsl.nodes import print_plan
from pearl.dsl.parser import read
from pearl.dsl.signatures import ActionLibrary
from pearl.editor.outline import Kind
from pearl.errors import Diagnostic, Fix, LibraryError, apply_fixes

_MAX_SHOWN = 40
"""Characters of a replacement that a title shows."""


def findings(text: str, kind: Kind, library: ActionLibrary | None) -> Sequence[Diagnostic]:
    r"""Everything that is wrong with a text, as `pearl check` tells it, in order of position."""
    if kind == "actions":
        return read_actions(text)[1]
    reading = read(text)
    return reading.errors if library is None else diagnose(reading, library)


def fixed(text: str, kind: Kind, library: ActionLibrary) -> str:
    """The text with every obvious fix, as `pearl check --fix` writes it."""
    if kind == "actions":
        return apply_fixes(text, [found.fix for found in read_actions(text)[1] if found.fix])
    mended, applied = mend_plan(text, library)
    return text if not applied else mended if mended.endswith("\n") else f"{mended}\n"


def formatted(text: str, kind: Kind) -> str | None:
    """The text in canonical form, as `pearl fmt` writes it; None while a line cannot be read."""
    if kind == "actions":
        try:
            return format_library(text)
        except LibraryError:
            return None
    reading = read(text)
    if reading.plan is None or reading.errors:
        return None
    return f"{print_plan(reading.plan)}\n"


def fix_title(text: str, found: Diagnostic, fix: Fix) -> str:
    """What a fix does, in a few words.

    Example:
        >>> from pearl.errors import Span
        >>> found = Diagnostic("syntax", "a blank that does not belong here", Span(1, 2))
        >>> fix_title("a  b", found, Fix(Span(1, 2), ""))
        "Remove ' '"
    """
    old, new = text[fix.span.start : fix.span.end], fix.replacement
    if max(len(old), len(new)) > _MAX_SHOWN:
        return f"Fix: {found.message}"
    if not new:
        return f"Remove {old!r}"
    return f"Replace {old!r} by {new!r}" if old else f"Insert {new!r}"
