"""`pearl plan`: write plans for questions, without any document."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl.cli import files
from pearl.cli.files import check_data, data_options, named_values, open_samples
from pearl.cli.options import (
    PATH,
    Command,
    as_json,
    force_option,
    open_pearl,
    option,
    private_option,
    refuse,
    setting_options,
    store_option,
    trace_option,
    written_store,
)
from pearl.cli.progress import Reporter
from pearl.cli.run_commands import report_failures
from pearl.cli.writing import (
    GrowingFile,
    OutputWriter,
    keep_json_lines,
    refuse_overwriting_inputs,
    traced_listener,
)
from pearl.errors import DataError, PearlError, PlanningError
from pearl.errors.escaping import to_json

if TYPE_CHECKING:
    from pearl.data.samples import Sample
    from pearl.documents.document import DocumentKind
    from pearl.dsl.checker import CheckedPlan
    from pearl.llm.middleware.caching import Replies
    from pearl.pipeline import Pearl


@click.command(cls=Command)
@click.argument("question", required=False)
@option("-o --out", PATH, "Write to FILE instead of stdout.")
@click.option(
    "--corpus", "kind", flag_value="corpus",
    help="Plan for a corpus: the plan may search it; see --together of `pearl execute`.",
)  # fmt: skip
@click.option(
    "--table", "kind", flag_value="table",
    help="Plan for a table, for example a CSV file or a workbook: the plan queries it.",
)  # fmt: skip
@option(
    "--parameter parameters", str, "Take this text of QUESTION as a parameter of the plan.", metavar="NAME=VALUE", multiple=True,
)  # fmt: skip
@files.source_option
@data_options
@setting_options(stages=("calling", "drafting", "planning"))
@option("--fresh", bool, "With --data, ignore stored replies.")
@store_option
@private_option
@trace_option
@force_option
@as_json
def command(question: str | None, **options: Any) -> int:
    """Write a plan for QUESTION, or for every question of --data.

    The planner does not read the document; of each --source it sees the name, kind, size and description. --corpus tells it that the plan is for many documents
    (`pearl execute --together`), --table that it is for a table.

    The rows written for --data keep the fields of the samples: they are tasks for `pearl execute`. The
    store keeps every reply for --data: the same command repeats only calls without a reply.
    """
    check_data(options)
    data, out, trace, fresh = (options[name] for name in ("data", "out", "trace", "fresh"))
    refuse(
        ((question is None) == (data is None),
         "expected QUESTION or --data FILE", 'pearl plan "Why ...?" -o why.plan'),
        (data is None and fresh, "--fresh needs --data", "replies for one question are never stored"),
        (data is not None and options["sources"],
         "--source needs QUESTION", 'pearl plan "Which rule ...?" --source rules=rules/ -o rule.plan'),
        (data is not None and options["parameters"],
         "--parameter needs QUESTION", 'pearl plan "Why was warfarin stopped?" --parameter drug=warfarin'),
    )  # fmt: skip
    refuse_overwriting_inputs([out, trace], [data] if data else [])
    writer = OutputWriter(is_forced=options["force"])
    writer.check(out, trace)
    if data is not None:
        keep_json_lines(out)
        with written_store(options["store"]) as opened:
            replies = opened.fresh() if fresh else opened
            return asyncio.run(_many(options, replies, writer))
    named = files.named_sources(options["sources"])
    values = named_values("--parameter", options["parameters"])
    return asyncio.run(_one(question or "", options, writer, values, named))


async def _one(
    question: str, options: dict[str, Any], writer: OutputWriter, values: dict[str, str],
    named: tuple[files.NamedSource, ...],
) -> int:  # fmt: skip
    from pearl.trace import Trace

    trace = options["trace"]
    with ExitStack() as stack:
        written = stack.enter_context(GrowingFile(writer, trace)) if trace else None
        # Opened before the first call: a plan that cannot be written should cost nothing.
        file = stack.enter_context(writer.open(options["out"]))
        opened = files.opened_sources(named, files.source_identity(named))
        given = {each.name: (each.document, each.about) for each in opened}
        kind: DocumentKind = options["kind"] or "document"
        async with open_pearl(options) as pearl:
            with Reporter(1) as reporter:
                events = Trace("", partial(traced_listener(reporter, written), ""))
                checked = await pearl.plan(
                    question, kind=kind, parameters=values, sources=given, trace=events,
                )  # fmt: skip
        row = to_json(_row(question, checked, events), indent=2)
        file.write(f"{row if options['as_json'] else checked}\n")
    return 0


def _row(question: str, checked: CheckedPlan, trace: Any) -> dict[str, Any]:
    attempts = [event for event in trace if event.event == "plan_attempted"]
    return {
        "question": question,
        "status": "planned",
        "plan": str(checked),
        "outputs": list(checked.outputs),
        "attempts": len(attempts),
    }


async def _many(options: dict[str, Any], replies: Replies, writer: OutputWriter) -> int:
    from pearl.runs.executors.local import in_order
    from pearl.trace import Trace

    out, trace = options["out"], options["trace"]
    rows = list(open_samples(options))
    if rows and not any(isinstance(row, DataError) or row.question for row in rows):
        raise DataError(
            "the data has no question",
            path=options["data"],
            help=f'one plan for all its documents: pearl plan "Who ...?" -o why.plan, then '
            f"pearl execute why.plan --data {options['data']}",
        )
    failures: list[str] = []
    with ExitStack() as stack:
        async with open_pearl(options, replies) as pearl:
            # Loaded first, because the bank may be missing.
            await asyncio.to_thread(lambda: pearl.material.examples)
            written = stack.enter_context(GrowingFile(writer, trace)) if trace else None
            file = stack.enter_context(writer.open(out))
            reporter = stack.enter_context(Reporter(len(rows)))
            tell = traced_listener(reporter, written)
            planned_for = {"planned_for": _planned_for(pearl, options["library"], out)}

            async def one(row: Sample | DataError) -> dict[str, Any]:
                if isinstance(row, DataError):
                    return {"id": None, "status": "failed", "error": row.to_dict()}
                events = Trace(row.id, partial(tell, row.id))
                result = await _plan(pearl, row, events, options["kind"])
                told = row.to_dict()
                if "document_path" in told and out is not None:
                    told["document_path"] = _relative(told["document_path"], out)
                return {**told, **result, **planned_for}

            async for done in in_order(rows, one, pearl.client.settings.concurrency):
                if done["status"] == "failed":
                    error = done["error"]
                    help = "replies are stored; --fresh requests all of them again"
                    help = error["help"] if error["exit_code"] == DataError.exit_code else help
                    reason = error["message"].partition("\n")[0]
                    failures.append(f"{reason}\n  help: {help}" if help else reason)
                file.write(to_json(done) + "\n")
                reporter.advance()
    if failures:
        report_failures(len(failures), failures[0], len(rows))
    return 1 if failures else 0


def _planned_for(pearl: Pearl, library: str | None, out: str | None) -> dict[str, str]:
    """The domain and library, for `pearl execute --tasks`; the path of a library is relative to the plans."""
    from pearl.actions.library import library_digest, library_names

    name = library or pearl.domain.library
    if name not in library_names() and out is not None:
        name = _relative(name, out)
    return {
        "domain": pearl.domain_name,
        "library": name,
        "library_sha256": library_digest(pearl.library),
    }


def _relative(path: str, out: str) -> str:
    """The path of a file relative to the file that is written."""
    return os.path.relpath(path, Path(out).parent).replace(os.sep, "/")


async def _plan(
    pearl: Pearl, sample: Sample, trace: Any, kind: DocumentKind | None
) -> dict[str, Any]:
    try:
        checked = await pearl.plan(sample.question, kind=kind or "document", trace=trace)
        return _row(sample.question, checked, trace)
    except PlanningError as error:
        attempts = [attempt.reply for attempt in error.attempts]
        return {
            "status": "failed",
            "error": error.to_dict(),
            "attempts": len(attempts),
            "replies": attempts,
        }
    except PearlError as error:
        return {"status": "failed", "error": error.to_dict()}
