"""Names that were probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from pearl.errors.patterns import lazy_pattern

MAX_SUGGESTED_LENGTH = 80
"""Longer names get no suggestion: edit distance is quadratic in the length of a name."""

_YEARS = lazy_pattern(r"(?<!\d)(?:19|20)\d\d(?!\d)")  # sales 2015


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that was probably meant, or None.

    Example:
        >>> did_you_mean("FIND_EVNT", ["FIND_EVENT", "CONCAT"])
        'FIND_EVENT'
        >>> did_you_mean("sales 2015", ["sales 2014"])
    """
    if len(name) > MAX_SUGGESTED_LENGTH:
        return None
    import difflib  # late: needed for errors only

    years = _YEARS.findall(name)  # nobody who writes 2015 means 2014
    folded = {other.casefold(): other for other in known if _YEARS.findall(other) == years}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return folded[close[0]] if close else None


def suggest(name: str, known: Iterable[str], kind: str) -> str:
    """Help for an unknown name: the closest known name, or else all of them.

    Example:
        >>> suggest("medicl", ["generic", "medical"], "domains")
        "did you mean 'medical'?"
        >>> suggest("law", ["generic", "medical"], "domains")
        'domains: generic, medical'
    """
    names = list(known)
    close = did_you_mean(name, names)
    return f"did you mean '{close}'?" if close else f"{kind}: {', '.join(names) or 'none'}"
