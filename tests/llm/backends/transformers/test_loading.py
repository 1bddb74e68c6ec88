"""Folders of models that cannot be used: said at once, and why."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pearl.errors import DataError, ModelError, PearlError, UsageError
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.transformers import create
from tests.llm.backends.transformers.asking import asked, reply
from tests.llm.backends.transformers.tiny_models import (
    rewrite,
    save_tokenizer,
)
from tests.skips import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)
transformers = pytest.importorskip("transformers", reason=NO_TORCH)


def failure(folder: Path) -> PearlError:
    with pytest.raises(PearlError) as caught:
        reply(create(str(folder), ModelSettings()), asked())
    assert len(str(caught.value).splitlines()) <= 3
    assert str(folder) in str(caught.value)
    return caught.value


def test_a_folder_has_to_be_named() -> None:
    with pytest.raises(UsageError, match="needs a folder"):
        create_model("transformers")


@pytest.mark.parametrize("name", ["/no/such/folder", "gpt2", "meta-llama/Llama-3.2-1B", "a\0b"])
def test_nothing_is_looked_for_but_in_folders(name: str) -> None:
    with pytest.raises(DataError):
        create_model(f"transformers:{name}")


def test_a_folder_without_a_configuration(tmp_path: Path) -> None:
    assert "config.json" in str(failure(tmp_path))


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff", "{}", '{"model_type": "no-such"}'])
def test_a_broken_configuration(tmp_path: Path, text: str) -> None:
    save_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    assert isinstance(failure(tmp_path), DataError)


def test_a_folder_without_weights(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    assert "weights" in str(failure(copy))


def test_broken_weights(copy: Path) -> None:
    path = copy / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5_000])
    assert "weights" in str(failure(copy))


def test_weights_that_are_not_all_there(copy: Path) -> None:
    """They would be drawn at random."""
    rewrite(copy / "config.json", num_hidden_layers=3)
    assert "weights are missing" in str(failure(copy))


def test_weights_of_another_shape(copy: Path) -> None:
    rewrite(copy / "config.json", intermediate_size=96)
    assert "weights" in str(failure(copy))


def test_a_folder_without_a_tokenizer(copy: Path) -> None:
    for path in copy.glob("tokenizer*"):
        path.unlink()
    assert "tokenizer" in str(failure(copy))


def test_a_broken_tokenizer(copy: Path) -> None:
    (copy / "tokenizer.json").write_text("{}")
    assert "tokenizer" in str(failure(copy))


def test_a_tokenizer_of_another_model(copy: Path) -> None:
    save_tokenizer(copy, n_tokens=600)
    assert "another model" in str(failure(copy))


def test_weights_that_are_no_numbers(copy: Path) -> None:
    model = transformers.LlamaForCausalLM.from_pretrained(copy)
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    model.save_pretrained(copy)
    with pytest.raises(ModelError, match="NaN"):
        reply(create(str(copy), ModelSettings()), asked())


def test_missing_packages_are_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match=r"needs torch.*\n.*pip install .*\[transformers\]"):
        create(str(folder), ModelSettings())
