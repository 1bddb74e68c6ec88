"""Counting by the tokenizer in a GGUF file: real files, real child processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pearl.contrib.llamacpp import LlamaCppModel, create
from pearl.documents.tokens import Counter, estimate
from pearl.llm.backends import ModelSettings
from tests.contrib.llamacpp.test_llamacpp import TIMEOUT_S, asked
from tests.llm.backends.asking import used

TEXT = "the captain was in the harbour with his letter and the story of it " * 30


def counted(path: Path, use: Callable[[LlamaCppModel, Counter], None]) -> None:
    async def count(model: LlamaCppModel) -> None:
        use(model, Counter.for_model(model.name, model.tokenizer))

    used(create(str(path), ModelSettings(timeout_s=TIMEOUT_S, is_asked=False)), count)


def test_a_count_equals_that_of_the_model(weights: Path) -> None:
    """The same tokens as the model reads, but for those of the chat template."""

    async def use(model: LlamaCppModel) -> tuple[int, int, int]:
        counter = Counter.for_model(model.name, model.tokenizer)
        alone = counter.count(TEXT)
        read = (await model.complete(asked(TEXT, None))).usage.n_input_tokens
        assert counter.count(f"{TEXT}the") == alone + 1  # by the process that runs it
        return alone, counter.frame_tokens, read

    alone, frame, read = used(create(str(weights), ModelSettings(timeout_s=TIMEOUT_S)), use)
    assert read == alone + frame
    assert 0 < frame < 64
    assert alone != estimate(TEXT)


def test_counting_does_not_load_the_model(weights: Path) -> None:
    def use(model: LlamaCppModel, counter: Counter) -> None:
        assert model.tokenizer.worker.process is None  # nothing starts before it is needed
        counter.count(TEXT)
        assert counter.method == "the tokenizer of random.gguf"
        assert model._worker.process is None
        worker = model.tokenizer.worker.process
        assert worker
        assert counter.count(TEXT + "<|im_end|>") > counter.count(TEXT) + 5, "a mark is text"
        assert model.tokenizer.worker.process is worker

    counted(weights, use)


@pytest.mark.parametrize("share", [0.9, 0.02])
def test_tokens_of_a_truncated_file_are_estimated_with_a_reason(
    weights: Path, tmp_path: Path, share: float
) -> None:
    path = tmp_path / "cut.gguf"
    data = weights.read_bytes()
    path.write_bytes(data[: int(share * len(data))])

    def use(model: LlamaCppModel, counter: Counter) -> None:
        assert counter.count(TEXT) == estimate(TEXT)
        assert "estimate (the tokenizer of cut.gguf failed: llama.cpp cannot" in counter.method

    counted(path, use)
