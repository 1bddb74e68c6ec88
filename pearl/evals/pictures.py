"""Evaluation logs → five charts as SVG and PNG, byte for byte reproducible. A chart without data is skipped, with a reason."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pearl.evals.log import EvalLog, EvalRecord, Header
from pearl.evals.report import Score, chance, of_records, score_of
from pearl.evals.stats import Interval
from pearl.plugins.extras import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDTH_IN = 6.0
LINE_IN = 0.19
PNG_DPI = 200

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#808080")
"""Okabe and Ito's colour-blind safe palette, without yellow (too pale on white) and with grey for
black (which would hide intervals)."""

_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p")
"""One more than colours, so that a repeated colour has another marker."""

GREY = "#767676"

_STYLE = {
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "figure.titlesize": 10,
    "font.size": 9,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text, to be searched, selected and read aloud
    "text.parse_math": False,  # names are data: a $ in one starts no formula
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}


def look_of(i: int) -> tuple[str, str]:
    """The colour and the marker of series i: different for 56 series."""
    return _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]


@contextmanager
def _style(salt: str) -> Iterator[None]:
    """Apply this style regardless of the user's matplotlib settings, and silence its logs.

    The ids in the SVG depend on `salt`: figures of one page need different ones.
    """
    require_extra("pictures", "a picture", "matplotlib")
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)  # it warns about temporary folders if HOME is read-only
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            import matplotlib.style

            with matplotlib.style.context(["default", {**_STYLE, "svg.hashsalt": salt}]):
                yield
    finally:
        log.setLevel(level)


def _figure(
    rows: Sequence[Series], height_in: float, n_rows: int = 1, n_columns: int = 1
) -> tuple[Figure, Any]:
    """A figure with the heading of the rows and a grid of axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn, title = Figure(figsize=(WIDTH_IN, height_in), layout="constrained"), heading(rows)
    FigureCanvasAgg(drawn)
    # 84 characters of this size are 6 inches wide.
    drawn.suptitle(title if len(title) <= 84 else title.replace(" · ", "\n", 1))
    return drawn, drawn.subplots(n_rows, n_columns)


def _legend(
    drawn: Figure, handles: Sequence[Any], labels: Sequence[str], max_columns: int = 8
) -> None:
    """A legend below everything, in as many columns as fit; the figure grows by its lines."""
    columns = max(1, min(max_columns, len(labels), 84 // (max(map(len, labels)) + 8)))
    drawn.set_figheight(drawn.get_figheight() + LINE_IN * (len(labels) / columns - 1))
    drawn.legend(handles, labels, loc="outside lower center", ncols=columns)


def _render(drawn: Figure) -> tuple[str, bytes]:
    """The figure as the text of an SVG file and the bytes of a PNG file."""
    svg, png = io.StringIO(), io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    drawn.savefig(svg, format="svg", metadata=nothing)
    drawn.savefig(png, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return svg.getvalue(), png.getvalue()


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

SHAPES = {
    "n_steps": "steps of the plan",
    "n_calls": "calls of the model",
    "width": "parallel steps (width)",
    "depth": "steps on the longest chain (depth)",
}


@dataclass(frozen=True)
class Picture:
    """One drawn figure."""

    name: str
    caption: str
    svg: str
    png: bytes

    def _repr_svg_(self) -> str:
        """The figure for a notebook."""
        return self.svg

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
    pictures: list[Picture] = []
    skipped: dict[str, str] = {}
    for name, (caption, drawing) in _DRAWINGS.items():
        with _style(f"pearl-{name}"):
            try:
                if not rows:
                    raise _NoDataError("no records")
                svg, png = _render(drawing(rows))
            except _NoDataError as reason:
                skipped[name] = str(reason)
            else:
                pictures.append(Picture(name, caption, svg, png))
    return pictures, skipped


def _accuracy_cost(rows: Sequence[Series]) -> Figure:
    cells = [row.cells[None] for row in rows]
    costs = [cell.cost_per_record_usd for cell in cells if cell.cost_per_record_usd is not None]
    if len(costs) == len(cells) and any(costs):
        x, unit = costs, "mean cost of a sample (US dollars)"
    else:
        x = [cell.tokens_per_record for cell in cells]
        unit = "mean tokens of a sample (input and output)"
    if not any(x):
        raise _NoDataError("no costs and no tokens were counted")
    drawn, axes = _figure(rows, 4.0)
    handles = [
        _point(axes, i, [at], [cell.accuracy])
        for i, (at, cell) in enumerate(zip(x, cells, strict=True))
    ]
    if min(x) > 0 and max(x) / min(x) >= 10:
        from matplotlib.ticker import LogLocator, NullFormatter

        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
        axes.xaxis.set_minor_formatter(NullFormatter())
        unit += ", logarithmic"
    else:
        axes.set_xlim(0, 1.15 * max(x))
    axes.xaxis.set_major_formatter(_number)
    axes.margins(x=0.15)
    axes.set_xlabel(unit)
    _accuracy_axis(axes, _chance(rows))
    _legend(drawn, handles, [row.label for row in rows])
    return drawn


def _subsets(rows: Sequence[Series]) -> Figure:
    groups = (None, *subsets_of(rows))
    if len(groups) == 1:
        raise _NoDataError("no sample belongs to a subset")
    step = 1 / (len(rows) + 0.8)
    drawn, axes = _figure(rows, 1.4 + len(groups) * (0.25 + 0.17 * len(rows)))
    handles = []
    for i, row in enumerate(rows):
        have = [(at, row.cells[name]) for at, name in enumerate(groups) if name in row.cells]
        at = [group + (i - (len(rows) - 1) / 2) * step for group, _ in have]
        intervals = [cell.accuracy for _, cell in have]
        handles.append(
            axes.barh(
                at,
                [100 * interval.estimate for interval in intervals],
                height=0.86 * step,
                xerr=_errors(intervals),
                error_kw={"ecolor": "#333333", "elinewidth": 1.0, "capsize": 2},
                color=look_of(i)[0],
            )
        )
    sizes = [max(row.cells[name].n_samples for row in rows if name in row.cells) for name in groups]
    axes.set_yticks(
        range(len(groups)),
        [
            f"{'all' if name is None else one_line(name, 28)}\nn = {n:,}"
            for name, n in zip(groups, sizes, strict=True)
        ],
    )
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel(ACCURACY)
    _legend(drawn, handles, [row.label for row in rows])
    return drawn


def _library_size(rows: Sequence[Series]) -> Figure:
    rows = [row for row in rows if row.header.library]  # existing results have no library
    sizes = sorted({row.header.n_actions for row in rows})
    if len(sizes) < 2:
        raise _NoDataError(
            "all logs have libraries of the same size; give logs with different libraries"
        )
    headers = [row.header for row in rows]
    lines: dict[str, list[Series]] = {}
    for row, variant in zip(rows, variants(headers, without=("n_actions", "library")), strict=True):
        label = one_line(", ".join(filter(None, (row.method, variant))))
        lines.setdefault(label, []).append(row)
    drawn, axes = _figure(rows, 4.0)
    spread = (sizes[-1] - sizes[0]) * 0.008
    handles = []
    for i, line in enumerate(lines.values()):
        line.sort(key=lambda row: row.header.n_actions)
        # Shifted sideways, so that intervals of several methods do not overlap.
        aside = (i - (len(lines) - 1) / 2) * spread
        at = [row.header.n_actions + aside for row in line]
        handles.append(_point(axes, i, at, [row.cells[None].accuracy for row in line], "-"))
    axes.set_xticks(_apart(sizes, 0.05 * (sizes[-1] - sizes[0])))
    axes.set_xlabel("actions in the library")
    _accuracy_axis(axes, _chance(rows))
    _legend(drawn, handles, list(lines))
    return drawn


def _plan_shape(rows: Sequence[Series]) -> Figure:
    import numpy as np
    from matplotlib.ticker import MaxNLocator

    shapes = {
        i: found
        for i, row in enumerate(rows)
        if (found := [record.shape for record in row.records if record.shape is not None])
    }
    if not shapes:
        raise _NoDataError("no record has a plan")
    drawn, grid = _figure(rows, 2.2 + 0.5 * len(shapes), 2, 2)
    for axes, (field, what) in zip(grid.flat, SHAPES.items(), strict=True):
        handles = []
        for at, (i, found) in enumerate(shapes.items()):
            counts, colour = [getattr(shape, field) for shape in found], look_of(i)[0]
            first, middle, third = np.percentile(counts, (25, 50, 75))
            axes.hlines(at, min(counts), max(counts), color=colour, linewidth=1.5)
            handles.append(axes.hlines(at, first, third, color=colour, linewidth=9))
            axes.plot(middle, at, marker="|", color="#333333", markersize=11, markeredgewidth=2)
        axes.set_title("line: all; bar: middle half; | median", color=GREY, fontsize=8)
        axes.set_ylim(-0.6, len(shapes) - 0.4)
        low, high = axes.get_xlim()
        axes.set_xlim(low - 0.5, high + 0.5)  # so that a single value has a tick, too
        axes.invert_yaxis()  # in the order of the rows
        axes.set_yticks([])
        axes.set_xlabel(what)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=7))
        axes.xaxis.set_major_formatter(_number)
    labels = [f"{rows[i].label} ({len(found):,} plans)" for i, found in shapes.items()]
    _legend(drawn, handles, labels, max_columns=1)
    return drawn


def _reliability(rows: Sequence[Series]) -> Figure:
    calibrated = {
        i: calibration
        for i, row in enumerate(rows)
        if (calibration := of_records(row.label, row.records)) is not None
    }
    if not calibrated:
        raise _NoDataError("no answer has a confidence; run pearl eval with --plans")
    drawn, axes = _figure(rows, 4.0)
    axes.plot([0, 100], [0, 100], color=GREY, linestyle=(0, (4, 3)), linewidth=1)
    handles, labels = [], []
    for i, calibration in calibrated.items():
        at = [100 * each.confidence for each in calibration.bins]
        handles.append(_point(axes, i, at, [each.accuracy for each in calibration.bins], "-"))
        error = f"error {100 * calibration.ece:.1f} %"
        labels.append(f"{calibration.method} (n = {calibration.n:,}, {error})")
        for x, each in zip(at, calibration.bins, strict=True):
            axes.annotate(
                f"{each.n:,}", (x, 100 * each.accuracy.estimate), (6, -10),
                textcoords="offset points", color=GREY, fontsize=7,
            )  # fmt: skip
    axes.set_xlim(-2, 104)
    axes.set_ylim(-2, 104)
    axes.set_xlabel(
        "confidence (%): share of different plans that agree; labels: numbers of answers"
    )
    axes.set_ylabel(ACCURACY)
    _legend(drawn, handles, labels, max_columns=1)
    return drawn


def _point(
    axes: Axes, i: int, at: Sequence[float], accuracies: Sequence[Interval], line: str = "none"
) -> Any:
    """Accuracies of series number i, in percent, with their intervals."""
    colour, marker = look_of(i)
    return axes.errorbar(
        at,
        [100 * accuracy.estimate for accuracy in accuracies],
        yerr=_errors(accuracies),
        color=colour,
        marker=marker,
        markersize=6,
        linestyle=line,
        linewidth=1.4,
        elinewidth=1.1,
        capsize=3,
    )


def _errors(accuracies: Sequence[Interval]) -> list[list[float]]:
    """Lengths of both arms of error bars, in percentage points."""
    below = [100 * (accuracy.estimate - accuracy.low) for accuracy in accuracies]
    return [below, [100 * (accuracy.high - accuracy.estimate) for accuracy in accuracies]]


def _accuracy_axis(axes: Axes, chance: float | None) -> None:
    """Format the percent axis and draw the chance level."""
    axes.set_ylabel(ACCURACY)
    if chance is not None:
        axes.axhline(100 * chance, color=GREY, linestyle=(0, (4, 3)), linewidth=1)
    low, high = axes.get_ylim()  # the line at chance included
    axes.set_ylim(max(-2.0, low - 3), min(102.0, high + 3))
    if chance is not None:
        axes.annotate(
            f"chance\n{100 * chance:.0f} %",
            (1, 100 * chance),
            (4, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            color=GREY,
            fontsize=8,
        )


def _chance(rows: Sequence[Series]) -> float | None:
    """The accuracy of guessing if every sample has the same number of options, else None."""
    records = [record for row in rows for record in row.records]
    is_same = len({len(record.options) for record in records}) == 1
    return chance(records) if is_same else None


def _apart(numbers: Sequence[int], least: float) -> list[int]:
    """Filter ascending numbers to a minimum distance."""
    kept = list(numbers[:1])
    for number in numbers:
        if number - kept[-1] >= least:
            kept.append(number)
    return kept


def _number(value: float, position: float) -> str:
    """A tick as a plain number: neither formula nor power of ten."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):.10f}".rstrip("0").rstrip(".")


_DRAWINGS: dict[str, tuple[str, Callable[[Sequence[Series]], Figure]]] = {
    "accuracy-cost": ("Accuracy against cost", _accuracy_cost),
    "subsets": ("Accuracy by subset", _subsets),
    "library-size": ("Accuracy against the size of the action library", _library_size),
    "plan-shape": ("Shape of the plans", _plan_shape),
    "reliability": ("Accuracy against confidence", _reliability),
}
