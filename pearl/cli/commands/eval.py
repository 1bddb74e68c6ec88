"""`pearl eval`: samples × methods → a log and its scores."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pearl import plugins
from pearl.cli.corpora import (
    corpus_options,
    cutting_of,
    open_index,
    searcher_opened,
    together_option,
    vectors_progress,
)
from pearl.cli.files import data_options, read_data
from pearl.cli.help import Command
from pearl.cli.options import (
    AT_LEAST_1,
    PATH,
    as_json,
    grouped,
    option,
    refuse,
    setting_options,
    trace_option,
    unit_options,
)
from pearl.cli.terminal import notice
from pearl.cli.work import Finished, Work, no_reply, report_left_out, run_units
from pearl.cli.writing import STDOUT, OutputWriter, keep_inputs
from pearl.errors import DataError, UsageError
from pearl.errors.escaping import to_json
from pearl.plugins.extras import require_extra
from pearl.retrieval import DEFAULT_METHOD, SearchSettings
from pearl.retrieval.methods import find_method
from pearl.retrieval.methods.hybrid import LEGS as HYBRID_LEGS
from pearl.settings import ROLES

if TYPE_CHECKING:
    from pearl.cli.scores import Cell
    from pearl.evals.log import EvalLog, Header
    from pearl.evals.report import Cluster
    from pearl.evals.retrieval import Judgments, RetrievalEvaluation, RetrievalScores, Topic
    from pearl.evals.runner import AskedCorpus, Evaluation
    from pearl.pipeline import Pearl
    from pearl.retrieval.index import Index


_OWN = ("queries", "qrels", "cutoffs", "oracle")
_OF_CORPUS = ("unit", "size", "overlap", "stem", "at")
_SEARCH = ("corpus", "embeddings", *_OF_CORPUS)
_SHARED = ("retrieval", "methods", "out", "force", "as_json")


retrieval_options = grouped(
    option(
        "--retrieval", bool, help="Evaluate search instead of answers: --queries over --corpus, judged by --qrels.",
    ),
    option(
        "--corpus", PATH, metavar="CORPUS", multiple=True,
        help="The corpus to search, or, with --data, to ask in place of each sample's document: "
        "a folder, files, or rows with `id` and `text`.",
    ),
    option(
        "--queries", PATH, metavar="FILE",
        help="JSONL, CSV or TSV with `id` and `text`, optionally `history` and `filters`.",
    ),
    option(
        "--qrels", PATH, metavar="FILE",
        help="The relevant documents: lines `query 0 document relevance`, or rows with "
        "`query_id`, `doc_id`, `relevance`.",
    ),
    option(
        "-k --k cutoffs", AT_LEAST_1, metavar="N", default=(10,), multiple=True,
        help="Compute the measures for the best N documents; may be repeated.",
    ),
    option("--oracle", bool, "Add an oracle that ranks the relevant documents first."),
    corpus_options,
)  # fmt: skip
"""`--retrieval` and what belongs to it."""


@click.command(cls=Command)
@data_options
@option(
    "--methods --method", str, metavar="NAME,...", default=["pearl,direct"], multiple=True,
    callback=lambda _context, _option, said: ",".join(said),
    help=f"{', '.join(plugins.names('pearl.evals.methods'))}; with --retrieval the methods of `pearl search`.",
)  # fmt: skip
@option(
    "--results", PATH, metavar="FILE",
    help="Score what `pearl execute --out` wrote, instead of running methods over --data.",
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
@option(
    "--rotate", bool, help="Ask every question with each rotation of its options, to measure letter bias.",
)  # fmt: skip
@option(
    "--by-document", bool,
    help="Resample documents, not samples, for intervals: wider, and correct for samples of one document.",
)  # fmt: skip
@option(
    "--history", click.Choice(["gold", "own", "none"]), default="gold",
    help="Earlier turns that methods are shown: with gold answers, with their own answers, or none.",
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
    """Score methods over the samples of --data.

    The report has accuracies with intervals, paired tests and cost. Failed records, and replies
    that name no option, count as wrong. The store keeps every reply and every record: the same
    command resumes an evaluation that was stopped.

    With --together the documents of --data are one corpus; with --corpus another corpus replaces
    them. --retrieval evaluates search instead, with --corpus, --queries and --qrels.
    """
    names = [name.strip() for name in methods.split(",") if name.strip()]
    refuse((not names, "no method given", "--methods pearl,direct"))
    if retrieval:
        return score_retrieval(names, {**options, "out": out, "force": force})
    refuse_retrieval_options()
    refuse(
        (sum(given is not None for given in (options["data"], results, rescore)) != 1,
         "give exactly one of --data FILE, --results FILE, --rescore LOG, --retrieval",
         "pearl eval --domain quality --data FILE --methods pearl,direct,mcq"),
        (options["rotate"] and (results is not None or rescore is not None),
         "--rotate cannot be combined with --results or --rescore", "leave it out"),
        (results is not None and options["seeds"] > 1,
         "--seeds cannot be combined with --results", "leave out --seeds"),
        (rescore is not None and options["trace"], "--rescore calls no model", "leave out --trace"),
    )  # fmt: skip
    _check_corpus(options, is_over_data=results is None and rescore is None)
    require_extra("eval", "an evaluation", "scipy")  # before the first call
    keep_inputs(
        [out, options["trace"]], [name for name in (options["data"], results, rescore) if name]
    )
    cluster: Cluster = "document" if by_document else "sample"
    if scorer is not None:
        from pearl.evals.scorers import load_scorer

        load_scorer(scorer)
    options["scorer"] = scorer
    if rescore is not None:
        writer = OutputWriter(is_forced=force)
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
    corpora = [f"--{name}" for name in ("together", "corpus") if options[name]]
    refuse(
        (len(corpora) > 1, "--together makes a corpus of the documents of --data",
         "leave out --corpus"),
        (corpora and not is_over_data, f"{' '.join(corpora)} without --data", "--data FILE"),
        (corpora and options["executor"] != "local",
         "a corpus needs --executor local", "leave out --executor, or use --shard I/N"),
        (options["together"] and options["at"],
         "--at applies to --corpus only: the corpus of --together is in memory", "leave it out"),
    )  # fmt: skip


def _asked_corpus(options: dict[str, Any]) -> AskedCorpus | None:
    """The corpus that replaces each sample's document, if any."""
    from pearl.evals.runner import AskedCorpus, corpus_of_samples
    from pearl.runs.tasks import corpus_source

    cutting = cutting_of(options)
    if options["together"]:
        every, _ = read_data({**options, "limit": None, "subset": None})
        return corpus_of_samples(every, cutting, options["stem"] or "english")
    if not (named := options["corpus"]):
        return None
    index = open_index(named, options)
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
        Effort(options["token_budget"], options["part_tokens"]),
        None
        if any(options[name] for name in ROLES)  # models of different prices
        else options["price"] or read_prices(options["prices"]).of(options["model"]),
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
            help="a sample needs a question, a document, and a gold option or a reference answer",
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
        # Not part of the identity of a run: methods and seeds, which a later command may add.
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
    """The evaluation with the methods and seeds that the log already has."""
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
    from pearl.evals import conversations, report
    from pearl.evals.report import letter_use, outcomes, plan_figures

    if not is_json:
        print_scores(log, cluster)
        return
    guess = report.chance(log.records)
    json.dump(
        {
            "header": log.header.model_dump(),
            "chance": guess,
            "rows": [
                score.to_dict() | {"is_below_chance": report.is_below(score, guess)}
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
            "baselines": [one.to_dict() for one in report.baselines(log, cluster=cluster)],
            "letters": [asdict(use) for use in letter_use(log.records)],
            "comparisons": [asdict(one) for one in report.comparisons(log, cluster=cluster)],
            "errors": [{"error": error, "n": n} for error, n in report.errors(log)],
        },
        sys.stdout,
        indent=2,
    )
    click.echo()


def refuse_retrieval_options() -> None:
    """Refuse options of `--retrieval` or of a corpus if these are missing."""
    if found := [name for name in _OWN if _is_given(name)]:
        raise UsageError(f"{_flag(found[0])} belongs to --retrieval", help="add --retrieval")
    is_searched = _is_given("corpus") or _is_given("together")
    if not is_searched and (found := [name for name in _OF_CORPUS if _is_given(name)]):
        raise UsageError(
            f"{_flag(found[0])} needs a corpus", help="add --together, --corpus or --retrieval"
        )


def score_retrieval(methods: Sequence[str], options: dict[str, Any]) -> int:
    """Evaluate, print and write; returns the exit code."""
    from pearl.evals.retrieval import read_judgments, read_topics

    context = click.get_current_context()
    useless = [
        name
        for name in context.params
        if _is_given(name) and name not in (*_OWN, *_SEARCH, *_SHARED)
    ]
    if useless:
        raise UsageError(f"{_flag(useless[0])} has no effect with --retrieval", help="leave it out")
    if missing := [name for name in ("corpus", "queries", "qrels") if not options[name]]:
        raise UsageError(
            f"--retrieval needs {', '.join(map(_flag, missing))}",
            help="pearl eval --retrieval --corpus docs.jsonl --queries queries.jsonl --qrels qrels.txt",
        )
    corpus, out = options["corpus"], options["out"]
    keep_inputs([out], [*corpus, options["queries"], options["qrels"]])
    writer = OutputWriter(is_forced=options["force"])
    writer.check(out)
    settings = SearchSettings(stem=options["stem"] or "english")
    names = _with_legs(methods if _is_given("methods") else (DEFAULT_METHOD,))
    for name in names:
        find_method(name)
    topics, judgments = read_topics(options["queries"]), read_judgments(options["qrels"])
    index = open_index(corpus, options)
    found = asyncio.run(_evaluated(index, topics, judgments, names, settings, options))
    written = to_json(found.to_dict(), indent=2)
    if out is not None:
        with writer.open(out) as file:
            file.write(f"{written}\n")
    for remark in found.coverage.remarks():
        notice(remark)
    for one in found.scores:
        for note, n in one.notes.items():
            notice(f"{one.method}, {n:,} of {found.coverage.n_topics:,} queries: {note}")
    if options["as_json"]:
        click.echo(written)
    elif out not in STDOUT or out is None:
        _print_retrieval(found)
    return 0


async def _evaluated(
    index: Index,
    topics: Sequence[Topic],
    judgments: Judgments,
    methods: Sequence[str],
    settings: SearchSettings,
    options: dict[str, Any],
) -> RetrievalEvaluation:
    from pearl.evals.retrieval import default_measures, evaluate_retrieval
    from pearl.retrieval.search import Searcher

    async with searcher_opened(settings, options) as opened:
        searchers, told = {}, vectors_progress()
        for name in methods:
            ranked_by = replace(settings, method=name)
            searchers[name] = Searcher(ranked_by, opened.embedder, progress=told)
        cutoffs = options["cutoffs"]
        return await evaluate_retrieval(
            index, topics, judgments, searchers, k=max(cutoffs),
            measures=default_measures(cutoffs), with_oracle=options["oracle"],
        )  # fmt: skip


def _with_legs(methods: Sequence[str]) -> list[str]:
    """The methods without duplicates; the legs of a hybrid come before it."""
    names: dict[str, None] = {}
    for method in methods:
        legs = HYBRID_LEGS if method == "hybrid" else ()
        names |= dict.fromkeys([*legs, method])
    return list(names)


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _flag(name: str) -> str:
    """The flag of an option."""
    options = click.get_current_context().command.params
    return next(option.opts[0] for option in options if option.name == name)


def _print_retrieval(found: RetrievalEvaluation) -> None:
    from pearl.cli.scores import ends, p_value, percent, print_table
    from pearl.evals.stats import MIN_CLUSTERS

    scores = found.scores
    click.echo(
        f"{found.coverage.n_topics:,} queries with a relevant document; all figures except ms in percent"
    )
    if (n := len(set(scores[0].groups))) < MIN_CLUSTERS:
        click.echo(f"{n} queries or groups of them are too few for reliable intervals")
    main, *others = found.measures
    is_empty = any(one.n_found_nothing for one in scores)

    def row(one: RetrievalScores) -> Iterator[Cell]:
        yield from (one.method, percent(one.mean(main).estimate), ends(one.mean(main)))
        yield from (percent(one.mean(name).estimate) for name in others)
        times = (one.latency_ms(50), one.latency_ms(95))
        yield from (None if time is None else f"{time:,.1f}" for time in times)
        if is_empty:
            yield one.n_found_nothing

    nothing = ["nothing\nfound"] if is_empty else []
    heads = ("method", main, "95 %", *others, "ms\np50", "ms\np95", *nothing)
    print_table(heads, map(row, scores))
    print_table(
        (f"paired, {main}", "points", "95 %", "better", "worse", "bootstrap\np"),
        ((f"{one.first} - {one.second}", f"{100 * one.difference.estimate:+.1f}", ends(one.difference),
          one.n_better, one.n_worse, p_value(one.bootstrap_p))
         for one in found.comparisons()),
        is_apart=True,
    )  # fmt: skip
