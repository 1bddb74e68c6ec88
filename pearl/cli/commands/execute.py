"""`pearl execute`: a plan over many documents, or a file of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pearl.cli import files
from pearl.cli.options import (
    PATH,
    Command,
    answer_options,
    option,
    refuse,
    setting_options,
    task_options,
)
from pearl.cli.terminal import notice
from pearl.cli.writing import (
    is_for_printing,
    keep_json_lines,
    output_options,
    refuse_overwriting_inputs,
)
from pearl.documents.document import ROW_SUFFIXES
from pearl.errors import DataError, PlanError, StoreError, UsageError, suggest
from pearl.errors.escaping import counted
from pearl.errors.privacy import is_private

if TYPE_CHECKING:
    from pearl.cli.run_commands import Finished
    from pearl.runs.executors import Task
    from pearl.runs.tasks import DocumentTasks, TaskFile, Values


@click.command(cls=Command)
@click.argument("plan_and_documents", nargs=-1, metavar="[PLAN] DOC...")
@files.together_option
@files.source_option
@option(
    "--tasks", PATH,
    help="JSONL: id, plan | plan_path | question, document | document_path; the format of `pearl plan --data`.",
)  # fmt: skip
@option(
    "--set", str, "The text for a parameter of the plan; without it, the column of --data with its name.",
    metavar="NAME=VALUE", multiple=True,
)  # fmt: skip
@files.data_options
@option(
    "-o --out",
    PATH,
    "Write one JSON line per document to FILE (.jsonl), or Parquet files to a folder at an address (s3://...); other suffixes as `pearl ask`.",
)
@option("-v --verbose", bool, "Show the plan and every step, too.")
@answer_options
@setting_options()
@task_options
def command(
    plan_and_documents: tuple[str, ...], together: bool, sources: tuple[str, ...],
    tasks: str | None, out: str | None, **options: Any,
) -> int:  # fmt: skip
    """Run PLAN, a plan file, over documents, or the rows of --tasks.

    The documents are each DOC (- is stdin), or those of --data, each once. With --tasks every
    argument is a document, for rows that name none. With --together all DOCs are one corpus, over
    which the plan runs once: a step for which it is too long is shown the matching passages.

    The store keeps every reply, and with --out every row, too: the same command, or `pearl runs
    resume`, resumes a run that was stopped. Rows at an address are resumed by the same command, on any machine.
    """
    from pearl.data.storage import address_of, is_address
    from pearl.runs.executors import DEFAULT
    from pearl.runs.sinks import is_sink
    from pearl.runs.tasks import StreamedTasks, Values

    data = options["data"]
    is_printed = out is None or is_for_printing(out)
    refuse(
        (is_printed and (options["executor"] != DEFAULT or options["shard"] is not None),
         "--executor and --shard write rows", "name a file: --out rows.jsonl"),
        (not is_printed and options["page"],
         "--page cannot be combined with --out", "pearl view rows.jsonl writes a page of the rows"),
        (tasks is not None and not is_printed and is_sink(str(out)),
         "--out ADDRESS needs a plan", f"pearl execute why.plan --data FILE --out {out}"),
        (tasks is not None and data is not None, "--tasks and --data cannot be combined", "--data needs a plan"),
        (together and (tasks is not None or data is not None),
         "--together needs a plan and documents", "pearl execute why.plan reports --together"),
        (tasks is not None and options["set"],
         "--set and --tasks cannot be combined", "give the rows a field 'parameters': {\"drug\": \"warfarin\"}"),
        (tasks is not None and sources and _is_set("sources"),
         "--source needs a plan", "pearl execute why.plan --source rules=rules/"),
    )  # fmt: skip
    files.check_data(options)
    outs = [out, options["trace"], options["rows_out"], options["page"]]
    refuse_overwriting_inputs(outs, [*plan_and_documents, *filter(None, (tasks, data))])
    if tasks is not None:
        rest = tuple(files.expand_documents(plan_and_documents))
        return _run(_tasks(tasks, rest, options), out, options)
    wrong = UsageError(
        "expected a plan and a document, a plan and --data FILE, or --tasks FILE",
        help="pearl execute why.plan story.txt",
    )
    least = 1 if sources else 2
    if len(plan_and_documents) < least if data is None else len(plan_and_documents) != 1:
        raise wrong
    plan, *named = plan_and_documents
    _refuse_other(plan, named)
    text, names, declared = _checked_plan(plan, options)
    given, named_paths = (
        files.named_values("--set", options["set"]),
        _declared_sources(declared, sources),
    )
    values = Values(given, tuple(name for name in names if name not in given))
    if not named and not named_paths and data is None:
        raise wrong
    if data is not None and is_address(address_of(data)):
        read = partial(files.open_samples, options)
        return _run(
            StreamedTasks(read, text, values, files.source_adder(named_paths)), out, options, text
        )
    if data is None:
        is_named = not is_printed or options["as_lines"]
        work = files.document_tasks(
            named, together=together, plan=text, parameters=given, is_named=is_named, outs=outs,
            sources=named_paths,
        )  # fmt: skip
        return _run(work, out, options, text)
    return _run(_data_tasks(text, values, options, named_paths), out, options, text)


def _declared_sources(
    declared: Sequence[str], said: tuple[str, ...]
) -> tuple[files.NamedSource, ...]:
    """Keep the sources that the plan declares; a settings file may have others, for other plans."""
    named = files.named_sources(said)
    for name, _, _ in named if _is_set("sources", ParameterSource.COMMANDLINE) else ():
        if name not in declared:
            raise UsageError(
                f"the plan has no source '{name}'", help=suggest(name, declared, "sources")
            )
    taken = [i for i, (name, _, _) in enumerate(named) if name in declared]
    click.get_current_context().params["sources"] = tuple(said[i] for i in taken)
    return tuple(named[i] for i in taken)


def _refuse_other(plan: str, documents: Sequence[str]) -> None:
    """Reject a document, rows or a question given as the plan, and name the right command."""
    rest = " ".join(documents)
    is_swapped = documents and documents[0].endswith(".plan") and not plan.endswith(".plan")
    swapped = " ".join([*documents[:1], plan, *documents[1:]])
    is_question = len(plan.split()) > 1 and not Path(plan).suffix and not files.is_file(plan)
    refuse(
        (is_swapped, f"'{plan}' is not a plan", f"the plan comes first: pearl execute {swapped}"),
        (Path(plan).suffix.lower() in ROW_SUFFIXES, f"'{plan}' has rows, and is not a plan",
         f"pearl execute --tasks {' '.join(filter(None, (plan, rest)))}"),
        (is_question, f"'{plan}' is not a plan file", f'pearl ask "{plan}" {rest or "DOC"}'),
    )  # fmt: skip


def _tasks(path: str, documents: tuple[str, ...], options: dict[str, Any]) -> TaskFile:
    """Read the tasks of a file, and set the options domain and library to those of its plans."""
    from pearl.actions.library import library_digest, load_library
    from pearl.data.domains import load_domain
    from pearl.runs.tasks import TaskFile

    words = " ".join([path, *(documents or ("DOC",))])
    is_plan = path.endswith(".plan")
    refuse((is_plan, f"'{path}' is a plan, not a file of tasks", f"pearl execute {words}"))
    file = TaskFile(path, documents, allow_outside=options["allow_outside"])
    refuse((
        documents and file.names_documents,
        f"'{documents and documents[0]}' is not needed: every row of {path} names its document",
        "leave it out; to run one plan over all documents, leave out --tasks",
    ))  # fmt: skip
    first = file.first_plan
    planned, library = first or (None, None)
    if planned is not None:
        said = {name: options[name] for name in ("domain", "library") if _is_set(name)}
        if said.get("domain", planned.domain) != planned.domain:
            raise UsageError(
                f"the plans of {path} were written for domain '{planned.domain}', not '{said['domain']}'",
                help="unset --domain, PEARL_DOMAIN and domain in pearl.toml: the file of tasks sets it",
            )
        options["domain"] = planned.domain
        options["library"] = said.get("library") or str(library or planned.library)
        file.library_sha256 = library_digest(load_library(options["library"]))
        if file.library_sha256 != planned.library_sha256:
            if said.get("library"):
                raise UsageError(
                    f"the plans of {path} were written for library '{planned.library}', not '{said['library']}'",
                    help="unset --library, PEARL_LIBRARY and library in pearl.toml: the file of tasks sets it",
                )
            raise DataError(
                f"library '{planned.library}' has changed since its plans were written",
                path=path,
                help="restore it or plan again; rows without 'planned_for' run under any library",
            )
        return file
    name = options["library"] or load_domain(options["domain"]).library
    file.library_sha256 = library_digest(load_library(name))
    if first is not None and not (_is_set("domain") or _is_set("library")):
        notice(f"{path} does not say which library its plans were written for; '{name}' is used")
    return file


def _is_set(name: str, by: ParameterSource | None = None) -> bool:
    """Whether the user set an option by a flag, a variable or a TOML file; `by` accepts only one of these."""
    source = click.get_current_context().get_parameter_source(name)
    return source is by if by else source is not ParameterSource.DEFAULT


def _checked_plan(plan: str, options: dict[str, Any]) -> tuple[str, tuple[str, ...], list[str]]:
    """Read and check the plan before any document; return its text and the names of its parameters and sources."""
    from pearl.dsl.binding import bind
    from pearl.dsl.checker import compile_plan

    text = files.read_input(plan)
    library = files.library_for(options["library"], options["domain"])
    try:
        checked = compile_plan(text, library, max_steps=options["max_steps"])
    except PlanError as error:
        raise type(error)(error.text, files.with_commands(error.diagnostics, plan), plan) from None
    names = tuple(each.name for each in checked.plan.parameters)
    by_row = dict.fromkeys(names, "-") if options["data"] is not None else {}
    bind(checked, by_row | files.named_values("--set", options["set"]))
    return text, names, [each.name for each in checked.plan.sources]


_LARGE = 50_000  # Rows of a file that are not counted before the run
_CHOOSE = ("limit", "subset", "columns")  # Options that need a file from its beginning


def _data_tasks(
    plan: str, values: Values, options: dict[str, Any], sources: tuple[files.NamedSource, ...]
) -> DocumentTasks:
    """A task for each document of the data, and a failing task for each invalid row."""
    from pearl.runs.tasks import CountedDocumentTasks, DocumentTasks

    read, is_pipe = partial(files.open_samples, options), Path(options["data"]).is_fifo()
    if is_pipe:  # can be read only once
        read = partial(iter, list(read()))
    is_large = False
    if not is_pipe and not any(options[name] for name in _CHOOSE):
        path = Path(options["data"])
        if path.is_file():  # the number of its lines, estimated from the first megabyte
            with path.open("rb") as file:
                head = file.read(1 << 20)
            n_lines = head.count(b"\n") * path.stat().st_size // max(1, len(head))
            is_large = n_lines > _LARGE
    kind = DocumentTasks if is_large else CountedDocumentTasks
    return kind(read, plan, values, files.source_adder(sources))


def _run(
    tasks: Iterable[Task], out: str | None, options: dict[str, Any], plan: str | None = None
) -> int:
    """Run the tasks and print their rows; with `--out`, keep them and write the file at the end."""
    from pearl.cli import run_commands
    from pearl.runs.sinks import is_sink

    if out is None or is_for_printing(out):
        return run_commands.run_tasks(tasks, options, out=out)
    if plan is not None and is_sink(out):
        return _run_to_sink(tasks, plan, out, options)
    from pearl.runs.request import ExecuteRequest

    keep_json_lines(out, f"'pearl runs export RUN -o {out}' writes them as a table")
    output_options(out, None)  # refuses an unknown suffix
    trace, rows_out = options["trace"], options["rows_out"]
    request = ExecuteRequest.of(click.get_current_context().params)
    inputs = request.worked_on | files.identities(request)

    def finish(ran: Finished[Task]) -> int:
        _write(ran, out, options)
        run_commands.report_rows(ran.summary, out, options["max_errors"])
        if ran.interrupt:
            return ran.interrupt
        return run_commands.tasks_code(
            ran.session, ran.summary, run_commands.known_length(tasks), ran.summary.n_rows
        )

    work = run_commands.Work(tasks, {}, inputs)
    return run_commands.run_units(
        "execute", lambda pearl: work, options, finish, outs=[out, trace, rows_out]
    )


def _run_to_sink(tasks: Iterable[Task], plan: str, out: str, options: dict[str, Any]) -> int:
    """Run the tasks that have no row in a sink, and add their rows."""
    from pearl.cli import run_commands
    from pearl.data.storage import OutputFolder, address_of, is_address
    from pearl.runs.identity import fingerprint
    from pearl.runs.sinks import load_sink

    refuse(
        *((options[name], f"--{flag} cannot be combined with --out {out}", f"the rows have the {what}")
          for name, flag, what in (("trace", "trace", "steps"), ("rows_out", "rows", "evidence"))),
        (options["force"] or options["fresh"],
         f"rows in {out} are never replaced", "name another folder, or delete this one"),
        (is_private(), "a private run stores no rows", "leave out --private, if the storage is encrypted"),
    )  # fmt: skip
    module = load_sink(out)
    data = address_of(options["data"] or "")
    refuse((
        is_address(out) and is_address(data) and OutputFolder(out).is_read_by(data),
        f"the rows in {out} would be read as data by the next run",
        f"name a folder outside of {data}, or a hidden one: --out {out.rstrip('/')}/_answers",
    ))  # fmt: skip
    if options["dry_run"]:
        return run_commands.show_forecast(run_commands.unasked_session(options), tasks, options)
    with run_commands.opened_session(options) as session:
        sink = module.create(out, plan, fingerprint(session.pearl), options["shard"] or "")
        try:
            with closing(sink):
                summary, interrupt = run_commands.carry_out(session, tasks, options, into=sink)
        except (DataError, KeyboardInterrupt):
            click.echo(f"  rows written so far stay in {out}; the same command goes on", err=True)
            raise
        summary.statuses = dict(sink.statuses)
        run_commands.report_rows(summary, out, options["max_errors"])
        return interrupt or run_commands.tasks_code(
            session, summary, run_commands.known_length(tasks), summary.n_rows
        )


def _write(ran: Finished[Task], out: str, options: dict[str, Any]) -> None:
    """Write the rows of a run, the rows behind its answers, and its trace."""
    from pearl.cli.run_commands import export_command
    from pearl.runs.export import write_evidence, write_rows
    from pearl.runs.store import FILE

    id = ran.summary.id
    try:
        with ran.writer.open(out) as file:
            n_lost = ran.summary.n_rows - write_rows(ran.store.rows(id), file)
            if n_lost > 0:
                raise StoreError(
                    f"{counted(n_lost, 'row')} of run {id} cannot be read",
                    path=ran.store.folder / FILE,
                    help=f"'{export_command(id)}' writes the others",
                )
        if options["rows_out"] is not None:
            with ran.writer.open(options["rows_out"]) as file:
                write_evidence(lambda: ran.store.rows(id), file)
    except (DataError, UsageError) as error:
        help = f"nothing is lost: {export_command(id)}"
        raise type(error)(error.message, help=help) from None
    ran.write_trace(options["trace"])
