"""`pearl mine`: draft actions from training questions."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.files import data_options, read_data
from pearl.cli.options import PATH, Command, as_json, option, setting_options, unit_options
from pearl.cli.run_commands import (
    Finished,
    Work,
    no_reply,
    report_left_out,
    report_reasons,
    run_units,
)
from pearl.cli.terminal import notice
from pearl.cli.writing import refuse_overwriting_inputs
from pearl.data.log_files import write_journal
from pearl.errors import DataError, UsageError

if TYPE_CHECKING:
    from pearl.mining.miner import MinedRow, MineUnit
    from pearl.pipeline import Pearl

N_COMMON = 15  # Maximum drafts in the table


@click.command(cls=Command)
@data_options
@option(
    "-o --out", PATH, metavar="FILE", required=True,
    help="JSON lines, one per question; finished questions are not asked again.",
)  # fmt: skip
@option(
    "--seed-library", str, metavar="NAME|FILE", default="seed",
    help="Library whose actions the prompt shows (of 'seed', only those that the domain's library also has); the model "
    "drafts what is missing.",
)  # fmt: skip
@option("--again", bool, "Repeat questions whose reply was unreadable.")
@setting_options(stages=("calling", "drafting"))
@unit_options
@as_json
def command(out: str, seed_library: str, again: bool, **options: Any) -> int:
    """Draft actions from the questions of --data.

    There is one prompt per question. The prompt shows the actions of --seed-library and the
    domain's examples; --library defines the actions that those examples call. The store keeps every
    reply and every row: the same command resumes work that was stopped.
    """
    from pearl.mining.miner import Question, mine_units, mined, miner_of

    data = options["data"]
    if data is None:
        raise UsageError("mine needs questions", help="--data FILE")
    refuse_overwriting_inputs([out], [data])
    samples, bad = read_data(options)
    found: dict[str, Question] = {}  # The distinct questions
    asked = [sample for sample in samples if sample.question]
    for index, sample in enumerate(asked):
        text = " ".join(sample.question.split())
        found.setdefault(text, Question(sample.id, index, text))
    questions, n_doubles = list(found.values()), len(asked) - len(found)
    report_left_out(bad)
    if not questions:
        raise DataError("the data has no question", path=data)
    began = time.monotonic()

    def prepare(pearl: Pearl) -> Work[MineUnit]:
        miner = miner_of(pearl, seed_library)
        header = miner.header(domain=options["domain"], data=Path(data).name)
        units = tuple(mine_units(questions, seed_library, miner.prompt))
        # The path, not the content: added questions must not begin another run.
        place = str(Path(data).resolve()) if Path(data).exists() else data
        return Work(units, {"prompt_sha256": miner.prompt_sha256}, {"data": place}, header)

    def finish(ran: Finished[MineUnit]) -> int:
        rows = [mined(row, unit) for unit, row in ran.kept(ran.work.units)]
        with ran.writer.open(out) as file:
            write_journal(file, ran.work.header, rows)
        failures = [row.error for row in rows if row.status == "failed"]
        if failures and len(failures) == len(rows) and not ran.n_left:
            raise no_reply(len(failures), "questions", failures[0])
        is_vain = not ran.n_left and not any(row.status == "mined" for row in rows)
        if is_vain:
            notice("no reply could be read as actions; --again repeats those questions")
        code = ran.code(1 if bad or failures or is_vain else 0)
        n_asked = ran.summary.n_done - ran.summary.n_unfinished
        price = ran.session.price
        duration_s = time.monotonic() - began
        counts = {"asked_now": n_asked, "asked_twice_in_data": n_doubles, "bad_rows": len(bad)}
        _report(rows, counts, price, duration_s, is_json=options["as_json"])
        return code

    def is_unreadable(row: Mapping[str, Any]) -> bool:
        return row.get("status") == "unreadable"

    redo = is_unreadable if again else None
    return run_units("mine", prepare, options, finish, outs=[out], redo=redo)


def _report(
    rows: Sequence[MinedRow], asked: dict[str, int], price: Any, duration_s: float, *, is_json: bool
) -> None:
    from pearl.llm import Usage
    from pearl.mining.miner import common_drafts

    counts = Counter(row.status for row in rows)
    usage = sum((row.usage for row in rows), Usage())
    common = common_drafts(rows, N_COMMON)
    drafts = [action for row in rows for action in row.actions]
    undeclared = Counter(name for row in rows for name in row.undeclared)
    summary = {
        "questions": len(rows),
        **asked,
        "mined": counts["mined"],
        "unreadable": counts["unreadable"],
        "failed": counts["failed"],
        "drafts": len(drafts),
        "distinct_drafts": len(set(drafts)),
        "undeclared_calls": undeclared.total(),
        "input_tokens": usage.n_input_tokens,
        "output_tokens": usage.n_output_tokens,
        "cached_tokens": usage.n_cached_tokens,
        "cost_usd": round(price.cost_usd(usage), 4) if price else None,
        "duration_s": round(duration_s, 2),
    }
    if is_json:
        table = [{"action": action, "questions": n} for action, n in common]
        rest = [{"action": name, "questions": n} for name, n in undeclared.most_common(N_COMMON)]
        click.echo(json.dumps({**summary, "commonest": table, "undeclared": rest}, indent=2))
        return
    for name, value in summary.items():
        shown = "not known (--price)" if value is None else f"{value:,}"
        click.echo(f"{name.replace('_', ' '):<22}{shown:>12}", err=True)
    report_reasons(row.error for row in rows if row.status == "failed")
    if unread := next((row for row in rows if row.status == "unreadable"), None):
        problem = unread.diagnostics[0].partition("\n")[0] if unread.diagnostics else "no action"
        click.echo(f"unreadable, the first: question '{unread.id}': {problem}", err=True)
    if undeclared:
        called = ", ".join(f"{name} ({n:,})" for name, n in undeclared.most_common(N_COMMON))
        click.echo(f"called but not declared, so no drafts: {called}", err=True)
    if common:
        click.echo("questions  action")
    for action, n in common:
        click.echo(f"{n:>9,}  {action}")
