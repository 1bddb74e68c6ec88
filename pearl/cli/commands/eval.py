"""`pearl eval`: run methods on samples; write a log and its scores."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec
from msgspec.structs import replace

from pearl import plugins
from pearl.cli.files import data_options, read_data
from pearl.cli.options import (
    AT_LEAST_1,
    PATH,
    Command,
    as_json,
    by_document_option,
    option,
    refuse,
    setting_options,
    trace_option,
    unit_options,
)
from pearl.cli.run_commands import Finished, Work, no_reply, report_left_out, run_units
from pearl.cli.terminal import notice
from pearl.cli.writing import OutputWriter, refuse_overwriting_inputs
from pearl.errors import DataError
from pearl.plugins.extras import require_extra
from pearl.settings import ROLES, Stage

if TYPE_CHECKING:
    from pearl.evals.log import EvalLog, Header
    from pearl.evals.report import Cluster
    from pearl.evals.runner import Evaluation
    from pearl.pipeline import Pearl


@click.command(cls=Command)
@data_options
@option(
    "--methods --method", str, metavar="NAME,...", default=["pearl,direct"], multiple=True,
    callback=lambda _context, _option, said: ",".join(said),
    help=", ".join(plugins.names("pearl.evals.methods")),
)  # fmt: skip
@option("--rescore", PATH, "Score the replies of LOG again, without calls.", metavar="LOG")
@option(
    "--scorer", str, metavar="NAME",
    help=f"Scorer of answers in words: {', '.join(plugins.names('pearl.evals.scorers'))} [default: exact, or that "
    "of the log].",
)  # fmt: skip
@option(
    "-o --out", PATH, metavar="LOG", help="Write the log to LOG; methods and seeds of the same run that are already in it are kept.",
)  # fmt: skip
@option(
    "--seeds", AT_LEAST_1, "Run everything N times, with seeds 0 to N-1.", metavar="N", default=1
)
@option("--temperature", click.FloatRange(0, 2), "Temperature of every call [default: 0].")
@option(
    "--token-budget", click.IntRange(min=256), metavar="TOKENS",
    help="Maximum input tokens that each method may spend on a sample's document.",
)  # fmt: skip
@option(
    "--part-tokens", click.IntRange(min=256), metavar="TOKENS", default=4_096,
    help="Tokens of a part in map-reduce, and of the passages in retrieve.",
)  # fmt: skip
@by_document_option
@trace_option
@setting_options(stages=get_args(Stage))
@unit_options
@as_json
def command(
    methods: str, rescore: str | None, out: str | None, scorer: str | None, by_document: bool,
    force: bool, **options: Any,
) -> int:  # fmt: skip
    """Score methods over the samples of --data.

    The report has accuracies with intervals, paired tests and cost. Failed records, and replies
    that name no option, count as wrong. The store keeps every reply and every record: the same
    command resumes an evaluation that was stopped.
    """
    names = [name.strip() for name in methods.split(",") if name.strip()]
    refuse((not names, "no method given", "--methods pearl,direct"))
    refuse(
        ((options["data"] is None) == (rescore is None),
         "give exactly one of --data FILE, --rescore LOG",
         "pearl eval --domain quality --data FILE --methods pearl,direct,mcq"),
        (rescore is not None and options["trace"], "--rescore calls no model", "leave out --trace"),
    )  # fmt: skip
    require_extra("eval", "an evaluation", "scipy")  # before the first call
    if options["seeds"] > 1 and not options["temperature"]:
        notice(
            f"--seeds {options['seeds']} at temperature 0: most servers give the same reply to every seed\n"
            "  help: --temperature 0.7 draws different replies"
        )
    refuse_overwriting_inputs(
        [out, options["trace"]], [name for name in (options["data"], rescore) if name]
    )
    cluster: Cluster = "document" if by_document else "sample"
    if scorer is not None:
        from pearl.evals.scorers import load_scorer

        load_scorer(scorer)
    options["scorer"] = scorer
    if rescore is not None:
        writer = OutputWriter(is_forced=force)
        return _rescore(rescore, out, writer, cluster, options)
    options["force"] = force
    return _evaluate(names, out, cluster, options)


def _rescore(
    path: str, out: str | None, writer: OutputWriter, cluster: Cluster, options: dict[str, Any]
) -> int:
    from pearl.data.log_files import write_journal
    from pearl.evals.log import read_log
    from pearl.evals.runner import rescored

    log = read_log(path)
    found = rescored(log, options["scorer"])
    n_changed = sum(one != two for one, two in zip(log.records, found.records, strict=True))
    if out is not None:
        with writer.open(out) as file:
            write_journal(file, found.header, found.records)
    click.echo(f"{n_changed} of {len(found.records)} records changed", err=True)
    _print(found, cluster, is_json=options["as_json"])
    return 0


def _evaluate(
    methods: list[str], out: str | None, cluster: Cluster, options: dict[str, Any]
) -> int:
    from pearl.data.log_files import write_journal
    from pearl.evals import runner
    from pearl.evals.log import EvalLog, EvalRecord
    from pearl.evals.methods import Effort, load_method
    from pearl.evals.scorers import EXACT
    from pearl.llm.prices import read_prices

    names = tuple(dict.fromkeys(methods))
    for name in names:
        load_method(name)
    evaluation = runner.Evaluation(
        names,
        tuple(range(options["seeds"])),
        options["temperature"],
        Effort(options["token_budget"], options["part_tokens"]),
        None
        if any(options[name] for name in ROLES)  # models of different prices
        else options["price"] or read_prices(options["prices"]).of(options["model"]),
        options["scorer"] or EXACT,
    )
    read, bad = read_data(options)
    samples, unfit = runner.scorable(read)
    report_left_out([*bad, *unfit])
    if not samples:
        raise DataError(
            "no sample can be evaluated",
            path=options["data"],
            help="a sample needs a question, a document, and a gold option or a reference answer",
        )
    runner.refuse_unfit(samples, names)
    name, n_bad = Path(options["data"]).name, len(bad) + len(unfit)

    def prepare(pearl: Pearl) -> Work[Any]:
        runner.refuse_known(samples, pearl.material.examples)
        header = runner.describe(pearl, samples, evaluation, data=name, n_bad_rows=n_bad)
        # Not part of the identity of a run: methods and seeds, which a later command may add.
        effort = (
            evaluation.temperature, evaluation.effort.token_budget, evaluation.effort.part_tokens,
        )  # fmt: skip
        settings = {"effort": effort, "kind": "methods"}
        return Work(
            tuple(evaluation.units(samples)), settings, {"samples": header.data_sha256}, header
        )

    def finish(ran: Finished[Any]) -> int:
        header: Header = ran.work.header
        units = _added(out, evaluation).units(samples)
        records = tuple(
            runner.graded(msgspec.convert(row, EvalRecord), evaluation)
            for _, row in ran.kept(units)
        )
        log = EvalLog(header, records)
        if out is not None:
            with ran.writer.open(out) as file:
                write_journal(file, header, records)
        ran.write_trace(options["trace"])
        unanswered = [
            one.error for one in records if one.status == "failed" and not one.usage.n_output_tokens
        ]
        of_model = [error for error in unanswered if str(error).startswith("ModelError")]
        if of_model and len(unanswered) == len(records) and not ran.n_left:
            raise no_reply(len(records), "records", of_model[0])
        code = ran.code(1 if bad or any(one.status == "failed" for one in records) else 0)
        if records:
            _print(log, cluster, is_json=options["as_json"])
        return code

    return run_units("eval", prepare, options, finish, outs=[out, options["trace"]])


def _added(out: str | None, evaluation: Evaluation) -> Evaluation:
    """Add the methods and seeds that the log already has to the evaluation."""
    from pearl.evals.log import read_log

    if out is None or not Path(out).is_file():
        return evaluation
    try:
        known = read_log(out).records
    except DataError:  # not a log: the writer refuses to replace it, or does with --force
        return evaluation
    return replace(
        evaluation,
        methods=tuple(dict.fromkeys([*evaluation.methods, *(one.method for one in known)])),
        seeds=tuple(dict.fromkeys([*evaluation.seeds, *(one.seed for one in known)])),
    )


def _print(log: EvalLog, cluster: Cluster, *, is_json: bool) -> None:
    from pearl.cli.scores import print_scores
    from pearl.evals import report
    from pearl.evals.report import outcomes, plan_figures

    if not is_json:
        print_scores(log, cluster)
        return
    guess = report.chance(log.records)
    json.dump(
        {
            "header": msgspec.to_builtins(log.header),
            "chance": guess,
            "served": report.served(log),
            "rows": [
                score.to_dict() | {"is_below_chance": report.is_below(score, guess)}
                for score in report.scores(log, cluster=cluster)
            ],
            "outcomes": msgspec.to_builtins(outcomes(log)),
            "plans": msgspec.to_builtins(plan_figures(log)),
            "baselines": [one.to_dict() for one in report.baselines(log, cluster=cluster)],
            "comparisons": msgspec.to_builtins(report.comparisons(log, cluster=cluster)),
            "errors": [{"error": error, "n": n} for error, n in report.errors(log)],
        },
        sys.stdout,
        indent=2,
    )
    click.echo()
