"""Folders of models that cannot be used: said at once, and why."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pearl.errors import DataError, UsageError
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.transformers import create
from tests.llm.backends.asking import complete, failure
from tests.llm.backends.transformers.asking import asked
from tests.llm.backends.transformers.tiny_models import (
    rewrite,
    save_tokenizer,
)
from tests.skips import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)
transformers = pytest.importorskip("transformers", reason=NO_TORCH)


def broken(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        complete(create(str(folder), ModelSettings()), asked())
    assert len(str(caught.value).splitlines()) <= 3
    assert str(folder) in str(caught.value)
    return str(caught.value)


def test_the_name_of_a_folder_is_required() -> None:
    with pytest.raises(UsageError, match="needs a folder"):
        create_model("transformers")


@pytest.mark.parametrize("name", ["/no/such/folder", "gpt2", "meta-llama/Llama-3.2-1B", "a\0b"])
def test_models_are_loaded_from_folders_only(name: str) -> None:
    with pytest.raises(DataError):
        create_model(f"transformers:{name}")


@pytest.mark.parametrize("text", [None, "", "{", "[]", "\xff", "{}", '{"model_type": "no-such"}'])
def test_a_broken_configuration(tmp_path: Path, text: str | None) -> None:
    save_tokenizer(tmp_path)
    if text is not None:
        (tmp_path / "config.json").write_text(text, encoding="latin-1")
    assert text is not None or "config.json" in broken(tmp_path)
    broken(tmp_path)


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def half_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5_000])


def missing_layer(folder: Path) -> None:
    """Its weights would be drawn at random."""
    rewrite(folder / "config.json", num_hidden_layers=3)


def other_shape(folder: Path) -> None:
    rewrite(folder / "config.json", intermediate_size=96)


def no_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


def empty_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")


def other_tokenizer(folder: Path) -> None:
    save_tokenizer(folder, n_tokens=600)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_weights, "weights"), (half_weights, "weights"), (missing_layer, "weights are missing"),
        (other_shape, "weights"), (no_tokenizer, "tokenizer"), (empty_tokenizer, "tokenizer"),
        (other_tokenizer, "another model"),
    ],
)  # fmt: skip
def test_a_folder_that_cannot_be_used(
    spoil: Callable[[Path], None], words: str, copy: Path
) -> None:
    spoil(copy)
    assert words in broken(copy)


def test_weights_that_are_nan_are_an_error(copy: Path) -> None:
    model = transformers.LlamaForCausalLM.from_pretrained(copy)
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    model.save_pretrained(copy)
    model = create(str(copy), ModelSettings())
    assert "NaN" in str(failure(model, "transport", asked()))


def test_an_error_names_missing_packages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match=r"needs torch.*\n.*pip install .*\[transformers\]"):
        create(str(folder), ModelSettings())
