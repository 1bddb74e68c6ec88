"""`pearl check`: the diagnostics of plan files and action files."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pearl.cli.files import Kind, kind_of, kind_option, library_for, read_input, with_commands
from pearl.cli.options import as_json, option, setting_options
from pearl.cli.writing import new_file
from pearl.errors import Diagnostic, apply_fixes, render_diagnostics
from pearl.errors.escaping import counted, to_json


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@setting_options("domain", "library")
@kind_option
@option("--fix", bool, "Apply automatic fixes, and report the remaining errors.")
@option(
    "--flows", bool, "Show what of documents and earlier results enters the prompt of each step."
)
@as_json
def command(
    files: tuple[str, ...], library: str | None, domain: str, kind: Kind | None, fix: bool, flows: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Check plan files and action files (- is stdin). Exit code 1 if there is an error."""
    reports = []
    n_errors = n_fixed = 0
    for name in files:
        text = read_input(name)
        found, text, fixed = _examine(name, text, kind, library, domain, fix)
        n_fixed += fixed
        n_errors += sum(d.severity == "error" for d in found)
        found = with_commands(found, name)
        shown = "<stdin>" if name == "-" else name
        is_wrong = any(d.severity == "error" for d in found)
        into = None
        if flows and not is_wrong and kind_of(name, kind) == "plan":
            from pearl.dsl.checker import compile_plan
            from pearl.dsl.graph import build_graph
            from pearl.interpreter.prompt_taint import flows as flows_of

            into = flows_of(build_graph(compile_plan(text, library_for(library, domain))))
        if as_json:
            told = {} if into is None else {"flows": into}
            diagnostics = [d.to_dict(text) for d in found]
            reports.append({"path": shown, "diagnostics": diagnostics, "fixed": fixed, **told})
        elif found:
            click.echo(render_diagnostics(found, text, shown))
        if into is not None and not as_json:
            click.echo(f"{shown}: {into['verdict']}")
            for each in into["steps"]:
                click.echo(f"  {each['step']}. {each['output']}: {each['told']}")
    if as_json:
        click.echo(to_json(reports, indent=2))
    else:
        errors = counted(n_errors, "error") if n_errors else "no errors"
        fixed_too = f", {n_fixed} fixed" if n_fixed else ""
        click.echo(f"{counted(len(files), 'file')}: {errors}{fixed_too}", err=True)
    return 1 if n_errors else 0


def _examine(
    name: str, text: str, kind: Kind | None, library: str | None, domain: str, fix: bool
) -> tuple[Sequence[Diagnostic], str, int]:
    """Return the diagnostics of one file, its text after fixes, and the number of fixes."""
    from pearl.actions.library import read_actions
    from pearl.dsl.checker import diagnose, mend_plan
    from pearl.dsl.parser import read

    n_fixed = 0
    if kind_of(name, kind) == "actions":
        _, found = read_actions(text)
        fixes = [d.fix for d in found if d.fix]
        if fix and fixes:
            text, n_fixed = apply_fixes(text, fixes), len(fixes)
            _write(name, text)
            _, found = read_actions(text)
        return found, text, n_fixed
    known = library_for(library, domain)
    if fix:
        mended, applied = mend_plan(text, known)
        if applied:
            text, n_fixed = mended, len(applied)
            _write(name, text if text.endswith("\n") else f"{text}\n")
    reading = read(text)
    return diagnose(reading, known), reading.text, n_fixed


def _write(name: str, text: str) -> None:
    with new_file(name) as file:  # text of stdin goes to stdout
        file.write(text)
