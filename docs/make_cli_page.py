"""Writes docs/cli.md from the commands' own help. A test keeps the page and the help the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from pearl.cli import group
from pearl.cli.options import Command
from pearl.cli.settings import VARIABLES
from pearl.settings import SETTINGS, schema

PAGE = Path(__file__).with_name("cli.md")


def page() -> str:
    """The whole page."""
    names = group.list_commands(click.Context(group))
    parts = [
        "# Command line",
        "This page is made from the commands' own help by `make docs`. Of commands with many options,\n"
        "`--help` shows the first ones, `--help-all` all of them.",
        _section(),
        *(_section(*path) for name in names for path in _commands(name)),
        _settings(),
    ]
    return "\n\n".join(parts) + "\n"


def _commands(name: str) -> Iterator[tuple[str, ...]]:
    """The command and, if it is a group, its own commands."""
    yield (name,)
    found = group.get_command(click.Context(group), name)
    if isinstance(found, click.Group):
        yield from ((name, other) for other in found.list_commands(click.Context(found)))


def _section(*names: str) -> str:
    """The help of a command with all its options."""
    command: click.Command = group
    for name in names:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name)  # type: ignore[assignment]
    flag = "--help-all" if isinstance(command, Command) and command.is_long else "--help"
    shown = CliRunner().invoke(group, [*names, flag], prog_name="pearl", terminal_width=100)
    return f"## {' '.join(['pearl', *names])}\n\n```\n{shown.output.rstrip()}\n```"


def _settings() -> str:
    """What may stand in files and in the environment."""
    ask = group.get_command(click.Context(group), "ask")
    assert ask
    rows = [
        f"| `{option.name}` | `{option.opts[0]}` | `{option.envvar}` | {_who(str(option.name))} |"
        for option in ask.params
        if option.name in SETTINGS
    ]
    of_settings = {str(option.envvar) for option in ask.params if option.name in SETTINGS}
    others = ", ".join(f"`{name}`" for name in sorted(VARIABLES - of_settings))
    head = (
        "| in a file | flag | variable | a `pearl.toml` of the working folder |\n|---|---|---|---|"
    )
    told = f"Other variables: {others}. Which file comes when: [security.md](security.md)."
    return "\n".join(["## Settings", "", head, *rows, "", told])


def _who(name: str) -> str:
    told = {"user": "never", "trusted": "once it is trusted", "anyone": "may say it"}
    return told[schema()[name][1].set_by]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
