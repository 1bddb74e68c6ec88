"""How many parameters a model has, by its name and by its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl.llm.size import SMALL_BYTES, is_small


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llamacpp:models/SmolLM2-135M-Instruct.Q4_1.gguf", True),
        ("ollama:llama3.2:1b", True),
        ("ollama:gemma3:270m", True),
        ("openai:Qwen/Qwen2.5-0.5B-Instruct", True),
        ("openai:Llama-3.2-3B-Instruct", True),
        ("openai:google/gemma-3n-E2B-it", True),
        ("openai:Qwen2.5-7B-Instruct", False),
        ("openai:Qwen2.5-7B-Instruct-1M", False),  # a window of a million tokens
        ("openai:qwen3-30b-a3b", False),  # of which three billion are active
        ("openai:mixtral-8x7b", False),
        ("openai:gpt-4o-mini", False),
        ("openai:gpt-3.5-turbo-16k", False),
        ("openai:claude-3-5-sonnet", False),
        ("openai:phi-3.8b", False),
        ("llamacpp:models-1b/unknown.gguf", False),  # a folder's name is not the model's
        ("extractive", False),
        ("openai:\0", False),
    ],
)
def test_by_its_name(name: str, expected: bool) -> None:
    assert is_small(name) is expected


@pytest.mark.parametrize(("n_bytes", "expected"), [(SMALL_BYTES, True), (SMALL_BYTES + 1, False)])
def test_a_file_whose_name_says_nothing_by_its_length(
    tmp_path: Path, n_bytes: int, expected: bool
) -> None:
    path = tmp_path / "model.gguf"
    with path.open("wb") as file:
        file.truncate(n_bytes)  # sparse
    assert is_small(f"llamacpp:{path}") is expected
    big = path.rename(tmp_path / "model-70b.gguf")
    assert is_small(f"llamacpp:{big}") is False
