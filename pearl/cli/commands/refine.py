"""`pearl refine`: make a library from mined drafts, or a bank of examples from questions with gold answers."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pearl.cli.files import data_options, read_data, read_input
from pearl.cli.options import (
    AT_LEAST_1,
    PATH,
    Command,
    force_option,
    open_pearl,
    option,
    setting_options,
    unit_options,
)
from pearl.cli.progress import Reporter
from pearl.cli.run_commands import Finished, Work, report_left_out, report_reasons, run_units
from pearl.cli.terminal import notice
from pearl.cli.writing import OutputWriter, make_folder, new_file, refuse_overwriting_inputs
from pearl.data.log_files import read_journal, write_journal
from pearl.data.samples import Sample
from pearl.dsl.nodes import print_plan
from pearl.errors import DataError, UsageError
from pearl.errors.escaping import to_json
from pearl.llm import Usage
from pearl.mining import curator
from pearl.planner.examples import Example, read_bank, wording
from pearl.runs.identity import run_config

if TYPE_CHECKING:
    from pearl.mining.refinement import Refinement
    from pearl.pipeline import Pearl


@click.group()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Make libraries and banks of examples."""
    # click passes the defaults of the TOML file to the group; its commands need them.
    ctx.default_map = dict.fromkeys(command.commands, ctx.default_map)


@command.command(cls=Command)
@click.argument("mined", metavar="MINED")
@option("-o --out", PATH, "Write the library to FILE, not stdout.")
@option("--max-actions", AT_LEAST_1, "Maximum actions of the library.", default=80)
@option(
    "--max-tokens", AT_LEAST_1, metavar="TOKENS", help="Maximum tokens of the library in a planner's prompt.",
)  # fmt: skip
@option(
    "--rounds", click.IntRange(min=0), default=6, help="Maximum rounds of the model; 0 merges equal names only.",
)  # fmt: skip
@option("--shard-size", click.IntRange(min=2), "Drafts shown to the model at once.", default=40)
@option("--report", PATH, "Write the fate of every draft to FILE, as JSON.")
@force_option
@setting_options(stages=("calling",))
def actions(
    mined: str, out: str | None, max_actions: int, max_tokens: int | None, rounds: int,
    shard_size: int, report: str | None, force: bool, **options: Any,
) -> int:  # fmt: skip
    """Merge the drafts of MINED into a library.

    MINED is a mined.jsonl, or an action file.
    """
    from pearl.mining.refinement import library_text
    from pearl.mining.refining import RefineSettings, read_drafts, refine_actions
    from pearl.trace import Trace

    refuse_overwriting_inputs([out, report], [mined])
    settings = RefineSettings(
        max_actions, max_tokens, rounds, shard_size, options["max_output_tokens"]
    )
    # Opened before the first call: a library that cannot be written should cost nothing.
    writer = OutputWriter(is_forced=force)
    writer.check(report, out)
    with writer.open(report) if report else nullcontext() as fates, writer.open(out) as file:
        drafts = read_drafts(read_input(mined), "<stdin>" if mined == "-" else mined)

        async def refined() -> Refinement:
            async with open_pearl(options) as pearl:
                with Reporter(1) as reporter:
                    calls = pearl.calls(Trace("", partial(reporter, "")))
                    counter = pearl.limits.counter
                    return await refine_actions(drafts, calls, settings, counter=counter)

        refinement = asyncio.run(refined())
        file.write(library_text(refinement))
        if fates is not None:
            fates.write(f"{to_json(msgspec.to_builtins(refinement), indent=2)}\n")
    rows = refinement.figures
    lead = max(len(label) for label, _, _ in rows)
    width = max(len(f"{n:,}") for _, n, _ in rows)
    for label, n, note in rows:
        more = f"  ({note})" if note else ""
        click.echo(f"{label:<{lead}}  {n:>{width},}{more}", err=True)
    warnings = list(_warnings(refinement))
    for warning in warnings:
        notice(warning)
    return 1 if warnings else 0


def _warnings(refinement: Refinement) -> Iterator[str]:
    """Warnings about limits that the library exceeds, and about unusable drafts or replies."""
    if len(refinement.actions) > refinement.max_actions:
        yield (
            f"{len(refinement.actions)} actions, more than --max-actions {refinement.max_actions}: "
            "those computed in Python always stay"
        )
    if refinement.max_tokens is not None and refinement.n_tokens > refinement.max_tokens:
        yield (
            f"{refinement.n_tokens:,} tokens, more than --max-tokens {refinement.max_tokens:,}: "
            "actions computed in Python always stay"
        )
    if all(draft.is_seed for draft in refinement.drafts) and refinement.unread:
        yield f"no question gave a draft, the library is the seeds; the first: {refinement.unread[0]}"
    if all(action.is_native for action in refinement.actions):
        yield "no action is left that reads a text; allow more actions or tokens"
    calls, unusable = refinement.calls(), refinement.calls("unusable") + refinement.calls("failed")
    if calls and unusable == calls:
        shards = [shard for each in refinement.rounds for shard in each.shards]
        problem = next((p for shard in shards for p in shard.problems), "no reply")
        yield f"the model merged nothing; its first reply: {problem}"


@command.command(cls=Command)
@data_options
@option(
    "-o --out", PATH, metavar="FOLDER", required=True, help="Folder of the bank; finished questions are not tried again.",
)  # fmt: skip
@option("--retries", click.IntRange(min=0), "Maximum new plans after a wrong answer.", default=2)
@option(
    "--max-examples", AT_LEAST_1, default=12, help="Maximum plans in the bank; the least similar ones are kept.",
)  # fmt: skip
@option(
    "--except held_out", PATH, metavar="DATA", help="Evaluation data; its questions are left out of the bank.",
)  # fmt: skip
@setting_options(stages=("calling", "drafting", "planning", "reading", "mapping"))
@unit_options
def fewshot(out: str, retries: int, max_examples: int, held_out: str | None, **options: Any) -> int:
    """Make a bank of examples from the questions of --data.

    The examples are plans that reached the gold answer. Every plan is run over its document and its answer mapped to the options. Questions of the bank
    are refused in an evaluation.
    """
    if options["data"] is None:
        raise UsageError("fewshot needs questions", help="--data FILE")
    samples, bad = read_data(options)
    report_left_out(bad)
    good = _good(samples, held_out, options)
    folder = Path(out)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / JOURNAL).is_file():
        raise DataError(
            "the folder is not empty and was not created by `pearl refine fewshot`",
            path=folder,
            help="name another folder",
        )
    if not options["dry_run"]:
        make_folder(folder)

    def prepare(pearl: Pearl) -> Work[curator.CurateUnit]:
        if folder.is_dir():
            read_bank(folder)  # raises, before anything is written, if a person broke a plan
        name = Path(options["data"]).name
        header = msgspec.convert(
            {**run_config(pearl), "data": name, "retries": retries}, curator.CurationHeader
        )
        units = tuple(curator.curate_units(good, retries))
        return Work(units, {"retries": retries}, {"bank": str(folder.resolve())}, header)

    def finish(ran: Finished[curator.CurateUnit]) -> int:
        rows = [curator.curated(row, unit) for unit, row in ran.kept(ran.work.units)]
        bank = curator.choose_bank(rows, max_examples)
        try:  # the rows of the last written bank
            before = read_journal(folder / JOURNAL, curator.CurationHeader, curator.CurationRow)[1]
        except DataError:
            before = []
        with ran.writer.open(str(folder / JOURNAL)) as file:
            write_journal(file, ran.work.header, rows)
        n_by_hand = _write(folder, bank, [*before, *rows])
        _tell(rows, len(samples) + len(bad) - len(good), len(bank), n_by_hand)
        return ran.code(1 if bad or any(row.outcome == "failed" for row in rows) else 0)

    return run_units("fewshot", prepare, options, finish, outs=[str(folder / JOURNAL)])


JOURNAL = "curation.jsonl"
"""File of every question and plan that was tried, in the folder of the bank."""


def _good(
    samples: Sequence[Sample], held_out: str | None, options: dict[str, Any]
) -> Sequence[Sample]:
    fit = good = curator.trainable(samples)
    if held_out is not None:
        plain = {"data": held_out, "split": None, "columns": (), "subset": None, "limit": None}
        others, bad = read_data({**options, **plain})
        if bad:  # its question might get into the bank
            raise bad[0]
        asked = {wording(sample.question) for sample in others}
        good = [sample for sample in fit if wording(sample.question) not in asked]
    if fit and not good:
        raise DataError(
            f"all {len(fit)} questions are also in '{held_out}'",
            path=options["data"],
            help="train on other questions than those of --except",
        )
    if not fit:
        raise DataError(
            "no sample has a question, a document, options and a gold option",
            path=options["data"],
            help="rows need question, document, options and gold; --domain selects their format",
        )
    return good


def _write(folder: Path, bank: Sequence[Example], rows: Iterable[curator.CurationRow]) -> int:
    """Replace the plan files that earlier runs wrote; count those that a person wrote or changed, which stay."""
    own = {_text(example) for example in curator.choose_bank(rows, sys.maxsize)}
    by_hand: set[tuple[str, ...]] = set()
    n_by_hand = 0
    for path in sorted(folder.glob("*.plan")):
        text = read_input(str(path))
        if text in own:
            path.unlink()
            continue
        n_by_hand += 1
        first = text.partition("\n")[0]
        by_hand.add(wording(first.removeprefix("Question: ")))
    number = 0
    for example in bank:
        if wording(example.question) in by_hand:
            continue
        letters = (c if c.isascii() and c.isalnum() else " " for c in example.question.lower())
        words = "-".join("".join(letters).split()[:6]) or "question"
        number += 1
        while any(folder.glob(f"{number:03d}-*.plan")):
            number += 1
        with new_file(str(folder / f"{number:03d}-{words}.plan")) as file:
            file.write(_text(example))
    return n_by_hand


def _text(example: Example) -> str:
    return f"{print_plan(example.plan)}\n"


def _tell(
    rows: list[curator.CurationRow], n_left_out: int, n_examples: int, n_by_hand: int
) -> None:
    counts = Counter(row.outcome for row in rows)
    first = sum(row.outcome == "kept" and len(row.tries) == 1 for row in rows)
    usage = sum((row.usage for row in rows), Usage())
    for name, value in (
        ("questions", len(rows)),
        ("left out", n_left_out),
        ("reached the gold answer", counts["kept"]),
        ("at the first plan", first),
        ("never reached it", counts["wrong"] + counts["repeated"]),
        ("failed", counts["failed"]),
        ("examples in the bank", n_examples),
        ("files of yours, kept", n_by_hand),
        ("input tokens", usage.n_input_tokens),
        ("output tokens", usage.n_output_tokens),
    ):
        click.echo(f"{name:<26}{value:>10,}", err=True)
    report_reasons(row.error for row in rows if row.outcome == "failed")
