"""Which one-line changes no test notices: mutants of the code, sampled, each against its own tests.

    python experiments/mutation.py [--n 300] [--seed 0] [--parts dsl middleware] [--jobs 2] [--out FILE]
    python experiments/mutation.py --parts retrieval actions tables interpreter middleware view

Needs `pip install cosmic-ray`, which makes the mutants (its driver wants a database and a configuration,
and mutmut a layout of its own; neither is used). A line is drawn first and then one of its mutants, lest
the eleven replacements of every `+` crowd out the rest; mutants that differ in annotations alone are none.
The tests run in copies of the tracked files, so the working tree stays as it is; lines are drawn in a random
order over all parts, so what is done when somebody stops it is a sample, too. The file says of each mutant
what it was and whether it was killed; where there is one already, mutants that were killed are not run again,
nor survivors of which somebody wrote in `explained` why they change nothing that matters.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).parents[1]

PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "dsl": (
        "pearl/dsl",
        ("tests/dsl", "tests/planner/test_writer.py"),
    ),
    "retrieval": (
        "pearl/retrieval",
        (
            "tests/retrieval",
            "tests/contracts/test_retrieval.py",
            "tests/contracts/test_sources.py",
            "tests/cli/commands/test_search.py",
        ),
    ),
    "actions": (
        "pearl/actions",
        (
            "tests/actions",
            "tests/contracts/test_native.py",
            "tests/interpreter",
        ),
    ),
    "tables": (
        "pearl/tables",
        (
            "tests/tables",
            "tests/interpreter/test_table_steps.py",
            "tests/interpreter/test_untidy_tables.py",
        ),
    ),
    "interpreter": (
        "pearl/interpreter",
        (
            "tests/interpreter",
            "tests/test_pipeline.py",
            "tests/test_chain.py",
            "tests/test_plans_over_rows.py",
            "tests/runs/test_forecast.py",
        ),
    ),
    "replies": (
        "pearl/replies",
        (
            "tests/replies",
            "tests/interpreter",
            "tests/contracts/test_reply_limits.py",
        ),
    ),
    "view": (
        "pearl/view",
        ("tests/view", "tests/cli/test_pages.py", "tests/cli/commands/test_view.py"),
    ),
    "telemetry": ("pearl/telemetry", ("tests/telemetry",)),
    "evidence": (
        "pearl/documents/evidence",
        (
            "tests/documents/evidence",
            "tests/interpreter/test_replies.py",
            "tests/test_pipeline.py",
        ),
    ),
    "store": ("pearl/runs/store", ("tests/runs/store", "tests/cli/test_kept.py")),
    "middleware": (
        "pearl/llm/middleware",
        (
            "tests/llm/middleware",
            "tests/llm/middleware/test_budget.py",
            "tests/runs/executors/test_batch.py",
        ),
    ),
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


def killer(copy: Path, part: str, path: Path, code: str, limit_s: float) -> str | None:
    """The first test that fails with the changed code, `time` where none ends; None if all pass."""
    place = copy / path.relative_to(ROOT)
    before = place.read_text()
    tests = [
        str(file.relative_to(copy))
        for name in PARTS[part][1]
        for file in (sorted((copy / name).rglob("test_*.py")) or [copy / name])
    ]
    about = re.compile(rf"\b{path.stem}\b")  # first those that name the module: they tell soonest
    tests.sort(
        key=lambda name: (path.stem not in name, not about.search((copy / name).read_text()))
    )
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "--tb=line", "-rfE",
        "--timeout", "90", "-p", "no:cacheprovider", *tests, str(place.relative_to(copy)),
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    place.write_text(code)
    try:
        with subprocess.Popen(
            command, cwd=copy, env=env, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as running:  # fmt: skip
            try:
                said, _ = running.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                return "time"  # it runs for ever, which somebody would notice
            finally:
                with contextlib.suppress(
                    ProcessLookupError
                ):  # children of the tests, if any are left
                    os.killpg(running.pid, signal.SIGKILL)
    finally:
        place.write_text(before)
    if running.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    return failed[1] if failed else said[-300:].strip() or f"exit code {running.returncode}"


def copied(folder: Path) -> Path:
    """A copy of the tracked files as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def difference(path: Path, code: str) -> str:
    """What a mutant changes, a line around it, and no line numbers: an edit above would move them."""
    lines = difflib.unified_diff(path.read_text().splitlines(True), code.splitlines(True), n=1)
    return "".join(line for line in list(lines)[2:] if not line.startswith("@@"))


def written(path: Path, summary: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """The record, a mutant a line."""
    head = json.dumps(summary)[:-1]
    rows = sorted(rows, key=lambda row: (row["status"] == "killed", row["file"], row["diff"]))
    body = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(f'{head}, "mutants": [\n{body}\n]}}\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--patience", type=float, default=4.0, help="how many times as long as without a change"
    )
    parser.add_argument("--out", type=Path, default=Path("mutants.json"))
    options = parser.parse_args()
    known: dict[tuple[str, str], dict[str, Any]] = {}
    if options.out.exists():
        for row in json.loads(options.out.read_text())["mutants"]:
            known[row["file"], row["diff"]] = row
    rows: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(max_workers=options.jobs) as pool,
    ):
        copies: SimpleQueue[Path] = SimpleQueue()
        for place in range(options.jobs):
            copies.put(copied(Path(folder, str(place))))

        def tried(part: str, path: Path, code: str, limit_s: float) -> str | None:
            copy = copies.get()
            try:
                return killer(copy, part, path, code, limit_s)
            finally:
                copies.put(copy)

        def unchanged(part: str) -> float:
            path, start = files(part)[0], time.monotonic()
            if failed := tried(part, path, path.read_text(), 600.0):
                raise SystemExit(f"the tests of {part} fail without any change: {failed}")
            return max(60.0, options.patience * (time.monotonic() - start))

        # A suite that fails as it is kills everything.
        limits = dict(zip(options.parts, pool.map(unchanged, options.parts), strict=True))
        running = {}
        for part, path, name, number, code in drawn(options.parts, options.n, options.seed):
            diff, where = difference(path, code), str(path.relative_to(ROOT))
            row = known.get((where, diff), {})
            if row.get("status") == "killed" or row.get("explained"):
                rows.append(row)
                continue
            row = {"part": part, "file": where, "operator": name, "number": number, "diff": diff}
            running[pool.submit(tried, part, path, code, limits[part])] = row
        for done in as_completed(running):
            row, by = running[done], done.result()
            rows.append(
                {**row, "status": "killed" if by else "survived", "by": by, "explained": ""}
            )
            if not by:
                print(f"survived: {row['file']}\n{row['diff']}", flush=True)
            summary = {"seed": options.seed, **counted(rows)}
            written(options.out, summary, rows)
    summary = {"seed": options.seed, **counted(rows)}
    written(options.out, summary, rows)
    n_real = summary["n"] - summary["explained"]
    score = round(summary["killed"] / n_real, 3)
    print(f"{summary['killed']} of {n_real} killed, {summary['explained']} explained")
    print(json.dumps({"bench": "mutation", **summary, "score": score}))


def counted(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many mutants there are, and of each end."""
    counts = Counter("explained" if row["explained"] else row["status"] for row in rows)
    return {"n": len(rows), **{end: counts[end] for end in ("killed", "explained", "survived")}}


if __name__ == "__main__":
    main()
