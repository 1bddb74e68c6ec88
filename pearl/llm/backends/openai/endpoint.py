"""Address, model and key of a server, and how messages show them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from pearl.documents.digest import digest
from pearl.errors import ModelError, UsageError
from pearl.errors.escaping import LEFT_OUT, redacted

# The variable of OpenAI's key; other servers get it only if the user names it
KEY_VARIABLE = "OPENAI_API_KEY"
ANY_KEY = "PEARL_API_KEY"  # The variable of a key for any server

_LOCAL = tuple(
    map(ip_network, ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))
)  # fmt: skip
"""Loopback and private addresses (RFC 1918, RFC 4193); `is_private` would include link-local ones."""

MAX_QUOTED = 200  # Maximum characters of a server's message that our messages quote
# Minimum characters of a key that is also hidden in replies: a shorter one may be a word (`EMPTY`)
LONG_SECRET = 16
# Minimum characters of a key, password or query value that is hidden: shorter ones occur in every text
SECRET_LENGTH = 4


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model of one server."""

    url: str = field(repr=False)
    model: str
    key: str = field(repr=False)
    key_variable: str = ""
    shown: str = field(init=False)
    base: str = field(init=False, repr=False)
    query: dict[str, str] = field(init=False, repr=False)
    _secrets: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown", _format_url(self.url))
        parts = urlsplit(self.url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        object.__setattr__(self, "base", urlunsplit(parts._replace(query="", fragment="")))
        object.__setattr__(self, "query", query)
        password = parts.password or ""
        known = {self.key, password, unquote(password), *query.values()}
        secrets = (each for each in known if len(each) >= SECRET_LENGTH)
        object.__setattr__(self, "_secrets", tuple(sorted(secrets, key=len, reverse=True)))

    @property
    def identity(self) -> str:
        """Identity of the server without secrets: the query of the address is replaced by its digest."""
        pairs = [part for pair in sorted(self.query.items()) for part in pair]
        return f"{self.shown}?{digest(pairs).hex()[:16]}" if pairs else self.shown

    @property
    def is_openai(self) -> bool:
        """Whether the server is OpenAI's own."""
        return (urlsplit(self.shown).hostname or "").endswith("api.openai.com")

    @property
    def is_local(self) -> bool:
        """Whether the address belongs to this machine or a private network; names are not resolved."""
        host = urlsplit(self.shown).hostname or ""
        try:
            address = ip_address(host)
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")
        return any(address in network for network in _LOCAL)

    @property
    def greeting(self) -> str:
        """One line for users: the server and the variable of the key."""
        with_key = f"with the key in {self.key_variable}" if self.key else "without a key"
        return f"{self.model} at {self.shown}, {with_key}"

    def hidden(self, data: Any) -> Any:
        """JSON data with each key and password in its texts replaced by `***`."""
        secrets = [secret for secret in self._secrets if len(secret) >= LONG_SECRET]
        return _without(secrets, data) if secrets else data

    def quote(self, text: str) -> str:
        r"""A server's message on one line, truncated, with keys hidden."""
        text = redacted(text)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = re.sub(r"\bsk-[\w*.-]+", "sk-***", scrubbed(" ".join(text.split())))
        return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 1]}…"


def key_variable(url: str, *, is_named: bool = True) -> str:
    """The environment variable whose key is sent to a server; "" for none."""
    if os.environ.get(ANY_KEY, "").strip():
        return ANY_KEY
    if not os.environ.get(KEY_VARIABLE, "").strip():
        return ""
    server = Endpoint(url, "", "")
    is_its_own = server.is_openai and server.shown.startswith("https:")
    return KEY_VARIABLE if is_named or is_its_own or server.is_local else ""


def read_key(variable: str) -> str:
    """The key in an environment variable; "" if it is not set."""
    key = os.environ.get(variable, "").strip() if variable else ""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelError(
            f"{variable} contains characters that are invalid in a key",
            kind="auth",
            help="copy the key again",
        )
    return key


def scrubbed(text: str) -> str:
    """Replace each lone surrogate by U+FFFD: no file, database or server accepts them."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _without(secrets: list[str], data: Any) -> Any:
    """JSON data with each secret in its texts replaced by `***`."""
    match data:
        case str():
            for secret in secrets:
                data = data.replace(secret, "***")
            return data
        case list():
            return [_without(secrets, each) for each in data]
        case dict():
            return {name: _without(secrets, each) for name, each in data.items()}
        case _:
            return data


def _format_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # An invalid port or IPv6 address
        host = ""
    if not host or parts.scheme not in ("http", "https") or not url.isprintable() or " " in url:
        raise UsageError(
            f"{redacted(''.join(url.split()))!r} is not the address of a server",
            help="for example http://localhost:8000/v1",
        )
    if LEFT_OUT in (parts.username, parts.query):
        raise UsageError(
            f"the store omitted the password or the query of {redacted(url)}",
            help="give the whole address again: --base-url",
        )
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"
