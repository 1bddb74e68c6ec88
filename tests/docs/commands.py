"""Command lines of code blocks: read as a shell reads them, and parsed as `pearl` parses them."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from pearl.cli import group
from pearl.errors.privacy import privacy_restored

OUTPUTS = {"-o", "--out", "--page", "--report", "--rows", "--trace"}
"""Options that name what a command writes."""
OPERATORS = {"|", "&&", "||", ";", "<", ">", ">>", "&"}

_EXIT_CODE = re.compile(r"#.*exit code (\d+)")
_FILE = re.compile(
    r"[\w.*-][\w./*-]*(?:/|\.(?:txt|md|html|pdf|docx|xlsx|csv|jsonl|json|plan|actions|gguf|eval))"
)


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


def exit_codes(block: str) -> list[int]:
    """The codes other than 0 that comments foretell, in order."""
    return [int(code) for code in _EXIT_CODE.findall(block)]


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


def files_read(args: list[str]) -> Iterator[str]:
    """The files and folders that a command names and does not write."""
    before = ""
    for word in args:
        if before not in OUTPUTS and _FILE.fullmatch(word):
            yield word
        before = word


def files_written(args: list[str]) -> Iterator[str]:
    """The files that a command is told to write."""
    yield from (word for before, word in itertools.pairwise(args) if before in OUTPUTS)
