"""Counting by the tokenizer of a folder, which needs neither torch nor transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from pearl.documents.tokens import Counter, estimate
from pearl.llm.backends.transformers import TransformersModel

TEXT = "the captain waited for the tide and nobody came " * 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    words = dict.fromkeys([*TEXT.split(), "<s>", "<unk>"])
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", list(words).index("<s>"))]
    )
    tokenizer.enable_truncation(16)  # as many are saved
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_special_tokens_are_not_counted(folder: Path) -> None:
    counter = Counter(tokenizer=TransformersModel(folder, "m", None).tokenizer)
    assert counter.count(TEXT) == 9 * 20
    assert counter.count(f"{TEXT} \ud800") == 9 * 20 + 1
    assert counter.method == f"the tokenizer of {folder.name}"


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff\x00"])
def test_tokens_are_estimated_without_a_readable_tokenizer(
    folder: Path, content: bytes | None
) -> None:
    path = folder / "tokenizer.json"
    path.unlink() if content is None else path.write_bytes(content)
    counter = Counter(tokenizer=TransformersModel(folder, "m", None).tokenizer)
    text = f"{TEXT} {content!r}"
    assert counter.count(text) == estimate(text)
    assert "failed: tokenizer.json: " in counter.method
