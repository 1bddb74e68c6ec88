"""`pearl extract --evaluate`: how many values are right, by field, for a terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
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
    from pearl.pipeline import Pearl

N_TOLD = 5
"""Problems of a gold file that are told one by one."""


class Evaluation:
    """Takes the rows of a run, and prints how they compare with a gold file."""

    def __init__(self, path: str, schema: Schema, *, as_json: bool) -> None:
        require_extra("eval", "--evaluate", "scipy")  # not after the run is paid for
        self._path, self._schema, self._as_json = path, schema, as_json
        self._gold = read_gold(Path(path))
        self.failed: set[str] = set()
        """Documents without values."""
        self._read: dict[str, tuple[Any, Sequence[str]]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Take the row of a document."""
        document, record = document_of(row), restored_record(row)
        if record is None:
            self.failed.add(document)
            self._read[document] = None, ()
        else:
            read = self._schema.read(record)
            self._read[document] = read.data, read.undecided

    async def finish(self, pearl: Pearl) -> None:
        """Compare all rows, and print the scores; the checker of `pearl` compares meanings."""
        found = self._gold.by_document(list(self._read))
        text = self._schema.text
        compared = Comparison(json.loads(text) if text.startswith("{") else self._schema.fields)
        for document, name in found.items():
            compared.add(document, self._gold.values[name], *self._read[document])
        n_failed = len(self.failed & found.keys())
        await compared.judge(checker_of(pearl))
        self._report(found)
        if self._as_json:
            facts = {"gold": self._path, "failed": n_failed, **compared.to_dict()}
            click.echo(to_json(facts, indent=2))
        else:
            print_comparison(compared, n_failed)

    def _report(self, found: Mapping[str, str]) -> None:
        """Report on stderr what was not compared."""
        help = "name it as `pearl extract` does, or by its file name, if no other document has it"
        unmatched = [
            row.error(f"no document is called '{name}'", help=help)
            for name, row in self._gold.rows.items()
            if name not in found.values()
        ]
        problems = [*self._gold.problems, *unmatched]
        for problem in problems[:N_TOLD]:
            notice(str(problem))
        if len(problems) > N_TOLD:
            notice(f"and {counted(len(problems) - N_TOLD, 'more problem')} of {self._path}")
        if bare := [document for document in self._read if document not in found]:
            notice(f"{counted(len(bare), 'document')} without gold values; the first: {bare[0]}")
        if not found:
            raise DataError("no document has gold values", path=self._path)


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
