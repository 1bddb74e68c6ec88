"""`pearl lsp`: a language server for plan files and action files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pearl.cli.options import CONFIG, setting_options
from pearl.cli.settings import defaults, read_settings
from pearl.cli.terminal import notice
from pearl.errors import UsageError
from pearl.plugins.extras import require_extra
from pearl.plugins.files import is_inside

if TYPE_CHECKING:
    from pearl.contrib.editor.features import KnownActions


@click.command()
@setting_options("domain", "library")
@click.option("--stdio", is_flag=True, expose_value=False, hidden=True)  # some editors pass it
@click.pass_context
def command(ctx: click.Context, library: str | None, domain: str) -> int:
    """Serve an editor by the Language Server Protocol.

    The protocol runs over stdin and stdout. It reports the diagnostics of `pearl check`, and
    completes, explains and formats. Options here, settings of the editor, or the
    pearl.toml of the project choose the library.
    """
    require_extra("lsp", "pearl lsp", "pygls")
    from pearl.contrib.editor.server import serve

    said = {
        name: value
        for name, value in (("library", library), ("domain", domain))
        if value and ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    config = ctx.meta.get(CONFIG)
    if sys.stdin.isatty():
        notice("this command is started by an editor: docs/editor.md; Ctrl-D ends it")
    # Duplicates, because the server closes them. Accidental prints go to stderr.
    with (
        os.fdopen(os.dup(sys.stdin.fileno()), "rb") as stdin,
        os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stdout,
        redirect_stdout(sys.stderr),
    ):
        serve(
            lambda folder, options: _actions_for(folder, {**options, **said}, config, set(said)),
            stdin,
            stdout,
        )
    return 0


def _actions_for(
    folder: Path, said: Mapping[str, str], config: str | None, here: set[str]
) -> KnownActions:
    """The actions that `pearl check` would use in the folder of a project."""
    from pearl.actions.library import library_names
    from pearl.contrib.editor.features import known_actions
    from pearl.data.domains import load_domain

    values: dict[str, Any] = dict(said)
    if "library" not in said:
        values = {**defaults(read_settings(config, folder)), **said}
    for name in ("library", "domain"):
        if callable(values.get(name)):
            values[name]()  # raises: an untrusted file sets it
    library = str(
        values.get("library") or load_domain(str(values.get("domain", "generic"))).library
    )
    if "library" in here or library in library_names():
        return known_actions(library)
    path = folder / library
    if "library" in said and not is_inside(path, folder):
        raise UsageError(
            f"the editor names a library outside the project: {library}",
            help="name it when the server starts: pearl lsp --library FILE",
        )
    return known_actions(str(path))
