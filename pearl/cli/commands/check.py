"""`pearl check`: the diagnostics of plan files and action files."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pearl.cli.files import Kind, kind_of, kind_option, library_for, read_input, with_commands
from pearl.cli.options import as_json, option, setting_options
from pearl.cli.writing import new_file
from pearl.dsl.signatures import ActionLibrary
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
    from pearl.dsl.checker import diagnose
    from pearl.dsl.parser import read

    n_fixed, is_plan = 0, kind_of(name, kind) == "plan"
    known = library_for(library, domain) if is_plan else None
    if fix:
        text, n_fixed = mended(text, known)
        if n_fixed:
            with new_file(name) as file:  # text of stdin goes to stdout
                file.write(text)
    if known is None:
        return read_actions(text)[1], text, n_fixed
    reading = read(text)
    return diagnose(reading, known), reading.text, n_fixed


def mended(text: str, library: ActionLibrary | None) -> tuple[str, int]:
    """The text after every automatic fix, and the number of fixes; without a library, it is an action file, else a plan."""
    from pearl.actions.library import read_actions
    from pearl.dsl.checker import mend_plan

    if library is None:
        fixes = [found.fix for found in read_actions(text)[1] if found.fix]
        return apply_fixes(text, fixes), len(fixes)
    plan, applied = mend_plan(text, library)
    if not applied:
        return text, 0
    return plan if plan.endswith("\n") else f"{plan}\n", len(applied)
