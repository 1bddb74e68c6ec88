"""What of a `Pearl` decides what it says: the part that headers of logs and of banks share."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from pearl import __version__
from pearl.actions.library import library_digest
from pearl.data.journal import Frozen
from pearl.dsl.printer import print_plan
from pearl.pipeline import Pearl

__all__ = ["RunConfig", "run_config"]


class RunConfig(Frozen):
    """The base of a header; a file whose header differs in one of these is not gone on with."""

    kind: str
    v: int
    pearl_version: str
    domain: str
    model: str
    library: str
    n_actions: int
    library_sha256: str
    bank: str
    n_examples: int
    bank_sha256: str = ""
    nearest: int | None = None
    """Examples chosen by likeness for each question; None for the whole bank."""
    context: str = "auto"
    """What was done with documents longer than the window."""
    window: int | None = None
    max_output_tokens: int | None = None
    max_repairs: int | None = None
    max_steps: int | None = None
    fallback: str | None = None
    """What answered where no valid plan could be had."""
    constrain: str = "auto"
    """What the model was to be held to while it wrote plans."""


def run_config(pearl: Pearl) -> dict[str, Any]:
    """The fields of a `RunConfig`, without `kind` and `v`, for the header that a file begins with."""
    bank = "\n".join(print_plan(example.plan) for example in pearl.examples)
    return {
        "pearl_version": __version__,
        "domain": pearl.domain_name,
        "model": pearl.client.name,
        "library": pearl.library.name,
        "n_actions": len(pearl.library),
        "library_sha256": library_digest(pearl.library),
        "bank": Path(pearl.bank).name,
        "n_examples": len(pearl.examples),
        "bank_sha256": sha256(bank.encode()).hexdigest(),
        "nearest": pearl.nearest,
        "context": pearl.limits.strategy,
        "window": pearl.limits.window,
        "max_output_tokens": pearl.limits.max_output_tokens,
        "max_repairs": pearl.max_repairs,
        "max_steps": pearl.max_steps,
        "fallback": pearl.fallback,
        "constrain": pearl.client.settings.constrain,
    }
