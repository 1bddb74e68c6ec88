"""Evaluation logs → charts by matplotlib as SVG and PNG, the same bytes each time. One without data is left out, with a reason."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pearl.evals.log import EvalLog, EvalRecord, Header
from pearl.evals.report import Score, chance, score_of
from pearl.evals.stats import Interval
from pearl.plugins.extras import install_hint

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FACTS = {
    "data": "{}",
    "model": "{}",
    "mapper": "mapped by {}",
    "domain": "{}",
    "n_actions": "{} actions",
    "library": "{}",
    "bank": "bank {}",
    "nearest": "nearest {}",
    "temperature": "temperature {}",
    "token_budget": "budget {}",
    "scorer": "scored by {}",
}
"""Header fields that distinguish logs, with their label formats."""

MAX_LABEL = 40


@dataclass(frozen=True)
class Series:
    """One method of one log."""

    label: str
    method: str
    header: Header
    records: tuple[EvalRecord, ...]
    cells: dict[str | None, Score]


def series_of(logs: Sequence[EvalLog]) -> tuple[Series, ...]:
    """One series per method of each log, in order."""
    return tuple(
        Series(
            one_line(", ".join(filter(None, (method, variant)))),
            method,
            log.header,
            log.of(method),
            {
                subset: score_of(method, subset or "all", records)
                for subset in (None, *log.subsets)
                if (records := log.of(method, subset))
            },
        )
        for log, variant in zip(logs, variants([log.header for log in logs]), strict=True)
        for method in log.methods
    )


def subsets_of(rows: Sequence[Series]) -> tuple[str, ...]:
    """Every subset of the rows, sorted."""
    return tuple(sorted({name for row in rows for name in row.cells if name is not None}))


def variants(headers: Sequence[Header], *, without: Collection[str] = ()) -> list[str]:
    """A label that distinguishes each log: "" for a single one, its number if all fields are equal."""
    differ = {
        fact for fact in FACTS if len({getattr(header, fact) for header in headers}) > 1
    } - set(without)
    if "n_actions" in differ:
        differ.discard("library")  # the number of actions is a shorter label
    said = [
        ", ".join(
            FACTS[fact].format(value)
            for fact in FACTS
            if fact in differ and (value := getattr(header, fact)) not in (None, "")
        )
        for header in headers
    ]
    if without or len(set(said)) == len(said):
        return said
    return [", ".join(filter(None, (text, f"log {i}"))) for i, text in enumerate(said, start=1)]


def heading(rows: Sequence[Series]) -> str:
    """Data, model and number of samples, as a title."""
    data = one_line(", ".join(dict.fromkeys(row.header.data for row in rows)), 60)
    models = one_line(
        ", ".join(dict.fromkeys(row.header.model or "unknown model" for row in rows)), 60
    )
    sizes = sorted({row.cells[None].n_samples for row in rows})
    n = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    n_seeds = len(set(chain.from_iterable((r.seed for r in row.records) for row in rows)))
    seeds = f", {n_seeds} seeds" if n_seeds > 1 else ""
    return f"{data} · {models} · n = {n}{seeds}"


def one_line(text: str, width: int = MAX_LABEL) -> str:
    r"""Text as a label: one line, printable, at most `width` characters, both ends kept.

    Example:
        >>> one_line("a\n\x00b"), one_line("/data/quality/dev.jsonl", 12)
        ('a �b', '/da…ev.jsonl')
    """
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else "�" for c in line)
    if len(line) <= width:
        return line
    n_first = (width - 1) // 3
    return f"{line[:n_first]}…{line[n_first + 1 - width :]}"


ACCURACY = "accuracy (%), 95 % interval"

_MARKERS = "osD^vPXp<>hd*"

_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "font.size": 9,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text, to be searched, selected and read aloud
    "text.parse_math": False,  # names are data: a $ in one starts no formula
}


@dataclass(frozen=True)
class Picture:
    """One drawn figure."""

    name: str
    caption: str
    svg: str
    png: bytes

    def files(self, folder: Path) -> dict[Path, bytes]:
        """File names and contents."""
        return {
            folder / f"{self.name}.svg": self.svg.encode(),
            folder / f"{self.name}.png": self.png,
        }


class _NoDataError(Exception):
    """A picture cannot be drawn; the message says why."""


def draw(rows: Sequence[Series]) -> tuple[list[Picture], dict[str, str]]:
    """Draw every picture that has data; for the others, return name and reason."""
    if find_spec("matplotlib") is None:
        return [], {"pictures": f"they need matplotlib: {install_hint('pictures')}"}
    # It logs warnings about temporary folders where HOME cannot be written.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib import style
    from matplotlib.figure import Figure

    pictures: list[Picture] = []
    skipped: dict[str, str] = {}
    for name, (caption, drawing) in _DRAWINGS.items():
        look = ["default", "petroff10", {**_STYLE, "svg.hashsalt": name}]
        with style.context(look), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            figure = Figure(figsize=(6, 4), layout="constrained")
            try:
                if not rows:
                    raise _NoDataError("no records")
                drawing(figure.subplots(), rows)
            except _NoDataError as reason:
                skipped[name] = str(reason)
                continue
            figure.suptitle(heading(rows).replace(" · ", "\n", 1), fontsize=9)
            handles, labels = figure.axes[0].get_legend_handles_labels()
            figure.set_figheight(figure.get_figheight() + 0.19 * len(labels))
            figure.legend(handles, labels, loc="outside lower center")
            svg, png = io.StringIO(), io.BytesIO()
            figure.savefig(svg, format="svg", metadata=dict.fromkeys(("Date", "Creator")))
            figure.savefig(png, format="png", dpi=200, metadata={"Software": None})
        pictures.append(Picture(name, caption, svg.getvalue(), png.getvalue()))
    return pictures, skipped


def _accuracy_cost(axes: Axes, rows: Sequence[Series]) -> None:
    cells = [row.cells[None] for row in rows]
    costs = [cell.cost_per_record_usd for cell in cells if cell.cost_per_record_usd is not None]
    has_costs = len(costs) == len(cells) and any(costs)
    x = costs if has_costs else [cell.tokens_per_record for cell in cells]
    if not any(x):
        raise _NoDataError("no costs and no tokens were counted")
    for i, (row, at) in enumerate(zip(rows, x, strict=True)):
        _points(axes, i, row.label, [at], [row.cells[None].accuracy])
    if min(x) > 0 and max(x) / min(x) >= 10:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, 1.15 * max(x))
    unit = "cost of a sample (US dollars)" if has_costs else "tokens of a sample (input and output)"
    axes.set_xlabel(f"mean {unit}")
    _percent(axes, rows)


def _subsets(axes: Axes, rows: Sequence[Series]) -> None:
    groups = (None, *subsets_of(rows))
    if len(groups) == 1:
        raise _NoDataError("no sample belongs to a subset")
    step = 0.8 / len(rows)
    axes.figure.set_figheight(1.4 + len(groups) * (0.25 + 0.17 * len(rows)))
    for i, row in enumerate(rows):
        have = [
            (at, row.cells[name].accuracy) for at, name in enumerate(groups) if name in row.cells
        ]
        axes.barh(
            [at + (i - (len(rows) - 1) / 2) * step for at, _ in have],
            [100 * accuracy.estimate for _, accuracy in have],
            height=0.86 * step,
            xerr=_arms([accuracy for _, accuracy in have]),
            label=row.label,
        )
    sizes = [max(row.cells[name].n_samples for row in rows if name in row.cells) for name in groups]
    labels = [
        f"{one_line(name or 'all', 28)}\nn = {n:,}" for name, n in zip(groups, sizes, strict=True)
    ]
    axes.set_yticks(range(len(groups)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(ACCURACY)


def _library_size(axes: Axes, rows: Sequence[Series]) -> None:
    rows = [row for row in rows if row.header.library]  # existing results have no library
    if len({row.header.n_actions for row in rows}) < 2:
        raise _NoDataError(
            "all logs have libraries of the same size; give logs with different libraries"
        )
    headers = [row.header for row in rows]
    lines: dict[str, list[Series]] = {}
    for row, variant in zip(rows, variants(headers, without=("n_actions", "library")), strict=True):
        label = one_line(", ".join(filter(None, (row.method, variant))))
        lines.setdefault(label, []).append(row)
    for i, (label, line) in enumerate(lines.items()):
        line.sort(key=lambda row: row.header.n_actions)
        at = [row.header.n_actions for row in line]
        _points(axes, i, label, at, [row.cells[None].accuracy for row in line], "-")
    axes.set_xlabel("actions in the library")
    _percent(axes, rows)


def _points(
    axes: Axes, i: int, label: str, at: Sequence[float], accuracies: Sequence[Interval],
    line: str = "none",
) -> None:  # fmt: skip
    """Accuracies of series number i, in percent, with their intervals."""
    axes.errorbar(
        at, [100 * accuracy.estimate for accuracy in accuracies], yerr=_arms(accuracies),
        label=label, marker=_MARKERS[i % len(_MARKERS)], linestyle=line, capsize=3,
    )  # fmt: skip


def _arms(accuracies: Sequence[Interval]) -> list[list[float]]:
    """Lengths of both arms of error bars, in percentage points."""
    below = [100 * (accuracy.estimate - accuracy.low) for accuracy in accuracies]
    return [below, [100 * (accuracy.high - accuracy.estimate) for accuracy in accuracies]]


def _percent(axes: Axes, rows: Sequence[Series]) -> None:
    """The axis of accuracies, with the chance level if every sample has as many options."""
    axes.set_ylabel(ACCURACY)
    records = [record for row in rows for record in row.records]
    if len({len(record.options) for record in records}) == 1 and (by_chance := chance(records)):
        label = f"chance: {100 * by_chance:.0f} %"
        axes.axhline(100 * by_chance, color="#767676", linestyle="--", linewidth=1, label=label)


_DRAWINGS: dict[str, tuple[str, Callable[[Axes, Sequence[Series]], None]]] = {
    "accuracy-cost": ("Accuracy against cost", _accuracy_cost),
    "subsets": ("Accuracy by subset", _subsets),
    "library-size": ("Accuracy against the size of the action library", _library_size),
}
