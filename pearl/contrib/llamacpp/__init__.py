"""A model in a GGUF file on this machine: `llamacpp:PATH.gguf`, without a server to set up.

llama.cpp runs in a child process (`worker`), started by the first request and ended by `aclose` or
with this process, so that a damaged file or a crash raises an error. `OpenAIModel` is the client;
replies are streamed, to report progress and to stop repetitive ones.

The state of the longest common prefix of prompts, such as a document, is reused. Requests are
processed sequentially, because concurrent ones over one document would each process it (six over
1,400 tokens on two cores: 11 s sequentially, 14 to 18 s in four slots).

llama.cpp allocates the memory of the context window at once: 2 GiB for 16,384 tokens of a common 8B
model. A model that does not fit into memory is refused before it is loaded (`memory_advice`).

For a file without a chat template llama.cpp would use ChatML, whose marks are not among the tokens of
such a model. So it gets a prompt in plain text (`COMPLETION_TEMPLATE`).
"""

from __future__ import annotations

import asyncio
import mmap
import re
import secrets
import struct
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from pearl.contrib.llamacpp.process import FileTokenizer, Worker
from pearl.documents.document import file_source
from pearl.errors import DataError, ModelError, UsageError
from pearl.llm import Completion, Constrains, Request
from pearl.llm.backends import Abilities, ModelSettings
from pearl.llm.backends.openai import OpenAIModel, servers
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.progress import CallProgress, report
from pearl.plugins.extras import require_extra

MAGIC = b"GGUF"
VERSIONS = (2, 3)  # Supported versions; llama.cpp dropped version 1, which has 32-bit counts.
MAX_KEY_LENGTH = 65_535
MAX_DEPTH = 4  # Maximum nesting of arrays; real files have no nested ones

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # fmt: skip
"""Type of a value → how `struct` reads it."""

_STRING, _ARRAY = 8, 9  # types of values in GGUF

HELP = "name a complete language model in the GGUF format; of a split model, its first file"
# Maximum bytes searched for the chat template, which follows the vocabulary
MAX_METADATA = 256 * 2**20
_TEMPLATE = struct.pack("<Q", len(b"tokenizer.chat_template")) + b"tokenizer.chat_template"
_CACHED_NUMBER_BYTES = 2  # llama.cpp keeps keys and values in 16 bits.


class Header(Struct, frozen=True):
    """Contents of the header of a model file."""

    trained: int
    has_template: bool
    bytes_a_token: int  # Of memory, per token of the context window; 0 if unknown
    n_bytes: int


def read_header(path: Path) -> Header:
    """The header of a model file."""
    try:
        with path.open("rb") as file:
            return _HeaderReader(file, path).header()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path, help=HELP) from None


class _HeaderReader:
    """Reads metadata from the start of a file; all numbers are little-endian."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._size = path.stat().st_size

    def header(self) -> Header:
        if self._size == 0:
            raise self._wrong("is empty")
        if self._file.read(4) != MAGIC:
            raise self._wrong("is not a GGUF file")
        version = self._number("I")
        if version not in VERSIONS:
            raise self._wrong(f"has GGUF version {version}, not {VERSIONS[0]} or {VERSIONS[1]}")
        self._number("Q")  # number of tensors
        found: dict[str, int | str | None] = {}
        for _ in range(self._number("Q")):
            key = self._string()
            of = found.get("general.architecture")
            if key.startswith("tokenizer.") and f"{of}.context_length" in found:
                break  # a vocabulary has up to half a million entries
            found[key] = self._value(self._number("I"))
        prefix = f"{found.get('general.architecture')}."
        numbers = {
            key.removeprefix(prefix): value
            for key, value in found.items()
            if isinstance(value, int)
        }
        if "context_length" not in numbers:
            raise self._wrong(f"contains no language model (its architecture is '{prefix[:-1]}')")
        trained = numbers["context_length"]
        n_searched = min(self._size, MAX_METADATA)
        with mmap.mmap(self._file.fileno(), n_searched, access=mmap.ACCESS_READ) as data:
            has_template = data.find(_TEMPLATE) >= 0
        heads = numbers.get("attention.head_count", 0)
        length = numbers.get("embedding_length", 0) // heads if heads > 0 else 0
        n_keys = numbers.get("attention.key_length", length)
        n_values = numbers.get("attention.value_length", length)
        layers, kept = numbers.get("block_count", 0), numbers.get("attention.head_count_kv", 0)
        n_bytes = max(0, _CACHED_NUMBER_BYTES * layers * kept * (n_keys + n_values))
        is_sliding = "attention.sliding_window" in numbers  # Needs less, unknown how much
        return Header(trained, has_template, 0 if is_sliding else n_bytes, self._size)

    def _value(self, kind: int, depth: int = 0) -> int | str | None:
        """Read a value; arrays are skipped and give None."""
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY and depth < MAX_DEPTH:
            of, n = self._number("I"), self._number("Q")
            if of in _NUMBERS:
                self._skip(n * struct.calcsize(_NUMBERS[of]))
            else:
                for _ in range(n):
                    self._value(of, depth + 1)
            return None
        if kind not in _NUMBERS:
            raise self._wrong("is damaged: a value of its metadata has an unknown type")
        return self._number(_NUMBERS[kind])

    def _number(self, form: str) -> int:
        (number,) = struct.unpack(f"<{form}", self._bytes(struct.calcsize(form)))
        return number  # type: ignore[no-any-return]

    def _string(self) -> str:
        """Read a text, truncated if it is longer than any key."""
        length = self._number("Q")
        text = self._bytes(min(length, MAX_KEY_LENGTH)).decode(errors="replace")
        self._skip(max(0, length - MAX_KEY_LENGTH))
        return text

    def _bytes(self, n: int) -> bytes:
        data = self._file.read(n)
        if len(data) < n:
            raise self._wrong("is truncated")
        return data

    def _skip(self, n: int) -> None:
        if n > self._size - self._file.tell():
            raise self._wrong("is truncated")
        self._file.seek(n, 1)

    def _wrong(self, what: str) -> DataError:
        return DataError(what, path=self._path, help=HELP)


_GROUP = Path("/sys/fs/cgroup")
_STEP = 1_024  # Advised windows are multiples of it, in tokens


def memory_advice(header: Header, window: int, available: int) -> tuple[str, str] | None:
    """Why a model does not fit into memory, and advice; None if it fits."""
    cache = window * header.bytes_a_token
    if header.n_bytes + cache <= available:
        return None
    what = f"it has {_gib(header.n_bytes)}"
    if cache:
        what += f", the window of {window:,} tokens takes {_gib(cache)} more"
    what += f", and {_gib(available)} are available"
    left = available - header.n_bytes
    smaller = left // header.bytes_a_token // _STEP * _STEP if header.bytes_a_token else 0
    if smaller > 0:
        return what, f"a smaller window needs less: --window {smaller}"
    return what, "use a smaller model, or one of fewer bits; or end other programs"


def available_bytes() -> int | None:
    """Bytes of memory that a new process can use, GPUs excluded; None if unknown."""
    found: list[int] = []
    with suppress(OSError, ValueError):
        found.append(1024 * _field(Path("/proc/meminfo"), "MemAvailable:"))
    with suppress(OSError, ValueError):  # "max" is no limit
        limit = int((_GROUP / "memory.max").read_text())
        used = int((_GROUP / "memory.current").read_text())
        # The system can free the cached files of the group.
        found.append(max(0, limit - used + _field(_GROUP / "memory.stat", "inactive_file")))
    return min(found, default=None)


def _field(path: Path, name: str) -> int:
    """The number after a name at the start of a line of a file."""
    lines = map(str.split, path.read_text().splitlines())
    return int(next((words[1] for words in lines if words[0] == name), ""))


def has_gpu() -> bool:
    """Whether llama.cpp would use a GPU, whose memory is not counted here."""
    import xllamacpp

    return any(device["name"] != "CPU" for device in xllamacpp.get_device_info())


def _gib(n: int) -> str:
    return f"{n / 2**30:,.1f} GiB"


DESCRIPTION = "a model in a file, by llama.cpp in a child process: llamacpp:PATH.gguf"
MAX_WINDOW = 16_384  # Default maximum context window in tokens
CACHE_MIB = 4_096  # Memory for cached prefix states, in MiB
# Part of llama.cpp's error for a prompt that is longer than the window
TOO_LONG = "exceeds the available context size"

COMPLETION_TEMPLATE = """\
{% for message in messages %}{% if message['role'] == 'assistant' %}### Response:
{% elif message['role'] == 'user' %}### Instruction:
{% endif %}{{ message['content'] }}

{% endfor %}### Response:
"""
"""The prompt of a model without a chat template, in the form of common instruction datasets."""

COMPLETION_STOPS = ["\n### "]
"""The reply of such a model ends where it begins another instruction or answer of its own."""

SMALL_BYTES = 1.5 * 2**30
"""A smaller model file is not asked for plans and checks. A model of 1.1 GB (1.5 billion parameters of four bits) writes
valid plans that look for something else, and cannot tell true claims from false ones: docs/figures.md."""

NOTICE = (
    "llamacpp: {} has no chat template, so it may not be trained to follow instructions; it is "
    "prompted with plain text"
)


def create(name: str, settings: ModelSettings) -> LlamaCppModel:
    """Create the model of a file, without starting it."""
    if not name:
        raise UsageError("llamacpp: needs a file", help="for example llamacpp:models/model.gguf")
    require_extra("llamacpp", "a model in a file", "xllamacpp")
    path = Path(name).expanduser()
    header = read_header(path)
    trained = header.trained
    if settings.window and settings.window > trained:
        raise UsageError(
            f"a window of {settings.window:,} tokens is too long for {path}",
            help=f"the model was trained on {trained:,} tokens: --window {trained}",
        )
    window = settings.window or min(trained, MAX_WINDOW)
    return LlamaCppModel(path, settings.timeout_s, window, header)


class LlamaCppModel:
    """One model of one file."""

    reads_prompts = True
    constrains = Constrains(by=frozenset({"grammar", "json"}), max_text=240)

    def __init__(self, path: Path, timeout_s: float, window: int, header: Header) -> None:
        self.name = f"llamacpp:{path}"
        self.identity = f"{self.name} {file_source(path)}"
        self.window: int | None = window
        self._path = path
        self._timeout_s = timeout_s
        self._header = header
        self.is_small = header.n_bytes < SMALL_BYTES
        self.notice = "" if header.has_template else NOTICE.format(path.name)
        # It keeps out other users of this machine, who may find the port.
        self._key = secrets.token_hex(16)
        settings = {
            "path": str(path.absolute()),
            "alias": path.stem,
            "key": self._key,
            "window": window,
            "cache_mib": CACHE_MIB,
            "template": "" if header.has_template else COMPLETION_TEMPLATE,
            "stops": [] if header.has_template else COMPLETION_STOPS,
        }
        self._worker = Worker(path, settings)
        self._client: tuple[str, OpenAIModel] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Lock()
        self.tokenizer = FileTokenizer(
            f"the tokenizer of {path.name}", path.stem, self._key, self._worker,
            Worker(path, {**settings, "is_tokenizing": True}),
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"LlamaCppModel({self.name!r})"

    async def complete(self, request: Request) -> Completion:
        """Send one request; the first one starts llama.cpp and loads the model."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a lock belongs to one event loop
            self._loop, self._turn = loop, asyncio.Lock()
        async with self._turn:
            if not self._worker.address:
                self._check_memory()
                report(CallProgress("loading"))
            worker = await self._worker.serving(self._timeout_s)
            client = await self._client_of(worker.address)
            try:
                return await client.complete(request)
            except ModelError as error:
                if TOO_LONG in error.message:
                    found = re.search(r"\((\d+) tokens\)", error.message)
                    size = f"{int(found[1]):,} tokens" if found else "more tokens"
                    trained = self._header.trained
                    help = "shorten the prompt (--nearest 2, --context retrieve), or use a model with a larger window"
                    if (self.window or 0) < trained:
                        help = f"use --window {trained}, the training window, or shorten the prompt: --nearest 2"
                    raise ModelError(
                        f"the prompt has {size}; the window of {self._path.name} has {self.window:,}",
                        kind="bad_request",
                        help=help,
                    ) from None
                if error.kind != "transport" or not await worker.has_ended():
                    raise
            worker.stop()
            raise ModelError(
                f"llama.cpp crashed on a request to {self._path}: {worker.last_error()}",
                kind="transport",
                help="the next request restarts it; a smaller --window needs less memory",
            )

    async def aclose(self) -> None:
        """Stop the process; a later request restarts it."""
        client, self._client = self._client, None
        try:
            await self.tokenizer.aclose()
            if client:
                await client[1].aclose()
        finally:
            self._worker.stop()

    async def _client_of(self, address: str) -> OpenAIModel:
        """The client of the process at an address."""
        if self._client and self._client[0] != address:
            await self._client[1].aclose()  # its process has ended
            self._client = None
        if self._client is None:
            assert self.window
            endpoint = Endpoint(f"{address}/v1", self._path.stem, self._key)
            # This llama.cpp is built with llguidance, which emits whole characters only.
            server = servers.load("llguidance")
            from pearl.contrib.llamacpp.streaming import StreamingWire  # late: it imports ssl

            client = OpenAIModel(
                endpoint, self._timeout_s, self.window, server, new_wire=StreamingWire
            )
            self._client = address, client
        return self._client[1]

    def _check_memory(self) -> None:
        assert self.window
        available = available_bytes()
        lack = None if available is None else memory_advice(self._header, self.window, available)
        if lack is not None and not has_gpu():
            message = f"{self._path} does not fit into memory: {lack[0]}"
            raise ModelError(message, kind="bad_request", help=lack[1])


ABILITIES = Abilities("PATH.gguf", LlamaCppModel.constrains, "llamacpp", tokenizes=True)
