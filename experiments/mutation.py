"""Which one-line changes no test notices: mutants of the code, each against the tests nearest to its file.

    python experiments/mutation.py --changed [BASE]       # the lines that differ from BASE: what the gate runs
    python experiments/mutation.py pearl/dsl [FILE_OR_FOLDER...] --n 300

A line is drawn first and then one of its mutants, lest lines with many operators crowd out the rest. The nearest tests of a
file are those in the folder of its package and those that name it or what it defines; the file's doctests belong to them.
A mutant is killed by the first of these tests that fails, or survives. Survivors that change nothing that matters are explained in
`experiments/mutants.json`. Without BASE a change is what the branch adds to `origin/main`, or else the last commit. Mutants that are not
done after `--seconds` are not counted. Exit code 1 if the sample of at most 100 files shows, with 95 % confidence, that less than `--at-least` of the mutants
are killed or explained.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import tokenize
import traceback
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import StringIO
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXPLAINED = ROOT / "experiments/mutants.json"

N_TEST_FILES = 12
"""Test files that a mutant is run against: a kill comes from the first three as a rule, and each costs a survivor its time."""

LIMIT_S = 45
"""Most seconds of a mutant: one that takes longer survives."""

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Break: ast.Continue, ast.Continue: ast.Break,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A changed line."""

    file: str
    line: int
    diff: str
    """The line and what changes in it, without its number: edits above it do not matter."""
    code: str
    """The whole module with the change."""


def changed_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Replacements of a node, each of which means something else."""
    match node:
        case ast.Compare(left, [operator, *more], comparators) if type(operator) in SWAPPED:
            yield ast.Compare(left, [SWAPPED[type(operator)](), *more], comparators)  # type: ignore[list-item]
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(SWAPPED[type(operator)](), values)  # type: ignore[arg-type]
        case ast.BinOp(left, operator, right) if type(operator) in SWAPPED:
            yield ast.BinOp(left, SWAPPED[type(operator)](), right)  # type: ignore[arg-type]
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(value) if isinstance(value, bool):
            yield ast.Constant(not value)
        case ast.Constant(value) if isinstance(value, int | float):
            yield ast.Constant(value + 1)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.If(test) | ast.While(test):
            changed = {**dict(ast.iter_fields(node)), "test": ast.UnaryOp(ast.Not(), test)}
            yield type(node)(**changed)
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Await()):
            yield ast.Pass()
        case ast.Break() | ast.Continue():
            yield SWAPPED[type(node)]()


def mutants_by_line(path: Path) -> dict[int, list[tuple[ast.AST, str, int | None, ast.AST]]]:
    """The mutants of a module by line: the parent, its field, the index in it, the new node."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    by_line: dict[int, list[tuple[ast.AST, str, int | None, ast.AST]]] = {}

    def visit(parent: ast.AST) -> None:
        for name, value in ast.iter_fields(parent):
            if name in {"annotation", "returns", "decorator_list", "type_params"}:
                continue  # annotations are never evaluated here
            for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(node, ast.AST):
                    continue
                if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                    continue
                line = getattr(node, "lineno", 0)
                for new in changed_nodes(node):
                    by_line.setdefault(line, []).append((parent, name, index, new))
                visit(node)

    visit(tree)
    by_line.setdefault(0, []).append((tree, "", None, tree))
    return by_line


def drawn(lines_of: Mapping[Path, Container[int]], seed: int) -> Iterator[Mutant]:
    """Mutants of some lines of files in random order, one a line."""
    draw = random.Random(seed)
    trees = {path: mutants_by_line(path) for path in lines_of}
    lines = [
        (path, n) for path, among in lines_of.items() for n in sorted(trees[path]) if n in among
    ]
    draw.shuffle(lines)
    for path, line in lines:
        tree = trees[path][0][0][0]
        parent, name, index, new = draw.choice(trees[path][line])
        holder = getattr(parent, name)
        old = holder if index is None else holder[index]

        def put(node: ast.AST) -> None:
            if index is None:  # noqa: B023 - called within this turn of the loop
                setattr(parent, name, node)  # noqa: B023
            else:
                holder[index] = node  # noqa: B023

        put(ast.fix_missing_locations(ast.copy_location(new, old)))
        code = ast.unparse(tree)
        put(old)
        before, after = (ast.unparse(node).partition("\n")[0] for node in (old, new))
        text = path.read_text(encoding="utf-8").split("\n")[line - 1].strip()
        yield Mutant(str(path.relative_to(ROOT)), line, f"{text}  |  {before} -> {after}", code)


def nearest_tests(path: Path, words: dict[str, set[str]]) -> list[str]:
    """The test files of a module, the nearest first."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    names = {name for name in {*defined, path.stem} if len(name) > 3 and name[0] != "_"}
    n_files = Counter(name for found in words.values() for name in names & found)
    folder = f"tests/{'/'.join(path.relative_to(ROOT / 'pearl').parent.parts)}"

    def nearness(name: str) -> float:
        named = sum(1 / n_files[each] for each in names & words[name])
        return named + (path.stem in Path(name).stem) + 0.1 * name.startswith(folder)

    near = sorted(words, key=nearness, reverse=True)
    return [name for name in near[:N_TEST_FILES] if nearness(name)]


def git(*arguments: str) -> str:
    """What git prints; "" if it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def changed_lines(base: str) -> dict[Path, set[int]]:
    """The lines of code in modules of pearl that differ from a commit; other comments make no other line."""
    base = base or git("merge-base", "HEAD", "origin/main")
    if base in {"", git("rev-parse", "HEAD")}:
        base = git("rev-parse", "HEAD~1")
    names = git("diff", "--name-only", "--diff-filter=d", base, "--", "pearl") if base else ""
    changed: dict[Path, set[int]] = {}
    for name in filter(lambda name: name.endswith(".py"), names.split("\n")):
        before, now = git("show", f"{base}:{name}"), (ROOT / name).read_text(encoding="utf-8")
        same = SequenceMatcher(None, code_lines(before), code_lines(now), autojunk=False)
        lines = {
            n + 1
            for tag, _, _, start, end in same.get_opcodes()
            for n in range(start, end if tag != "equal" else start)
        }
        if lines:
            changed[ROOT / name] = lines
    return changed


def code_lines(text: str) -> list[str]:
    """The lines of a module without their comments."""
    lines = text.split("\n")
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return [line.strip() for line in lines]


def copied(folder: Path) -> Path:
    """A copy of the tracked files as they are now."""
    for name in filter(None, git("ls-files", "-z").split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def started(copy: Path, tests: Sequence[str], log: Path) -> int:
    """Fork a child that runs tests in a copy; its pid. What they all import is imported here, once."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    os.chdir(copy)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.path.insert(0, str(copy))
    os.environ["PYTHONPATH"] = str(copy)
    code = 3
    try:
        import pytest

        options = ["-q", "-x", "-n", "0", "--tb=line", "-rfE", "-p", "no:cacheprovider"]
        code = int(pytest.main([*options, *tests]))
    except BaseException:  # noqa: BLE001 - the parent reads it in the log
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def run_all(
    mutants: Sequence[Mutant], tests: dict[str, list[str]], jobs: int, seconds: float
) -> dict[Mutant, str]:
    """Each mutant with the test that killed it, or nothing; without those that were not done in time."""
    import click, jinja2, lark, lxml.etree, numpy, pydantic, pytest, rich.console  # noqa: E401, F401, I001

    ends = time.monotonic() + seconds
    waiting, verdicts = list(reversed(mutants)), dict[Mutant, str]()
    with tempfile.TemporaryDirectory() as folder:
        copies = [copied(Path(folder, str(number))) for number in range(jobs)]
        running: dict[int, tuple[Mutant, Path, float]] = {}
        n_started = 0

        def end(pid: int, status: int) -> None:
            mutant, copy, _ = running.pop(pid)
            (copy / mutant.file).write_bytes((ROOT / mutant.file).read_bytes())
            copies.append(copy)
            report = (copy / "mutation.log").read_text(errors="replace")
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) in {0, 5}:
                verdicts[mutant] = ""
            else:
                failed = re.search(r"^(?:FAILED|ERROR) (\S+)", report, re.MULTILINE)
                verdicts[mutant] = (
                    failed[1] if failed else report[-200:].strip() or "no test starts"
                )

        while running or (waiting and time.monotonic() < ends):
            while copies and waiting and time.monotonic() < ends:
                mutant, copy = waiting.pop(), copies.pop()
                place = copy / mutant.file
                place.write_text(mutant.code, encoding="utf-8")
                n_started += 1  # byte code is known by the second and the size of its source
                os.utime(place, (1_000_000_000 + n_started,) * 2)
                pid = started(copy, [*tests[mutant.file], mutant.file], copy / "mutation.log")
                running[pid] = (mutant, copy, time.monotonic())
            for pid, (mutant, _, began) in list(running.items()):
                done, status = os.waitpid(pid, os.WNOHANG)
                took = time.monotonic() - began
                if done:
                    end(pid, status)
                elif took > LIMIT_S or time.monotonic() > ends:
                    os.killpg(pid, signal.SIGKILL)
                    _, status = os.waitpid(pid, 0)
                    end(pid, status)
                    verdicts.pop(mutant)
                    if took > LIMIT_S:
                        verdicts[mutant] = ""
            time.sleep(0.05)
        check_killers(copied(Path(folder, "unchanged")), verdicts)
    return verdicts


def check_killers(copy: Path, verdicts: dict[Mutant, str]) -> None:
    """Exit if a test that killed a mutant fails without it, too."""
    killers = sorted({name.partition("[")[0] for name in verdicts.values() if "::" in name})
    if not killers:
        return
    pid = started(copy, killers, copy / "mutation.log")
    _, status = os.waitpid(pid, 0)
    if status:
        sys.exit(
            "tests fail without a mutant, too:\n" + (copy / "mutation.log").read_text()[-1_500:]
        )


def main() -> int:
    """Draw, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--changed", nargs="?", const="", metavar="BASE")
    parser.add_argument("--n", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--at-least", type=float, default=0.85)
    options = parser.parse_args()
    lines_of: dict[Path, Container[int]] = {}
    if options.changed is not None:
        lines_of |= changed_lines(options.changed)
    else:
        for path in (path.resolve() for path in options.paths or [ROOT / "pearl"]):
            files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
            lines_of |= dict.fromkeys(files, range(1, sys.maxsize))
    known = {(row["file"], row["diff"]): row["why"] for row in json.loads(EXPLAINED.read_text())}
    mutants = list(islice(drawn(lines_of, options.seed), options.n))
    if not mutants:
        print("no line of code of pearl differs")
        return 0
    explained = [each for each in mutants if (each.file, each.diff) in known]
    # Rows of faults and attacks draw other seeds each time, so that they may fail without a mutant.
    others = ("tests/browser", "tests/real", "tests/faults", "tests/attacks")
    words = {
        name: set(re.findall(r"\w+", (ROOT / name).read_text(encoding="utf-8")))
        for name in git("ls-files", "tests/**test_*.py").split()
        if (ROOT / name).is_file() and not name.startswith(others)
    }
    tests = {name: nearest_tests(ROOT / name, words) for name in {each.file for each in mutants}}
    verdicts = run_all(
        [each for each in mutants if each not in explained], tests, options.jobs, options.seconds
    )
    for mutant, killer in verdicts.items():
        if not killer:
            print(f"survives: {mutant.file}:{mutant.line}: {mutant.diff}")
    n_killed, n = sum(map(bool, verdicts.values())), len(verdicts) + len(explained)
    share = (n_killed + len(explained)) / max(n, 1)
    print(
        f"{n} of {len(mutants)} mutants of {len(lines_of)} files: {n_killed} killed, {len(explained)} explained ({share:.0%})"
    )
    if len(lines_of) > MOST_FILES:
        print(f"more than {MOST_FILES} files: the share is only told")
        return 0
    return int(highest_share(share, n) < options.at_least)


# Of a change of the whole house, a hundred seconds try too few mutants to say where tests are missing
MOST_FILES = 100


def highest_share(share: float, n: int, z: float = 1.96) -> float:
    """The upper end of Wilson's interval: a few mutants of a small change prove little."""
    if n < 5:
        return 1.0
    centre, spread = (
        share + z * z / (2 * n),
        math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2),
    )
    return (centre + z * spread) / (1 + z * z / n)


if __name__ == "__main__":
    sys.exit(main())
