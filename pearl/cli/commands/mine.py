"""`pearl mine`: training questions → drafts of actions."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.help import Command
from pearl.cli.options import (
    ASKING,
    DRAFTING,
    as_json,
    data_options,
    open_pearl,
    price_option,
    read_data,
    setting_options,
)
from pearl.cli.progress import Reporter
from pearl.cli.work import no_reply, tell_left_out, tell_reasons, tell_stopped
from pearl.cli.writing import keep_inputs
from pearl.errors import DataError, UsageError

if TYPE_CHECKING:
    from pearl.mining.drafts import MinedRow
    from pearl.mining.miner import Question

N_COMMON = 15
"""Drafts in the table."""


@click.command(cls=Command)
@data_options
@click.option(
    "-o", "--out", type=click.Path(), required=True, metavar="FILE",
    help="JSON lines, one a question; what is there already is not asked again.",
)  # fmt: skip
@click.option(
    "--seed-library", metavar="NAME|FILE", default="seed", show_default=True,
    help="Actions that the prompt shows; what they cannot do is drafted.",
)  # fmt: skip
@click.option("--again", is_flag=True, help="Ask anew what had an unreadable reply.")
@setting_options(*ASKING, *DRAFTING)
@price_option
@as_json
def command(out: str, seed_library: str, again: bool, price: Any, **options: Any) -> int:
    """Draft actions from the questions of --data, one prompt a question.

    The prompt shows the actions of --seed-library and the domain's examples; --library is where the
    definitions of what those examples call are from. Stop it at any time (Ctrl-C) and run it again:
    it goes on where it stopped.
    """
    if options["data"] is None:
        raise UsageError("mining needs questions", help="--data FILE")
    keep_inputs([out], [options["data"]])
    return asyncio.run(_mine(out, seed_library, again, price, options))


async def _mine(
    out: str, seed_library: str, again: bool, price: Any, options: dict[str, Any]
) -> int:
    from pearl.actions.library import load_library
    from pearl.cli.stopping import Stopper
    from pearl.data.journal import Journal
    from pearl.mining.drafts import MinedRow
    from pearl.mining.miner import Miner
    from pearl.trace import Trace

    samples, bad = read_data(options)
    questions, n_doubles = _questions(samples)
    tell_left_out(bad)
    if not questions:
        raise DataError("there is no question in the data", path=options["data"])
    began = time.monotonic()
    async with open_pearl(options) as pearl:
        seed = load_library(seed_library)
        reporter = Reporter(len(questions))
        waits = Trace("", partial(reporter, ""))
        miner = Miner(
            pearl.calls(waits), seed, pearl.examples, pearl.library, pearl.client.settings.constrain,
            max_output_tokens=pearl.limits.max_output_tokens,
        )  # fmt: skip
        header = miner.header(domain=options["domain"], data=Path(options["data"]).name)
        # Another version is no other mining: what it asks is told apart by the prompt's digest.
        with Journal(out, header, MinedRow, varying={"pearl_version"}) as journal:
            rows = _known(journal.rows, questions, out)
            anew = ("failed", "unreadable") if again else ("failed",)
            done = {id for id, row in rows.items() if row.status not in anew}
            todo = [question for question in questions if question.id not in done]
            n_asked = 0
            with Stopper() as stopper, reporter:
                for _ in done:
                    reporter.advance()
                async for row in miner.mine(stopper.until(todo), pearl.client.settings.concurrency):
                    journal.append(row)
                    rows[row.id] = row
                    n_asked += 1
                    reporter.advance()
    mined = sorted(rows.values(), key=lambda row: row.index)
    _report(
        mined, n_asked, n_doubles, len(bad), price, time.monotonic() - began,
        is_json=options["as_json"],
    )  # fmt: skip
    failures = [row.error for row in mined if row.status == "failed"]
    if failures and len(failures) == len(mined) and not stopper.is_stopping:
        raise no_reply(len(failures), "questions", failures[0])
    if stopper.is_stopping:
        return tell_stopped(len(todo) - n_asked)
    if not any(row.status == "mined" for row in mined):
        click.echo(
            "pearl: not one reply could be read as actions; --again asks those questions anew",
            err=True,
        )
        return 1
    return 1 if bad or failures else 0


def _questions(samples: Sequence[Any]) -> tuple[list[Question], int]:
    """Every question once, however often it is asked, and how many were asked before."""
    from pearl.mining.miner import Question

    found: dict[str, Question] = {}
    asked = [sample for sample in samples if sample.question]
    for index, sample in enumerate(asked):
        text = " ".join(sample.question.split())
        found.setdefault(text, Question(sample.id, index, text))
    return list(found.values()), len(asked) - len(found)


def _known(
    rows: Sequence[MinedRow], questions: Sequence[Question], out: str
) -> dict[str, MinedRow]:
    """The last row of every question that is there already.

    Raises:
        DataError: A row has the id of a question and another text.
    """
    asked = {question.id: question.text for question in questions}
    for row in rows:
        if row.id in asked and asked[row.id] != row.question:
            raise DataError(
                f"question '{row.id}' was another one when this file was begun",
                path=out,
                help="name another output file for other questions",
            )
    return {row.id: row for row in rows if row.id in asked}


def _report(
    rows: Sequence[MinedRow],
    n_asked: int,
    n_doubles: int,
    n_bad: int,
    price: Any,
    duration_s: float,
    *,
    is_json: bool,
) -> None:
    from pearl.llm import Usage
    from pearl.mining.miner import common_drafts

    counts = Counter(row.status for row in rows)
    usage = sum((row.usage for row in rows), Usage())
    common = common_drafts(rows, N_COMMON)
    drafts = [action for row in rows for action in row.actions]
    summary = {
        "questions": len(rows),
        "asked_now": n_asked,
        "asked_twice_in_data": n_doubles,
        "bad_rows": n_bad,
        "mined": counts["mined"],
        "unreadable": counts["unreadable"],
        "failed": counts["failed"],
        "drafts": len(drafts),
        "distinct_drafts": len(set(drafts)),
        "input_tokens": usage.n_input_tokens,
        "output_tokens": usage.n_output_tokens,
        "cached_tokens": usage.n_cached_tokens,
        "cost_usd": round(price.cost_usd(usage), 4) if price else None,
        "duration_s": round(duration_s, 2),
    }
    if is_json:
        table = [{"action": action, "questions": n} for action, n in common]
        click.echo(json.dumps({**summary, "commonest": table}, indent=2))
        return
    for name, value in summary.items():
        shown = "not known (--price)" if value is None else f"{value:,}"
        click.echo(f"{name.replace('_', ' '):<22}{shown:>12}", err=True)
    tell_reasons(row.error for row in rows if row.status == "failed")
    if unread := next((row for row in rows if row.status == "unreadable"), None):
        problem = unread.diagnostics[0].partition("\n")[0] if unread.diagnostics else "no action"
        click.echo(f"unreadable, the first: question '{unread.id}': {problem}", err=True)
    if common:
        click.echo("questions  action")
    for action, n in common:
        click.echo(f"{n:>9,}  {action}")
