"""Which server, which model, which key, and how messages may show them: never the key."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pearl.errors import UsageError

__all__ = ["KEY_VARIABLE", "Endpoint", "scrubbed"]

KEY_VARIABLE = "OPENAI_API_KEY"

MAX_QUOTED = 200
"""Characters of a server's own words that a message repeats."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model of one server.

    Attributes:
        url: Where the server is, `/v1` included.
        model: As the server calls it.
        key: What is sent as a key; "" where the server asks for none.
        shown: The address as messages show it: without the password and the query, which may hold
            keys too.

    Raises:
        UsageError: `url` is not the address of a server.

    Example:
        >>> Endpoint("http://me:secret@localhost:8000/v1/?api-key=abc", "llama3", "sk-1").shown
        'http://localhost:8000/v1'
    """

    url: str = field(repr=False)
    model: str
    key: str = field(repr=False)
    shown: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown", _shown(self.url))

    @property
    def is_openai(self) -> bool:
        """Whether the server is OpenAI's own."""
        return (urlsplit(self.shown).hostname or "").endswith("api.openai.com")

    def quote(self, text: str) -> str:
        r"""What the server said: on one line, not too long, without keys.

        Example:
            >>> Endpoint("http://localhost/v1", "m", "abc-1").quote("Bad key:\n  abc-1")
            'Bad key: ***'
        """
        if self.key:
            text = text.replace(self.key, "***")
        text = re.sub(r"\bsk-[\w*.-]+", "sk-***", scrubbed(" ".join(text.split())))
        return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 1]}…"


def scrubbed(text: str) -> str:
    """The text with U+FFFD for each lone surrogate: no file, database or server takes those.

    Example:
        >>> scrubbed("a" + chr(0xD800)) == "a" + chr(0xFFFD)
        True
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _shown(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # no number of a port, or a broken IPv6 address
        host = ""
    if not host or parts.scheme not in ("http", "https") or not url.isprintable() or " " in url:
        safe = re.sub(r"//[^/]*@", "//", url.partition("?")[0])
        raise UsageError(
            f"{safe!r} is not the address of a server", help="for example http://localhost:8000/v1"
        )
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"
