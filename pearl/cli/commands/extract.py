"""`pearl extract`: the fields of a schema, from many documents, as a table."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.files import document_tasks, is_file
from pearl.cli.options import (
    PATH,
    Command,
    new_pearl,
    option,
    refuse,
    setting_options,
    task_options,
)
from pearl.cli.terminal import notice, print_table
from pearl.cli.writing import refuse_overwriting_inputs
from pearl.errors import DataError, PearlError, StoreError
from pearl.errors.escaping import counted, to_json
from pearl.evals.fields import OUTCOMES, Comparison, Outcome, checker_of, read_gold
from pearl.evals.stats import Interval
from pearl.interpreter.row import restored_record
from pearl.plugins.extras import require_extra
from pearl.runs.export import check_format
from pearl.runs.extraction import document_of

if TYPE_CHECKING:
    from pearl.cli.run_commands import Finished
    from pearl.data.schemas import Schema
    from pearl.documents.document import Document
    from pearl.dsl.fields import Field
    from pearl.pipeline import Pearl
    from pearl.runs.decisions import DecidedRows
    from pearl.runs.executors import Task


N_TOLD = 5  # Maximum problems of a gold file that are reported one by one


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
        """Add the row of a document to those that `finish` compares with the gold file."""
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
        # What is not compared
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
        if self._as_json:
            facts = {"gold": self._path, "failed": n_failed, **compared.to_dict()}
            click.echo(to_json(facts, indent=2))
        else:
            print_comparison(compared, n_failed)


_HEADS: Mapping[Outcome, str] = {
    "missing": "miss-\ning", "undecided": "unde-\ncided", "invented": "in-\nvented", "not compared": "not com-\npared",
}  # fmt: skip


def print_comparison(compared: Comparison, n_failed: int = 0) -> None:
    """Print a table with a row for each field; columns of outcomes that do not occur are left out."""
    of = compared.all
    shown = [each for each in OUTCOMES if each in ("right", "wrong") or of.outcomes[each]]
    heads = ("field", "gold", *(_HEADS.get(each, each) for each in shown), "right\n%", "95 %")
    scores = (*compared.fields.items(), ("all", of))
    print_table(
        heads,
        (
            (name, score.n_gold, *(score.outcomes[each] for each in shown), *_share(score.right))
            for name, score in scores
        ),
    )
    failed = f", {n_failed:,} of them failed" if n_failed else ""
    share, ends = _share(of.precision)
    click.echo(f"{counted(compared.n_documents, 'document')}{failed}.")
    click.echo(f"Of the values given, {share} % are right ({ends}).")
    if lists := sum(compared.lists.values(), Counter[str]()):
        told = f"missing {lists['missing']:,}, extra {lists['extra']:,}."
        click.echo(f"Entries of lists: {lists['gold']:,}; {told}")
    if of.outcomes["not compared"]:
        click.echo(
            "Not compared: no model said whether two texts mean the same, or the rule is unknown."
        )
    if compared.unknown:
        names = ", ".join(sorted(compared.unknown)[:N_TOLD])
        click.echo(f"Left out, because the schema has no such field: {names}.")


def _share(of: Interval | None) -> tuple[str, str]:
    """A share in percent, and its interval."""
    if of is None:
        return "-", "-"
    return f"{100 * of.estimate:.1f}", f"{100 * of.low:.1f}-{100 * of.high:.1f}"


FORMS = ("csv", "xlsx", "parquet", "jsonl", "html")


@click.command(cls=Command)
@click.argument("fields", required=False, metavar="SCHEMA")
@click.argument("documents", nargs=-1, metavar="DOC...")
@option(
    "-o --out", PATH, metavar="FILE",
    help="Write a table (.csv, .xlsx, .parquet), rows with all evidence (.jsonl) or a page (.html).",
)  # fmt: skip
@option("--show-plan", bool, "Print the plan and end; `pearl execute` runs it, too.")
@option(
    "--evaluate", PATH, metavar="GOLD",
    help="Compare the values with those of GOLD, rows with 'document' and 'value' or a folder of NAME.gold.json; print how many are right, by field.",
)  # fmt: skip
@setting_options(
    "server", "escalate_model", "checker_model", "check", "passes", "constrain", "strict", "ocr", "ocr_language", "pdf_tables", "hidden",
    stages=("calling",),
)  # fmt: skip
@task_options
def command(
    fields: str | None, documents: tuple[str, ...], out: str | None, show_plan: bool, **options: Any
) -> int:
    """Take the fields of SCHEMA from each DOC, with sources.

    SCHEMA is the fields in short, "patient: str, age: int?, drugs: [{name: str, dose_mg: number}],
    smoker: yes|no|unknown", or a file (schema.json) of JSON Schema, or a pydantic model, a dataclass or a
    TypedDict (package.module:Model). A ? marks fields that a document need not state.

    A value counts only if its quote stands in the document and agrees with it. Otherwise the field is
    'undecided'; a field that the document does not state is empty. A list has a table of its own, out.LIST.csv;
    the rows of out.jsonl have a nested 'value', as the schema says.
    The store keeps every reply, and with --out every row, too: the same command resumes a run.
    """
    from pearl.cli.run_commands import run_tasks
    from pearl.data.schemas import load_schema, stored_schema
    from pearl.runs.executors import DEFAULT
    from pearl.runs.extraction import table_files

    refuse(
        (fields is None, "expected a schema and documents", 'pearl extract "patient: str, age: int?" letters/'),
        (out is None and (options["executor"] != DEFAULT or options["shard"] is not None),
         "--executor and --shard write rows", "name a file: -o out.csv"),
    )  # fmt: skip
    assert fields is not None
    # A store names no code and no file.
    schema = load_schema(fields) if options["run"] is None else stored_schema(fields)
    for note in schema.notes if options["run"] is None else ():
        notice(note)
    # The form in which a run stores the schema.
    click.get_current_context().params["fields"] = schema.text
    plan = str(new_pearl(options, is_asked=False).plan_extraction(schema.fields))
    if show_plan:
        click.echo(plan)
        return 0
    refuse(
        (not documents, "no document", f'name some: pearl extract "{fields}" letters/ -o out.csv')
    )
    evaluation = None
    if options["evaluate"] is not None and not options["dry_run"]:
        evaluation = Evaluation(options["evaluate"], schema, as_json=options["as_json"])
    outs = [*(table_files(out, schema.fields).values() if out else ()), options["trace"]]
    refuse_overwriting_inputs(outs, filter(is_file, filter(None, (fields, options["evaluate"]))))
    tasks = document_tasks(documents, together=False, plan=plan, is_named=bool(out), outs=outs)
    if out is None:
        code = run_tasks(tasks, options, schema=schema, evaluation=evaluation)
    else:
        code = _run(schema, tasks, outs, evaluation, options)
    # An undecided field counts, but is no failure.
    return 0 if code == 1 and evaluation is not None and not evaluation.failed else code


def _run(
    schema: Schema,
    tasks: Iterable[Task],
    outs: Sequence[str | None],
    evaluation: Evaluation | None,
    options: dict[str, Any],
) -> int:
    """Run the tasks, and write the tables of all rows."""
    from pearl.cli import run_commands
    from pearl.interpreter.answer import UNSURE
    from pearl.runs.decisions import reviewed
    from pearl.runs.request import ExtractRequest

    out, fields = str(outs[0]), schema.fields
    form = Path(out).suffix.removeprefix(".").lower()
    formats = ", ".join(FORMS)
    refuse((form not in FORMS, f"'{out}': unknown format", f"name it out.csv; formats: {formats}"))
    check_format(form)
    inputs = ExtractRequest.of(click.get_current_context().params).worked_on

    def finish(ran: Finished[Task]) -> int:
        id = ran.summary.id
        rows = reviewed(ran.store, id)
        if form == "jsonl" or schema.model is not None:  # which may refuse values
            rows.schema = schema
        _write(ran, fields, rows, out, form)
        n_rows = rows.statuses.total()
        if n_rows < ran.summary.n_rows:
            raise StoreError(
                f"{counted(ran.summary.n_rows - n_rows, 'row')} of run {id} cannot be read",
                help=f"'{run_commands.resume_command(id)}' computes them again",
            )
        ran.write_trace(options["trace"])
        for problem in rows.problems.values():
            notice(f"a decision of pearl review is left out: {problem}")
        ran.summary.statuses = dict(rows.statuses)
        if evaluation is not None:
            for row in rows():
                evaluation.add(row)
        run_commands.report_rows(
            ran.summary, ", ".join(filter(None, outs[:-1])), options["max_errors"]
        )
        if rows.statuses.keys() & {"degraded", "undecided"}:
            click.echo(f"  pearl review {id} shows them to a person", err=True)
        if ran.interrupt:
            return ran.interrupt
        if evaluation is not None:
            asyncio.run(evaluation.finish(ran.session.equipped()))
        code = run_commands.tasks_code(
            ran.session, ran.summary, run_commands.known_length(tasks), n_rows
        )
        unsure = rows.statuses.keys() & {*UNSURE, "failed", "unfinished"}
        is_sure = not (rows.problems or unsure)
        return 0 if code == 1 and rows.decisions and is_sure else code

    work = run_commands.Work(tasks, {}, inputs)
    return run_commands.run_units("extract", lambda pearl: work, options, finish, outs=outs)


def _write(
    ran: Finished[Task], fields: Sequence[Field], rows: DecidedRows, out: str, form: str
) -> None:
    """Write the tables or the page."""
    from pearl.runs.extraction import page_beside, write_tables
    from pearl.runs.readme import readme
    from pearl.runs.request import written_files

    if form == "html":
        from pearl.view.extraction_page import extraction_page

        loads = {task.id: task.document for task in ran.work.units}

        def read(name: str) -> Document | None:
            load = loads.get(name)
            with suppress(PearlError):
                return None if load is None else load()
            return None

        with ran.writer.open(out) as file:
            file.write(extraction_page(rows(), fields, read))
    else:
        info = ran.store.run(ran.summary.id)
        write_tables(
            fields, rows, out, form, ran.writer.open, facts=readme(info, rows),
            page=page_beside(out, written_files(info)),
        )  # fmt: skip
