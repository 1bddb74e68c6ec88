"""Quotes of a reply → spans of the document that prove them.

`finding` reads the quotes out of a reply, `normal` has the form in which wordings are compared,
`verifying` looks quotes up in a document.
"""

from pearl.evidence.finding import find_quotes, quoted_line
from pearl.evidence.normal import normalise
from pearl.evidence.verifying import Match, Quote, Verifier

__all__ = ["Match", "Quote", "Verifier", "find_quotes", "normalise", "quoted_line"]
