"""Code blocks of the pages, each with what its first line says: a language and marks.

| first line | what is tested |
|---|---|
| `sh` | runs: the blocks of a page, one after the other, in one shell |
| `sh server` | needs a server, a model or a network: every command is parsed, its files are there |
| `sh setup` | sets up an environment: targets and extras exist |
| `python` | runs; `python server` is compiled, what it imports is there; `python service` is run by uvicorn, `python columns` by tests/contrib |
| `text` | below `sh` or `python`: what that printed, with gaps at lines of `...` |
| `text example`, `text printed` | an illustration; what a generator of a page printed |
| `plan`, `actions` | valid |
| `json`, `toml`, `lark` | can be read |
| `js`, `lisp`, `lua` | settings of editors, which are not here: their brackets match |
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from pearl.cli import group
from pearl.errors.privacy import privacy_restored
from tests.root import ROOT

KINDS = {
    "sh", "sh server", "sh setup", "python", "python server", "python service", "python columns", "text", "text example", "text printed",
    "plan", "actions", "json", "toml", "lark", "js", "lisp", "lua",
}  # fmt: skip
"""Every first line that there may be."""
PAGES = [
    path
    for pattern in ("*.md", "docs/*.md", "experiments/*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.name != "cli.md"  # it is generated, and its blocks have no language
]
OUTPUTS = {"-o", "--out", "--page", "--report", "--rows", "--trace"}
"""Options that name what a command writes."""
OPERATORS = {"|", "&&", "||", ";", "<", ">", ">>", "&"}

_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```[ ]*$", re.M | re.S)  # ```sh\npearl demo\n```
_FILE = re.compile(  # reports/, why.plan, 'notes/*.md'
    r"[\w.*-][\w./*-]*(?:/|\.(?:txt|md|html|pdf|docx|xlsx|csv|jsonl|json|plan|actions|gguf|eval))"
)


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


def is_printed(wanted: str, printed: str) -> bool:
    """Whether all lines of a block are printed: in order, together but for gaps at lines of `...`."""
    end = 0
    for chunk in re.split(r"^\.\.\.\n", wanted, flags=re.M):
        start = printed.find(chunk.strip("\n"), end)
        if start < 0:
            return False
        end = start + len(chunk.strip("\n"))
    return True


def commands(block: str) -> Iterator[list[str]]:
    """The words of every command of a block, without comments, variables and here documents."""
    text = re.sub(r"<<'?(\w+)'?\n.*?^\1$", "", block, flags=re.M | re.S).replace("\\\n", " ")
    for line in text.splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split, words.commenters = True, "#"
        command: list[str] = []
        for word in [*words, ";"]:
            if word not in OPERATORS:
                command.append(word)
                continue
            while command and re.match(r"[A-Z_]+=", command[0]):
                del command[0]
            if command and command[0] != "export":
                yield command
            command = []


def pearl_commands(block: str) -> Iterator[list[str]]:
    """The arguments of every call of `pearl`."""
    for command in commands(block):
        if Path(command[0]).name == "pearl":
            yield command[1:]


def parse(args: list[str]) -> None:
    """Parse a command line as `pearl` does, and run nothing."""
    command: click.Command = group
    context, rest = click.Context(group, info_name="pearl", **group.context_settings), args
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert name is not None
        assert found is not None
        command, context = found, click.Context(found, parent=context, info_name=name)
    with privacy_restored():
        command.make_context(command.name, list(rest), parent=context.parent)


def files_of(args: list[str]) -> tuple[set[str], set[str]]:
    """The files and folders that a command reads, and those that it writes."""
    pairs = list(zip(["", *args], args, strict=False))
    written = {word for before, word in pairs if before in OUTPUTS}
    return {word for before, word in pairs if before not in OUTPUTS and _FILE.fullmatch(word)}, written  # fmt: skip
