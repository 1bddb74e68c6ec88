"""`pearl doctor`: checks the model, the installation, the store and the settings."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec import Struct
from msgspec.structs import asdict

from pearl.cli.options import CONFIG, as_json, setting_options, store_option
from pearl.errors import PearlError
from pearl.errors.escaping import redacted, to_json, visible
from pearl.plugins.version import __version__
from pearl.settings import ROLES

if TYPE_CHECKING:
    from pearl.llm.client import ClientSettings

_MARKS = {"ok": "ok", "missing": "-", "failed": "FAILED"}


@click.command()
@setting_options("model", "base_url", "api_key_env", "server", "window", "timeout_s", *ROLES)
@store_option
@as_json
def command(store: str | None, as_json: bool, **settings: Any) -> int:
    """Check whether PEARL works here.

    The checks: model, names of keys, extras, store, settings. It costs nothing: servers
    are only asked for their lists of models. Exit code 1 if a necessary part does not work.
    """
    checks = list(run_checks(settings, store))
    if as_json:
        click.echo(to_json([asdict(check) for check in checks], indent=2))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            click.echo(f"{_MARKS[check.status]:<6} {check.name:<{width}}  {check.about}")
            if check.help:
                click.echo(f"{'':<{width + 9}}{check.help}")
    return 1 if any(check.status == "failed" for check in checks) else 0


class Check(Struct, frozen=True):
    """The result of one check."""

    name: str
    status: Literal["ok", "missing", "failed"]
    about: str
    help: str = ""


def run_checks(settings: Mapping[str, Any], store: str | None) -> Iterator[Check]:
    """Run all checks in order."""
    from pearl.llm.client import ClientSettings, role_settings

    folder = Path(__file__).parents[2]
    yield Check("pearl", "ok", f"{__version__} in {folder}, Python {platform.python_version()}")
    names = ("base_url", "api_key_env", "server", "window", "timeout_s")
    main = ClientSettings(settings["model"], **{name: settings[name] for name in names})
    yield _model("model", main)
    for role in ROLES:  # their servers answer, without a paid call
        if settings[role]:
            yield _model(role.replace("_", " "), role_settings(main, settings[role]))
    yield from _servers()
    yield _keys()
    yield from _extras()
    yield _store(store)
    yield from _files()


def _model(what: str, settings: ClientSettings) -> Check:
    async def models_of(model: Any) -> list[str] | None:
        """The models that the server lists; None for a model without a server."""
        try:
            return await model.served() if hasattr(model, "served") else None
        finally:
            await model.aclose()

    try:
        model = settings.create_model()
        about = model.notice or f"{model.name}, in this process"
        served = asyncio.run(models_of(model))
    except PearlError as error:
        return Check(what, "failed", error.message, error.help or "")
    window = "" if model.window is None else f"; window {model.window:,} tokens"
    if served is None:
        return Check(what, "ok", about + window)
    name = model.name.partition(":")[2]
    if served and name not in served:
        shown = ", ".join(sorted(served)[:5]) + (", ..." if len(served) > 5 else "")
        return Check(what, "failed", f"{about}: the server has no {name}", f"it has {shown}")
    listed = f"it answers and lists {name}" if served else "it answers, without model names"
    return Check(what, "ok", f"{about}: {listed}{window}")


def _servers() -> Iterator[Check]:
    """Check the servers of this machine at their usual addresses, without sending a key."""
    from pearl.llm.overview import running_servers

    found = asyncio.run(running_servers())
    for each in found:
        if each.failure:
            continue
        names = [visible(model.id) for model in each.models]
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        about = f"{each.address} has {shown}" if names else f"{each.address} lists no models"
        help = f"--model {each.name}:{names[0]}" if names else ""
        yield Check(f"server {each.name}", "ok", about, help)
    absent = [f"{each.name} ({each.address})" for each in found if each.failure]
    if absent:
        yield Check("servers", "missing", f"not running: {', '.join(absent)}")


def _keys() -> Check:
    """List the variables that hold keys, without the keys."""
    from pearl.llm.backends import providers
    from pearl.llm.backends.openai.endpoint import ANY_KEY, KEY_VARIABLE
    from pearl.llm.overview import key_is_set

    known = [ANY_KEY, KEY_VARIABLE, *(each.key for each in providers().values() if each.key)]
    there = [name for name in known if key_is_set(name)]
    if there:
        return Check("keys", "ok", ", ".join(there))
    help = "the embedded model and those on this machine need none; others: docs/servers.md"
    return Check("keys", "missing", "no key is set", help)


def _extras() -> Iterator[Check]:
    from pearl.plugins.extras import extras, install_hint

    found = extras()
    if there := [name for name, missing in found.items() if not missing]:
        yield Check("extras", "ok", ", ".join(there))
    for name, missing in found.items():
        if missing:
            about = f"{', '.join(missing)} not installed"
            yield Check(f"extra {name}", "missing", about, install_hint(name))


def _store(store: str | None) -> Check:
    from pearl.cli.options import opened_folder

    try:
        folder = opened_folder(store)
    except PearlError as error:
        return Check("store", "failed", error.message, error.help or "")
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        return Check("store", "failed", f"{nearest} cannot be written to", "name another: --store")
    if not folder.exists():
        return Check("store", "ok", f"{folder}, which the first run creates")
    size = sum(each.stat().st_size for each in folder.iterdir() if each.is_file())
    return Check("store", "ok", f"{size / 1e6:.1f} MB in {folder}")


def _files() -> Iterator[Check]:
    """List the settings files, and each setting that is not the default, with its origin."""
    from pearl.cli.settings import read_settings, settings_in_force

    context = click.get_current_context()
    files = read_settings(context.meta.get(CONFIG))
    for file in files:
        if file.is_trusted:
            yield Check("settings", "ok", f"{file.path} sets {', '.join(file.values)}")
        else:
            help = "read it, then run pearl config trust"
            yield Check("settings", "missing", f"{file.path} is not trusted", help)
    changed = [row for row in settings_in_force(context, files) if row["from"]]
    for row in changed:
        value = redacted(str(row["value"]))
        yield Check(f"setting {row['setting']}", "ok", f"{visible(value)}, from {row['from']}")
    if not files and not changed:
        yield Check(
            "settings", "ok", "no file or variable changes a setting; pearl config show lists all"
        )
