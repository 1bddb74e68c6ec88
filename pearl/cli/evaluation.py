"""`pearl extract --evaluate`: how many values are right, by field, for a terminal."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.terminal import new_console, new_table, notice
from pearl.errors import DataError
from pearl.errors.escaping import counted, to_json
from pearl.evals.fields import OUTCOMES, Comparison, Outcome, checker_of, read_gold
from pearl.evals.stats import Interval
from pearl.interpreter.restoring import restored_record
from pearl.plugins.extras import require_extra
from pearl.runs.extraction import document_of

if TYPE_CHECKING:
    from pearl.data.schemas import Schema
    from pearl.runs.session import Session

N_TOLD = 5
"""Problems of a gold file that are told one by one."""


class Evaluation:
    """Takes the rows of a run, and prints how they compare with a gold file."""

    def __init__(self, path: str, schema: Schema, given: str, *, as_json: bool) -> None:
        require_extra("eval", "--evaluate", "scipy")  # not after the run is paid for
        self._path, self._schema, self._as_json = path, schema, as_json
        self._given = given
        self._gold = read_gold(Path(path))
        self._rows: dict[str, Mapping[str, Any]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Take the row of a document."""
        self._rows[document_of(row)] = row

    def finish(self, session: Session, code: int) -> int:
        """Compare all rows, and print the scores; returns the exit code of a run with this one, in which rows may be unsure."""
        found = self._gold.by_document(list(self._rows))
        compared = Comparison(_rules(self._given, self._schema))
        n_failed = 0
        for document, name in found.items():
            record = restored_record(self._rows[document])
            n_failed += record is None
            data, undecided = ({}, ()) if record is None else _read(self._schema, record)
            compared.add(document, self._gold.values[name], data, undecided)
        pearl = session.equipped()
        asyncio.run(compared.judge(checker_of(pearl)))
        self._report(found)
        if self._as_json:
            data = {"gold": self._path, "failed": n_failed, **compared.to_dict()}
            click.echo(to_json(data, indent=2))
        else:
            print_comparison(compared, n_failed)
        return 0 if code == 1 and not n_failed else code

    def _report(self, found: Mapping[str, str]) -> None:
        """Report on stderr what was not compared."""
        unmatched = [
            DataError(f"no document is called '{name}'", path=self._path, help="give its `document` as `pearl extract` names it")
            for name in self._gold.values.keys() - {*found.values()}
        ]  # fmt: skip
        problems = [*self._gold.problems, *sorted(unmatched, key=str)]
        for problem in problems[:N_TOLD]:
            notice(str(problem))
        if len(problems) > N_TOLD:
            notice(f"and {counted(len(problems) - N_TOLD, 'more problem')} of {self._path}")
        if bare := [document for document in self._rows if document not in found]:
            notice(f"{counted(len(bare), 'document')} without gold values; the first: {bare[0]}")
        if not found:
            help = '{"document": "a.txt", "value": {...}}'
            raise DataError("no document has gold values", path=self._path, help=help)


def _rules(given: str, schema: Schema) -> Any:
    """The JSON Schema with the rules of comparison, or else the fields."""
    if schema.model is not None:
        return schema.model.model_json_schema()
    path = Path(given)
    return json.loads(path.read_bytes()) if given.endswith(".json") else schema.fields


def _read(schema: Schema, record: Any) -> tuple[Any, Any]:
    reading = schema.read(record)
    return reading.data, reading.undecided


_HEADS: Mapping[Outcome, str] = {
    "missing": "miss-\ning", "undecided": "unde-\ncided", "invented": "in-\nvented", "not compared": "not com-\npared",
}  # fmt: skip


def print_comparison(compared: Comparison, n_failed: int = 0) -> None:
    """Print a table with a row for each field, without the outcomes that no value has."""
    of, table = compared.all, new_table()
    shown = [each for each in OUTCOMES if each in ("right", "wrong") or of.outcomes[each]]
    table.add_column("field", overflow="fold")
    for head in ("gold", *(_HEADS.get(each, each) for each in shown), "right\n%", "95 %"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, score in (*compared.fields.items(), ("all", of)):
        counts = [f"{score.outcomes[each]:,}" for each in shown]
        table.add_row(name, f"{score.n_gold:,}", *counts, *_share(score.right))
    console = new_console()
    console.print(table)
    failed = f", {n_failed:,} of them failed" if n_failed else ""
    share, ends = _share(of.precision)
    console.print(f"{counted(compared.n_documents, 'document')}{failed}.", markup=False)
    console.print(f"Of the values given, {share} % are right ({ends}).", markup=False)
    if lists := sum(compared.lists.values(), Counter[str]()):
        told = f"missing {lists['missing']:,}, extra {lists['extra']:,}."
        console.print(f"Entries of lists: {lists['gold']:,}; {told}", markup=False)
    if of.outcomes["not compared"]:
        console.print(
            "Not compared: no model said whether two texts mean the same, or the rule is unknown."
        )
    if compared.unknown:
        names = ", ".join(sorted(compared.unknown)[:N_TOLD])
        console.print(f"Left out, because the schema has no such field: {names}.", markup=False)


def _share(of: Interval | None) -> tuple[str, str]:
    """A share in percent, and its interval."""
    if of is None:
        return "-", "-"
    return f"{100 * of.estimate:.1f}", f"{100 * of.low:.1f}-{100 * of.high:.1f}"
