"""Records as they come → an `EvalLog`, on disk as well if it is to be kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from pearl import __version__
from pearl.actions.library import library_text
from pearl.dsl.printer import print_plan
from pearl.evals.log import EvalLog, Header, Key, Record
from pearl.evals.runner import Evaluation, digest
from pearl.journal import Journal
from pearl.pipeline import Pearl
from pearl.samples import Sample

__all__ = ["describe", "record"]

VARYING = ("created", "pearl_version", "n_bad_rows")
"""What may differ where a log is gone on with."""


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
    bank = "\n".join(print_plan(example.plan) for example in pearl.examples)
    return Header(
        pearl_version=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        domain=pearl.domain_name,
        data=data,
        data_sha256=digest(samples),
        n_samples=len(samples),
        n_bad_rows=n_bad_rows,
        model=pearl.model.name,
        library=pearl.library.name,
        n_actions=len(pearl.library),
        library_sha256=sha256(library_text(pearl.library).encode()).hexdigest(),
        bank=Path(pearl.bank).name,
        n_examples=len(pearl.examples),
        bank_sha256=sha256(bank.encode()).hexdigest(),
        nearest=pearl.nearest,
        methods=evaluation.methods,
        seeds=evaluation.seeds,
        temperature=evaluation.temperature,
        token_budget=evaluation.effort.token_budget,
        part_tokens=evaluation.effort.part_tokens,
        context=pearl.limits.strategy,
        window=pearl.limits.window,
        max_output_tokens=pearl.limits.max_output_tokens,
        fallback=pearl.fallback,
        price=evaluation.price,
    )


async def record(
    header: Header,
    run: Callable[[Collection[Key]], AsyncIterator[Record]],
    out: str | Path | None = None,
    *,
    on_record: Callable[[Record], None] | None = None,
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
    records: dict[Key, Record] = {}
    with Journal(out, header, Record, varying=VARYING) if out else nullcontext() as journal:
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
