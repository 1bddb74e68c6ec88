"""How many actions are enough? One library trimmed to several sizes, each planned with, run and scored.

    python experiments/ablation.py LIBRARY --data FILE --domain NAME --out FOLDER [--sizes 20,40,80] [--traces FILE...]

LIBRARY is an action file of `pearl refine actions`, whose comments tell how many drafts an action stands for. For each size N
its N most used actions are kept: by the calls of published plans (--traces), then by drafts; actions that Python computes
always stay, and count. All other options are those of `pearl eval`.

FOLDER gets `N.actions` and the log `N.eval.jsonl` of each size, stdout one line a size and method: accuracy with its interval, and
the difference to the largest library with its interval and paired test (McNemar's, or the bootstrap where that is not exact), corrected
by Holm over the sizes. Run again, it goes on where it stopped. Examples that call what a library lacks are not shown to the
planner: their number is in the table.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, cast

import click
from traces import PlanRow, records, trace_files, typed

from pearl import PearlError, load_library
from pearl.cli.commands.eval import command as evaluate
from pearl.cli.scores import ends, p_value, percent
from pearl.cli.terminal import print_table
from pearl.dsl.parser import read
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import UsageError
from pearl.evals import report
from pearl.evals.log import EvalLog, read_log

STOPPED = 130
"""The exit code of `pearl eval` after Ctrl-C."""
_BLOCK = re.compile(r"(?P<comment>(?:#.*\n)*)(?P<name>\w+)\(.*(?:\n|$)")
_DRAFT = re.compile(r"\b[A-Z][A-Z0-9_]*(?: x(\d+))?")


def blocks(text: str) -> dict[str, re.Match[str]]:
    """Name → each action of a file, with the comments right above it."""
    return {found["name"]: found for found in _BLOCK.finditer(text)}


def ranked(library: ActionLibrary, text: str, traces: Sequence[Path]) -> list[str]:
    """The actions of a library, those that stay longest first."""
    rows = (typed(PlanRow, record) for record in records(traces) if "plan" in record.data)
    plans = filter(None, (read(row.plan).plan for row in rows))
    used = Counter(step.action for plan in plans for step in plan.steps)
    said = {
        name: each["comment"].partition("# stands for:")[2] for name, each in blocks(text).items()
    }
    drafts = {
        name: sum(int(n or 1) for n in _DRAFT.findall(lineage)) for name, lineage in said.items()
    }
    if not any(drafts.values()) and not any(used[name] for name in library):
        raise UsageError(
            "nothing tells how often an action of the library is used",
            help="take the output of `pearl refine actions`, or name published plans: --traces FILE",
        )
    return sorted(library, key=lambda name: (
        not library[name].is_native, -used[name], -drafts.get(name, 0)
    ))  # fmt: skip


def table(logs: Sequence[EvalLog], cluster: report.Cluster) -> Iterator[list[str]]:
    """The rows of the table: sizes that were evaluated, each with every method."""
    largest = logs[-1]
    for method in largest.methods:
        found = [
            report.compare(log.of(method), largest.of(method), (method, method), cluster=cluster)
            for log in logs[:-1]
        ]
        tests = iter(report.corrected([one for one in found if one is not None]))
        for log, one in zip(logs, [*found, None], strict=True):
            score = report.score_of(method, "all", log.of(method), cluster=cluster)
            row = [f"{log.header.n_actions}", f"{log.header.n_examples}", method]
            row += [
                f"{score.n_correct:,}/{score.n:,}",
                f"{score.n_fell_back}",
                percent(score.accuracy.estimate),
            ]
            row += [ends(score.accuracy)]
            if one is not None:
                test = next(tests)
                p = test.bootstrap_p_holm if test.mcnemar is None else test.mcnemar_p_holm
                row += [f"{100 * test.difference.estimate:+.1f}", ends(test.difference), p_value(p)]
            yield row


@click.command()
@click.argument("library", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--sizes", default="20,40,80", show_default=True, metavar="N,...")
@click.option("--methods", default="pearl", show_default=True, metavar="NAME,...")
@trace_files
@click.pass_context
def main(ctx: click.Context, **options: Any) -> None:
    """Evaluate a library that is trimmed to several sizes."""
    try:
        code = run(ctx, **options)
    except PearlError as error:
        click.echo(f"ablation: {error}", err=True)
        code = error.exit_code
    sys.exit(code)


OWN = {"help", "rescore", "as_json", *(option.name for option in main.params)}
main.params += [option for option in evaluate.params if option.name not in OWN]


def run(
    ctx: click.Context, library: Path, out: Path, sizes: str, methods: str, traces: Sequence[Path],
    **options: Any,
) -> int:  # fmt: skip
    """Trim and evaluate size by size; 0, 1 where samples failed, 130 where it was stopped."""
    wanted = [size.strip() for size in sizes.split(",")]
    if not all(size.isascii() and size.isdecimal() and int(size) for size in wanted):
        raise UsageError(f"--sizes {sizes}: no numbers of actions", help="--sizes 20,40,80")
    whole = load_library(library)
    text = library.read_text(encoding="utf-8-sig")
    order, of, n_native = (
        ranked(whole, text, traces),
        blocks(text),
        sum(a.is_native for a in whole.values()),
    )
    out.mkdir(parents=True, exist_ok=True)
    code, logs, done = 0, [], 0
    for size in sorted({max(n_native, min(int(size), len(order))) for size in wanted}):
        kept = set(order[:size])
        path, log = out / f"{size}.actions", out / f"{size}.eval.jsonl"
        path.write_text("\n".join(of[name][0] for name in whole if name in kept), encoding="utf-8")
        click.echo(f"{size} actions", err=True)
        with redirect_stdout(sys.stderr):
            done = cast("int", ctx.invoke(
                evaluate, out=str(log), methods=methods, library=str(path), as_json=False,
                rescore=None, **options,
            ))  # fmt: skip
        code = max(code, done)
        if log.is_file() and (found := read_log(log)).records:
            logs.append(found)
        if done == STOPPED:
            break
    if logs:
        heads = ("actions", "examples", "method", "right", "fell\nback", "accuracy\n%", "95 %")
        more = (f"- {logs[-1].header.n_actions}\npoints", "95 %", "p") if len(logs) > 1 else ()
        cluster: report.Cluster = "document" if options["by_document"] else "sample"
        rows = [row + [""] * (len(heads) + len(more) - len(row)) for row in table(logs, cluster)]
        print_table((*heads, *more), rows)
        if len(logs) > 2:
            click.echo(f"p: Holm over {len(logs) - 1} sizes")
    return code


if __name__ == "__main__":
    main()
