"""A plugin of pytest for Python 3.12 and later: which tests execute the lines of pearl that somebody asks about.

    pytest -p experiments.reached --reached=FOLDER

The lines of each file are in `FOLDER/lines.json`. Each process writes a file of its own there, a JSON object a line: a test, its seconds, those of the lines
that it executed. What a fixture of several tests executes counts for each of them; what a module executes when it is imported, for none.
Without `=`, pytest would take the folder for one of tests, and look for its root above both.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import sys
from collections.abc import Generator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

TOOL = 4
"""A number that sys.monitoring keeps for no kind of tool: debuggers, profilers and coverage have others."""

Lines = set[tuple[str, int]]


class Reached:
    """The lines that were executed since a test or a fixture of several tests began."""

    def __init__(self, folder: Path, root: Path) -> None:
        wanted = json.loads((folder / "lines.json").read_text(encoding="utf-8"))
        self._wanted = {str(root / name): frozenset(lines) for name, lines in wanted.items()}
        self._names = {str(root / name): name for name in wanted}
        self._file = (folder / f"{os.getpid()}.jsonl").open("w", encoding="utf-8")
        self._now: Lines = set()
        self._of_fixtures: dict[Any, Lines] = {}
        self._seconds = 0.0
        sys.monitoring.use_tool_id(TOOL, "reached")
        events = sys.monitoring.events
        sys.monitoring.register_callback(TOOL, events.LINE, self._line)
        sys.monitoring.register_callback(TOOL, events.PY_START, self._start)
        self._both = events.LINE | events.PY_START
        for each in gc.get_objects():  # modules that conftest.py has imported
            if isinstance(each, FunctionType):
                self._watch(each.__code__)
        loaded = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
            code = loaded(loader, name)
            if code is not None:
                self._watch(code)
            return code

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign]

    def _watch(self, code: CodeType) -> None:
        lines = self._wanted.get(code.co_filename)
        if lines is None:
            return
        # Modules and classes are executed once, by whichever test imports them first.
        if code.co_flags & inspect.CO_OPTIMIZED and any(n in lines for *_, n in code.co_lines()):
            sys.monitoring.set_local_events(TOOL, code, self._both)
        for each in code.co_consts:
            if isinstance(each, CodeType):
                self._watch(each)

    def _line(self, code: CodeType, line: int) -> object:
        if line in self._wanted[code.co_filename]:
            self._now.add((code.co_filename, line))
        return sys.monitoring.DISABLE

    def _start(self, code: CodeType, offset: int) -> object:
        # The first line of a function is none of its lines: all that a lambda has.
        return self._line(code, code.co_firstlineno)

    def _taken(self) -> Lines:
        """The lines until now; from now on they count anew."""
        lines, self._now = self._now, set()
        sys.monitoring.restart_events()
        return lines

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        """Keep what a fixture of several tests executes."""
        if fixturedef.scope == "function":
            return (yield)
        before = self._taken()
        try:
            return (yield)
        finally:
            self._of_fixtures[fixturedef] = self._taken()
            self._now = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write what a test executes."""
        self._taken()
        self._seconds = 0.0
        result = yield
        lines = self._now
        used = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        for definition in (each for found in used.values() for each in found):
            lines |= self._of_fixtures.get(definition, set())
        by_file: dict[str, list[int]] = {}
        for name, line in sorted(lines):
            by_file.setdefault(self._names[name], []).append(line)
        if by_file:
            row = {"test": item.nodeid, "seconds": round(self._seconds, 4), "lines": by_file}
            self._file.write(json.dumps(row) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what a phase of the test took."""
        self._seconds += report.duration

    def pytest_unconfigure(self) -> None:
        """Close the file."""
        self._file.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--reached FOLDER`: where the lines are, and where the tests are written that execute them."""
    parser.addoption("--reached", type=Path, metavar="FOLDER")


def pytest_configure(config: pytest.Config) -> None:
    """Start, where there is something to ask for, in the processes that run tests."""
    folder = config.getoption("--reached")
    is_controller = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if folder and not is_controller and hasattr(sys, "monitoring"):
        config.pluginmanager.register(Reached(folder, config.rootpath))
