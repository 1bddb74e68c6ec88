"""Terms of passages → an inverted index in arrays: for each term, the passages that contain it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, partial
from itertools import chain, pairwise
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

        return Texts(np.frombuffer(bytes(self.data), np.uint8), np.array(self.starts, np.int64))


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


BATCH = 1 << 21  # Occurrences of terms that are buffered in a list

MAX_TOKENS = 1 << 20  # Maximum distinct tokens whose terms are cached

_PASSAGE_BITS = 32
"""An occurrence of a term is one number: the position of the term, followed by the passage in these bits."""


class _Columns(dict[str, tuple[int, ...]]):
    """Token → the numbers of its terms; each token is analysed once."""

    def __init__(self, analyse: Callable[[str], Iterable[str]]) -> None:
        self._analyse = analyse
        self.terms: dict[str, int] = {}

    def __missing__(self, token: str) -> tuple[int, ...]:
        terms = self.terms
        columns = tuple(terms.setdefault(term, len(terms)) for term in self._analyse(token))
        if len(token) <= MAX_LENGTH:
            self[token] = columns
        return columns


@dataclass(frozen=True, eq=False)
class Postings:
    """An inverted index of passages. The arrays may be mapped from a file."""

    names: Texts  # The terms, ordered by UTF-8 bytes
    starts: NDArray[np.int64]
    passages: NDArray[np.int32]
    counts: NDArray[Any]
    lengths: NDArray[np.int32]

    @classmethod
    def build(cls, texts: Iterable[str], stem: Stem = "english") -> Postings:
        """Index the texts of passages. No term contains a blank, so tokens are analysed separately."""
        return cls._of_tokens((text.split() for text in texts), partial(terms, stem=stem))

    @classmethod
    def of_terms(cls, passages: Iterable[Iterable[str]]) -> Postings:
        """Index passages given as terms."""
        return cls._of_tokens(passages, lambda term: (term,))

    @classmethod
    def _of_tokens(
        cls, passages: Iterable[Iterable[str]], analyse: Callable[[str], Iterable[str]]
    ) -> Postings:
        import numpy as np

        columns, lengths = _Columns(analyse), array("i")
        keys: list[NDArray[np.int64]] = []
        batch: list[int] = []
        first = 0

        def add_batch() -> None:
            passages = np.repeat(np.arange(first, len(lengths)), lengths[first:])
            keys.append(np.array(batch, np.int64) << _PASSAGE_BITS | passages)

        for tokens in passages:
            before = len(batch)
            batch += chain.from_iterable(map(columns.__getitem__, tokens))
            lengths.append(len(batch) - before)
            if len(batch) >= BATCH:
                add_batch()
                batch, first = [], len(lengths)
                if len(columns) > MAX_TOKENS:
                    columns.clear()
        add_batch()
        names = [encoded(term) for term in columns.terms]
        return cls._of(names, keys, np.array(lengths, np.int32))

    @classmethod
    def _of(
        cls, names: Sequence[bytes], keys: Sequence[NDArray[np.int64]], lengths: NDArray[np.int32]
    ) -> Postings:
        """Build the index from occurrences in any order: a key contains the position of a name, and a passage."""
        import numpy as np

        by_name = sorted(range(len(names)), key=names.__getitem__)
        places = np.empty(len(names), np.int64)
        places[by_name] = np.arange(len(names))
        low = (1 << _PASSAGE_BITS) - 1
        postings = np.concatenate([np.zeros(0, np.int64), *keys])
        postings = places[postings >> _PASSAGE_BITS] << _PASSAGE_BITS | postings & low
        postings.sort()
        first = np.flatnonzero(np.diff(postings, prepend=-1))
        counts = np.diff(first, append=len(postings))
        postings = postings[first]
        frequencies = np.bincount(postings >> _PASSAGE_BITS, minlength=len(names))
        used = np.flatnonzero(frequencies)  # A merge may have removed all passages of a term
        return cls(
            Texts.of([names[by_name[place]] for place in used.tolist()]),
            np.concatenate([[0], np.cumsum(frequencies[used])]),
            (postings & low).astype(np.int32),
            counts.astype(np.min_scalar_type(int(counts.max(initial=0)))),
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
        of_part = np.fromiter(names, np.int64, len(part.names))
        passages = new[part.passages]
        kept = passages >= 0
        terms = np.repeat(of_part, part.frequencies)
        every = terms[kept] << _PASSAGE_BITS | passages[kept]
        keys.append(np.repeat(every, part.counts[kept]))
        is_kept = new >= 0
        lengths[new[is_kept]] = part.lengths[is_kept]
    return Postings._of(list(columns), keys, lengths)
