"""Header of a GGUF file: window, chat template and memory of a model before it is loaded.

Unreadable files are detected here, before the child process of llama.cpp starts.
"""

from __future__ import annotations

import mmap
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pearl.errors import DataError

MAGIC = b"GGUF"
VERSIONS = (2, 3)  # Supported versions; llama.cpp dropped version 1, which has 32-bit counts.
MAX_KEY_LENGTH = 65_535
MAX_DEPTH = 4  # Maximum nesting of arrays; real files have no nested ones

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # fmt: skip
"""Type of a value → how `struct` reads it."""

_STRING, _ARRAY = 8, 9

HELP = "name a complete language model in the GGUF format; of a split model, its first file"
# Maximum bytes searched for the chat template, which follows the vocabulary
MAX_METADATA = 256 * 2**20
_TEMPLATE = struct.pack("<Q", len(b"tokenizer.chat_template")) + b"tokenizer.chat_template"
_CACHED_NUMBER_BYTES = 2  # llama.cpp keeps keys and values in 16 bits.


@dataclass(frozen=True, slots=True)
class Header:
    """Contents of the header of a model file."""

    trained: int
    has_template: bool
    bytes_a_token: int
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
        return Header(trained, self._has_template(), _bytes_a_token(numbers), self._size)

    def _has_template(self) -> bool:
        with mmap.mmap(self._file.fileno(), min(self._size, MAX_METADATA), access=mmap.ACCESS_READ) as data:  # fmt: skip
            return data.find(_TEMPLATE) >= 0

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


def _bytes_a_token(numbers: dict[str, int]) -> int:
    """Bytes of memory per token of the context window; 0 if unknown."""
    if "attention.sliding_window" in numbers:
        return 0
    heads = numbers.get("attention.head_count", 0)
    length = numbers.get("embedding_length", 0) // heads if heads > 0 else 0
    key = numbers.get("attention.key_length", length)
    value = numbers.get("attention.value_length", length)
    layers, kept = numbers.get("block_count", 0), numbers.get("attention.head_count_kv", 0)
    return max(0, _CACHED_NUMBER_BYTES * layers * kept * (key + value))


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
    """The number after a name at the beginning of a line."""
    lines = map(str.split, path.read_text().splitlines())
    return int(next((words[1] for words in lines if words[0] == name), ""))


def has_gpu() -> bool:
    """Whether llama.cpp would use a GPU, whose memory is not counted here."""
    import xllamacpp

    return any(device["name"] != "CPU" for device in xllamacpp.get_device_info())


def _gib(n: int) -> str:
    return f"{n / 2**30:,.1f} GiB"
