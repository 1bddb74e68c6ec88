"""A model's own tokenizer is believed as far as it can be right, and left where it fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pearl.documents.tokens import (
    LONG,
    TOKENIZER_SLICE,
    Counter,
    NoTokenizerError,
    TokenizerError,
    estimate,
)

TEXT = "The captain waited for the tide, and nobody came to the harbour. " * 40


class Words:
    """A tokenizer whose tokens are words and the marks after them."""

    name = "the tokenizer of words"

    def __init__(self, say: Callable[[str, int], int] = lambda text, n: n, frame: int = 9) -> None:
        self.asked: list[str] = []
        self._say = say
        self._frame = frame

    def count(self, text: str) -> int:
        self.asked.append(text)
        n = len(text.split()) + sum(map(text.count, ",."))
        return self._say(text, n)

    def frame_tokens(self) -> int:
        return self._frame


def refuse(text: str, n: int) -> int:
    raise TokenizerError("no answer within 5 s")


def test_the_own_tokenizer_counts_in_place_of_the_estimate() -> None:
    counter = Counter(tokenizer=Words())
    assert counter.count(TEXT) == 14 * 40 != estimate(TEXT)
    assert counter.method == "the tokenizer of words"
    assert counter.has_counted


def test_a_document_is_sent_once_and_a_short_text_never() -> None:
    words = Words()
    counter = Counter(tokenizer=words)
    once = TEXT + "of its own"
    assert counter.count(once) == counter.count(once)
    assert counter.count("The tide.") == estimate("The tide.")
    assert words.asked == [once]
    assert min(map(len, words.asked)) >= LONG


def test_a_long_document_is_sent_in_slices() -> None:
    words = Words()
    n = Counter(tokenizer=words).count(TEXT * 10)
    assert max(map(len, words.asked)) == TOKENIZER_SLICE
    assert 5_600 <= n <= 5_600 + len(words.asked)


@pytest.mark.parametrize(
    "say",
    [
        refuse,
        lambda text, n: 1,
        lambda text, n: 0,
        lambda text, n: -n,
        lambda text, n: 100 * len(text),
        lambda text, n: min(n, 200),  # it cuts texts off
    ],
)
def test_a_tokenizer_is_abandoned_after_a_failure_or_impossible_count(
    say: Callable[[str, int], int],
) -> None:
    words = Words(say)
    counter = Counter(tokenizer=words)
    text = f"{TEXT} {id(words)}"
    assert counter.count(text) == estimate(text)
    n_asked = len(words.asked)
    assert counter.count(text + "again") == estimate(text + "again")
    assert len(words.asked) == n_asked
    assert counter.method.startswith("estimate (the tokenizer of words failed: ")
    assert counter.bounds(text) == Counter().bounds(text)
    assert counter.excess(text, 100) == Counter().excess(text, 100)


def test_a_server_without_a_tokenizer_is_not_an_error() -> None:
    def missing(text: str, n: int) -> int:
        raise NoTokenizerError("none")

    counter = Counter("words", None, Words(missing))
    assert counter.count(TEXT) == estimate(TEXT)
    assert counter.method == "words"


def test_no_request_is_sent_if_the_length_shows_that_a_text_fits() -> None:
    words = Words()
    assert Counter(tokenizer=words).excess(TEXT, 10_000) == 0
    assert words.asked == []


def test_what_a_template_adds_counts_towards_the_window() -> None:
    plain, framed = (Counter(tokenizer=Words(frame=n)) for n in (0, 300))
    assert plain.excess(TEXT, 600) == 0
    assert framed.excess(TEXT, 600) == 14 * 40 + 300 - 600


def test_bounds_around_a_document_hold_and_do_not_send_it_again() -> None:
    words = Words()
    counter = Counter(tokenizer=words)
    counter.count(TEXT)
    prompt = f"Read this:\n{TEXT}\nWho came?"
    least, most = counter.bounds_with(prompt, TEXT)
    assert least <= words.count(prompt) <= most
    assert prompt not in words.asked[:-1]
