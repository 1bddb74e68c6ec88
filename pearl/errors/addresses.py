"""Redacts credentials in URLs."""

from __future__ import annotations

import re

LEFT_OUT = "***"
"""Placeholder for a redacted part that the user has to fill in before the URL can be used."""

_ADDRESS = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://)"  # bounded: else long words take quadratic time
    # Up to the last @: passwords often contain unescaped slashes and question marks.
    r"(?P<user>[^\s\"'<>]*@)?"
    r"(?P<place>[^\s?#\"'<>]*)"
    r"(?P<rest>[?#][^\s\"'<>]*)?",
    re.IGNORECASE,
)


def redacted(text: str, mark: str = "") -> str:
    """Remove user names, passwords and query strings, which may hold keys, from the URLs in a text.

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
