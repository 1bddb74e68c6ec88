"""Many strings as UTF-8 in two arrays, which may be mapped from a file."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Texts:
    """Strings one after the other, and where each begins."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Iterable[str | bytes]) -> Texts:
        """Strings in two arrays."""
        builder = TextsBuilder()
        for text in texts:
            builder.add(text)
        return builder.finish()

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> str:
        return self.part(number, 0, None)

    def part(self, number: int, start: int, end: int | None) -> str:
        """A string, or the part of it between two byte offsets."""
        return self._bytes(number, start, end).decode("utf-8", "replace")

    def _bytes(self, number: int, start: int = 0, end: int | None = None) -> bytes:
        begin = int(self.starts[number])
        stop = int(self.starts[number + 1]) if end is None else begin + end
        return self.data[begin + start : stop].tobytes()

    def find(self, text: bytes) -> int | None:
        """The place of a string by binary search, if the strings are sorted; None without it."""
        place = bisect_left(range(len(self)), text, key=self._bytes)
        return place if place < len(self) and self._bytes(place) == text else None

    def every(self) -> list[bytes]:
        """All strings, as UTF-8."""
        data, starts = self.data.tobytes(), self.starts.tolist()
        return [data[start:end] for start, end in pairwise(starts)]


class TextsBuilder:
    """Collects strings."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.starts = array("q", [0])

    def add(self, text: str | bytes) -> None:
        """Add a string, or its UTF-8."""
        self.data += text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        self.starts.append(len(self.data))

    def finish(self) -> Texts:
        """All of them."""
        import numpy as np

        return Texts(np.frombuffer(bytes(self.data), np.uint8), np.array(self.starts, np.int64))


def flat(value: Any, prefix: str = "") -> dict[str, NDArray[Any]]:
    """The arrays of a dataclass and of those inside of it, by dotted names."""
    arrays: dict[str, NDArray[Any]] = {}
    for each in fields(value):
        part = getattr(value, each.name)
        if is_dataclass(part):
            arrays |= flat(part, f"{prefix}{each.name}.")
        elif hasattr(part, "dtype"):
            arrays[f"{prefix}{each.name}"] = part
    return arrays


def nested(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Arrays by dotted names as dictionaries inside of dictionaries: the arguments of the dataclasses."""
    found: dict[str, Any] = {}
    for name, values in arrays.items():
        *path, last = name.split(".")
        inside = found
        for part in path:
            inside = inside.setdefault(part, {})
        inside[last] = values
    return found
