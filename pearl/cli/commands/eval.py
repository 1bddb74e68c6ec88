"""`pearl eval`: samples × methods → a log and its scores."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl import plugins
from pearl.cli.corpora import open_index, together_option
from pearl.cli.data import data_options, read_data
from pearl.cli.help import Command
from pearl.cli.options import as_json, setting_options, trace_option
from pearl.cli.retrieval_eval import refuse_retrieval_options, retrieval_options, score_retrieval
from pearl.cli.run_options import unit_options
from pearl.cli.units import Finished, Work, run_units
from pearl.cli.work import no_reply, report_left_out
from pearl.cli.writing import OutputWriter, keep_inputs
from pearl.errors import DataError, UsageError
from pearl.plugins.extras import require_extra

if TYPE_CHECKING:
    from pearl.evals.log import EvalLog, Header
    from pearl.evals.report import Cluster
    from pearl.evals.runner import AskedCorpus, Evaluation
    from pearl.pipeline import Pearl


@click.command(cls=Command)
@data_options
@click.option(
    "--methods", "--method", multiple=True, metavar="NAME,...", default=["pearl,direct"],
    show_default=True, callback=lambda _context, _option, said: ",".join(said),
    help=f"{', '.join(plugins.names('pearl.evals.methods'))}; with --retrieval those of `pearl search`.",
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
    help="Write the log to LOG; methods and seeds that it has of the same run stay in it.",
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
    "--unsandboxed", is_flag=True,
    help="Run the code that the model of rlm writes as you, without a sandbox (and without Deno): "
    "what it does may be up to whoever wrote the document.",
)  # fmt: skip
@click.option(
    "--rotate", is_flag=True,
    help="Ask every question once with each rotation of its options: which letters a model prefers.",
)  # fmt: skip
@click.option(
    "--by-document", is_flag=True, help="Intervals resample documents, not samples: more honest."
)
@click.option(
    "--history", type=click.Choice(["gold", "own", "none"]), default="gold", show_default=True,
    help="Of a conversation, what methods are told of earlier turns: the right answers, their own, nothing.",
)  # fmt: skip
@together_option
@retrieval_options
@trace_option
@setting_options()
@unit_options
@as_json
def command(
    methods: str, results: str | None, rescore: str | None, out: str | None,
    scorer: str | None, by_document: bool, force: bool, retrieval: bool, **options: Any,
) -> int:  # fmt: skip
    """Score methods over the samples of --data: accuracy with intervals, paired tests, cost.

    What failed and what names no option is wrong, and counted. Every reply and every record is kept
    in the store: the same command goes on where it stopped, however it was stopped.

    With --together all documents of --data are asked as one corpus, with --corpus another one;
    with --retrieval, --corpus, --queries and --qrels: how well documents are found.
    """
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise UsageError("no method", help="--methods pearl,direct")
    if retrieval:
        return score_retrieval(names, {**options, "out": out, "force": force})
    refuse_retrieval_options()
    if sum(given is not None for given in (options["data"], results, rescore)) != 1:
        raise UsageError(
            "one of --data FILE, --results FILE, --rescore LOG, --retrieval",
            help="pearl eval --domain quality --data FILE --methods pearl,direct,mcq",
        )
    if options["rotate"] and (results is not None or rescore is not None):
        raise UsageError("--rotate asks, and these answers are there", help="leave it out")
    if results is not None and options["seeds"] > 1:
        raise UsageError("--results has one run", help="leave out --seeds")
    _check_corpus(options, is_over_data=results is None and rescore is None)
    require_extra("eval", "an evaluation", "scipy")  # before a model is asked anything
    keep_inputs(
        [out, options["trace"]], [name for name in (options["data"], results, rescore) if name]
    )
    cluster: Cluster = "document" if by_document else "sample"
    if scorer is not None:
        from pearl.evals.scorers import load_scorer

        load_scorer(scorer)
    options["scorer"] = scorer
    if rescore is not None:
        if options["trace"]:
            raise UsageError("--rescore calls no model", help="leave out --trace")
        writer = OutputWriter.of_command(is_forced=force)
        return _rescore(rescore, out, writer, cluster, options)
    if results is not None:
        options["data"] = results
    options["force"] = force
    return _evaluate(names, results is not None, out, cluster, options)


def _rescore(
    path: str, out: str | None, writer: OutputWriter, cluster: Cluster, options: dict[str, Any]
) -> int:
    from pearl.evals.log import read_log
    from pearl.evals.runner import rescored

    log = read_log(path)
    found = rescored(log, options["scorer"])
    n_changed = sum(one != two for one, two in zip(log.records, found.records, strict=True))
    if out is not None:
        with writer.open(out) as file:
            file.writelines(f"{row.model_dump_json()}\n" for row in (found.header, *found.records))
    click.echo(f"{n_changed} of {len(found.records)} records changed", err=True)
    _print(found, cluster, is_json=options["as_json"])
    return 0


def _check_corpus(options: dict[str, Any], *, is_over_data: bool) -> None:
    corpora = [name for name in ("together", "corpus") if options[name]]
    if len(corpora) > 1:
        raise UsageError(
            "--together is the corpus of --data's documents", help="leave out --corpus"
        )
    if corpora and not is_over_data:
        raise UsageError(f"--{corpora[0]} without --data", help="--data FILE")
    if corpora and options["executor"] != "local":
        raise UsageError("a corpus is asked on this machine", help="--executor local; --shard I/N")
    if options["together"] and options["at"]:
        raise UsageError(
            "--at is about --corpus: that of --together is in memory", help="leave it out"
        )


def _asked_corpus(options: dict[str, Any]) -> AskedCorpus | None:
    """What is asked in place of each sample's document, if anything."""
    from pearl.documents.units import window
    from pearl.evals.runner import AskedCorpus, corpus_of_samples
    from pearl.retrieval.corpus import Cutting
    from pearl.runs.tasks import corpus_source

    size, overlap = options["size"] or window.SIZE, options["overlap"]
    cutting = Cutting(options["unit"] or "", size, window.OVERLAP if overlap is None else overlap)
    if options["together"]:
        every, _ = read_data({**options, "limit": None, "subset": None})
        return corpus_of_samples(every, cutting, options["stem"] or "english")
    if not (named := options["corpus"]):
        return None
    index = open_index(
        named, unit=options["unit"], size=options["size"], overlap=overlap, stem=options["stem"],
        at=options["at"],
    )  # fmt: skip
    name = ", ".join(Path(each).name for each in named)
    source = f"{corpus_source(named)} {cutting} {options['stem']}"
    return AskedCorpus(index.document(name), source)


def _evaluate(
    methods: list[str],
    is_executed: bool,
    out: str | None,
    cluster: Cluster,
    options: dict[str, Any],
) -> int:
    from pearl.data.journal import write_journal
    from pearl.evals import runner
    from pearl.evals.log import EvalLog, EvalRecord
    from pearl.evals.methods import Effort, load_method
    from pearl.evals.results import EXECUTED, describe, result_units
    from pearl.evals.scorers import EXACT
    from pearl.llm.prices import read_prices

    names = (EXECUTED,) if is_executed else tuple(dict.fromkeys(methods))
    for name in () if is_executed else names:
        load_method(name)
    evaluation = runner.Evaluation(
        names,
        tuple(range(options["seeds"])),
        options["temperature"],
        Effort(options["token_budget"], options["part_tokens"], options["unsandboxed"]),
        options["price"] or read_prices(options["prices"]).of(options["model"]),
        options["scorer"] or EXACT,
        options["history"],
    )
    read, bad = read_data({**options, "domain": "generic"} if is_executed else options)
    samples, unfit = runner.scorable(read, with_document=not is_executed)
    if options["rotate"]:
        samples = runner.rotated(samples)
    report_left_out([*bad, *unfit])
    if not samples:
        raise DataError(
            "no sample can be evaluated",
            path=options["data"],
            help="a sample needs a question, a document and what is right (gold or reference)",
        )
    if not is_executed:
        runner.refuse_unfit(samples, names)
    if (corpus := None if is_executed else _asked_corpus(options)) is not None:
        evaluation = replace(evaluation, corpus=corpus)
    name, n_bad = Path(options["data"]).name, len(bad) + len(unfit)

    def prepare(pearl: Pearl) -> Work[Any]:
        if not is_executed:
            runner.refuse_known(samples, pearl.material.examples)
        header = describe(pearl, samples, evaluation, data=name, n_bad_rows=n_bad)
        made = result_units(samples, evaluation) if is_executed else evaluation.units(samples)
        # Methods and seeds may be added to what is there.
        effort = (
            evaluation.temperature, evaluation.effort.token_budget, evaluation.effort.part_tokens,
        )  # fmt: skip
        settings = {"effort": effort, "kind": "results" if is_executed else "methods"}
        if header.history not in ("", "gold"):
            settings["history"] = header.history
        inputs = {"samples": header.data_sha256} | ({"corpus": corpus.source} if corpus else {})
        return Work(tuple(made), settings, inputs, header)

    def finish(ran: Finished[Any]) -> int:
        header: Header = ran.work.header
        units = ran.work.units if is_executed else _added(out, evaluation).units(samples)
        records = tuple(
            runner.graded(EvalRecord.model_validate(row), evaluation) for _, row in ran.kept(units)
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
    """What is evaluated, and the methods and seeds that the log has of the same run already."""
    from pearl.evals.log import read_log

    if out is None or not Path(out).is_file():
        return evaluation
    try:
        known = read_log(out).records
    except DataError:  # no log: the writer leaves it alone, or replaces it with --force
        return evaluation
    return replace(
        evaluation,
        methods=tuple(dict.fromkeys([*evaluation.methods, *(one.method for one in known)])),
        seeds=tuple(dict.fromkeys([*evaluation.seeds, *(one.seed for one in known)])),
    )


def _print(log: EvalLog, cluster: Cluster, *, is_json: bool) -> None:
    from pearl.cli.calibrations import print_calibrations
    from pearl.cli.scores import print_scores
    from pearl.evals import conversations, report
    from pearl.evals.report import calibrations, letter_use, outcomes, plan_figures

    if not is_json:
        print_scores(log, cluster)
        print_calibrations(log)
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
            "outcomes": [asdict(one) for one in outcomes(log)],
            **{
                name: [asdict(one) for one in found]
                for name, found in (
                    ("plans", plan_figures(log)),
                    ("figures", conversations.figures(log)),
                    ("turns", conversations.by_turn(log)),
                    ("dialogues", conversations.by_dialogue(log)),
                    ("searches", conversations.retrieval(log)),
                )
                if found
            },
            "baselines": [one.to_json() for one in report.baselines(log, cluster=cluster)],
            "letters": [asdict(use) for use in letter_use(log.records)],
            "comparisons": [asdict(one) for one in report.comparisons(log, cluster=cluster)],
            "calibrations": [one.to_json() for one in calibrations(log)],
            "errors": [{"error": error, "n": n} for error, n in report.errors(log)],
        },
        sys.stdout,
        indent=2,
    )
    click.echo()
