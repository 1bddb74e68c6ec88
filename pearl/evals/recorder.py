"""What is evaluated, and how → the header of its log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pearl.data.samples import Sample
from pearl.evals.log import Header
from pearl.evals.results import EXECUTED
from pearl.evals.runner import Evaluation, samples_digest
from pearl.evals.scorers import EXACT
from pearl.llm.prices import Price
from pearl.pipeline import Pearl
from pearl.plugins.version import __version__
from pearl.runs.identity import run_config

__all__ = ["describe", "describe_results"]


def describe(
    pearl: Pearl,
    samples: Sequence[Sample],
    evaluation: Evaluation,
    *,
    data: str = "",
    n_bad_rows: int = 0,
) -> Header:
    """The header of a log."""
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
    """The header of a log of answers that were there already; what made them is as their rows say."""
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
