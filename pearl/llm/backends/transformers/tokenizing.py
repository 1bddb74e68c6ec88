"""Counts tokens by the `tokenizer.json` of a folder of weights, without loading the weights."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from pearl.documents.tokens import TokenizerError


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
        """0: the template is filled in with the weights, and a reply is cut where the window ends."""
        return 0

    def _loaded(self) -> Any:
        try:
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(self._path))
        except Exception as error:  # tokenizers raises bare ones
            reason = " ".join(str(error).split())[:200]
            raise TokenizerError(f"{self._path.name}: {reason}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
