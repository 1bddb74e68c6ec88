"""Samples → those that can be evaluated, and what tells them from others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from pearl.data.samples import Sample
from pearl.documents.digest import digest, file_sha256
from pearl.documents.document import Document
from pearl.errors import DataError, UsageError
from pearl.evals.methods import load_method
from pearl.evals.scoring import right_option
from pearl.planner.examples import Example, asked_again


def scorable(
    samples: Iterable[Sample], *, with_document: bool = True
) -> tuple[list[Sample], list[DataError]]:
    """The samples that can be evaluated, and why the others cannot.

    Where a sample has options and a reference, the option that the reference is becomes its gold.
    """
    fit: list[Sample] = []
    unfit: list[DataError] = []
    for sample in samples:
        if not sample.question:
            unfit.append(DataError(f"sample '{sample.id}' has no question"))
        elif sample.document is None and with_document:
            unfit.append(DataError(f"sample '{sample.id}' has no document"))
        elif sample.gold is not None:
            fit.append(sample)
        elif sample.reference is None:
            unfit.append(DataError(f"sample '{sample.id}' does not say what is right"))
        elif not sample.options:
            fit.append(sample)
        elif (gold := right_option(sample.options, sample.reference)) is not None:
            fit.append(replace(sample, gold=gold))
        else:
            unfit.append(DataError(f"sample '{sample.id}' does not say which option is right"))
    return fit, unfit


def rotated(samples: Iterable[Sample]) -> list[Sample]:
    """Every sample with options once for each rotation of them, so that each option has each letter once.

    Example:
        >>> sample = Sample("q", "Who?", options=("Ann", "Bo", "Cy"), gold=0)
        >>> [(each.id, each.options, each.gold) for each in rotated([sample])][1]
        ('q~1', ('Bo', 'Cy', 'Ann'), 2)
    """
    return [
        sample
        if not by and not sample.options
        else replace(
            sample,
            id=f"{sample.id}~{by}" if by else sample.id,
            options=sample.options[by:] + sample.options[:by],
            gold=None if sample.gold is None else (sample.gold - by) % len(sample.options),
            rotation_of=sample.id,
        )
        for sample in samples
        for by in range(max(1, len(sample.options)))
    ]


def refuse_known(samples: Iterable[Sample], bank: Iterable[Example]) -> None:
    """Refuse an evaluation on questions whose plans the model is shown."""
    known = asked_again(bank, [sample.question for sample in samples])
    if known:
        first, more = known[0], f" and {len(known) - 1} more" if len(known) > 1 else ""
        where = f"remove {first.path.name} from the bank, or " if first.path else ""
        raise DataError(
            f"the bank of examples holds a question of the evaluation: {first.question!r}{more}",
            help=f"{where}make the bank with --except DATA, or name another (--examples)",
        )


def refuse_unfit(samples: Sequence[Sample], methods: Iterable[str]) -> None:
    """Refuse an evaluation whose records could not be told apart, or would all fail."""
    ids = Counter(sample.id for sample in samples)
    twice = next((id for id, n in ids.items() if n > 1), None)
    if twice is not None:
        raise DataError(f"two samples have the id '{twice}'", help="give each an id of its own")
    bare = next((sample.id for sample in samples if not sample.options), None)
    has_passages = any(sample.gold_passages for sample in samples)
    for name in methods:
        method = load_method(name)
        if getattr(method, "NEEDS_PASSAGES", False) and not has_passages:
            raise UsageError(
                f"method '{name}' is given the right passages, and no sample names any",
                help="a row names them as 'gold_passages', an array of texts",
            )
        if method.NEEDS_OPTIONS and bare is not None:
            raise UsageError(
                f"method '{name}' shows options, and sample '{bare}' has none",
                help="leave it out: --methods pearl,direct",
            )


def samples_digest(samples: Iterable[Sample]) -> str:
    """SHA-256 over all that matters of the samples, in hexadecimal.

    A document in a file counts by what is in it, not by how its path is written.
    """
    return digest(_deciding(samples)).hex()


def _deciding(samples: Iterable[Sample]) -> Iterator[str]:
    files: dict[Path, str] = {}
    for sample in samples:
        document = sample.document
        read: str | None = None
        if isinstance(document, Document):
            read = f"{document.name} {document.digest}"
        elif document is not None:
            if document not in files:
                files[document] = _content(document)
            read = files[document]
        parts: list[object] = [
            sample.id, sample.question, sample.options, sample.gold, sample.reference,
            sorted(sample.subsets), read,
        ]  # fmt: skip
        parts += [sample.gold_passages] if sample.gold_passages else []
        if sample.dialogue or sample.history or sample.program:
            turns = [asdict(turn) for turn in sample.history]
            parts += [turns, sample.dialogue, sample.n_turns, sample.program]
        yield json.dumps(parts)


def _content(path: Path) -> str:
    """The digest of a file, or its name where it cannot be read: its samples will fail."""
    try:
        return file_sha256(path)
    except OSError:
        return path.name
