"""What a server may put on the wire, and what it has to be to us: written before it was tried.

Each case is what is sent, and the exact text it has to be read as or the kind of the failure.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pearl.errors import ModelErrorKind
from pearl.llm import Usage
from tests.server import PAGE, Canned, completion, error


@dataclass(frozen=True)
class Says:
    """The reply is whole: this is its text and, where it is given, its usage."""

    text: str = "ok"
    usage: Usage | None = None


@dataclass(frozen=True)
class Fails:
    """There is no reply; the error is of one of these kinds."""

    kinds: tuple[ModelErrorKind, ...]
    retry_after_s: float | None = None


def fails(*kinds: ModelErrorKind) -> Fails:
    """What fails so."""
    return Fails(kinds)


BROKEN = fails("transport")
WRONG = fails("malformed")
REFUSED = fails("bad_request")
EMPTY = fails("empty")

Outcome = Says | Fails


@dataclass(frozen=True)
class Case:
    """One thing that a server may do.

    Attributes:
        id: Names it.
        sent: The answers, one a request; `{here}` and `{other}` in a header stand for this server
            and another one.
        outcome: What it has to be.
        timeout_s: Seconds that the call may take.
        n_requests: How many requests it may take.
    """

    id: str
    sent: tuple[Canned, ...]
    outcome: Outcome
    timeout_s: float = 15.0
    n_requests: int = field(default=1)


def _reply(choice: Mapping[str, Any] = {}, **reply: Any) -> Canned:
    """A whole reply of `ok` with other fields in its choice, or in itself."""
    whole = completion("ok")
    (first,) = whole["choices"]
    return Canned({**whole, "choices": [{**first, **choice}], **reply})


def _message(**message: Any) -> Canned:
    return _reply({"message": {"role": "assistant", "content": "ok", **message}})


def endings() -> Iterator[Case]:
    """Reasons for the end of a reply that has a text."""
    reasons: dict[Outcome, tuple[Any, ...]] = {
        Says(): (
            "stop", "STOP", "Stop", " stop ", "end_turn", "END_TURN", "eos", "eos_token", "stop_sequence",
            "COMPLETE", "complete", "completed", "endoftext", "FINISH", "finished", "normal",
            "REASON_STOP", None,
        ),
        fails("truncated"): (
            "length", "LENGTH", "max_tokens", "MAX_TOKENS", "max-tokens", "max_output_tokens",
            "max_completion_tokens", "model_length", "token_limit", "max_length", "REASON_MAX_LEN",
            "model_context_window_exceeded", "context_length_exceeded", "FINISH_REASON_MAX_TOKENS",
        ),
        fails("filtered"): (
            "content_filter", "CONTENT_FILTER", "content_filtered", "SAFETY", "RECITATION", "BLOCKLIST",
            "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "guardrail_intervened", "ERROR_TOXIC",
            "sensitive",
        ),
        fails("refused"): ("refusal",),
        fails("repetition"): ("repetition", "REPETITION"),
        BROKEN: (
            "error", "ERROR", "abort", "aborted", "insufficient_system_resource", "cancelled", "canceled",
            "timeout", "time_limit", "network_error", "OTHER", "LANGUAGE",
            "FINISH_REASON_UNSPECIFIED", "MALFORMED_FUNCTION_CALL", "pause_turn", "tool_calls",
            "function_call", "tool_use", "load", "banana", "null", "None", "not_finished", "unknown",
            "non-stop", "stop?", "", " ", "\u200b", "stop\0",
        ),
        WRONG: (5, True, ["stop"], {"type": "stop"}),
    }  # fmt: skip
    for outcome, given in reasons.items():
        for reason in given:
            yield Case(f"ends {reason!r}", (_reply({"finish_reason": reason}),), outcome)
    for native, outcome in (
        ("length", fails("truncated")), ("MAX_TOKENS", fails("truncated")), ("SAFETY", fails("filtered")),
        ("stop", Says()), ("banana", Says()), (5, Says()), (None, Says()),
    ):  # fmt: skip
        yield Case(f"ended {native!r} behind", (_reply({"native_finish_reason": native}),), outcome)
    bare = {"choices": [{"message": {"content": "ok"}}]}
    yield Case("no reason at all", (Canned(bare),), Says())


def reported() -> Iterator[Case]:
    """Errors with status 200."""
    errors: list[tuple[Any, Outcome]] = [
        ({"code": 502, "message": "upstream"}, BROKEN),
        ({"code": 500, "message": "upstream"}, BROKEN),
        ({"code": 429, "message": "slow down"}, fails("rate_limited")),
        ({"code": 401, "message": "who?"}, fails("auth")),
        ({"code": 402, "message": "pay"}, fails("quota")),
        ({"code": 408, "message": "late"}, fails("deadline")),
        ({"code": "insufficient_quota", "message": "pay"}, fails("quota")),
        ({"code": "content_filter", "message": "no"}, fails("filtered")),
        ({"code": 5_000, "message": "?"}, WRONG),
        ({"code": True, "message": None}, WRONG),
        ({"message": "upstream"}, WRONG),
        ("upstream", WRONG),
        (["upstream"], WRONG),
        ({}, Says()),
        (None, Says()),
        ("", Says()),
    ]
    for said, outcome in errors:
        yield Case(f"choice's error {said}", (_reply({"error": said}),), outcome)
        yield Case(f"reply's error {said}", (_reply(error=said),), outcome)
    broken = {"error": {"code": 502, "message": "x"}, "finish_reason": "error"}
    yield Case("choice is an error", (_reply(choices=[broken]),), BROKEN)
    for body in ({"detail": "no"}, {"message": "no"}, {"object": "error", "code": 400}, {}):
        yield Case(f"no reply {body}", (Canned(body),), WRONG)


INVISIBLE = (
    "\u200b", "\ufeff", "\u2800", "\u200b\u200c\u200d\u2060", "\u00ad", "\u3164", "\0", "\0\1\x1b",
    "\u3000\u00a0", "\u2028\u2029", "\u180e", "\ufe0f", "\u034f", "\u061c", "\u202e", "\U000e0020",
    "\ufff9", "\x7f", "\t\v\f\r", "", " ", "\n\n\u200b\n",
)  # fmt: skip
VISIBLE = ("\u200bok", "-", "0", "é", "\U0001f44d", "ok\0", "\ufffd", "false", "ה", "\u0301a")


def contents() -> Iterator[Case]:
    """What a message may hold."""
    for text in INVISIBLE:
        yield Case(f"invisible {text!a}", (_message(content=text),), EMPTY)
    for text in VISIBLE:
        yield Case(f"visible {text!a}", (_message(content=text),), Says(text))
    yield Case("lone surrogate", (_message(content="a\ud800"),), Says("a\ufffd"))
    for content in (5, True, {}, [{"type": "text", "text": "ok"}], 1.5):
        yield Case(f"content {content}", (_message(content=content),), WRONG)
    yield Case("content null", (_message(content=None),), EMPTY)
    only = {"role": "assistant", "reasoning_content": "hm"}
    yield Case("only thoughts", (_reply({"message": only}),), EMPTY)
    yield Case("refusal", (_message(content=None, refusal="no"),), fails("refused"))
    yield Case("refusal and text", (_message(refusal="no"),), fails("refused"))
    yield Case("blank refusal", (_message(refusal=""),), Says())
    yield Case("refusal 5", (_message(refusal=5),), WRONG)
    yield Case("nonsense beside", (_message(tool_calls=5, audio=[], role=7),), Says())
    for message in (None, [], "ok", 5):
        yield Case(f"message {message}", (_reply({"message": message}),), WRONG)
    for choices in (
        None,
        {},
        "ok",
        [None],
        [[]],
        [{}],
        [{"delta": {"content": "ok"}}],
        [{"text": "ok"}],
    ):
        yield Case(f"choices {choices}", (_reply(choices=choices),), WRONG)
    yield Case("choices []", (_reply(choices=[]),), EMPTY)
    second = {"message": {"content": "second"}, "finish_reason": "length"}
    first = {"message": {"content": "first"}, "finish_reason": "stop"}
    yield Case("first choice counts", (_reply(choices=[first, second]),), Says("first"))


STATUSES: dict[ModelErrorKind, tuple[int, ...]] = {
    "auth": (401, 403),
    "quota": (402,),
    "deadline": (408,),
    "rate_limited": (429,),
    "transport": (
        409, 425, 500, 502, 503, 504, 529, 599, 999,
    ),
    "bad_request": (
        300, 305, 400, 404, 405, 407, 413, 418, 422, 451, 499,
    ),
}  # fmt: skip


def statuses() -> Iterator[Case]:
    """Every status, and what may stand beside it."""
    for kind, given in STATUSES.items():
        for status in given:
            yield Case(f"status {status}", (Canned(error("no"), status),), fails(kind))
    # The body of an error status is no reply.
    yield Case("status 500 with ok", (Canned(completion("ok"), 500),), BROKEN)
    yield Case("status 400 with ok", (Canned(completion("ok"), 400),), REFUSED)
    for status in (201, 202, 203):
        yield Case(f"status {status}", (Canned(completion("ok"), status),), Says())
    for status in (204, 205):
        yield Case(f"status {status}", (Canned(b"", status),), fails("malformed", "transport"))
    bodies: dict[str, bytes | str] = {
        "page": PAGE, "nothing": b"", "bytes": b"\xff\xfe\0", "list": "[1]", "number": "5",
        "deep": "[" * 50_000, "large": "x" * 2**20, "half": '{"error": {"mess',
    }  # fmt: skip
    for name, body in bodies.items():
        yield Case(f"500 {name}", (Canned(body, 500),), BROKEN)
        yield Case(f"401 {name}", (Canned(body, 401),), fails("auth"))
    codes: list[tuple[int, str, ModelErrorKind]] = [
        (400, "content_filter", "filtered"), (403, "content_policy_violation", "filtered"),
        (429, "insufficient_quota", "quota"), (500, "billing_hard_limit_reached", "quota"),
    ]  # fmt: skip
    for status, code, kind in codes:
        yield Case(f"{status} {code}", (Canned(error("no", code=code), status),), fails(kind))
        yield Case(f"{status} type {code}", (Canned(error("no", type=code), status),), fails(kind))
    waits: dict[str, float | None] = {
        "1.5": 1.5, "0": 0.0, "-1": None, "nan": None, "inf": None, "soon": None, "": None,
        "99999999999999": None, "1m30s": 90.0, "Thu, 01 Jan 1970 00:00:00 GMT": 0.0, "1e9": None,
    }  # fmt: skip
    for said, wait_s in waits.items():
        sent = Canned(error("slow down"), 429, {"retry-after": said})
        yield Case(f"retry-after {said!r}", (sent,), Fails(("rate_limited",), wait_s))


def usages() -> Iterator[Case]:
    """What a server may report of tokens; the reply is paid and kept, whatever that is."""
    strange = Usage(n_implausible_calls=1)
    whole: list[tuple[Any, Usage]] = [
        (None, Usage()), ({}, Usage()), ([], strange), ("many", strange), (5, strange), (True, strange),
        ({"total_tokens": 5}, Usage()),
    ]  # fmt: skip
    for reported, usage in whole:
        yield Case(f"usage {reported}", (_reply(usage=reported),), Says(usage=usage))
    nonsense = (
        -1, -(2**63), True, "100", "abc", 2**63, 2**70, 10**9, 1e300, 12.5, float("nan"),
        float("inf"), [5], {"value": 5}, 300_000,
    )  # fmt: skip
    for value in nonsense:
        used = {"prompt_tokens": value, "completion_tokens": 3}
        yield Case(f"prompt_tokens {value!r}", (_reply(usage=used),), Says(usage=Usage(0, 3, 0, 1)))
        used = {"prompt_tokens": 20, "completion_tokens": value}
        yield Case(
            f"completion_tokens {value!r}", (_reply(usage=used),), Says(usage=Usage(20, 0, 0, 1))
        )
    plain = {"prompt_tokens": 20, "completion_tokens": 3}
    cached: list[tuple[Any, Usage]] = [
        ({"cached_tokens": 16}, Usage(20, 3, 16)), ({"cached_tokens": None}, Usage(20, 3)),
        (None, Usage(20, 3)), ({"cached_tokens": 21}, Usage(20, 3, 20, 1)),
        ({"cached_tokens": -1}, Usage(20, 3, 0, 1)), ({"cached_tokens": True}, Usage(20, 3, 0, 1)),
        ({"cached_tokens": 2**70}, Usage(20, 3, 0, 1)), ([], Usage(20, 3, 0, 1)),
    ]  # fmt: skip
    for details, usage in cached:
        used = {**plain, "prompt_tokens_details": details}
        yield Case(f"details {details}", (_reply(usage=used),), Says(usage=usage))
    floats = {"prompt_tokens": 20.0, "completion_tokens": None}
    yield Case("whole floats", (_reply(usage=floats),), Says(usage=Usage(20)))


def redirects() -> Iterator[Case]:
    """The whole prompt goes where a redirect leads."""
    path = "/v1/chat/completions"
    for status in (301, 302, 303, 307, 308):
        for where in ("{other}/chat/completions", "//example.invalid/v1", "http://localhost:9/v1"):
            sent = Canned(b"", status, {"location": where})
            yield Case(f"{status} to {where}", (sent,), REFUSED)
        secure = Canned(b"", status, {"location": "https://{host}" + path})
        yield Case(f"{status} to https", (secure,), REFUSED)
        here = Canned(b"", status, {"location": path + "/"})
        keeps = status in (307, 308)
        yield Case(
            f"{status} to here", (here, _reply()), Says() if keeps else REFUSED,
            n_requests=2 if keeps else 1,
        )  # fmt: skip
        yield Case(f"{status} to nowhere", (Canned(b"", status),), REFUSED)
    for where in (
        "ftp://h/x",
        "file:///etc/passwd",
        "data:,x",
        "http://[broken",
        "http://h:99999/",
    ):
        sent = Canned(b"", 307, {"location": where})
        yield Case(f"307 to {where}", (sent,), fails("bad_request", "transport"))
    again = Canned(b"", 307, {"location": "{here}/chat/completions"})
    yield Case("loop", (again,) * 9, REFUSED, n_requests=6)
    yield Case("here by its name", (again, _reply()), Says(), n_requests=2)


def _packed(data: bytes, coding: str, **options: Any) -> Canned:
    return Canned(data, headers={"content-encoding": coding}, **options)


def sizes() -> Iterator[Case]:
    """Lengths and packings; the model's window lets a reply have 4.1 MiB."""
    ok = json.dumps(completion("ok")).encode()
    long = json.dumps(completion("w" * 3 * 2**20)).encode()
    yield Case("3 MiB", (Canned(long),), Says("w" * 3 * 2**20))
    yield Case("3 MiB gzip", (_packed(gzip.compress(long, 1), "gzip"),), Says("w" * 3 * 2**20))
    yield Case("5 MiB", (Canned(completion("w" * 5 * 2**20)),), WRONG)
    yield Case("5 MiB of blanks", (Canned(b" " * 5 * 2**20 + ok),), WRONG)
    yield Case("5 MiB beside", (_reply(extra="w" * 5 * 2**20),), WRONG)
    bomb = b" " * 20 * 2**20
    yield Case("gzip bomb", (_packed(gzip.compress(bomb, 1), "gzip"),), WRONG)
    yield Case("deflate bomb", (_packed(zlib.compress(bomb, 1), "deflate"),), WRONG)
    yield Case(
        "bomb in a bomb", (_packed(gzip.compress(gzip.compress(bomb, 1)), "gzip, gzip"),), WRONG
    )
    yield Case("bomb with 500", (_packed(gzip.compress(bomb, 1), "gzip", status=500),), BROKEN)
    yield Case("gzip", (_packed(gzip.compress(ok), "gzip"),), Says())
    yield Case("GZIP", (_packed(gzip.compress(ok), "GZIP"),), Says())
    yield Case("deflate", (_packed(zlib.compress(ok), "deflate"),), Says())
    yield Case(
        "half gzip",
        (_packed(gzip.compress(long, 1)[:99], "gzip"),),
        fails("malformed", "transport"),
    )
    yield Case("no gzip", (_packed(ok, "gzip"),), fails("malformed", "transport"))
    yield Case("gzip unsaid", (Canned(gzip.compress(ok)),), WRONG)
    for coding in ("br", "zstd"):
        yield Case(f"packed as {coding}", (_packed(ok, coding),), fails("malformed", "transport"))
    for coding in ("identity", "utf-8", "", "none"):
        yield Case(f"not packed: {coding!r}", (_packed(ok, coding),), Says())
    for name, data in {
        "blanks": b" " * 2**16,
        "brackets": b"[" * 2**16,
        "lines": b"\n" * 99,
    }.items():
        yield Case(f"endless {name}", (Canned(data, manner="endless"),), WRONG)
        sent = Canned(data, 500, manner="endless")
        yield Case(f"endless {name} with 500", (sent,), BROKEN)
    pieces = b"10000\r\n" + b" " * 2**16 + b"\r\n"
    chunked = Canned(pieces, headers={"transfer-encoding": "chunked"}, manner="endless")
    yield Case("endless chunks", (chunked,), WRONG)
    yield Case("drip", (Canned(ok, manner="drip"),), fails("deadline"), timeout_s=0.5)
    yield Case("hang", (Canned(manner="hang"),), fails("deadline"), timeout_s=0.5)
    yield Case("reset", (Canned(manner="reset"),), BROKEN)
    yield Case("short", (Canned(ok, manner="short"),), BROKEN)


def encodings() -> Iterator[Case]:
    """JSON, and what is taken for it."""
    text = '{"choices": [{"message": {"content": "é"}, "finish_reason": "stop"}]}'
    for name in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        yield Case(name, (Canned(text.encode(name)),), Says("é"))
    yield Case("latin-1", (Canned(text.encode("latin-1")),), WRONG)
    for kind in (
        "application/json; charset=latin-1",
        "application/json; charset=bogus",
        "text/html",
        "x",
    ):
        yield Case(f"called {kind}", (Canned(text.encode(), content_type=kind),), Says("é"))
    broken = {
        "event stream": f"data: {text}\n\ndata: [DONE]\n\n", "two": f"{text}\n{text}", "comma": text[:-1] + ",}",
        "quotes": text.replace('"', "'"), "garbage behind": text + "x", "comment": "/* */" + text,
        "half": text[:40], "blank": "  \n", "XML": "<reply>é</reply>", "nothing": "", "word": "ok",
        "string": '"ok"', "number": "12", "null": "null", "true": "true", "list": f"[{text}]",
        "deep": text[:-1] + ', "x": ' + "[" * 99_999 + "]" * 99_999 + "}",
        "long number": text[:-1] + ', "x": ' + "9" * 5_000 + "}", "raw newline": text.replace("é", "\n"),
    }  # fmt: skip
    for name, body in broken.items():
        yield Case(f"body is {name}", (Canned(body.encode()),), WRONG)
    yield Case("NaN beside", (Canned(text[:-1] + ', "x": NaN}'),), Says("é"))
    yield Case("escapes", (Canned(text.replace("é", r"\ud83d\ude00\u00e9")),), Says("\U0001f600é"))
    yield Case("model 5", (_reply(model=5),), WRONG)
    yield Case("no model", (_reply(model=None),), Says())


def raw() -> Iterator[Case]:
    """Bytes in place of HTTP."""
    ok = json.dumps(completion("ok")).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(ok)
    chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    whole = {
        "as it should be": head + ok, "until the end": b"HTTP/1.1 200 OK\r\n\r\n" + ok,
        "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n" + ok,
        "hints before": b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + head + ok,
        "many continues": b"HTTP/1.1 100 Continue\r\n\r\n" * 20 + head + ok,
        "chunks": chunks + b"%x\r\n%b\r\n0\r\n\r\n" % (len(ok), ok),
        "trailers": chunks + b"%x\r\n%b\r\n0\r\nx: y\r\n\r\n" % (len(ok), ok),
        "odd header": head.replace(b"OK\r\n", b"OK\r\nx: \xff\xfe\r\n") + ok,
    }  # fmt: skip
    for name, data in whole.items():
        yield Case(f"raw {name}", (Canned(data, manner="raw"),), Says())
    broken = {
        "nothing": b"", "only a head": head, "garbage behind": head + ok + b"garbage", "words": b"hello\r\n\r\n", "HTTP/0.9": ok,
        "HTTP/9.9": head.replace(b"1.1", b"9.9") + ok,
        "no status": b"HTTP/1.1\r\n\r\n" + ok, "status abc": head.replace(b"200", b"abc") + ok,
        "status 20": head.replace(b"200", b"20") + ok,
        "length -1": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n" + ok,
        "length abc": b"HTTP/1.1 200 OK\r\ncontent-length: abc\r\n\r\n" + ok,
        "two lengths": head.replace(b"\r\n\r\n", b"\r\ncontent-length: 5\r\n\r\n") + ok,
        "length too long": b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n" + ok,
        "chunk abc": chunks + b"xyz\r\n" + ok, "half a chunk": chunks + b"ffff\r\n" + ok,
        "chunk of -1": chunks + b"-1\r\n" + ok, "no last chunk": chunks + b"%x\r\n%b\r\n" % (len(ok), ok),
        "null in a header": head.replace(b"OK\r\n", b"OK\r\nx: a\0b\r\n") + ok,
        "switch": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        "head without end": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 2**20,
        "headers without end": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200_000,
        "TLS": b"\x15\x03\x01\x00\x02\x02\x28",
    }  # fmt: skip
    for name, data in broken.items():
        yield Case(f"raw {name}", (Canned(data, manner="raw"),), BROKEN)
    cut = b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n" + ok
    yield Case("raw length too short", (Canned(cut, manner="raw"),), BROKEN)


CASES: tuple[Case, ...] = (
    *endings(), *reported(), *contents(), *statuses(), *usages(), *redirects(), *sizes(), *encodings(),
    *raw(),
)  # fmt: skip
