"""Writes docs/cli.md from the commands' own help. A test keeps the page and the help the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from pearl.cli import group
from pearl.cli.options import GROUPS
from pearl.cli.settings import VARIABLES
from pearl.settings import SETTINGS, schema

PAGE = Path(__file__).with_name("cli.md")
N_SHARED = 2
"""An option that this many commands describe in the same words is described once, at the end."""
HEAD = """\
# Command line

`make docs` makes this page from the commands' own help. Each command names the [options that it shares](#shared-options) with others and
describes the rest. `pearl COMMAND --help` shows the first options of a command, `--help-all` all of them."""

Record = tuple[str, str]
GROUP_OF: dict[str, str] = {}
"""Option → its group in the help."""


def page() -> str:
    """The whole page."""
    commands = dict(_commands(group, ("pearl",)))
    records = {name: dict(_options(command, name)) for name, command in commands.items()}
    counts = Counter(
        (option, record) for found in records.values() for option, record in found.items()
    )
    shared = {option: record for (option, record), n in counts.items() if n >= N_SHARED}
    sections = [_section(name, commands[name], records[name], shared) for name in commands]
    return "\n\n".join([HEAD, *sections, _shared(shared), _settings()]) + "\n"


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    """The command and, of a group, its own commands: by what is typed."""
    yield " ".join(path), command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found
            yield from _commands(found, (*path, name))


def _options(command: click.Command, name: str) -> Iterator[tuple[str, Record]]:
    """The visible options but for `--help`, each with its flags and its description."""
    context = click.Context(command, info_name=name, **command.context_settings)
    for param in command.params:
        if isinstance(param, click.Option) and (record := param.get_help_record(context)):
            option = str(param.name) + param.opts[0]
            GROUP_OF[option] = getattr(param, "group", "") or GROUP_OF.get(option, "")
            yield option, record


def _section(
    name: str, command: click.Command, records: dict[str, Record], shared: dict[str, Record]
) -> str:
    """The usage, the description, the options of the command alone, and the names of the others."""
    context = click.Context(command, info_name=name, **command.context_settings)
    formatter = click.HelpFormatter(width=100)
    command.format_usage(context, formatter)
    command.format_help_text(context, formatter)
    own = [record for option, record in records.items() if shared.get(option) != record]
    if own:
        with formatter.section("Options"):
            formatter.write_dl(own)
    if isinstance(command, click.Group):
        command.format_commands(context, formatter)
    command.format_epilog(context, formatter)
    text = f"## {name}\n\n```\n{formatter.getvalue().rstrip()}\n```"
    others = {option for option, record in records.items() if shared.get(option) == record}
    return f"{text}\n\nShared: {_named(others, shared)}." if others else text


def _named(options: set[str], shared: dict[str, Record]) -> str:
    """Options by their names, or, if a command has all shared ones of a group, by that of the group."""
    parts = []
    for title, group_ in _grouped(shared).items():
        if options.issuperset(group_) and len(group_) > 1:
            parts.append(f"all under *{title}*")
        else:
            parts += [_flag(record) for option, record in group_.items() if option in options]
    return ", ".join(parts)


def _grouped(shared: dict[str, Record]) -> dict[str, dict[str, Record]]:
    """The shared options in the groups of the help; those of no group come last."""
    groups: dict[str, dict[str, Record]] = {title: {} for title in (*GROUPS[1:], "Others")}
    for option, record in shared.items():
        groups[GROUP_OF[option] or "Others"][option] = record
    return {title: options for title, options in groups.items() if options}


def _flag(record: Record) -> str:
    """The long flag of an option."""
    return next(f"`{part}`" for part in record[0].replace(",", " ").split() if part[:2] == "--")


def _shared(shared: dict[str, Record]) -> str:
    """The shared options, in the groups of the help."""
    formatter = click.HelpFormatter(width=100)
    for title, options in _grouped(shared).items():
        with formatter.section(title):
            formatter.write_dl(list(options.values()))
    return f"## Shared options\n\n```\n{formatter.getvalue().strip()}\n```"


def _settings() -> str:
    """What may stand in files and in the environment."""
    ask = group.get_command(click.Context(group), "ask")
    assert ask
    settings = [option for option in ask.params if option.name in SETTINGS]
    unlike = [
        f"`{option.opts[0]}` is `{option.name}`"
        for option in settings
        if option.opts[0] != "--" + str(option.name).replace("_", "-")
    ]
    others = VARIABLES - {str(option.envvar) for option in settings}
    return "\n".join(
        [
            "## Settings\n",
            "These options are settings: `--max-steps` is also the key `max_steps` of a settings file and the variable",
            f"`PEARL_MAX_STEPS`{''.join(f', {each}' for each in unlike)}. [Which file comes when](security.md#settings-found-in-a-folder).\n",
            f"- A `pearl.toml` of the working folder may set: {_set_by('anyone', settings)}.",
            f"- Once you trust it, also: {_set_by('trusted', settings)}.",
            f"- Never: {_set_by('user', settings)}.\n",
            f"Other variables: {', '.join(f'`{name}`' for name in sorted(others))}.",
        ]
    )


def _set_by(who: str, settings: Iterable[click.Parameter]) -> str:
    """The settings that `who` may set."""
    names = [str(option.name) for option in settings]
    return ", ".join(f"`{name}`" for name in names if schema()[name][1].set_by == who) or "none"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
