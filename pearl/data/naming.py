"""Unique ids of rows and unique names of documents."""

from __future__ import annotations

from pearl.data.rows import Row


class Names:
    """Registry of the ids of a file, and of the names of its documents.

    Equal texts share a name, different texts never do: a name identifies a document.
    """

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self._names: dict[bytes, str] = {}  # by digest, since the texts together may be long
        self._taken: set[str] = set()

    def claim_id(self, id: str, row: Row) -> str:
        """Register an id for a row and return it."""
        if id in self._lines:
            raise row.error(
                f"the id '{id}' is also that of line {self._lines[id]}", help="give it another"
            )
        self._lines[id] = row.line
        return id

    def claim(self, digest: str, name: str, line: int) -> str:
        """The name of a text, by its digest in hexadecimal: its first name, else with the line, too.

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
