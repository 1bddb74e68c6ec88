"""`pearl eval`: samples × methods → a log and its scores."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl import plugins
from pearl.cli.help import Command
from pearl.cli.options import (
    as_json,
    data_options,
    open_pearl,
    price_option,
    read_data,
    setting_options,
)
from pearl.cli.progress import Reporter
from pearl.cli.work import no_reply, tell_left_out
from pearl.cli.writing import OutputWriter, force_option, keep_inputs
from pearl.errors import DataError, UsageError
from pearl.plugins.extras import require_extra

if TYPE_CHECKING:
    from pearl.evals.log import EvalLog, EvalRecord, Key
    from pearl.evals.report import Cluster


@click.command(cls=Command)
@data_options
@click.option(
    "--methods", default="pearl,direct", show_default=True, metavar="NAME,...",
    help=f"{', '.join(plugins.names('pearl.evals.methods'))}.",
)  # fmt: skip
@click.option(
    "--results", type=click.Path(), metavar="FILE",
    help="Score what `pearl execute --out` wrote, instead of running methods over --data.",
)  # fmt: skip
@click.option(
    "--rescore", type=click.Path(), metavar="LOG",
    help="Read the replies of LOG anew and score them, without any call.",
)  # fmt: skip
@click.option(
    "--scorer", metavar="NAME",
    help=f"Of answers in words: {', '.join(plugins.names('pearl.evals.scorers'))} [default: exact, or that "
    "of the log].",
)  # fmt: skip
@click.option(
    "-o", "--out", type=click.Path(), metavar="LOG",
    help="Write the log to LOG; what is there already is not run again.",
)  # fmt: skip
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
    help="Run everything N times, by seeds 0 to N-1.",
)  # fmt: skip
@click.option("--temperature", type=click.FloatRange(0, 2), help="Of every call [default: 0].")
@click.option(
    "--token-budget", type=click.IntRange(min=256), metavar="TOKENS",
    help="Input tokens that every method may spend on a sample's document.",
)  # fmt: skip
@click.option(
    "--part-tokens", type=click.IntRange(min=256), default=4_096, show_default=True,
    metavar="TOKENS", help="A call of map-reduce, and what retrieve shows.",
)  # fmt: skip
@click.option(
    "--by-document", is_flag=True, help="Intervals resample documents, not samples: more honest."
)
@force_option
@setting_options()
@price_option
@as_json
def command(
    methods: str, results: str | None, rescore: str | None, out: str | None,
    scorer: str | None, by_document: bool, force: bool, **options: Any,
) -> int:  # fmt: skip
    """Score methods over the samples of --data: accuracy with intervals, paired tests, cost.

    What failed and what names no option is wrong, and counted. With -o, stop it at any time
    (Ctrl-C) and run it again: it goes on where it stopped.
    """
    if sum(given is not None for given in (options["data"], results, rescore)) != 1:
        raise UsageError(
            "one of --data FILE, --results FILE, --rescore LOG",
            help="pearl eval --domain quality --data FILE --methods pearl,direct,mcq",
        )
    if results is not None and options["seeds"] > 1:
        raise UsageError("--results has one run", help="leave out --seeds")
    require_extra("eval", "an evaluation", "scipy")  # before a model is asked anything
    keep_inputs([out], [name for name in (options["data"], results, rescore) if name])
    cluster: Cluster = "document" if by_document else "sample"
    if scorer is not None:
        from pearl.evals.scorers import load_scorer

        load_scorer(scorer)
    options["scorer"] = scorer
    if rescore is not None:
        writer = OutputWriter.of_command(is_forced=force)
        return _rescore(rescore, out, writer, cluster, options)
    if results is not None:
        options["data"] = results
    return asyncio.run(_evaluate(methods, results is not None, out, cluster, options))


def _rescore(
    path: str, out: str | None, writer: OutputWriter, cluster: Cluster, options: dict[str, Any]
) -> int:
    from pearl.evals.log import read_log
    from pearl.evals.scoring import rescored

    log = read_log(path)
    found = rescored(log, options["scorer"])
    n_changed = sum(one != two for one, two in zip(log.records, found.records, strict=True))
    if out is not None:
        with writer.open(out) as file:
            file.writelines(f"{row.model_dump_json()}\n" for row in (found.header, *found.records))
    click.echo(f"{n_changed} of {len(found.records)} records changed", err=True)
    _print(found, cluster, is_json=options["as_json"])
    return 0


async def _evaluate(
    methods: str, is_executed: bool, out: str | None, cluster: Cluster, options: dict[str, Any]
) -> int:
    from pearl.cli.stopping import Stopper
    from pearl.evals import runner
    from pearl.evals.methods import Effort
    from pearl.evals.recorder import describe, describe_results, record
    from pearl.evals.results import EXECUTED, score_results
    from pearl.evals.scorers import EXACT

    names = (EXECUTED,) if is_executed else tuple(dict.fromkeys(_names(methods)))
    evaluation = runner.Evaluation(
        names,
        tuple(range(options["seeds"])),
        options["temperature"],
        Effort(options["token_budget"], options["part_tokens"]),
        options["price"],
        options["scorer"] or EXACT,
    )
    read, bad = read_data({**options, "domain": "generic"} if is_executed else options)
    samples, unfit = runner.scorable(read, with_document=not is_executed)
    tell_left_out([*bad, *unfit])
    if not samples:
        raise DataError(
            "no sample can be evaluated",
            path=options["data"],
            help="a sample needs a question, a document and what is right (gold or reference)",
        )
    if not is_executed:
        runner.refuse_unfit(samples, names)
    name, n_bad = Path(options["data"]).name, len(bad) + len(unfit)
    async with open_pearl(options) as pearl:
        if is_executed:  # whose bank and library are not those of the model that maps
            header = describe_results(
                pearl.client.name,
                samples,
                price=evaluation.price,
                scorer=evaluation.scorer,
                data=name,
                n_bad_rows=n_bad,
            )
        else:
            runner.refuse_known(samples, pearl.examples)
            header = describe(pearl, samples, evaluation, data=name, n_bad_rows=n_bad)
        n_all = len(samples) * len(names) * len(evaluation.seeds)
        with Stopper() as stopper, Reporter(n_all) as reporter:

            def run(done: Collection[Key]) -> AsyncIterator[EvalRecord]:
                if is_executed:
                    return score_results(
                        pearl,
                        samples,
                        price=evaluation.price,
                        scorer=evaluation.scorer,
                        done=done,
                        until=stopper.until,
                    )
                return runner.evaluate(
                    pearl, samples, evaluation, done=done, until=stopper.until, listener=reporter
                )

            n_done = 0

            def tick(one: EvalRecord) -> None:
                nonlocal n_done
                if one.method in names and one.seed in evaluation.seeds:  # a log may have more
                    n_done += 1
                    reporter.advance()

            log = await record(header, run, out, on_record=tick)
    unanswered = [one.error for one in log.records if one.status == "failed" and not one.n_calls]
    of_model = [error for error in unanswered if str(error).startswith("ModelError")]
    if of_model and len(unanswered) == len(log.records) and not stopper.is_stopping:
        raise no_reply(len(log.records), "records", of_model[0])
    if log.records:
        _print(log, cluster, is_json=options["as_json"])
    if stopper.is_stopping:
        left = n_all - n_done
        again = "run it again to go on" if out else "-o LOG keeps what is done"
        click.echo(f"pearl: stopped with {left} left; {again}", err=True)
        return 130
    return 1 if bad or any(one.status == "failed" for one in log.records) else 0


def _names(methods: str) -> list[str]:
    from pearl.evals.methods import load_method

    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise UsageError("no method", help="--methods pearl,direct")
    for name in names:
        load_method(name)
    return names


def _print(log: EvalLog, cluster: Cluster, *, is_json: bool) -> None:
    from pearl.cli.scores import print_scores
    from pearl.evals import report

    if not is_json:
        print_scores(log, cluster)
        return
    guess = report.chance(log.records)
    json.dump(
        {
            "header": log.header.model_dump(),
            "chance": guess,
            "rows": [
                score.to_json() | {"is_below_chance": report.is_below(score, guess)}
                for score in report.scores(log, cluster=cluster)
            ],
            "comparisons": [c.to_json() for c in report.comparisons(log, cluster=cluster)],
            "errors": [{"error": error, "n": n} for error, n in report.errors(log)],
        },
        sys.stdout,
        indent=2,
    )
    click.echo()
