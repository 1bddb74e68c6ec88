"""The suites of faults and attacks: rows with figures, in three sizes, by `make faults` and `make attacks`.

A test of tests/faults or tests/attacks belongs to a row and records its figures:

    @pytest.mark.row("R15", "SIGKILL at a random time")
    def test_killed_runs(trial: Trial) -> None:
        n_kills = trial.n(ci=100, nightly=1_000, release=100_000)
        ...
        trial.figure("kills", n_kills)
        trial.figure("replies lost", n_lost, at_most=0)

`docs/make_reliability_page.py` makes docs/reliability.md of the file that `--figures` names.
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

SIZES = ("ci", "nightly", "release")
FOLDERS = {"faults", "attacks"}


@dataclass(frozen=True)
class Figure:
    """A measured number, and its bound if the row promises one."""

    name: str
    value: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the number is within its bound."""
        above = self.at_most is not None and self.value > self.at_most
        below = self.at_least is not None and self.value < self.at_least
        return not (above or below)


@dataclass
class Trial:
    """What a test of a row gets: its size, its own random numbers, and a place for its figures."""

    size: str
    seed: int
    random: random.Random
    figures: list[Figure] = field(default_factory=list)
    tables: dict[str, list[dict[str, float | str]]] = field(default_factory=dict)

    def n(self, *, ci: int, nightly: int, release: int) -> int:
        """The number for the size of this run."""
        return {"ci": ci, "nightly": nightly, "release": release}[self.size]

    def figure(
        self,
        name: str,
        value: float,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
    ) -> None:
        """Record a number; bounds are checked when the test has recorded all of them."""
        self.figures.append(Figure(name, value, at_most, at_least))

    def table(self, name: str, rows: Sequence[Mapping[str, float | str]]) -> None:
        """Record a table for the docs; all rows have the same columns."""
        self.tables[name] = [dict(row) for row in rows]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suites; without `--size` their folders are not collected."""
    parser.addoption("--size", choices=SIZES, help="for files that are named: ci")
    parser.addoption("--rows", help="only these, such as R15,S3")
    parser.addoption(
        "--figures", type=Path, metavar="FILE", help="merge the figures into this JSON file"
    )
    parser.addoption("--seed", type=int, help="of the suites; printed at the end")


def pytest_configure(config: pytest.Config) -> None:
    """The seed is drawn once, before workers of xdist start; they get it as an option."""
    config.addinivalue_line("markers", "row(number, title): the row of docs/reliability.md")
    if config.option.seed is None:
        config.option.seed = secrets.randbelow(2**31)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The suites run on request only."""
    is_of_suite = any(folder in collection_path.parts[-2:] for folder in FOLDERS)
    return True if is_of_suite and not config.option.size else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`--rows` keeps the tests of these rows."""
    if not config.option.rows:
        return
    wanted = set(config.option.rows.upper().split(","))
    marks = [(item, item.get_closest_marker("row")) for item in items]
    kept = [item for item, mark in marks if mark and mark.args[0] in wanted]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Iterator[Trial]:
    """Collects the figures of a test, and fails it where one is out of its bound."""
    seed = request.config.option.seed
    run = Trial(
        request.config.option.size or SIZES[0], seed, random.Random(f"{seed} {request.node.name}")
    )
    start_s = time.monotonic()
    yield run
    number, title = request.node.get_closest_marker("row").args
    record = {
        "row": number, "title": title, "test": request.node.nodeid, "size": run.size, "seed": seed,
        "date": datetime.now(UTC).date().isoformat(), "seconds": round(time.monotonic() - start_s, 1),
        "figures": [asdict(figure) for figure in run.figures], "tables": run.tables,
    }  # fmt: skip
    request.node.user_properties.append(("row", record))
    missed = [figure for figure in run.figures if not figure.holds]
    assert not missed, f"row {number}, seed {seed}: " + "; ".join(map(shown, missed))


def shown(figure: Figure) -> str:
    """`replies lost 3 (at most 0)`."""
    bounds = [f"{word} {limit:,g}" for word, limit in
              (("at most", figure.at_most), ("at least", figure.at_least)) if limit is not None]  # fmt: skip
    return f"{figure.name} {figure.value:,.6g}" + (f" ({', '.join(bounds)})" if bounds else "")


def in_order(number: str) -> tuple[str, int]:
    """R2 comes before R15."""
    return number[:1], int(number[1:])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table of the rows; `--figures` keeps them if all hold."""
    stats = terminalreporter.stats  # reports of teardowns that passed are under ""
    reports = [report for kind in ("", "error") for report in stats.get(kind, [])]
    records = [
        value
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "row"
    ]
    if not records:
        return
    records.sort(key=lambda record: (in_order(record["row"]), record["test"]))
    terminalreporter.section(f"rows at size {config.option.size}, seed {config.option.seed}")
    for record in records:
        terminalreporter.line(f"{record['row']:4} {record['title']} ({record['seconds']} s)")
        for figure in (Figure(**each) for each in record["figures"]):
            terminalreporter.line(
                f"     {'' if figure.holds else 'MISSED: '}{shown(figure)}", red=not figure.holds
            )
    path = config.option.figures
    if path and not any(stats.get(kind) for kind in ("failed", "error")):
        older = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        merged = older | {record["test"]: record for record in records}
        lines = [
            f"{json.dumps(test)}: {json.dumps(record)}" for test, record in sorted(merged.items())
        ]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
