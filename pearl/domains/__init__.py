"""Domains: which library and examples go with a kind of document. One module is one domain.

A domain module has `DOMAIN`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pearl import plugins
from pearl.errors import UsageError, did_you_mean

__all__ = ["Domain", "load_domain"]


@dataclass(frozen=True, slots=True)
class Domain:
    """What the planner is given for a kind of document.

    Attributes:
        description: One line for people.
        library: Name of the action library.
        examples: Name of the bank of examples.
    """

    description: str
    library: str
    examples: str


def load_domain(name: str) -> Domain:
    """The domain of that name.

    Raises:
        UsageError: There is none.
    """
    known = plugins.names(__name__)
    if name not in known:
        close = did_you_mean(name, known)
        hint = f"did you mean '{close}'?" if close else f"domains: {', '.join(known)}"
        raise UsageError(f"unknown domain '{name}'", help=hint)
    domain: Domain = plugins.load(__name__, name).DOMAIN
    return domain
