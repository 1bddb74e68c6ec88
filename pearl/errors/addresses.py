"""Addresses without what gives access: the one place that knows which parts those are."""

from __future__ import annotations

import re

__all__ = ["LEFT_OUT", "redacted"]

LEFT_OUT = "***"
"""Stands for what was left out of an address that has to be completed before it is used."""

_ADDRESS = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://)"  # bounded: else long words take quadratic time
    # Up to the last @: people forget to escape the slashes and question marks of a password.
    r"(?P<user>[^\s\"'<>]*@)?"
    r"(?P<place>[^\s?#\"'<>]*)"
    r"(?P<rest>[?#][^\s\"'<>]*)?",
    re.IGNORECASE,
)


def redacted(text: str, mark: str = "") -> str:
    """A text without the passwords and the queries of the addresses in it, which may hold keys.

    Args:
        text: An address, an argument of a command, or any text.
        mark: What stands in their place.

    Example:
        >>> redacted("http://me:secret@localhost:8000/v1?api-key=abc#x")
        'http://localhost:8000/v1'
        >>> redacted("--base-url=http://me:secret@localhost/v1?api-key=abc", LEFT_OUT)
        '--base-url=http://***@localhost/v1?***'
        >>> redacted("who? me@home: nothing")
        'who? me@home: nothing'
    """

    def without(found: re.Match[str]) -> str:
        user = f"{mark}@" if found["user"] and mark else ""
        rest = f"?{mark}" if found["rest"] and mark else ""
        return f"{found['scheme']}{user}{found['place']}{rest}"

    return _ADDRESS.sub(without, text)
