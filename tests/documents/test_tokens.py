"""Counting tokens: by a vocabulary, by the model's tokenizer, without one; and the windows of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents import tokens
from pearl.documents.tokens import (
    TOKENIZER_SLICE,
    Counter,
    NoTokenizerError,
    TokenizerError,
    estimate,
    known_window,
)
from tests.examples import times

TEXTS = {
    "english": (
        "The harbour was still asleep when Mara untied the boat. She had not told anyone that she "
        "was leaving, not even her brother, who would have asked questions she could not answer. "
        "Behind her the lamps of the village went out one after another, and the tide, patient as "
        "always, carried her past the breakwater into the open sea."
    ),
    "dialogue": (
        "“Who’s there?” he said.\n“Me.”\n“What do you want?”\n“I’d like my hat back — if it’s all "
        "the same to you.”\n“It isn’t.”\n"
    ),
    "table": (
        "year,revenue,cost,margin\n2019,1204.55,998.10,0.1714\n2020,1180.02,1011.73,0.1426\n"
        "2021,1311.90,1077.46,0.1787\n2022,1402.37,1168.01,0.1671\n2023,1498.64,1240.88,0.1720\n"
    ),
    "json": '{"id": 17, "name": "Ada", "tags": ["a", "b"], "score": 0.75, "next": null, "ok": true}\n'
    * 3,
    "french": (
        "La maison était vide depuis l'été. Personne n'avait ouvert les volets, et la poussière "
        "s'était déposée sur les meubles où, naguère, les enfants jouaient à se cacher."
    ),
    "russian": "Поезд опаздывал на два часа, и на перроне не осталось никого, кроме старика с чемоданом.",
    "chinese": "火车晚点了两个小时，站台上只剩下一个提着箱子的老人。他抬头看了看钟，又低头读起手里的信来。",
    "korean": "기차는 두 시간 늦었고 승강장에는 가방을 든 노인 한 명만 남아 있었다.",
    "arabic": "تأخر القطار ساعتين، ولم يبق على الرصيف إلا رجل عجوز يحمل حقيبة وينظر إلى الساعة.",
    "hindi": "ट्रेन दो घंटे देर से चल रही थी और प्लेटफ़ॉर्म पर केवल एक बूढ़ा आदमी बचा था।",
    "emoji": "🎉🚀 Done! 👩‍🚀👍🏽 see you 🌍🌎🌏 🏳️‍🌈",
    "base64": (
        "iVBORw0KGgoAAAANSUhEUgAAADIAAAAyCAYAAAAeP4ixAAAACXBIWXMAAAsTAAALEwEAmpwYAAAF8WlUWHRYTUw6Y29t"
        "LmFkb2JlLnhtcAAAAAAAPD94cGFja2V0IGJlZ2luPSLvu78iIGlkPSJXNU0wTXBDZWhpSHpyZVN6TlRjemtjOWQiPz4g"
    ),
}

COUNTED = {
    "english": (69, 69), "dialogue": (37, 36), "table": (97, 97), "json": (117, 117), "french": (51, 41),
    "russian": (45, 28), "chinese": (49, 38), "korean": (42, 27), "arabic": (59, 27), "hindi": (81, 25),
    "emoji": (41, 29), "base64": (116, 111),
}  # fmt: skip
"""Tokens of these texts in cl100k_base and o200k_base, counted with tiktoken 0.14."""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What one test could or could not load is nothing to the next."""
    tokens._load.cache_clear()
    yield
    tokens._load.cache_clear()


@pytest.fixture(scope="module")
def vocabulary() -> tiktoken.Encoding:
    """Single bytes, and a few words."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    for piece in (b"th", b"the", b" c", b" ca", b" cat", b"aa", b"aaaa", b"  ", b"    "):
        ranks[piece] = len(ranks)
    return tiktoken.Encoding(
        "tiny", pat_str=r" ?\w+|[^\w\s]|\s+", mergeable_ranks=ranks, special_tokens={"<|end|>": 999}
    )


@pytest.mark.parametrize("kind", TEXTS)
def test_an_estimate_is_not_too_small_and_of_english_not_much_too_large(kind: str) -> None:
    assert estimate(TEXTS[kind]) >= max(COUNTED[kind])
    assert estimate(TEXTS[kind]) <= 1.6 * min(COUNTED[kind]) or kind not in ("english", "dialogue")


@given(st.text(st.characters(codec=None)))
def test_an_estimate_exists_for_every_text(text: str) -> None:
    n = estimate(text)
    assert (n == 0) == (text == "")
    assert n <= 4 * len(text) + 1


def test_a_vocabulary_counts(vocabulary: tiktoken.Encoding) -> None:
    counter = Counter("tiny", vocabulary)
    texts = {"the cat": 2, "": 0, "<|end|>": len("<|end|>"), "a\ud800": 4}
    assert {text: counter.count(text) for text in texts} == texts
    assert estimate("<|endoftext|>") > 4


_TEXT = st.lists(st.sampled_from([*TEXTS.values(), "\n\n", "<text>", "\ud800"]), max_size=4).map(
    "".join
)


@given(
    before=_TEXT, part=_TEXT, after=_TEXT, slack=st.integers(-60, 400), is_estimated=st.booleans()
)
def test_the_excess_of_a_text_is_the_same_however_it_is_counted(
    before: str,
    part: str,
    after: str,
    slack: int,
    is_estimated: bool,
    vocabulary: tiktoken.Encoding,
) -> None:
    counter = Counter() if is_estimated else Counter("made up", vocabulary)
    text = before + part + after
    most = max(0, counter.count(text) + slack)
    expected = max(0, counter.count(text) - most)
    assert counter.excess(text, most, part) == counter.excess(text, most) == expected


@given(before=_TEXT, part=_TEXT, after=_TEXT, is_estimated=st.booleans())
def test_the_bounds_of_a_text_around_a_counted_part_contain_its_count(
    before: str, part: str, after: str, is_estimated: bool, vocabulary: tiktoken.Encoding
) -> None:
    counter = Counter() if is_estimated else Counter("made up", vocabulary)
    n = counter.count(before + part + after)
    least, most = counter.bounds_with(before + part + after, part)
    assert least <= n <= most
    assert (least, most) == (n, n) or not is_estimated
    assert most - least <= 24 or len(before + part + after) > tokens.SLICE
    assert counter.bounds_with(before, "not in it") == (counter.count(before),) * 2


def test_a_document_in_several_prompts_is_counted_once(
    vocabulary: tiktoken.Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = TEXTS["english"] * 40
    counted: list[int] = []

    class Counting:
        def encode_ordinary(self, text: str) -> list[int]:
            counted.append(len(text))
            return vocabulary.encode_ordinary(text)

    counter = Counter("counting", Counting())  # type: ignore[arg-type]
    most = counter.count(document) + 1_000
    for i in range(10):
        assert counter.excess(f"<text>{document}</text> question {i}", most, document) == 0
    assert sum(counted) < 1.1 * len(document)


@pytest.mark.parametrize("character", ["a", " ", "中", "\n", "-"])
def test_long_runs_are_counted_in_time(character: str, vocabulary: tiktoken.Encoding) -> None:
    text = character * times(1_000_000)
    assert 0 < Counter("tiny", vocabulary).count(text) <= 3 * len(text)
    assert estimate(text) > 0


def test_slices_do_not_change_the_count_by_more_than_their_edges(
    vocabulary: tiktoken.Encoding,
) -> None:
    text = "the cat " * 20_000
    whole = len(vocabulary.encode_ordinary(text))
    assert whole <= Counter("tiny", vocabulary).count(text) <= whole + 2 * len(text) / tokens.SLICE


@pytest.mark.parametrize("model", ["extractive", "scripted:rules.json", "openai:llama3:8b", "mine"])
def test_a_model_without_a_known_vocabulary_is_estimated(model: str) -> None:
    counter = Counter.for_model(model)
    assert (counter.method, counter.encoding) == ("estimate", None)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai:gpt-4o-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("openai:openai/gpt-5", "o200k_base"),
        ("openai:ft:gpt-4o:me::1", "o200k_base"),
    ],
)
def test_a_known_model_has_its_vocabulary(
    model: str, name: str, vocabulary: tiktoken.Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, name, vocabulary)  # as if downloaded
    counter = Counter.for_model(model)
    assert counter.method == name
    assert counter.count("the cat") == 2


def test_without_its_vocabulary_a_known_model_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiktoken.load.read_file", pytest.fail)  # which would download it
    counter = Counter.for_model("openai:gpt-4o")
    assert counter.method == "estimate: vocabulary o200k_base is not on this machine"
    assert counter.count("The cat sat on the mat.") == estimate("The cat sat on the mat.")


def test_a_damaged_vocabulary_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790").write_bytes(b"<html>")  # of o200k_base
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for name in ("HTTPS_PROXY", "https_proxy"):  # tiktoken tries to download it again
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert Counter.for_model("gpt-4o").encoding is None


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o-2024-11-20", 128_000),
        ("gpt-4", 8_192),
        ("gpt-5-mini", 272_000),
        ("GPT-4o", 128_000),
        ("ft:gpt-4.1-mini-2025-04-14:me::id", 1_047_576),
        ("openai/gpt-4o", 128_000),
        ("anthropic/claude-opus-4.5", 200_000),
        ("llama3.1:8b", 131_072),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", 131_072),
        ("nobody-knows-it", None),
        ("", None),
    ],
)
def test_windows(model: str, window: int | None) -> None:
    assert known_window(model) == window


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


def test_a_long_document_is_sent_once_in_slices_and_a_short_text_never() -> None:
    words = Words()
    counter = Counter(tokenizer=words)
    long = TEXT * 10
    n = counter.count(long)
    assert n == counter.count(long)
    assert counter.count("The tide.") == estimate("The tide.")
    assert "".join(words.asked) == long
    assert max(map(len, words.asked)) == TOKENIZER_SLICE
    assert 5_600 <= n <= 5_600 + len(words.asked)


@pytest.mark.parametrize(
    "say",
    [
        refuse,
        lambda text, n: 1,
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
