"""Inverted indexes: postings, tokens, vocabularies, merging, storing."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pearl.documents.passages import terms
from pearl.retrieval import postings
from pearl.retrieval.postings import (
    Postings,
    Vocabulary,
    merge,
    number_terms,
    number_tokens,
)

letters = st.sampled_from("ab\u00e9\u6771\U0001f600\ud800\x00 \t\n\u00a0")


@given(st.lists(st.text(letters, max_size=60), max_size=8))
@example(["a" * n + " " + "a" * (n + 1) for n in range(1, 40)])
@example(["aaaaaaaab aaaaaaaac baaaaaaaa", "aaaaaaaab" * 3, "aaaaaaaab" * 3 + "c"])
def test_tokens_are_those_between_blanks(texts: list[str]) -> None:
    names, codes, sizes = number_tokens(texts)
    found = [names[code] for code in codes]
    assert sizes.tolist() == [len(re.findall(r"[^\x00-\x20]+", text)) for text in texts]
    assert found == [token for text in texts for token in re.findall(r"[^\x00-\x20]+", text)]
    assert len(set(names)) == len(names)


def test_tokens_with_one_hash_are_told_apart() -> None:
    """Two tokens of 16 bytes whose hashes are equal, as long as the numbers stay as they are."""
    odd = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
    one = (int.from_bytes(b"abcdefgh", "little"), int.from_bytes(b"ijklmnop", "little"))
    wanted = (one[0] * odd[0] ^ one[1] * odd[1]) % 2**64
    inverse = pow(odd[1], -1, 2**64)
    for n in range(1_000_000):
        head = (b"%08d" % n)[::-1]
        tail = (
            ((int.from_bytes(head, "little") * odd[0] ^ wanted) % 2**64) * inverse % 2**64
        ).to_bytes(8, "little")
        if all(32 < byte < 127 for byte in tail):
            break
    texts = ["abcdefghijklmnop", (head + tail).decode()] * 50
    names, codes, _ = number_tokens(texts)
    assert [names[code] for code in codes] == texts


def test_terms_are_numbered_as_they_come() -> None:
    names, codes, sizes = number_terms([["b", "a b"], [], ["b"]])
    assert (names, codes.tolist(), sizes.tolist()) == (["b", "a b"], [0, 1, 0], [2, 0, 1])


TERMS = st.text(st.sampled_from("ab\u00e9\u6771\ud800\x00\U0010ffff"), max_size=12)


@given(st.sets(TERMS, max_size=30), st.lists(TERMS, max_size=10))
def test_every_term_is_found_at_its_place_and_no_other(known: set[str], asked: list[str]) -> None:
    names = sorted(term.encode("utf-8", "surrogatepass") for term in known)
    vocabulary = Vocabulary.of(names)
    assert list(vocabulary) == names
    assert len(vocabulary) == len(names)
    for term in (*known, *asked):
        name = term.encode("utf-8", "surrogatepass")
        assert vocabulary.find(term) == (names.index(name) if name in names else None)


WORDS = (
    "key",
    "Keys",
    "lamp's",
    "the",
    "well-known",
    "1,200",
    "café",
    "東京都へ",
    "...",
    "kept,",
    "x",
)

texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=12)


def dead_of(texts: list[str], draw: Any) -> np.ndarray[Any, Any]:
    return np.array(draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))), bool)


def rows(index: Postings, term: str) -> list[tuple[int, int]]:
    passages, counts = index.postings(term)
    return list(zip(passages.tolist(), counts.tolist(), strict=True))


def equal(one: Postings, two: Postings) -> bool:
    pairs = zip(one.arrays().items(), two.arrays().items(), strict=True)
    return all(a == b and x.dtype == y.dtype and np.array_equal(x, y) for (a, x), (b, y) in pairs)


@given(texts, st.sampled_from(("english", "porter", "none")), st.sampled_from((1, 3, 1 << 20)))
def test_postings_are_the_counts_of_the_terms(texts: list[str], stem: Any, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "BATCH", block)
        patch.setattr(postings, "MAX_TOKENS", block)
        index = Postings.build(texts, stem)
    found = [Counter(terms(text, stem=stem)) for text in texts]
    assert index.lengths.tolist() == [sum(counts.values()) for counts in found]
    known = sorted({term for counts in found for term in counts}, key=str.encode)
    assert [name.decode() for name in index.vocabulary] == known
    for term in known:
        expected = [(i, counts[term]) for i, counts in enumerate(found) if counts[term]]
        assert rows(index, term) == expected
    assert rows(index, "zebra") == rows(index, "") == rows(index, "\ud800") == []


def test_terms_are_those_of_the_one_rule_on_text_of_many_kinds() -> None:
    text = "Ada\u00a0Lovelace's  well-known\tnotes\u2028of 1,843.5—ﬁrst İstanbul ß's ﷺ 東京 tide-東京x ''''"
    index = Postings.build([text])
    assert Counter(terms(text)) == {
        name.decode(): int(rows(index, name.decode())[0][1]) for name in index.vocabulary
    }


@pytest.mark.parametrize(("n", "kind"), [(255, "uint8"), (256, "uint16"), (65_536, "uint32")])
def test_counts_take_the_smallest_type_that_holds_them(n: int, kind: str) -> None:
    index = Postings.of_terms([["key"], ["key"] * n, ["lamp"]])
    assert index.counts.dtype == kind
    assert rows(index, "key") == [(0, 1), (1, n)]


def test_merged_counts_take_the_smallest_type_again() -> None:
    parts = [Postings.of_terms([["key"] * 300, ["key"]]), Postings.of_terms([["oar"]])]
    assert merge(parts, [np.array([-1, 0]), np.array([1])]).counts.dtype == "uint8"


def test_an_index_is_the_same_after_storing(tmp_path: Any) -> None:
    index = Postings.build(["the key is kept", "no lamp", "key of 東京"])
    for name, array in index.arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    stored = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in index.arrays()}
    again = Postings.from_arrays(stored)
    assert equal(index, again)
    assert isinstance(again.passages, np.memmap)
    assert rows(again, "key") == [(0, 1), (2, 1)]


@given(st.lists(texts, max_size=4), st.data())
def test_merged_parts_in_any_order_are_as_a_fresh_index(
    parts: list[list[str]], data: st.DataObject
) -> None:
    every = [text for part in parts for text in part]
    order = data.draw(st.permutations(range(len(every))))
    order = order[: data.draw(st.integers(0, len(every)))]
    numbers = np.full(len(every), -1, np.int64)
    numbers[order] = np.arange(len(order))
    split = np.split(numbers, np.cumsum([len(part) for part in parts])[:-1])
    merged = merge([Postings.build(part) for part in parts], split[: len(parts)])
    assert equal(merged, Postings.build([every[i] for i in order]))
    assert merged.mean_length == Postings.build([every[i] for i in order]).mean_length


def test_no_passages() -> None:
    for index in (Postings.build([]), merge([], [])):
        assert (index.n_passages, index.mean_length) == (0, 0.0)
        assert rows(index, "key") == []
