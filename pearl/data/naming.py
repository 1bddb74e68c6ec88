"""Ids and names that rows claim: an id is of one row, a name of a document is of one text."""

from __future__ import annotations

from pearl.data.rows import Row

__all__ = ["Ids", "Names"]


class Ids:
    """Which row had an id first."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def claim(self, id: str, row: Row) -> str:
        """The id, for this row alone.

        Raises:
            DataError: An earlier row has it.
        """
        if id in self._lines:
            raise row.error(
                f"the id '{id}' is also that of line {self._lines[id]}", help="give it another"
            )
        self._lines[id] = row.line
        return id


class Names:
    """What the documents of a file are called: the same text always the same, no two texts the same.

    So names tell documents apart, and a text that many rows have is one document.
    """

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}  # by digest, since the texts together may be long
        self._taken: set[str] = set()

    def claim(self, digest: str, name: str, line: int) -> str:
        """The name of a text: what it was called first, with its line where another has that name.

        Args:
            digest: Of the text, in hexadecimal.
            name: What it is to be called.
            line: Of its row.

        Example:
            >>> names = Names()
            >>> [names.claim(*row) for row in [("0a", "a", 1), ("0a", "b", 2), ("0b", "a", 3)]]
            ['a', 'a', 'a, line 3']
        """
        key = bytes.fromhex(digest)[:16]  # half of the memory
        if key not in self._names:
            while name in self._taken:
                name = f"{name}, line {line}"
            self._taken.add(name)
            self._names[key] = name
        return self._names[key]
