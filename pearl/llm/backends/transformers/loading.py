"""The model and the tokenizer of a folder of weights."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

from pearl.documents.tokens import TokenizerError
from pearl.errors import DataError

_EXPECTED = "expected files of save_pretrained: config.json, *.safetensors, tokenizer.json"
# Names of the window in configurations.
_WINDOWS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")


@dataclass(frozen=True)
class LoadedWeights:
    """A model in memory."""

    tokenizer: Any
    model: Any
    ends: frozenset[int]
    special: frozenset[int]
    n_tokens: int

    def keeping(self, n: int) -> dict[str, int]:
        """Argument of the model for logits of the last `n` tokens only, if it takes one."""
        return {"logits_to_keep": n} if self._keeps_some else {}

    @cached_property
    def _keeps_some(self) -> bool:
        return "logits_to_keep" in signature(self.model.forward).parameters

    @cached_property
    def vocabulary(self) -> Any:
        """The tokenizer for llguidance; takes up to 2 s for 100,000 tokens."""
        from llguidance.hf import from_tokenizer

        return from_tokenizer(self.tokenizer, n_vocab=self.n_tokens, eos_token=sorted(self.ends))


def read_window(folder: Path) -> int | None:
    """The context window in tokens, from `config.json`; None if it has none."""
    if not folder.is_dir():
        raise DataError("the folder of weights does not exist", path=folder, help=_EXPECTED)
    path = folder / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except OSError:
        raise DataError("the folder has no config.json", path=folder, help=_EXPECTED) from None
    except (ValueError, RecursionError):
        raise DataError("is not JSON", path=path, help=_EXPECTED) from None
    if not isinstance(config, dict):
        raise DataError("is not a JSON object", path=path, help=_EXPECTED)
    text = config.get("text_config")
    for part in (config, text if isinstance(text, dict) else {}):
        for name in _WINDOWS:
            if isinstance(part.get(name), int) and part[name] > 0:
                return int(part[name])
    return None


def load(folder: Path) -> LoadedWeights:
    """Load the model of a folder, on a GPU in bfloat16 if there is one, else in single precision."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call,unused-ignore]
    own: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    has_gpu = torch.cuda.is_available()
    dtype = torch.bfloat16 if has_gpu else torch.float32
    # A damaged file may raise any exception here.
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, **own)
    except Exception as error:
        raise _broken(folder, "no tokenizer can be loaded", error) from error
    if not getattr(tokenizer, "is_fast", False) or not len(tokenizer):
        raise DataError(
            "the folder has no fast tokenizer (tokenizer.json)", path=folder, help=_EXPECTED
        )
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, output_loading_info=True, **own
        )
    except Exception as error:
        raise _broken(folder, "the weights cannot be loaded", error) from error
    model, info = loaded
    # transformers initialises missing weights at random, and only warns.
    for problem in ("missing_keys", "mismatched_keys"):
        if names := sorted(map(str, info.get(problem) or ())):
            count = f"{len(names)} of them, such as {names[0][:100]}"
            raise DataError(
                f"weights are missing or have other shapes: {count}", path=folder, help=_EXPECTED
            )
    n_tokens = len(tokenizer)
    n_rows = model.get_input_embeddings().num_embeddings
    if n_tokens > n_rows:
        raise DataError(
            f"the tokenizer has {n_tokens:,} tokens, the model has {n_rows:,}: one belongs to another model",
            path=folder,
        )
    model.eval()
    if has_gpu:
        model.to("cuda")
    ends = _ends(tokenizer, model, folder)
    added = tokenizer.added_tokens_decoder
    special = ends | {token for token, what in added.items() if what.special}
    return LoadedWeights(tokenizer, model, ends, special, n_tokens)


def _ends(tokenizer: Any, model: Any, folder: Path) -> frozenset[int]:
    """The end tokens; a chat model may declare more than its tokenizer."""
    found: set[int] = set()
    for source in (tokenizer, model.generation_config, model.config):
        ends = getattr(source, "eos_token_id", None)
        found.update([ends] if isinstance(ends, int) else ends or ())
    if not found:
        raise DataError("neither the tokenizer nor the model defines an end token", path=folder)
    return frozenset(found)


def _broken(folder: Path, message: str, error: Exception) -> DataError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return DataError(f"{message}: {reason[:200]}", path=folder, help=_EXPECTED)


class FolderTokenizer:
    """The tokenizer of a folder of weights, read at the first count."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._path = folder / "tokenizer.json"
        self._loading = threading.Lock()
        self._tokenizer: Any = None

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        with self._loading:
            if self._tokenizer is None:
                self._tokenizer = self._loaded()
        valid = text.encode(errors="replace").decode()  # it rejects lone surrogates
        return len(self._tokenizer.encode(valid, add_special_tokens=False).ids)

    def frame_tokens(self) -> int:
        """0: the model itself applies its template, and cuts the reply at the end of the window."""
        return 0

    def _loaded(self) -> Any:
        try:
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(self._path))
        except Exception as error:  # tokenizers raises plain exceptions
            reason = " ".join(str(error).split())[:200]
            raise TokenizerError(f"{self._path.name}: {reason}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
