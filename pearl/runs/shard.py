"""One of n parts of the work: for schedulers that start processes, and no more.

Which part a unit belongs to is told by its `shard_key` alone, so every machine that reads the same input
agrees. Each part keeps its rows in a store; `pearl runs merge` unites the stores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from pearl.documents.digest import text_sha256
from pearl.errors import UsageError
from pearl.runs.executors import Unit

U = TypeVar("U", bound=Unit)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` of `n`, counted from 1.

    Example:
        >>> [Shard(i, 3).takes("q17") for i in (1, 2, 3)]
        [False, False, True]
    """

    index: int
    n: int

    def __post_init__(self) -> None:
        if self.n < 1 or not 1 <= self.index <= self.n:
            raise UsageError(
                f"there is no shard {self.index} of {self.n}",
                help=f"they are 1/{self.n} to {self.n}/{self.n}" if self.n > 0 else "1/1 is all",
            )

    def __str__(self) -> str:
        return f"{self.index}/{self.n}"

    def takes(self, key: str) -> bool:
        """Whether a unit of this `shard_key` belongs to this part; it belongs to exactly one of the n."""
        return int(text_sha256(key)[:16], 16) % self.n == self.index - 1

    def of(self, units: Iterable[U]) -> Iterator[tuple[int, U]]:
        """The units of this part, each with its place in the whole work, from 0.

        Rows that are kept under these places come in the order of the input once the parts are
        merged. Two units of one id are in the same part.
        """
        return ((place, unit) for place, unit in enumerate(units) if self.takes(unit.shard_key))


def parse_shard(text: str) -> Shard:
    """The shard that `i/n` names.

    Example:
        >>> parse_shard("2/7")
        Shard(index=2, n=7)
    """
    said = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text, re.ASCII)
    if said is None:
        raise UsageError(
            f"'{text[:40]}' is no shard", help="i/n with i from 1 to n: the first of 8 is 1/8"
        )
    return Shard(int(said[1]), int(said[2]))
