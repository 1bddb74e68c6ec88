"""Tokens are what stands between blanks, however they are compared."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from pearl.retrieval.postings import number_terms, number_tokens

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
