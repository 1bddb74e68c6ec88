"""Terms of passages → an inverted index in arrays: for each term, the passages that contain it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pearl.documents.passages import MAX_LENGTH, Stem, terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Texts:
    """Strings in one array, with the start of each."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Iterable[str | bytes]) -> Texts:
        """Store strings in two arrays."""
        builder = TextsBuilder()
        for text in texts:
            builder.add(text)
        return builder.finish()

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> str:
        return self.part(number, 0, None)

    def part(self, number: int, start: int, end: int | None) -> str:
        """A string, or its part between two byte offsets."""
        return self._bytes(number, start, end).decode("utf-8", "replace")

    def _bytes(self, number: int, start: int = 0, end: int | None = None) -> bytes:
        begin = int(self.starts[number])
        stop = int(self.starts[number + 1]) if end is None else begin + end
        return self.data[begin + start : stop].tobytes()

    def find(self, text: bytes) -> int | None:
        """The position of a string, by binary search in sorted strings; None if it is missing."""
        place = bisect_left(range(len(self)), text, key=self._bytes)
        return place if place < len(self) and self._bytes(place) == text else None

    def every(self) -> list[bytes]:
        """All strings, as UTF-8 bytes."""
        data, starts = self.data.tobytes(), self.starts.tolist()
        return [data[start:end] for start, end in pairwise(starts)]


class TextsBuilder:
    """Collects strings."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.starts = array("q", [0])

    def add(self, text: str | bytes) -> None:
        """Add a string, or its UTF-8 bytes."""
        self.data += text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        self.starts.append(len(self.data))

    def finish(self) -> Texts:
        """Return all strings."""
        import numpy as np

        return Texts(np.frombuffer(self.data, np.uint8), np.frombuffer(self.starts, np.int64))


def flat(value: Any, prefix: str = "") -> dict[str, NDArray[Any]]:
    """The arrays of a dataclass and of nested dataclasses, by dotted names."""
    arrays: dict[str, NDArray[Any]] = {}
    for each in fields(value):
        part = getattr(value, each.name)
        if is_dataclass(part):
            arrays |= flat(part, f"{prefix}{each.name}.")
        elif hasattr(part, "dtype"):
            arrays[f"{prefix}{each.name}"] = part
    return arrays


def nested(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Convert arrays with dotted names to nested dictionaries: the arguments of the dataclasses."""
    found: dict[str, Any] = {}
    for name, values in arrays.items():
        *path, last = name.split(".")
        inside = found
        for part in path:
            inside = inside.setdefault(part, {})
        inside[last] = values
    return found


BATCH = 1 << 19  # Occurrences of terms that are buffered in a list, or merged at once

MAX_TOKENS = 1 << 20  # Maximum terms of the cached tokens

_PASSAGE_BITS = 32
"""An occurrence of a term is one number: the position of the term, followed by the passage in these bits."""


class _Tokens(dict[str, int]):
    """Token → its number; each token is analysed once. `columns[starts[n]:starts[n + 1]]` are the numbers of its terms."""

    def __init__(self, analyse: Callable[[str], Iterable[str]]) -> None:
        self._analyse = analyse
        self.terms: dict[str, int] = {}
        self.columns, self.starts = array("q"), array("q", [0])

    def __missing__(self, token: str) -> int:
        terms, number = self.terms, len(self.starts) - 1
        self.columns.extend(terms.setdefault(term, len(terms)) for term in self._analyse(token))
        self.starts.append(len(self.columns))
        if len(token) <= MAX_LENGTH:
            self[token] = number
        return number

    def forget(self) -> None:
        """Forget the tokens, but not the terms."""
        self.clear()
        self.columns, self.starts = array("q"), array("q", [0])


@dataclass(frozen=True, eq=False)
class Postings:
    """An inverted index of passages. The arrays may be mapped from a file."""

    names: Texts  # The terms, ordered by UTF-8 bytes
    starts: NDArray[np.int64]
    passages: NDArray[np.int32]
    counts: NDArray[Any]
    lengths: NDArray[np.int32]

    @classmethod
    def _of(
        cls, names: Sequence[bytes], keys: list[NDArray[np.int64]], lengths: NDArray[np.int32]
    ) -> Postings:
        """Build the index from occurrences in any order; each key combines the position of a name with a passage. Empties `keys`."""
        import numpy as np

        by_name = sorted(range(len(names)), key=names.__getitem__)
        places = np.empty(len(names), np.int64)
        places[by_name] = np.arange(len(names))
        low = (1 << _PASSAGE_BITS) - 1
        n = sum(map(len, keys))
        postings = np.empty(n, np.int64)
        end = 0
        while keys:  # One by one, because they take as much memory as the result
            some = keys.pop()
            end += len(some)
            postings[end - len(some) : end] = (
                places[some >> _PASSAGE_BITS] << _PASSAGE_BITS | some & low
            )
        postings.sort()
        is_first = np.ones(n, np.bool_)
        np.not_equal(postings[1:], postings[:-1], out=is_first[1:])
        first = np.flatnonzero(is_first).astype(np.min_scalar_type(n))
        postings = postings[is_first]
        counts = np.diff(first, append=first.dtype.type(n))
        counts = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
        starts = np.searchsorted(postings, np.arange(len(names) + 1) << _PASSAGE_BITS)
        used = np.flatnonzero(np.diff(starts))  # A merge may have removed all passages of a term
        return cls(
            Texts.of([names[by_name[place]] for place in used.tolist()]),
            np.append(starts[used], len(postings)),
            postings.astype(np.int32),  # The low bits
            counts,
            lengths,
        )

    @property
    def n_passages(self) -> int:
        """The number of passages."""
        return len(self.lengths)

    @cached_property
    def mean_length(self) -> float:
        """Mean length of the passages in terms; 0 if there are none."""
        return int(self.lengths.sum(dtype="int64")) / len(self.lengths) if self.n_passages else 0.0

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """The number of passages with each term."""
        return self.starts[1:] - self.starts[:-1]

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """The passages that contain a term, ascending, and how often each contains it."""
        column = self.names.find(encoded(term))
        if column is None:
            return self.passages[:0], self.counts[:0]
        within = slice(int(self.starts[column]), int(self.starts[column + 1]))
        return self.passages[within], self.counts[within]


class PostingsBuilder:
    """Collects the terms of passages; without a `stem`, the passages are already given as terms."""

    def __init__(self, stem: Stem | None) -> None:
        self._tokens = _Tokens(
            (lambda term: (term,)) if stem is None else partial(terms, stem=stem)
        )
        self._keys: list[NDArray[np.int64]] = []
        self._lengths: list[NDArray[np.int32]] = []
        self._n_stored = 0
        self._batch: list[int] = []
        self._ends = array("q", [0])  # of the passages within the batch

    def add(self, text: str) -> None:
        """Add a passage. No term contains a blank, so tokens are analysed separately."""
        self.add_tokens(text.split())

    def add_tokens(self, tokens: Iterable[str]) -> None:
        """Add a passage, as its tokens."""
        self._batch += map(self._tokens.__getitem__, tokens)
        self._ends.append(len(self._batch))
        if len(self._batch) >= BATCH or len(self._tokens.columns) >= MAX_TOKENS:
            self._store()

    def _store(self) -> None:
        """Convert the buffered passages to keys: the number of a term, followed by that of the passage."""
        import numpy as np

        tokens, n = np.array(self._batch, np.int64), len(self._ends) - 1
        starts, columns = np.array(self._tokens.starts), np.array(self._tokens.columns)
        sizes = np.diff(starts)[tokens]
        ends = np.cumsum(sizes)
        places = np.repeat(starts[tokens] - (ends - sizes), sizes) + np.arange(sizes.sum())
        passages = np.repeat(np.repeat(np.arange(n), np.diff(self._ends)), sizes)
        self._lengths.append(np.bincount(passages, minlength=n).astype(np.int32))
        self._keys.append(columns[places] << _PASSAGE_BITS | passages + self._n_stored)
        self._batch, self._ends = [], array("q", [0])
        self._n_stored += n
        if len(columns) >= MAX_TOKENS:
            self._tokens.forget()

    def finish(self) -> Postings:
        """Return the index; the builder cannot be used afterwards."""
        import numpy as np

        self._store()
        names = [encoded(term) for term in self._tokens.terms]
        self._tokens.forget()
        return Postings._of(names, self._keys, np.concatenate(self._lengths))


def encoded(term: str) -> bytes:
    """A term as bytes, as it is stored."""
    return term.encode("utf-8", "surrogatepass")


def merge(parts: Sequence[Postings], numbers: Sequence[NDArray[np.int64]]) -> Postings:
    """Merge indexes; the result equals a rebuilt index. `numbers` has the new passage numbers per part; -1 removes a passage."""
    import numpy as np

    columns: dict[bytes, int] = {}
    lengths = np.zeros(sum(int((new >= 0).sum()) for new in numbers), np.int32)
    keys: list[NDArray[np.int64]] = []
    for part, new in zip(parts, numbers, strict=True):
        names = (columns.setdefault(name, len(columns)) for name in part.names.every())
        of_part = np.fromiter(names, np.int64, len(part.names)) << _PASSAGE_BITS
        cuts = np.searchsorted(part.starts, np.arange(0, len(part.passages), BATCH)).tolist()
        for begin, end in pairwise([*cuts, len(of_part)]):
            within = slice(int(part.starts[begin]), int(part.starts[end]))
            passages = new[part.passages[within]]
            every = np.repeat(of_part[begin:end], part.frequencies[begin:end]) | passages
            kept = passages >= 0
            keys.append(np.repeat(every[kept], part.counts[within][kept]))
        is_kept = new >= 0
        lengths[new[is_kept]] = part.lengths[is_kept]
    return Postings._of(list(columns), keys, lengths)
