"""Code blocks of the pages, each with what its first line says: a language and marks.

| first line | what is tested |
|---|---|
| `sh` | runs: the blocks of a page, one after the other, in one shell |
| `sh server` | needs a server, a model or a network: every command is parsed, its files are there |
| `sh setup` | sets up an environment: targets and extras exist |
| `python` | runs; `python server` is compiled, what it imports is there; `python service` is run by uvicorn, `python columns` by tests/contrib/cluster |
| `text` | below `sh` or `python`: what that printed, with gaps at lines of `...` |
| `text example`, `text printed` | an illustration; what a generator of a page printed |
| `plan`, `actions` | valid; `broken` ones trigger what the page is about |
| `json`, `toml`, `lark` | can be read |
| `js`, `lisp`, `lua` | settings of editors, which are not here: their brackets match |
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.root import ROOT

KINDS = {
    "sh", "sh server", "sh setup", "python", "python server", "python service", "python columns", "text", "text example", "text printed",
    "plan", "plan broken", "actions", "actions broken", "json", "toml", "lark",
    "js", "lisp", "lua",
}  # fmt: skip
"""Every first line that there may be."""

GENERATED = {"docs/cli.md"}
"""Pages of which a test says that they are what a generator writes; their blocks have no language."""

PAGES = [
    path
    for path in (
        *sorted(ROOT.glob("*.md")),
        *sorted(ROOT.glob("docs/**/*.md")),
        *sorted(ROOT.glob("experiments/*.md")),
    )
    if path.relative_to(ROOT).as_posix() not in GENERATED
]

_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```[ ]*$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    page: Path
    line: int
    kind: str
    text: str

    @property
    def place(self) -> str:
        """Where it stands, as a test is called."""
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match[1].strip(), match[2])
        for match in _BLOCK.finditer(text)
    ]


def all_blocks(*kinds: str) -> Iterator[Block]:
    """Blocks of all pages, of these kinds or of any."""
    for page in PAGES:
        yield from (block for block in blocks_of(page) if not kinds or block.kind in kinds)


def is_told(wanted: str, printed: str) -> bool:
    """Whether all lines of a block are printed: in order, together but for gaps at lines of `...`."""
    at = 0
    for chunk in re.split(r"^\.\.\.\n", wanted, flags=re.M):
        found = printed.find(chunk.strip("\n"), at)
        if found < 0:
            return False
        at = found + len(chunk.strip("\n"))
    return True
