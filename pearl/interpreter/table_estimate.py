"""A step that asks a table → bounds of its calls and tokens, before it runs."""

from __future__ import annotations

from pearl.actions.values import Value
from pearl.documents.document import Document
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action
from pearl.interpreter.bounds import Range, StepCosts
from pearl.interpreter.limits import ContextLimits
from pearl.interpreter.row_estimate import PossibleRows
from pearl.interpreter.table_steps import TableQuestion, tables_in
from pearl.tables.lookup import MAX_FLAW, MAX_REPAIRS, SeveralTablesError, meant
from pearl.tables.sql import SqlLimits

FRAME_CHARACTERS = 1_000
"""More than stands around what is wrong with a reply."""


def query_costs(
    output: str,
    action: Action,
    question: str | None,
    given: Value | Document,
    n_rows: int,
    limits: ContextLimits,
) -> tuple[StepCosts, PossibleRows]:
    """Bounds of a question of a table, and of the rows of its answer."""
    counter, cap = limits.counter, limits.prompt_tokens
    first = Range(1, None)
    hint = 0
    if isinstance(given, Document | Rows):
        tables = tables_in(given)
        n_rows = max(len(table.rows) for table in tables)
        if question is not None:
            try:
                found = meant(question, tables)
            except SeveralTablesError:  # nothing is asked
                return StepCosts(), PossibleRows(0, 0)
            asked = TableQuestion(output, action, question, found, limits)
            first, hint = Range(*counter.bounds_with(asked.prompt, "")), asked.hint_tokens
    n_calls = MAX_REPAIRS + 1
    # Each time a reply stands between, and what is wrong with it.
    said = counter.at_most("é" * (2 * MAX_FLAW + FRAME_CHARACTERS))
    added = counter.most(limits.reply_tokens) + said
    prompts = [
        Range(first.least, None if first.most is None else first.most + hint + i * added).up_to(cap)
        for i in range(n_calls)
    ]
    total = None if None in (most := [each.most for each in prompts]) else sum(filter(None, most))
    tokens = Range(prompts[0].least, total).up_to(limits.max_prompt_tokens)
    costs = StepCosts(
        Range(1, n_calls), tokens, Range(1, n_calls * limits.reply_tokens), Range(1, n_calls)
    )
    return costs, PossibleRows(max(n_rows, SqlLimits().max_rows), None)
