"""`pearl grammar`: a grammar of plans for constrained decoding."""

from __future__ import annotations

import click

from pearl.cli.files import library_for
from pearl.cli.options import AT_LEAST_1, PATH, force_option, option, setting_options
from pearl.cli.writing import OutputWriter, refuse_overwriting_inputs
from pearl.dsl.checker import MAX_STEPS
from pearl.dsl.decoding.constraint import FORMS, Form
from pearl.dsl.decoding.grammar import MAX_WRITTEN_STEPS


@click.command()
@setting_options("domain", "library")
@option("--format form", click.Choice(FORMS), "Format for the decoder.", default="lark")
@option(
    "--max-steps longest_plan", click.IntRange(1, MAX_STEPS), metavar="N", default=MAX_WRITTEN_STEPS,
    help="Maximum steps of a plan.",
)  # fmt: skip
@option(
    "--max-text", AT_LEAST_1, metavar="N", help="Maximum characters of a string or an explanation [default: no limit].",
)  # fmt: skip
@option("-o --out", PATH, "Write to FILE, not to stdout.", metavar="FILE")
@force_option
def command(
    library: str | None, domain: str, form: Form, longest_plan: int,
    max_text: int | None, out: str | None, force: bool,
) -> int:  # fmt: skip
    """Print the grammar of the plans that are valid with a library.

    Every plan that it admits passes `pearl check` with this library. A JSON Schema
    also admits new actions and free output names: such a plan may be invalid.
    """
    from pearl.dsl.decoding.constraint import Constraint
    from pearl.dsl.decoding.forms import plan_constraint
    from pearl.dsl.decoding.grammar import indexed_grammar

    refuse_overwriting_inputs([out], [library] if library else [])
    actions = library_for(library, domain)
    if form == "json-schema":
        constraint = plan_constraint(actions, max_steps=longest_plan, max_text=max_text)
    else:
        grammar = indexed_grammar(actions, max_steps=longest_plan, max_text=max_text)
        constraint = Constraint("steps", grammar)
    with OutputWriter(is_forced=force).open(out) as file:
        file.write(constraint.rendered(form))
    return 0
