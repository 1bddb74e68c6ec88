"""`pearl fmt`: plan files and action files in canonical form."""

from __future__ import annotations

import click

from pearl.cli.files import Kind, kind_of, kind_option, read_input
from pearl.cli.options import as_json, option
from pearl.cli.terminal import notice
from pearl.cli.writing import new_file
from pearl.errors import DataError, LibraryError, PearlError, PlanSyntaxError
from pearl.errors.escaping import to_json


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@kind_option
@option("--check", bool, "Write nothing; exit code 1 if a file would change.")
@as_json
def command(files: tuple[str, ...], kind: Kind | None, check: bool, as_json: bool) -> int:
    """Rewrite plan files and action files in canonical form.

    The file - is stdin, and is written to stdout. `pearl check --fix` repairs what cannot be read.
    """
    reports: list[dict[str, object]] = []
    n_changed = n_broken = 0
    for name in files:
        text = read_input(name)
        try:
            formatted = canonical(text, kind_of(name, kind), "<stdin>" if name == "-" else name)
        except PearlError as error:
            n_broken += 1
            reports.append({"path": name, "status": "broken", "error": error.message})
            notice(str(error))
            continue
        changed = formatted != text
        n_changed += changed
        reports.append({"path": name, "status": "changed" if changed else "unchanged"})
        if check:
            if changed and not as_json:
                click.echo(f"would reformat {name}")
        elif changed if name != "-" else not as_json:
            with new_file(name) as file:  # text of stdin goes to stdout
                file.write(formatted)
    if as_json:
        click.echo(to_json(reports, indent=2))
    return 1 if n_broken or (check and n_changed) else 0


def canonical(text: str, kind: Kind, name: str) -> str:
    """The text of a file in canonical form; raises a `PearlError` if a line cannot be read."""
    from pearl.actions.library import format_library
    from pearl.dsl.parser import formatted, read

    if kind == "actions":
        try:
            return format_library(text)
        except LibraryError as error:
            raise DataError(
                error.message,
                path=name,
                line=error.line,
                help="`pearl check` lists every invalid line",
            ) from error
    reading = read(text)
    if reading.plan is None or reading.errors:
        raise PlanSyntaxError(reading.text, reading.errors, name)
    return formatted(reading)
