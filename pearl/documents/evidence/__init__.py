"""Quotes in replies → passages of the document that verify them.

`finding` extracts the quotes of a reply, `normal` normalises text for comparison, `borders` decides
where a quote may begin and end, `verifying` looks a quote up in a document, and `collecting` does so
for the steps of an answer.
"""

from pearl.documents.evidence.collecting import (
    DOUBTS,
    Evidence,
    StepReply,
    Unverified,
    collect,
    placed,
    shown_page,
    shown_ranks,
    shown_span,
    with_omissions,
)
from pearl.documents.evidence.finding import find_quotes, quoted_line
from pearl.documents.evidence.normal import normalise
from pearl.documents.evidence.verifying import Doubt, Match, Quote, Verifier

__all__ = [
    "DOUBTS", "Doubt", "Evidence", "Match", "Quote", "StepReply", "Unverified", "Verifier", "collect", "find_quotes",
    "normalise", "placed", "quoted_line", "shown_page", "shown_ranks", "shown_span", "with_omissions",
]  # fmt: skip
