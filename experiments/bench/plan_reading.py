"""How long reading and checking a plan takes, beside the bare parser. Prints one JSON line.

    python experiments/bench/plan_reading.py [--traces FILE... --actions FILE]

Without options, over the shipped plans. Milliseconds a plan: parse and check together, and lark
alone (the same grammar, no tree made of our nodes) over the same texts in the same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from lark import Lark

from pearl.actions.library import load_library
from pearl.actions.operators import with_operators
from pearl.dsl.checker import compile_plan
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanError
from pearl.plugins.files import read_data

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


def published(traces: list[Path], actions: Path) -> list[tuple[str, ActionLibrary]]:
    """Every plan of trace files, with the library they were written for."""
    library = load_library(actions)
    rows = [
        json.loads(row) for path in traces for row in path.read_text(encoding="utf-8").splitlines()
    ]
    return [(row["plan"], library) for row in rows if row.get("plan")]


def compiled(text: str, library: ActionLibrary) -> bool:
    """Whether a plan is valid; it is read and checked either way."""
    try:
        compile_plan(text, library)
    except PlanError:
        return False
    return True


def timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return 1_000 * (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--traces", type=Path, nargs="+", default=[])
    parser.add_argument("--actions", type=Path)
    options = parser.parse_args()
    plans = published(options.traces, options.actions) if options.traces else shipped()
    grammar = read_data("grammars", "plan.lark")
    began = time.perf_counter()
    bare = Lark(grammar, parser="lalr", start=["file"], maybe_placeholders=False)
    build_ms = 1_000 * (time.perf_counter() - began)
    n_valid = sum(compiled(text, library) for text, library in plans)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS if len(plans) < 200 else 3):
        for text, library in plans:
            ours.append(timed(lambda: compiled(text, library)))  # noqa: B023, it runs at once
            theirs.append(timed(lambda: bare.parse(text, start="file")))  # noqa: B023
    median, bare_median = statistics.median(ours), statistics.median(theirs)
    print(
        json.dumps(
            {
                "plans": len(plans),
                "valid": n_valid,
                "mean_characters": round(statistics.mean(len(text) for text, _ in plans)),
                "median_ms": round(median, 3),
                "p99_ms": round(statistics.quantiles(ours, n=100)[-1], 3),
                "lark_median_ms": round(bare_median, 3),
                "lark_p99_ms": round(statistics.quantiles(theirs, n=100)[-1], 3),
                "ratio": round(median / bare_median, 2),
                "parser_build_ms": round(build_ms, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
