"""Training samples → a folder of examples: the work of `pearl refine fewshot`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from pearl.cli.options import open_pearl, read_data
from pearl.cli.output import Reporter, new_file
from pearl.cli.stopping import Stopper
from pearl.curator import CurationHeader, CurationRow, choose_bank, curate, trainable
from pearl.dsl.printer import print_plan
from pearl.errors import DataError
from pearl.fewshot import Example, wording
from pearl.journal import Journal
from pearl.llm import Usage
from pearl.samples import Sample
from pearl.setup import setup_of

__all__ = ["make_bank"]

JOURNAL = "curation.jsonl"
"""Every question and every plan that was tried, in the folder of the bank."""


async def make_bank(
    out: str, retries: int, max_examples: int, held_out: str | None, options: dict[str, Any]
) -> int:
    """Curate the samples of `--data` and write the bank; what was tried before is not tried again.

    Args:
        out: Folder of the bank.
        retries: How often a wrong plan goes back.
        max_examples: Plans in the bank at most.
        held_out: Data whose questions are left out.
        options: Of the command line: those of `model_options` and `data_options`.

    Returns:
        The exit code: 0; 1 where rows could not be used or questions failed; 130 where it was
        stopped.

    Raises:
        DataError: Nothing can be trained on, or the folder holds something else.
    """
    samples, bad = read_data(options)
    good = trainable(samples)
    if held_out is not None:
        kept_back, _ = read_data({**options, "data": held_out, "subset": None, "limit": None})
        asked = {wording(sample.question) for sample in kept_back}
        good = [sample for sample in good if wording(sample.question) not in asked]
    for error in bad[:3]:
        click.echo(f"pearl: {str(error).partition(chr(10))[0]}", err=True)
    if not good:
        raise DataError(
            "no sample has a question, a document, options and the right one of them",
            path=options["data"],
        )
    folder = _folder(out)
    async with open_pearl(options) as pearl:
        header = CurationHeader(**setup_of(pearl), data=Path(options["data"]).name, retries=retries)
        with Journal(folder / JOURNAL, header, CurationRow, varying={"pearl_version"}) as journal:
            done = _done(journal.rows, good, folder)
            with Stopper() as stopper, Reporter(len(good)) as reporter:
                for _ in done:
                    reporter.advance()
                async for row in curate(
                    pearl,
                    good,
                    retries=retries,
                    done=done.keys(),
                    until=stopper.until,
                    listener=reporter,
                ):
                    journal.append(row)
                    done[row.id] = row
                    reporter.advance()
    rows = sorted(done.values(), key=lambda row: row.index)
    bank = choose_bank(rows, max_examples)
    _write(folder, bank)
    _tell(rows, len(samples) + len(bad) - len(good), len(bank))
    if stopper.is_stopping:
        left = len(good) - len(rows)
        click.echo(f"pearl: stopped with {left} questions left; run it again to go on", err=True)
        return 130
    return 1 if bad or any(row.outcome == "failed" for row in rows) else 0


def _done(
    rows: Iterable[CurationRow], samples: Sequence[Sample], folder: Path
) -> dict[str, CurationRow]:
    """What need not be tried again, of the samples that are there now; failures are."""
    asked = {sample.id: (index, sample) for index, sample in enumerate(samples)}
    done: dict[str, CurationRow] = {}
    for row in rows:
        if row.id not in asked:
            continue
        index, sample = asked[row.id]
        if (row.question, row.gold) != (sample.question, sample.gold):
            raise DataError(
                f"question '{row.id}' was another one when this bank was begun",
                path=folder / JOURNAL,
                help="name another folder for other questions",
            )
        if row.outcome != "failed":
            done[row.id] = row.model_copy(update={"index": index})
    return done


def _folder(out: str) -> Path:
    """The folder of the bank: a new one, an empty one, or one that was begun here."""
    folder = Path(out)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / JOURNAL).is_file():
        raise DataError(
            "the folder is not empty and was not made by `pearl refine fewshot`",
            path=folder,
            help="name another folder",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be made: {error.strerror}", path=folder) from None
    return folder


def _write(folder: Path, bank: list[Example]) -> None:
    """The plan files; those of an earlier run make room."""
    for path in folder.glob("*.plan"):
        path.unlink()
    for number, example in enumerate(bank, start=1):
        words = re.findall(r"[a-z0-9]+", example.question.lower())[:6]
        with new_file(str(folder / f"{number:03d}-{'-'.join(words) or 'question'}.plan")) as file:
            file.write(f"{print_plan(example.plan)}\n")


def _tell(rows: list[CurationRow], n_left_out: int, n_examples: int) -> None:
    counts = Counter(row.outcome for row in rows)
    first = sum(row.outcome == "kept" and len(row.tries) == 1 for row in rows)
    usage = sum((row.usage for row in rows), Usage())
    for name, value in (
        ("questions", len(rows)),
        ("left out", n_left_out),
        ("reached the gold answer", counts["kept"]),
        ("at the first plan", first),
        ("never reached it", counts["wrong"] + counts["repeated"]),
        ("failed", counts["failed"]),
        ("examples in the bank", n_examples),
        ("input tokens", usage.n_input_tokens),
        ("output tokens", usage.n_output_tokens),
    ):
        click.echo(f"{name:<26}{value:>10,}", err=True)
