"""Settings in force, each with where it is from."""

from __future__ import annotations

import os
from typing import Any

import click
from click.core import ParameterSource

from pearl.cli.options import FOUND, SETTINGS
from pearl.cli.settings import SettingsFile, defaults, found_names


def settings_in_force(ctx: click.Context, files: list[SettingsFile]) -> list[dict[str, Any]]:
    """Every setting of `pearl ask` without flags: `setting`, `value`, and where it is `from`, "" for a default."""
    from pearl.cli.commands.ask import command as ask
    from pearl.llm.backends import address_variable

    ctx.meta[FOUND] = found_names(files)
    asked = ask.make_context(
        "ask", ["?", "-"], parent=ctx, default_map=defaults(files, refuse=lambda file: lambda: None)
    )
    rows = []
    for option in (each for each in ask.params if each.name in SETTINGS):
        name, where = str(option.name), ""
        source = asked.get_parameter_source(name)
        if source is ParameterSource.ENVIRONMENT:
            where = f"${option.envvar}"
        elif source is ParameterSource.DEFAULT_MAP:
            file = next(file for file in files if name in file.values)
            where = str(file.path) if file.may_set(name) else f"refused to {file.path}"
        value = asked.params[name]
        variable = address_variable(asked.params["model"] or "")
        if name == "base_url" and value is None and variable:
            value, where = os.environ[variable], f"${variable}"
        rows.append({"setting": name, "value": value, "from": where})
    return rows
