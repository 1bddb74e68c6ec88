"""Many strings as UTF-8 in two arrays, which may be mapped from a file."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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

    @classmethod
    def read(cls, name: str, arrays: Mapping[str, NDArray[Any]]) -> Texts:
        """The strings that `arrays` stored under a name."""
        return cls(arrays[f"{name}.data"], arrays[f"{name}.starts"])

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays to be stored."""
        return {f"{name}.data": self.data, f"{name}.starts": self.starts}

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
