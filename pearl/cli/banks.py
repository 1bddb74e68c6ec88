"""Training samples → a folder of examples: the work of `pearl refine fewshot`."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.data import read_data
from pearl.cli.output import read_input
from pearl.cli.units import Finished, Work, run_units
from pearl.cli.work import report_left_out, report_reasons
from pearl.cli.writing import new_file
from pearl.data.journal import read_journal, write_journal
from pearl.data.samples import Sample
from pearl.dsl.nodes import print_plan
from pearl.errors import DataError
from pearl.llm import Usage
from pearl.mining.curator import (
    CurateUnit,
    CurationHeader,
    CurationRow,
    choose_bank,
    curate_units,
    curated,
    trainable,
)
from pearl.planner.examples import Example, read_bank, wording
from pearl.runs.identity import run_config

if TYPE_CHECKING:
    from pearl.pipeline import Pearl

JOURNAL = "curation.jsonl"
"""File of every question and plan that was tried, in the folder of the bank."""


def make_bank(
    out: str, retries: int, max_examples: int, held_out: str | None, options: dict[str, Any]
) -> int:
    """Curate the samples of `--data` and write the bank; what was tried before is not tried again."""
    samples, bad = read_data(options)
    report_left_out(bad)
    good = _good(samples, held_out, options)
    folder = _folder(out, is_made=not options["dry_run"])

    def prepare(pearl: Pearl) -> Work[CurateUnit]:
        if folder.is_dir():
            read_bank(folder)  # a plan that a person broke is told before any other is written
        name = Path(options["data"]).name
        header = CurationHeader(**run_config(pearl), data=name, retries=retries)
        units = tuple(curate_units(good, retries))
        return Work(units, {"retries": retries}, {"bank": str(folder.resolve())}, header)

    def finish(ran: Finished[CurateUnit]) -> int:
        rows = [curated(row, unit) for unit, row in ran.kept(ran.work.units)]
        bank = choose_bank(rows, max_examples)
        own = [*_earlier(folder), *rows]
        with ran.writer.open(str(folder / JOURNAL)) as file:
            write_journal(file, ran.work.header, rows)
        n_by_hand = _write(folder, bank, own)
        _tell(rows, len(samples) + len(bad) - len(good), len(bank), n_by_hand)
        return ran.code(1 if bad or any(row.outcome == "failed" for row in rows) else 0)

    return run_units("fewshot", prepare, options, finish, outs=[str(folder / JOURNAL)])


def _good(
    samples: Sequence[Sample], held_out: str | None, options: dict[str, Any]
) -> Sequence[Sample]:
    """The samples that can be used and are not held out."""
    fit = good = trainable(samples)
    if held_out is not None:
        asked = _wordings(held_out, options)
        good = [sample for sample in fit if wording(sample.question) not in asked]
    if fit and not good:
        raise DataError(
            f"all {len(fit)} questions are in '{held_out}', too",
            path=options["data"],
            help="train on other questions than those of --except",
        )
    if not fit:
        raise DataError(
            "no sample has a question, a document, options and the right one of them",
            path=options["data"],
            help="a bank is made from rows with question, document, options and gold; --domain says how they are read",
        )
    return good


def _earlier(folder: Path) -> list[CurationRow]:
    """The rows of the last written bank; none where the file is another, to be replaced by --force."""
    try:
        return read_journal(folder / JOURNAL, CurationHeader, CurationRow)[1]
    except DataError:
        return []


def _wordings(held_out: str, options: dict[str, Any]) -> set[tuple[str, ...]]:
    """The questions that are held out."""
    plain = {"data": held_out, "split": None, "columns": (), "subset": None, "limit": None}
    samples, bad = read_data({**options, **plain})
    if bad:  # its question might enter
        raise bad[0]
    return {wording(sample.question) for sample in samples}


def _folder(out: str, *, is_made: bool) -> Path:
    """The folder of the bank: a new one, an empty one, or one that was begun here."""
    folder = Path(out)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / JOURNAL).is_file():
        raise DataError(
            "the folder is not empty and was not made by `pearl refine fewshot`",
            path=folder,
            help="name another folder",
        )
    if not is_made:
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be made: {error.strerror}", path=folder) from None
    return folder


def _write(folder: Path, bank: Sequence[Example], rows: Iterable[CurationRow]) -> int:
    """Write the plan files; those of an earlier run make room, those that a person wrote stay.

    A file is an earlier run's if it says, to the letter, what a row of the journal came to. An
    edited one is a person's, and stands for its question. Returns how many of those there are.
    """
    own = {_text(example) for example in choose_bank(rows, sys.maxsize)}
    by_hand: set[tuple[str, ...]] = set()
    n_by_hand = 0
    for path in sorted(folder.glob("*.plan")):
        text = read_input(str(path))
        if text in own:
            path.unlink()
            continue
        n_by_hand += 1
        first = text.partition("\n")[0]
        by_hand.add(wording(first.removeprefix("Question: ")))
    number = 0
    for example in bank:
        if wording(example.question) in by_hand:
            continue
        words = "-".join(re.findall(r"[a-z0-9]+", example.question.lower())[:6]) or "question"
        number += 1
        while any(folder.glob(f"{number:03d}-*.plan")):
            number += 1
        with new_file(str(folder / f"{number:03d}-{words}.plan")) as file:
            file.write(_text(example))
    return n_by_hand


def _text(example: Example) -> str:
    return f"{print_plan(example.plan)}\n"


def _tell(rows: list[CurationRow], n_left_out: int, n_examples: int, n_by_hand: int) -> None:
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
        ("files of yours, kept", n_by_hand),
        ("input tokens", usage.n_input_tokens),
        ("output tokens", usage.n_output_tokens),
    ):
        click.echo(f"{name:<26}{value:>10,}", err=True)
    report_reasons(row.error for row in rows if row.outcome == "failed")
