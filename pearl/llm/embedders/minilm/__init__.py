"""all-MiniLM-L6-v2 in this process, in numpy: English, 384 dimensions. Needs the extra `semantic`.

Only the first 256 tokens of a text are read, as in the original model. `pearl models get minilm`
downloads the files.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pearl.errors import DataError, UsageError
from pearl.llm.backends.openai.endpoint import scrubbed
from pearl.llm.embedders import EmbedderSettings
from pearl.llm.weights import find_weights
from pearl.plugins.extras import require_extra
from pearl.retrieval import TextKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from pearl.llm.embedders.minilm.network import Encoder

__all__ = ["DESCRIPTION", "IS_CACHED", "MiniLM", "create"]

DESCRIPTION = "all-MiniLM-L6-v2 in this process: minilm; English, 384 dimensions"
IS_CACHED = True
MAX_TOKENS = 256  # of a text, including the two that mark its ends
BATCH_TOKENS = 1_024  # tokens that are encoded together; larger batches are not faster


def create(name: str, settings: EmbedderSettings) -> MiniLM:
    """Create the embedder; its files are read when it is first used."""
    if name:
        raise UsageError("minilm: is one model and takes no name", help="write minilm")
    require_extra(
        "semantic", "embeddings in this process", "tokenizers", "safetensors", "threadpoolctl"
    )
    weights = find_weights("minilm")
    folder = weights.checked_folder()
    return MiniLM(folder, f"minilm:{weights.files['model.safetensors'].sha256[:12]}")


class MiniLM:
    """A sentence encoder of this architecture."""

    notice = ""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._folder = folder
        self._loading = threading.Lock()
        self._loaded: tuple[Tokenizer, Encoder] | None = None
        self._threads: ThreadPoolExecutor | None = None

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        """Vectors of unit length, shape (len(texts), dimension), in order."""
        import numpy as np

        from pearl.llm.embedders.minilm.network import n_cores, one_thread_a_product

        if self._threads is None:
            self._threads = ThreadPoolExecutor(n_cores(), thread_name_prefix="minilm")
        run = partial(asyncio.get_running_loop().run_in_executor, self._threads)
        encoder, tokens = await run(self._tokens, list(texts))
        vectors = np.empty((len(texts), encoder.dimension), dtype=np.float32)
        batches = list(_batches([len(each) for each in tokens]))
        with one_thread_a_product():
            made = [run(encoder, [tokens[number] for number in batch]) for batch in batches]
            for batch, part in zip(batches, await asyncio.gather(*made), strict=True):
                vectors[batch] = part
        return vectors

    async def aclose(self) -> None:
        """End the threads."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)

    def _tokens(self, texts: list[str]) -> tuple[Encoder, list[list[int]]]:
        tokenizer, encoder = self._load()
        encodings = tokenizer.encode_batch_fast([scrubbed(text) for text in texts])
        return encoder, [encoding.ids for encoding in encodings]

    def _load(self) -> tuple[Tokenizer, Encoder]:
        with self._loading:
            if self._loaded is None:
                from tokenizers import Tokenizer

                from pearl.llm.embedders.minilm.network import Encoder

                try:
                    encoder = Encoder(self._folder)
                    data = (self._folder / "tokenizer.json").read_bytes()
                    tokenizer = Tokenizer.from_buffer(data)
                except (OSError, ValueError) as error:
                    raise DataError(
                        f"the model cannot be read: {error}",
                        path=self._folder,
                        help="get it again: pearl models get minilm",
                    ) from None
                tokenizer.no_padding()
                tokenizer.enable_truncation(min(MAX_TOKENS, encoder.n_positions))
                self._loaded = tokenizer, encoder
        return self._loaded


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Batches of text indices of similar lengths."""
    batch: list[int] = []
    n_tokens = 0
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and n_tokens + lengths[number] > BATCH_TOKENS:
            yield batch
            batch, n_tokens = [], 0
        batch.append(number)
        n_tokens += lengths[number]
    if batch:
        yield batch
