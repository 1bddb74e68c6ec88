"""Which one-line changes no test notices: mutants of the code, sampled, each against its own tests.

    python experiments/mutation.py [--n 300] [--seed 0] [--parts dsl middleware] [--out mutants.json]

Needs `pip install cosmic-ray`, which makes the mutants (its driver wants a database and a configuration,
and mutmut a layout of its own; neither is used). A line is drawn first and then one of its mutants, lest
the eleven replacements of every `+` crowd out the rest; mutants that differ in annotations alone are none.
The tests run in a copy of the tracked files, so the working tree stays as it is. The file says of each
mutant what it was and whether it was killed; where there is one already, mutants that it knows are not run
again, and what somebody wrote in `explained` (why a survivor changes nothing that matters) is kept.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "dsl": ("pearl/dsl", ("tests/dsl", "tests/test_plans.py", "tests/test_planner.py")),
    "interpreter": (
        "pearl/interpreter.py",
        ("tests/test_interpreter.py", "tests/test_pipeline.py", "tests/test_chain.py"),
    ),
    "evidence": ("pearl/evidence", ("tests/test_evidence.py", "tests/test_pipeline.py")),
    "store": ("pearl/store", ("tests/store", "tests/test_cli_kept.py")),
    "middleware": ("pearl/middleware", ("tests/middleware", "tests/test_budgeting.py")),
}
"""What is changed, and the tests of it."""


def files(part: str) -> list[Path]:
    """The modules of a part; a part may be a module or, once it has grown, a folder."""
    path = ROOT / PARTS[part][0]
    return [path.with_suffix(".py")] if not path.is_dir() else sorted(path.rglob("*.py"))


def mutants(path: Path) -> dict[int, list[tuple[str, int]]]:
    """Operator and number of every mutant of a file, by line."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    tree = get_ast(path.read_text())
    nodes = list(ast_nodes(tree))
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for name in operator_names():
        kind = get_operator(name)
        if kind.arguments():
            continue
        operator, number = kind(), 0
        for node in nodes:
            for (line, _), _ in operator.mutation_positions(node):
                found[line].append((name, number))
                number += 1
    return found


def mutated(code: str, name: str, number: int) -> str | None:
    """The code with one change; None where that changes nothing that runs."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    changed = mutate_code(code, get_operator(name)(), number)
    if changed is None:
        return None
    try:
        return changed if meant(changed) != meant(code) else None
    except SyntaxError:
        return None


def meant(code: str) -> str:
    """The tree without what annotates it: annotations are never evaluated here."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if hasattr(node, field):
                setattr(node, field, None if field == "returns" else ast.Constant(None))
    return ast.dump(tree)


def drawn(parts: list[str], n: int, seed: int) -> Iterator[tuple[str, Path, str, int, str]]:
    """So many mutants: part, file, operator, number and the changed code."""
    draw = random.Random(seed)
    lines = [
        (part, path, found)
        for part in parts
        for path in files(part)
        for _, found in sorted(mutants(path).items())
    ]
    draw.shuffle(lines)
    for part, path, found in lines:
        if n == 0:
            return
        name, number = draw.choice(found)
        code = mutated(path.read_text(), name, number)
        if code is not None:
            n -= 1
            yield part, path, name, number, code


def survives(copy: Path, part: str, path: Path, code: str, limit_s: float) -> bool:
    """Whether the tests pass with the changed code."""
    place = copy / path.relative_to(ROOT)
    before = place.read_text()
    tests = [name for name in PARTS[part][1] if (copy / name).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    if "xdist" in sys.modules or _has_xdist():
        command += ["-n", "0"]
    env = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    place.write_text(code)
    try:
        done = subprocess.run(
            [*command, *tests, str(place.relative_to(copy))],
            cwd=copy, env=env, capture_output=True, text=True, timeout=limit_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False  # it runs for ever, which somebody would notice
    finally:
        place.write_text(before)
    if done.returncode not in (0, 1, 2):  # tests failed, or a module cannot be imported any more
        raise SystemExit(f"pytest ended with {done.returncode}:\n{done.stdout[-2_000:]}")
    return done.returncode == 0


def _has_xdist() -> bool:
    from importlib.util import find_spec

    return find_spec("xdist") is not None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--limit-s", type=float, default=300.0, help="of the tests of one mutant")
    parser.add_argument("--out", type=Path, default=Path("mutants.json"))
    options = parser.parse_args()
    known: dict[str, dict[str, Any]] = {}
    if options.out.exists():
        known = {row["diff"]: row for row in json.loads(options.out.read_text())["mutants"]}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
        for part in options.parts:  # a suite that fails as it is kills everything
            path = files(part)[0]
            if not survives(copy, part, path, path.read_text(), options.limit_s):
                raise SystemExit(f"the tests of {part} fail, or take too long, without any change")
        for part, path, name, number, code in drawn(options.parts, options.n, options.seed):
            where = str(path.relative_to(ROOT))
            diff = "".join(
                difflib.unified_diff(
                    path.read_text().splitlines(True), code.splitlines(True), where, where, n=0
                )
            )
            row = known.get(diff) or {
                "part": part, "file": where, "operator": name, "number": number, "diff": diff,
                "status": "survived" if survives(copy, part, path, code, options.limit_s) else "killed",
                "explained": "",
            }  # fmt: skip
            rows.append(row)
            if row["status"] == "survived":
                print(f"survived{' (explained)' if row['explained'] else ''}: {diff}", flush=True)
            counts = Counter("explained" if one["explained"] else one["status"] for one in rows)
            summary = {"seed": options.seed, "n": len(rows), **counts}
            options.out.write_text(json.dumps({**summary, "mutants": rows}, indent=1))
    n_real = len(rows) - counts["explained"]
    print(f"{counts['killed']} of {n_real} killed, {counts['explained']} explained")
    print(
        json.dumps({"bench": "mutation", **summary, "score": round(counts["killed"] / n_real, 3)})
    )


if __name__ == "__main__":
    main()
