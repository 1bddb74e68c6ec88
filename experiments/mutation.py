"""Which one-line changes no test notices: mutants of the code, each against the tests that execute its line.

    python experiments/mutation.py --changed [BASE] --ask  # draw from the lines that differ from BASE
    pytest -p experiments.reached --reached=out/reached    # which tests execute those; on Python 3.12 and later
    python experiments/mutation.py --changed [BASE]        # try their mutants: what the gate runs
    python experiments/mutation.py pearl/dsl [FILE_OR_FOLDER...] --n 300

A line is drawn first and then one of its mutants, lest lines with many operators crowd out the rest. The tests that execute the line run, the cheapest first.
Where few do, or none were recorded, the nearest test files of the module run as well: those in the folder of its package and those that name it or what it
defines, which may execute it in other processes. A mutant is killed by the first test that fails, or survives. Survivors that change nothing that matters are
explained in `experiments/mutants.json`. Without BASE a change is what the branch adds to `origin/main`, or else the last commit. Mutants that are not done
after `--seconds` are not counted. Exit code 1 if the sample shows, with 95 % confidence, that less than `--at-least` of the mutants are killed or explained.
"""

from __future__ import annotations

import argparse
import ast
import json
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
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import StringIO
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
EXPLAINED = ROOT / "experiments/mutants.json"

REACHED = ROOT / "out/reached"
"""Where `reached.py` finds lines and writes tests."""

FEW = 10
"""Of a line that fewer tests execute, the nearest test files run, too: of what is kept after its first use, only one test is known to execute it."""

LEFT_OUT = ("tests/browser", "tests/real", "tests/faults", "tests/attacks")
"""Rows of faults and attacks draw other seeds each time, so that they may fail without a mutant."""

AT_LEAST = 0.85
"""Least share of mutants that are killed or explained. Of 150 drawn from all changes of ten days they were 87 % (81 to 92)."""

N_TEST_FILES = 12
"""Nearest test files of a module: a kill comes from the first three as a rule, and each costs a survivor its time."""

STAGES = (20, 120)
"""The cheapest tests that are tried before all others: the files of the others need not be imported then."""

PASSED = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}

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
            if name == "keywords" and isinstance(parent, ast.ClassDef):
                continue  # `frozen=True` refuses what type checkers refuse
            for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(node, ast.AST):
                    continue
                if isinstance(node, ast.keyword) and node.arg == "strict":
                    continue  # of `zip`: it refuses what no caller does
                if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                    continue
                line = getattr(node, "lineno", 0)
                for new in changed_nodes(node):
                    by_line.setdefault(line, []).append((parent, name, index, new))
                visit(node)

    visit(tree)
    by_line.setdefault(0, []).append((tree, "", None, tree))
    return by_line


def mutants_of(lines_of: Mapping[Path, Container[int]], seed: int) -> Iterator[Mutant]:
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


Place = tuple[str, int]
"""A file and a line."""


def executed_lines(path: Path, uses: Mapping[str, set[Place]]) -> dict[int, set[Place]]:
    """By line, those lines in functions of which a test executes one if the line matters to it.

    These are the lines of its statement, or of the function whose default it is. What is executed at import matters to what uses its names, or its class.
    """
    file, tree = str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))
    places: dict[int, set[Place]] = {}

    def visit(node: ast.AST, in_function: bool, class_name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.stmt):
                visit(child, in_function, class_name)
                continue
            body, last = getattr(child, "body", None), child.end_lineno or child.lineno
            own = range(child.lineno, max(body[0].lineno, child.lineno + 1) if body else last + 1)
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            matters = {(file, n) for n in (range(child.lineno, last + 1) if is_function else own)}
            if not (in_function or is_function):
                names = [each for each in ast.walk(child) if isinstance(each, ast.Name)]
                stored = {each.id for each in names if isinstance(each.ctx, ast.Store)}
                for name in {class_name} if class_name else stored:
                    matters |= uses.get(name, set())
            places.update(dict.fromkeys(own, matters))
            name = child.name if isinstance(child, ast.ClassDef) else class_name
            visit(child, in_function or is_function, name)

    visit(tree, False, "")
    return places


def uses_of_words() -> dict[str, set[Place]]:
    """The lines of pearl that have a word in them."""
    uses: dict[str, set[Place]] = defaultdict(set)
    for path in (ROOT / "pearl").rglob("*.py"):
        file = str(path.relative_to(ROOT))
        for n, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            for word in re.findall(r"\w+", text):
                uses[word].add((file, n))
    return uses


def ask(folder: Path, places: Iterable[Place]) -> None:
    """Write the lines that `reached.py` looks for; what it wrote of others goes."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.jsonl"):
        old.unlink()
    asked: dict[str, list[int]] = defaultdict(list)
    for file, line in sorted(places):
        asked[file].append(line)
    (folder / "lines.json").write_text(json.dumps(asked), encoding="utf-8")


def recorded(folder: Path, places: Iterable[Place]) -> list[dict[str, Any]]:
    """What `reached.py` wrote, the cheapest test first; nothing if it looked for other lines."""
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.jsonl")]
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    asked = json.loads((folder / "lines.json").read_text(encoding="utf-8")) if rows else {}
    if any(line not in asked.get(file, ()) for file, line in places):
        print("which tests execute these lines is not recorded: they are chosen by names")
        return []
    rows = [row for row in rows if not row["test"].startswith(LEFT_OUT)]
    return sorted(rows, key=itemgetter("seconds"))


def chosen_tests(
    mutants: Mapping[Mutant, set[Place]], folder: Path
) -> dict[Mutant, list[list[str]]]:
    """The tests of each mutant and test files, in stages."""
    words = {
        name: set(re.findall(r"\w+", (ROOT / name).read_text(encoding="utf-8")))
        for name in git("ls-files", "tests/**test_*.py").split()
        if (ROOT / name).is_file() and not name.startswith(LEFT_OUT)
    }
    near = {file: nearest_tests(ROOT / file, words) for file in {each.file for each in mutants}}
    executing: dict[Place, list[int]] = {place: [] for each in mutants.values() for place in each}
    rows = recorded(folder, executing)
    for n, row in enumerate(rows):
        for file, numbers in row["lines"].items():
            for place in ((file, line) for line in numbers):
                if place in executing:
                    executing[place].append(n)
    stages = {}
    for mutant, places in mutants.items():
        numbers = sorted({n for place in places for n in executing[place]})
        tests = [rows[n]["test"] for n in numbers]
        first, second = STAGES
        parts = [tests[:first], tests[first:second], tests[second:]]
        if len(tests) < FEW:
            parts.append([*near[mutant.file], mutant.file])
        stages[mutant] = list(filter(None, parts))
    return stages


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


class Chosen:
    """A plugin of pytest: of the collected tests, these run, in this order. A name is of a test, of a function or of a file."""

    def __init__(self, names: Sequence[str]) -> None:
        self._rank = {name: n for n, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the others out."""
        ranked = [(self._of(item.nodeid), item) for item in items]
        ranked.sort(key=itemgetter(0))
        items[:] = [item for rank, item in ranked if rank < len(self._rank)]

    def _of(self, test: str) -> int:
        names = (test, test.partition("[")[0], test.partition("::")[0])
        return min(self._rank.get(name, len(self._rank)) for name in names)


def started(copy: Path, stages: Sequence[Sequence[str]], log: Path, limit_s: float) -> int:
    """Fork a child that runs tests or files of tests in a copy, until one fails; its pid. What they all import is imported here, once."""
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
        options = ["-q", "-x", "-n", "0", "--tb=line", "-rfE", "-p", "no:cacheprovider"]
        options += [
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
        ]  # of what is imported already
        options += ["--timeout", str(limit_s / 2)]  # no fast test takes as long: it hangs
        for names in stages:
            files = list(dict.fromkeys(name.partition("::")[0] for name in names))
            code = int(pytest.main([*options, *files], plugins=[Chosen(names)]))
            if code not in PASSED:
                break
    except BaseException:  # noqa: BLE001 - the parent reads it in the log
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def run_all(
    stages: Mapping[Mutant, Sequence[Sequence[str]]], jobs: int, seconds: float, limit_s: float
) -> dict[Mutant, str]:
    """Each mutant with the test that killed it, or nothing; without those that were not done in time."""
    import click, hypothesis.strategies, jinja2, lark, lxml.etree, numpy, pydantic, rich.console, xdist  # noqa: E401, F401, I001

    ends = time.monotonic() + seconds
    waiting, verdicts = list(reversed(stages)), dict[Mutant, str]()
    with tempfile.TemporaryDirectory() as folder:
        copies = [copied(Path(folder, str(number))) for number in range(jobs)]
        running: dict[int, tuple[Mutant, Path, float]] = {}
        n_started = 0

        def end(pid: int, status: int) -> None:
            mutant, copy, _ = running.pop(pid)
            (copy / mutant.file).write_bytes((ROOT / mutant.file).read_bytes())
            copies.append(copy)
            report = (copy / "mutation.log").read_text(errors="replace")
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) in PASSED:
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
                pid = started(copy, stages[mutant], copy / "mutation.log", limit_s)
                running[pid] = (mutant, copy, time.monotonic())
            for pid, (mutant, _, began) in list(running.items()):
                done, status = os.waitpid(pid, os.WNOHANG)
                took = time.monotonic() - began
                if done:
                    end(pid, status)
                elif took > limit_s or time.monotonic() > ends:
                    os.killpg(pid, signal.SIGKILL)
                    _, status = os.waitpid(pid, 0)
                    end(pid, status)
                    verdicts.pop(mutant)
                    if took > limit_s:
                        verdicts[mutant] = ""
            time.sleep(0.05)
        # Of a mutant with which no test starts, its first test must start without it.
        killers = {
            name if "::" in name else stages[mutant][0][0]
            for mutant, name in verdicts.items()
            if name
        }
        check_killers(copied(Path(folder, "unchanged")), killers, limit_s)
    return verdicts


def check_killers(copy: Path, killers: Iterable[str], limit_s: float) -> None:
    """Exit if a test that killed a mutant fails without it, too."""
    names = sorted({name.partition("[")[0] for name in killers})
    if not names:
        return
    pid = started(copy, [names], copy / "mutation.log", limit_s)
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
    parser.add_argument("--ask", action="store_true", help="write the lines for reached.py")
    parser.add_argument("--reached", type=Path, default=REACHED, metavar="FOLDER")
    parser.add_argument("--n", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--limit", type=float, default=45.0, help="most seconds of a mutant: one that takes longer survives")  # fmt: skip
    parser.add_argument("--at-least", type=float, default=AT_LEAST)
    options = parser.parse_args()
    lines_of: dict[Path, Container[int]] = {}
    if options.changed is not None:
        lines_of |= changed_lines(options.changed)
    else:
        for path in (path.resolve() for path in options.paths or [ROOT / "pearl"]):
            files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
            lines_of |= dict.fromkeys(files, range(1, sys.maxsize))
    drawn = list(islice(mutants_of(lines_of, options.seed), options.n))
    if not drawn:
        print("no line of code of pearl differs")
        if options.ask:
            ask(options.reached, ())  # the tests that record read it
        return 0
    uses = uses_of_words()
    executed = {each: executed_lines(ROOT / each, uses) for each in {each.file for each in drawn}}
    places = {each: executed[each.file].get(each.line, {(each.file, each.line)}) for each in drawn}
    if options.ask:
        ask(options.reached, set().union(*places.values()))
        return 0
    known = {(row["file"], row["diff"]) for row in json.loads(EXPLAINED.read_text())}
    others = {each: places[each] for each in drawn if (each.file, each.diff) not in known}
    stages = chosen_tests(others, options.reached)
    verdicts = run_all(stages, options.jobs, options.seconds, options.limit)
    for mutant, killer in verdicts.items():
        if not killer:
            n_tests = sum("::" in name for names in stages[mutant] for name in names)
            print(f"survives {n_tests or 'no test executes it'}: {mutant.file}:{mutant.line}: {mutant.diff}")  # fmt: skip
    n_killed, n_explained = sum(map(bool, verdicts.values())), len(drawn) - len(others)
    n = len(verdicts) + n_explained
    share = (n_killed + n_explained) / max(n, 1)
    print(
        f"{n} of {len(drawn)} mutants of {len(lines_of)} files: {n_killed} killed, {n_explained} explained ({share:.0%})"
    )
    from pearl.runs.reviewing import wilson  # late: tests have to import the mutants of pearl

    # a few mutants of a small change prove little
    return int(n >= 5 and wilson(n_killed + n_explained, n)[1] < options.at_least)


if __name__ == "__main__":
    sys.exit(main())
