"""Replies that are cut, torn or mangled on their way: none is taken for a whole one, none is stored."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from pearl.errors import ModelError
from pearl.llm import Completion
from tests.faults.calls import (
    FORMS,
    FRAMES,
    Outcome,
    answering,
    ask,
    body_of,
    events,
    http,
    model_of,
    request,
    stored,
    streamed,
)
from tests.server import FAULTS, Canned, Server, error
from tests.suite import Trial

TEXTS = (
    "Nils sold the boat because its hull was rotten. Nobody asked him why, and he never told.",
    'She wrote: "{\\"text\\": 5}" \u2014 na\u00efve, \U0001f600 and\n1. a line\n2. another one\n\ndata: [DONE]\n\nend.',
    "No.",
)


def cut_replies(form: str) -> Iterator[tuple[str, Canned]]:
    """Texts and the first bytes of their replies: cut after every byte, ended and reset."""
    for text in TEXTS:
        for frame in FRAMES:
            whole = http(body_of(text, form), frame)
            for end in range(whole.index(b"\r\n\r\n") + 4, len(whole)):
                yield text, Canned(whole[:end], manner="raw")
                yield text, Canned(whole[:end], manner="torn")


def cut_streams(text: str = TEXTS[0]) -> Iterator[tuple[str, Canned]]:
    """Streams that a server or a gateway ends too early, in good form."""
    sent = events(text)
    failed = {"error": {"message": "out of memory"}}
    n_text = len(sent) - 2
    for n in range(n_text + 1):
        for end in ("data: [DONE]\n\n", "", "event: error\ndata: {}\n\n"):
            yield text, Canned(streamed(sent[:n], end))
        yield text, Canned(streamed([*sent[:n], failed, *sent[n:]]))
        yield text, Canned(streamed([*sent[:n], failed]))
        yield text, Canned(streamed([*sent[:n], {"choices": []}]))
        if n:
            yield text, Canned(streamed(events(text[: 4 * n - 1]), "data: {\n\ndata: [DONE]\n\n"))
            for reason in ("length", "content_filter", "error", "", "abort"):
                yield text, Canned(streamed(events(text[: 4 * n - 1], reason)))


def n_untyped(outcomes: Sequence[Outcome]) -> int:
    """How many outcomes are neither a reply nor the error that callers handle."""
    return sum(not isinstance(outcome, Completion | ModelError) for outcome in outcomes)


@pytest.mark.row("R7", "replies cut after every byte, ended or reset, whole or streamed")
@pytest.mark.parametrize("form", FORMS)
def test_cut_replies(form: str, trial: Trial, openai_server: Server, tmp_path: Path) -> None:
    cut = [*cut_replies(form), *(cut_streams() if form == "stream" else ())]
    trial.random.shuffle(cut)
    del cut[trial.n(ci=600, nightly=len(cut), release=len(cut)) :]
    for number in range(0, len(cut), 9):  # a server that never answers ends a run
        cut[number] = cut[number][0], Canned(body_of(cut[number][0], form))
    openai_server.answer = answering(lambda number, n_before: cut[number][1])
    outcomes = ask(
        model_of(openai_server, form), [request(number) for number in range(len(cut))],
        tmp_path, attempts=1,
    )  # fmt: skip
    texts = [text for text, _ in cut]
    returned = {i: outcome.text for i, outcome in enumerate(outcomes) if isinstance(outcome, Completion)}  # fmt: skip
    whole = range(0, len(cut), 9)
    trial.figure("cut replies", len(cut) - len(whole))
    trial.figure("truncated texts returned", sum(text != texts[i] for i, text in returned.items()), at_most=0)  # fmt: skip
    trial.figure("truncated texts stored", sum(text not in TEXTS for text in stored(tmp_path)), at_most=0)  # fmt: skip
    trial.figure("replies stored and not returned", len(stored(tmp_path)) - len(returned), at_most=0)  # fmt: skip
    trial.figure("whole replies refused", sum(i not in returned for i in whole), at_most=0)
    trial.figure("untyped errors", n_untyped(outcomes), at_most=0)


@pytest.mark.row("R6", "a reply that is cut or reset is asked for again")
@pytest.mark.parametrize("form", FORMS)
def test_cut_replies_are_asked_for_again(form: str, trial: Trial, openai_server: Server) -> None:
    cut = list(cut_replies(form))
    cut = trial.random.sample(cut, trial.n(ci=200, nightly=1_000, release=5_000))
    whole = [Canned(body_of(text, form)) for text, _ in cut]
    openai_server.answer = answering(
        lambda number, n_before: whole[number] if n_before else cut[number][1]
    )
    outcomes = ask(model_of(openai_server, form), [request(number) for number in range(len(cut))])
    n_wrong = sum(
        not isinstance(outcome, Completion) or outcome.text != text
        for outcome, (text, _) in zip(outcomes, cut, strict=True)
    )
    trial.figure("replies cut", len(cut))
    trial.figure("texts lost or wrong", n_wrong, at_most=0)
    n_asked = Counter(seen.prompt for seen in openai_server.requests if seen.prompt.isdecimal())
    trial.figure("most calls for a text", max(n_asked.values()), at_most=2)


ODD: tuple[Any, ...] = (
    None, True, -1, 0, 7, 10**400, 1e308, float("nan"), "", " \n\u200b", "x", "\ud800", "w" * 5_000,
    "2026", [], {}, [None], [[[]]], {"error": {"message": "no"}}, {"type": "message"}, {"plan": 5},
)  # fmt: skip
PAGE = b"<!doctype html><title>502</title><h1>Bad Gateway</h1>"


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in JSON data: what contains it, and its key."""
    for key in list(data) if isinstance(data, dict) else range(len(data)):
        yield data, key
        if isinstance(data[key], dict | list):
            yield from places(data[key])


def mangled(draw: random.Random, form: str) -> bytes:
    """A valid body after one to three changes of its data, and at times one of its bytes."""
    is_stream = form == "stream"
    data = events(TEXTS[0]) if is_stream else json.loads(body_of(TEXTS[0], form))
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        parent, key = draw.choice(list(places(data)))
        change = draw.randrange(4)
        if change == 0:
            del parent[key]
        elif change == 1 and isinstance(parent, list):
            parent.insert(key, deepcopy(draw.choice(ODD)))
        else:
            parent[key] = deepcopy(draw.choice(ODD))
        if not data:
            break
    if draw.random() < 0.05:
        data = draw.choice([{"error": "overloaded"}, error("upstream", code=529), [data], *ODD])
    body = streamed(data).encode() if is_stream and isinstance(data, list) else json.dumps(data).encode()  # fmt: skip
    at = draw.randrange(len(body) + 1)
    changes = {
        "cut": body[:at], "page": PAGE, "page before": PAGE + body, "nothing": b"", "deep": b"[" * 99_999,
        "not UTF-8": body[:at] + draw.choice((b"\xff", b"\xc3", b"\xed\xa0\x80", b"\0")) + body[at:],
        "byte": body[:at] + bytes([draw.randrange(256)]) + body[at + 1 :], "twice": body + body,
        "UTF-16": body.decode().encode("utf-16"), "BOM": b"\xef\xbb\xbf" + body,
    }  # fmt: skip
    return draw.choice(list(changes.values())) if draw.random() < 0.4 else body


def text_in(body: bytes) -> str:
    """The text that a body has where its API says, by a second reading of our own."""
    text: str = json.loads(body)["choices"][0]["message"]["content"]
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def printable(text: str | None) -> str | None:
    """A text without control characters, which plans in JSON leave out."""
    return text and "".join(filter(str.isprintable, text))


@pytest.mark.row("R9", "bodies that are not what the API promises")
@pytest.mark.parametrize("form", FORMS)
def test_mangled_bodies(form: str, trial: Trial, openai_server: Server, tmp_path: Path) -> None:
    bodies = [mangled(trial.random, form) for _ in range(trial.n(ci=340, nightly=5_000, release=50_000))]  # fmt: skip
    whole = Canned(body_of("whole", form))
    openai_server.answer = answering(
        lambda number, n_before: whole if n_before else Canned(bodies[number])
    )
    asked = [request(number) for number in range(len(bodies))]
    outcomes = ask(model_of(openai_server, form), asked, tmp_path)
    trial.figure("bodies", len(bodies))
    trial.figure("untyped errors", n_untyped(outcomes), at_most=0)
    given_up = [outcome for outcome in outcomes if isinstance(outcome, ModelError)]
    trial.figure("bodies given up for good", len(given_up))
    trial.figure("bodies not asked for again", sum(outcome.is_retryable for outcome in given_up), at_most=0)  # fmt: skip
    trial.figure("messages longer than 3 lines", sum(len(str(outcome).splitlines()) > 3 for outcome in given_up), at_most=0)  # fmt: skip
    returned = {i: outcome.text for i, outcome in enumerate(outcomes) if isinstance(outcome, Completion)}  # fmt: skip
    at_once = {i: text for i, text in returned.items() if text != "whole"}
    trial.figure("bodies read", len(at_once))
    if form != "stream":
        trial.figure("texts that the body does not have", sum(printable(text) != printable(text_in(bodies[i])) for i, text in at_once.items()), at_most=0)  # fmt: skip
    extra = Counter(stored(tmp_path)) - Counter(returned.values())
    trial.figure("replies stored and not returned", extra.total(), at_most=0)


@pytest.mark.row("R29", "only whole replies are stored: a call that failed is made again")
def test_failures_are_not_stored(trial: Trial, openai_server: Server, tmp_path: Path) -> None:
    model = model_of(openai_server, timeout_s=1.5)
    n_failed = n_again = n_paid_twice = 0
    for number, name in enumerate(FAULTS):
        openai_server.next(name)
        (outcome,) = ask(model, [request(number)], tmp_path, attempts=1)
        is_failed = isinstance(outcome, ModelError)
        assert is_failed or isinstance(outcome, Completion), f"{name}: {outcome!r}"
        openai_server.forget()
        (outcome,) = ask(model, [request(number)], tmp_path)
        assert isinstance(outcome, Completion), f"{name}: {outcome}"
        n_failed += is_failed
        n_again += is_failed and len(openai_server.requests) == 1
        n_paid_twice += not is_failed and bool(openai_server.requests)
    trial.figure("faults", len(FAULTS))
    trial.figure("failed calls", n_failed)
    trial.figure("failures stored as replies", n_failed - n_again, at_most=0)
    trial.figure("replies paid for twice", n_paid_twice, at_most=0)
    trial.figure("texts stored that no server completed", sum("half" in text for text in stored(tmp_path)), at_most=0)  # fmt: skip
