"""Records as they come → an `EvalLog`, on disk as well if it is to be kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

from pearl import __version__
from pearl.data.journal import Journal
from pearl.data.samples import Sample
from pearl.evals.log import EvalLog, EvalRecord, Header, Key, Price
from pearl.evals.results import EXECUTED
from pearl.evals.runner import Evaluation, samples_digest
from pearl.evals.scorers import EXACT
from pearl.pipeline import Pearl
from pearl.runs.identity import run_config

__all__ = ["describe", "describe_results", "record"]

VARYING = ("created", "pearl_version", "n_bad_rows", "data", "methods", "seeds")
"""What may differ where a log is gone on with: methods and seeds may be added, and the samples have to
be the same, not the name of their file."""


def describe(
    pearl: Pearl,
    samples: Sequence[Sample],
    evaluation: Evaluation,
    *,
    data: str = "",
    n_bad_rows: int = 0,
) -> Header:
    """The header of a log.

    Args:
        pearl: Model, library and bank.
        samples: What is evaluated.
        evaluation: How.
        data: What to call the samples.
        n_bad_rows: Rows of the data that are no sample.
    """
    return Header(
        **run_config(pearl),
        created=_now(),
        data=data,
        data_sha256=samples_digest(samples),
        n_samples=len(samples),
        n_bad_rows=n_bad_rows,
        methods=evaluation.methods,
        seeds=evaluation.seeds,
        temperature=evaluation.temperature,
        token_budget=evaluation.effort.token_budget,
        part_tokens=evaluation.effort.part_tokens,
        price=evaluation.price,
        scorer=evaluation.scorer,
    )


def describe_results(
    mapper: str,
    samples: Sequence[Sample],
    *,
    price: Price | None = None,
    scorer: str = EXACT,
    data: str = "",
    n_bad_rows: int = 0,
) -> Header:
    """The header of a log of answers that were there already; what made them is as their rows say.

    Args:
        mapper: The model that maps them to options.
        samples: The rows of results.
        price: Of a token.
        scorer: Of answers in words.
        data: What to call the rows.
        n_bad_rows: Rows that are no sample.
    """
    said = {model for each in samples if isinstance(model := each.extra.get("model"), str)}
    return Header(
        pearl_version=__version__,
        created=_now(),
        domain="",
        data=data,
        data_sha256=samples_digest(samples),
        n_samples=len(samples),
        n_bad_rows=n_bad_rows,
        model="several" if len(said) > 1 else "".join(said),
        mapper=mapper,
        library="",
        n_actions=0,
        library_sha256="",
        bank="",
        n_examples=0,
        context="",
        methods=(EXECUTED,),
        seeds=(0,),
        temperature=None,
        price=price,
        scorer=scorer,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


async def record(
    header: Header,
    run: Callable[[Collection[Key]], AsyncIterator[EvalRecord]],
    out: str | Path | None = None,
    *,
    on_record: Callable[[EvalRecord], None] | None = None,
) -> EvalLog:
    """Keep the records of a run.

    Args:
        header: What the run is.
        run: Makes the records; is told what need not be made again.
        out: File of the log. What it has already is kept, what failed is tried again.
        on_record: Told of every record, those of the file first.

    Raises:
        DataError: The file cannot be written, or is the log of another run.
    """
    records: dict[Key, EvalRecord] = {}
    with Journal(out, header, EvalRecord, varying=VARYING) if out else nullcontext() as journal:
        if journal is not None:
            records = {row.key: row for row in journal.rows}
        # What failed is tried again; until then it stays what it is, a failure.
        done = frozenset(key for key, row in records.items() if row.status != "failed")
        for key in done:
            if on_record is not None:
                on_record(records[key])
        async for made in run(done):
            if journal is not None:
                journal.append(made)
            records[made.key] = made
            if on_record is not None:
                on_record(made)
    return EvalLog(header, tuple(records.values()))
