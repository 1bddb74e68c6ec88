"""`pearl refine`: what was mined → what is shipped. One subcommand for each kind of thing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.data import data_options
from pearl.cli.help import Command
from pearl.cli.options import ASKING, PLANNING, READING, open_pearl, setting_options
from pearl.cli.output import read_input
from pearl.cli.progress import Reporter
from pearl.cli.run_options import unit_options
from pearl.cli.terminal import notice
from pearl.cli.writing import OutputWriter, force_option, keep_inputs
from pearl.errors import UsageError
from pearl.errors.escaping import escaped

if TYPE_CHECKING:
    from pearl.mining.merging import Rules
    from pearl.mining.refinement import Refinement
    from pearl.mining.refining import RefineSettings


@click.group()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Make what was mined fit for use."""
    # Settings of the TOML file reach a command by its name; those of a group are its commands'.
    ctx.default_map = dict.fromkeys(command.commands, ctx.default_map)


@command.command(cls=Command)
@click.argument("mined", metavar="MINED")
@click.option("-o", "--out", type=click.Path(), help="Write the library to FILE, not stdout.")
@click.option(
    "--max-actions", type=click.IntRange(min=1), default=80, show_default=True,
    help="Actions of the library at most.",
)  # fmt: skip
@click.option(
    "--max-tokens", type=click.IntRange(min=1), metavar="TOKENS",
    help="Tokens of the library in a planner's prompt at most.",
)  # fmt: skip
@click.option(
    "--rounds", type=click.IntRange(min=0), default=6, show_default=True,
    help="Rounds of the model at most; 0 merges by rule alone.",
)  # fmt: skip
@click.option(
    "--shard-size", type=click.IntRange(min=2), default=40, show_default=True,
    help="Drafts shown to the model at once.",
)  # fmt: skip
@click.option(
    "--embeddings", metavar="NAME",
    help="Measure likeness by embeddings: minilm, openai:MODEL, model2vec:MODEL [default: by words].",
)  # fmt: skip
@click.option(
    "--report", type=click.Path(), help="Write what became of every draft to FILE.html or .json."
)
@click.option("--compare", metavar="LIBRARY", help="Compare with a library, by name or file.")
@force_option
@setting_options(*ASKING)
def actions(
    mined: str, out: str | None, max_actions: int, max_tokens: int | None, rounds: int,
    shard_size: int, embeddings: str | None, report: str | None, compare: str | None,
    force: bool, **options: Any,
) -> int:  # fmt: skip
    """Merge the drafts of MINED (mined.jsonl, or an action file) into a library."""
    from pearl.actions.library import load_library
    from pearl.mining.refinement import compared, library_text
    from pearl.mining.refining import RefineSettings

    if report and not report.endswith((".html", ".json")):
        raise UsageError("--report writes .html or .json", help="for example --report refined.html")
    keep_inputs([out, report], [mined, *([compare] if compare else [])])
    other = load_library(compare) if compare else None
    settings = RefineSettings(
        max_actions, max_tokens, rounds, shard_size, options["max_output_tokens"]
    )
    # Opened before the model is asked: a library that cannot be kept is not paid for.
    writer = OutputWriter.of_command(is_forced=force)
    writer.check(report, out)
    with writer.open(report) if report else nullcontext() as page, writer.open(out) as file:
        refinement = asyncio.run(_refine(mined, settings, embeddings, options))
        if other is not None:
            refinement = compared(refinement, other)
        file.write(library_text(refinement))
        if page is not None:
            page.write(_report(refinement, is_json=str(report).endswith(".json")))
    click.echo(_summary(refinement), err=True)
    warnings = list(_warnings(refinement))
    for warning in warnings:
        notice(warning)
    return 1 if warnings else 0


def _warnings(refinement: Refinement) -> Iterator[str]:
    """Warnings about limits that the library misses."""
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
        yield f"the model merged nothing, rules did it all; its first reply: {problem}"


async def _refine(
    mined: str, settings: RefineSettings, embeddings: str | None, options: dict[str, Any]
) -> Refinement:
    from pearl.mining.refining import read_drafts, refine_actions
    from pearl.trace import Trace

    found = read_drafts(read_input(mined), "<stdin>" if mined == "-" else mined)
    with _rules(embeddings, options) as rules:
        async with open_pearl(options) as pearl:
            with Reporter(1) as reporter:
                calls = pearl.calls(Trace("", partial(reporter, "")))
                return await refine_actions(
                    found, calls, settings,
                    rules=rules, counter=pearl.limits.counter,
                )  # fmt: skip


@contextmanager
def _rules(embeddings: str | None, options: dict[str, Any]) -> Iterator[Rules]:
    """The rules of merging, by words or by embeddings."""
    from pearl.mining.merging import Rules

    if not embeddings:
        yield Rules()
        return
    from pearl.llm.embedders import EmbedderSettings, create_embedder
    from pearl.mining.refining import embedding

    asked = {name: options[name] for name in ("base_url", "api_key_env", "timeout_s")}
    embedder = create_embedder(embeddings, EmbedderSettings(**asked))
    if embedder.notice:
        notice(embedder.notice)
    with embedding(embedder) as embed:
        yield Rules.for_embedder(embed)


def _report(refinement: Refinement, *, is_json: bool) -> str:
    from pearl.evals.pages import refinement_page

    text = f"{refinement.model_dump_json(indent=2)}\n" if is_json else refinement_page(refinement)
    return escaped(text)


def _summary(refinement: Refinement) -> str:
    """The figures of a refinement, one per line."""
    rows = refinement.figures
    lead = max(len(label) for label, _, _ in rows)
    width = max(len(f"{n:,}") for _, n, _ in rows)
    return "\n".join(
        f"{label:<{lead}}  {n:>{width},}{f'  ({note})' if note else ''}" for label, n, note in rows
    )


@command.command(cls=Command)
@data_options
@click.option(
    "-o", "--out", type=click.Path(), required=True, metavar="FOLDER",
    help="Folder of the bank; what was tried there already is not tried again.",
)  # fmt: skip
@click.option(
    "--retries", type=click.IntRange(min=0), default=2, show_default=True,
    help="Times a plan that led to a wrong answer goes back to the planner.",
)  # fmt: skip
@click.option(
    "--max-examples", type=click.IntRange(min=1), default=12, show_default=True,
    help="Plans in the bank at most; of more, those least like one another.",
)  # fmt: skip
@click.option(
    "--except", "held_out", type=click.Path(), metavar="DATA",
    help="Data to be evaluated on: its questions are left out of the bank.",
)  # fmt: skip
@setting_options(*ASKING, *PLANNING, *READING)
@unit_options
def fewshot(out: str, retries: int, max_examples: int, held_out: str | None, **options: Any) -> int:
    """Make a bank of examples: plans for the questions of --data that reached the gold answer.

    Every plan is run over its document and its answer mapped to the options. Questions of the bank
    are refused in an evaluation.
    """
    from pearl.cli.banks import make_bank

    if options["data"] is None:
        raise UsageError("a bank is made from questions", help="--data FILE")
    return make_bank(out, retries, max_examples, held_out, options)
