"""How long reading and checking a shipped plan takes, in milliseconds. Prints one JSON line."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

from pearl.actions.library import load_library
from pearl.actions.operators import with_operators
from pearl.dsl.checker import compile_plan
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanError

ROOT = Path(__file__).parent.parent.parent
ROUNDS = 20


def shipped() -> list[tuple[str, ActionLibrary]]:
    """Every shipped plan with the library it is written for."""
    libraries = {"generic": "seed", "quality": "quality", "medical": "medical"}
    return [
        (path.read_text(encoding="utf-8"), with_operators(load_library(library)))
        for bank, library in libraries.items()
        for path in sorted((ROOT / "fewshot" / bank).glob("*.plan"))
    ]


def compiled(text: str, library: ActionLibrary) -> bool:
    """Whether a plan is valid; it is read and checked either way."""
    try:
        compile_plan(text, library)
    except PlanError:
        return False
    return True


def main() -> None:
    plans = shipped()
    n_valid = sum(compiled(text, library) for text, library in plans)
    taken_ms: list[float] = []
    for _ in range(ROUNDS):
        for text, library in plans:
            began = time.perf_counter()
            compiled(text, library)
            taken_ms.append(1_000 * (time.perf_counter() - began))
    median_ms = round(statistics.median(taken_ms), 3)
    print(json.dumps({"plans": len(plans), "valid": n_valid, "median_ms": median_ms}))


if __name__ == "__main__":
    main()
