"""What is said of one quote of one document."""

from __future__ import annotations

from pearl.documents.evidence import Verifier


def check(document: str, quote: str) -> tuple[str, list[str]]:
    """How a quote is found, and what of the document is shown for it."""
    found = Verifier(document).verify(quote)
    assert found.is_verified == (found.result in {"exact", "normalised", "elided"})
    assert bool(found.spans) == found.is_verified
    return found.result, [document[span.start : span.end] for span in found.spans]
