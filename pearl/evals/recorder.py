"""What is evaluated, and how → the header of its log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pearl.data.samples import Sample
from pearl.evals.log import Header
from pearl.evals.results import EXECUTED
from pearl.evals.runner import Evaluation
from pearl.evals.samples import samples_digest
from pearl.pipeline import Pearl
from pearl.plugins.version import __version__
from pearl.runs.identity import run_config


def describe(
    pearl: Pearl,
    samples: Sequence[Sample],
    evaluation: Evaluation,
    *,
    data: str = "",
    n_bad_rows: int = 0,
) -> Header:
    """The header of a log.

    Of answers that were there already only what their rows say of the model is known: the library and
    the bank of the one that maps them to options are not theirs.
    """
    if evaluation.methods == (EXECUTED,):
        said = {model for each in samples if isinstance(model := each.extra.get("model"), str)}
        made = dict.fromkeys(("domain", "library", "library_sha256", "bank", "context"), "")
        how: dict[str, Any] = {
            **made,
            "pearl_version": __version__,
            "model": "several" if len(said) > 1 else "".join(said),
            "mapper": pearl.client.name,
            "n_actions": 0,
            "n_examples": 0,
            "temperature": None,
        }
    else:
        how = {
            **run_config(pearl),
            "temperature": evaluation.temperature,
            "token_budget": evaluation.effort.token_budget,
            "part_tokens": evaluation.effort.part_tokens,
            "history": evaluation.history if any(each.history for each in samples) else "",
            "corpus": evaluation.corpus.document.name if evaluation.corpus else "",
        }
    return Header(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        data=data,
        data_sha256=samples_digest(samples),
        n_samples=len(samples),
        n_bad_rows=n_bad_rows,
        methods=evaluation.methods,
        seeds=evaluation.seeds,
        price=evaluation.price,
        scorer=evaluation.scorer,
        **how,
    )
