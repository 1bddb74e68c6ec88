"""Errors of a server or a connection → `ModelError` with advice."""

from __future__ import annotations

import json
import math
import re
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pearl.errors import ModelError, ModelErrorKind, did_you_mean
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Usage
from pearl.llm.backends.openai.endpoint import KEY_VARIABLE, Endpoint

_STATUSES: Mapping[int, ModelErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "deadline",
    409: "transport",
    425: "transport",
    429: "rate_limited",
}

_CODES: Mapping[str, ModelErrorKind] = {
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_error": "quota",
    "contract_spend_limit_reached": "quota",
    "enforced_spend_limit_reached": "quota",
    "overloaded_error": "transport",
    "content_filter": "filtered",
    "content_policy_violation": "filtered",
}
"""Error codes that take precedence over the status."""


class StatusError(Exception):
    """A response with a status other than 2xx; status 200 stands for an error reported in the body of a reply."""

    def __init__(
        self, status: int, body: object, headers: Mapping[str, str] = {}, path: str = ""
    ) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = headers
        self.path = path
        fields = body if isinstance(body, dict) else {}
        self.code: object = fields.get("code")
        self.param: object = fields.get("param")


class ProxyError(OSError):
    """A proxy that makes no connection to the server, so no request was sent."""


def reported(error: object, endpoint: Endpoint) -> ModelError:
    """The error for a body with status 200 that reports an error, as gateways do."""
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 200
    return refused(StatusError(status, error), endpoint)


def refused(error: StatusError, endpoint: Endpoint) -> ModelError:
    """The error for a status other than 2xx."""
    status, body = error.status, error.body
    if status == 200:
        kind: ModelErrorKind = "malformed"
    else:
        kind = _STATUSES.get(status, "bad_request" if 300 <= status < 500 else "transport")
    if isinstance(body, dict):
        details = body.get("details")
        detail = details.get("error_code") if isinstance(details, dict) else None
        for code in (body.get("code"), body.get("type"), detail):
            kind = _CODES.get(str(code), kind)
    # Messages with status 401 may contain parts of the key.
    said = "" if status == 401 else endpoint.quote(_message(body))
    answered = f"answered {status}" if status != 200 else "sent an error instead of a reply"
    wait_s = retry_after_s(error.headers)
    return ModelError(
        f"{endpoint.shown} {answered}{': ' if said else ''}{said}",
        kind=kind,
        help=_advice(kind, status, said, wait_s, endpoint),
        retry_after_s=wait_s,
        # A server that refuses a request, or is overloaded (529), has not begun it and bills
        # nothing.
        usage=Usage() if 400 <= status < 500 or status == 529 else None,
        is_unwritten=status >= 500,
    )


def _advice(
    kind: ModelErrorKind, status: int, said: str, wait_s: float | None, endpoint: Endpoint
) -> str | None:
    if status == 404:
        return (
            f"check the address, which usually ends in /v1, and the model '{endpoint.model}': "
            f"{endpoint.shown}/models lists the models"
        )
    # "maximum context length is 8192"
    is_of_window = "context" in said or "prompt is too long" in said
    if status == 413 or (kind == "bad_request" and is_of_window):
        return "if the request exceeds the model's context window, set its size with --window"
    later = f"in {math.ceil(wait_s)} s" if wait_s else "later"
    advice: Mapping[ModelErrorKind, str] = {
        "auth": f"check the key in {endpoint.key_variable}"
        if endpoint.key
        else f"set {KEY_VARIABLE}, or name the variable of a key for it with --api-key-env",
        "quota": f"add credit, or use another key in {endpoint.key_variable or KEY_VARIABLE}",
        "rate_limited": f"try again {later}, with fewer calls at once: --concurrency",
        "transport": f"try again {later}",
        "deadline": f"try again {later}",
    }
    return advice.get(kind)


def _message(body: object) -> str:
    """The message in the body of an error; "" for a web page."""
    if isinstance(body, dict):
        message = body.get("message") or body.get("detail") or body.get("error") or body
        body = message if isinstance(message, str) else json.dumps(message)
    text = str(body or "").strip()
    return "" if text.startswith("<") else text


_OF_CONSTRAINTS = (
    "grammar", "schema", "structured", "ebnf", "gbnf", "lark", "regex", "tool", "format", "complex",
)  # fmt: skip
"""Beginnings of words in errors that reject a constraint."""


def refuses_constraint(error: StatusError) -> bool:
    """Whether an error says that the constraint is why a request was rejected."""
    said = f"{error.param or ''} {_message(error.body)}"
    words = "".join(c if c.isalpha() else " " for c in said.lower()).split()
    return may_refuse_constraint(error) and any(w.startswith(_OF_CONSTRAINTS) for w in words)


def may_refuse_constraint(error: StatusError) -> bool:
    """Whether the constraint may be why a request was rejected; some servers do not say so."""
    if error.status == 500:  # Builds of llama.cpp that cannot parse a grammar
        said = _message(error.body).lower()
        return "grammar" in said or "schema" in said
    is_other = str(error.code) in {*_CODES, "context_length_exceeded"}
    return error.status in (400, 422) and not is_other


def may_be_unknown_model(error: StatusError, endpoint: Endpoint) -> bool:
    """Whether the model may be unknown to the server; a listing would show that."""
    is_named = error.code == "model_not_found" or endpoint.model in _message(error.body)
    return error.status == 404 or (error.status == 400 and is_named)


def unknown_model(
    error: StatusError, endpoint: Endpoint, names: Sequence[str], backend: str
) -> ModelError:
    """The error for a model that is not in the server's listing `names`."""
    close = did_you_mean(endpoint.model, names)
    some = endpoint.quote(", ".join([*names[:5], *(["..."] if names[5:] else [])]))
    advice = f"did you mean '{backend}:{close}'?" if close else f"it has {some};"
    return ModelError(
        f"{endpoint.shown} has no model '{endpoint.model}' ({error.status})",
        kind="bad_request",
        help=f"{advice} {endpoint.shown}/models lists them",
    )


def too_slow(timeout_s: float, endpoint: Endpoint) -> ModelError:
    """The error for a timeout."""
    return ModelError(
        f"no complete reply from {endpoint.shown} within {timeout_s:g} s",
        kind="deadline",
        help="allow more with --timeout-s",
    )


def cut_off(error: Exception, endpoint: Endpoint) -> ModelError:
    """The error for a failed connection."""
    url = endpoint.shown
    if isinstance(error, TimeoutError):
        return ModelError(
            f"no answer from {url}",
            kind="deadline",
            help="check the address and the network, or try again later",
        )
    if isinstance(error, ProxyError):
        return ModelError(
            f"no connection to {url}: {endpoint.quote(str(error))}",
            kind="transport",
            help="check the variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY",
            is_sent=False,
        )
    chain = list(causes(error))
    for cause in chain:
        is_sent = False
        if isinstance(cause, socket.gaierror):
            message, advice = f"no such host: {url}", "check the address and the network"
        elif isinstance(cause, ConnectionRefusedError):
            message = f"no server at {url}"
            advice = "start it, or give its address with --base-url"
        elif isinstance(cause, ssl.SSLError):
            message = f"no trusted connection to {url}: {endpoint.quote(str(cause))}"
            advice = (
                "use http:// for a server without TLS; SSL_CERT_FILE sets your own certificates"
            )
            # TLS errors other than certificate errors may occur after the request was sent.
            is_sent = not isinstance(cause, ssl.SSLCertVerificationError)
        else:
            continue
        return ModelError(message, kind="transport", help=advice, is_sent=is_sent)
    # The innermost cause is the most specific.
    reason = next((str(cause) for cause in reversed(chain) if str(cause)), "connection lost")
    return ModelError(f"{url} closed the connection: {endpoint.quote(reason)}", kind="transport")


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and its causes."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):  # Official client: one for each address
            for part in error.exceptions:
                yield from causes(part)
        error = error.__cause__ or error.__context__


# "1m30s", "250ms", "1h"
_DURATION = lazy_pattern(
    r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9}(?:\.\d+)?)s)?(?:(\d{1,9})ms)?", re.ASCII
)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, `retry-after`, or the latest `x-ratelimit-reset-...`; None if it names none."""
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    wait = _seconds(headers.get("retry-after", ""))
    if wait is not None:
        return wait
    resets = (_seconds(headers.get(f"x-ratelimit-reset-{x}", "")) for x in ("requests", "tokens"))
    return max((wait for wait in resets if wait is not None), default=None)


def _seconds(text: str) -> float | None:
    text = text.strip()
    if re.fullmatch(r"\d{1,9}(?:\.\d*)?", text, re.ASCII):
        return float(text)
    if text and (match := _DURATION.fullmatch(text)):
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
        return 3600 * hours + 60 * minutes + seconds + milliseconds / 1000
    from email.utils import (
        parsedate_to_datetime,  # late: takes as long as everything of this package
    )

    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
