"""Digests agree with `sha256sum`, and parts cannot run into each other."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.digest import digest, file_sha256, text_sha256

PARTS = st.lists(st.text(st.characters(codec=None), max_size=4) | st.binary(max_size=4), max_size=4)


def test_texts_and_files_have_the_sha256_of_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("é\n".encode())
    assert text_sha256("é\n") == file_sha256(path) == hashlib.sha256(b"\xc3\xa9\n").hexdigest()
    assert len(text_sha256("\ud800")) == 64


@given(PARTS, PARTS)
def test_other_parts_have_another_digest(one: list[str | bytes], other: list[str | bytes]) -> None:
    def data(parts: list[str | bytes]) -> list[bytes]:
        return [
            part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            for part in parts
        ]

    assert (digest(one) == digest(other)) == (data(one) == data(other))
