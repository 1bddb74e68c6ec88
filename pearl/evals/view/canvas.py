"""Figures in one style → SVG and PNG, byte for byte reproducible, without pyplot's global state.

matplotlib (the extra `pictures`) is imported on use.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pearl.plugins.extras import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

__all__ = ["GREY", "colour_of", "figure", "label_points", "legend", "marker_of", "render", "style"]

WIDTH_IN = 6.0
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
    "svg.fonttype": "none",  # text stays text: searched, selected, read aloud
    "text.parse_math": False,  # names are data: a $ in one starts no formula
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}


def colour_of(i: int) -> str:
    """The colour of series i; the palette repeats in paler tints.

    Example:
        >>> colour_of(0), colour_of(7)
        ('#0072b2', '#8cc0dc')
    """
    turn, at = divmod(i, len(_COLOURS))
    share = 0.45**turn
    parts = (int(_COLOURS[at][start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(255 - share * (255 - part)):02x}" for part in parts)


def marker_of(i: int) -> str:
    """The marker of series number i."""
    return _MARKERS[i % len(_MARKERS)]


@contextmanager
def style(salt: str) -> Iterator[None]:
    """Apply this style regardless of the user's matplotlib settings, and silence its logs.

    Args:
        salt: Seed of the ids in the SVG; figures of one page need different ones.

    Raises:
        UsageError: matplotlib is not installed.
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


def figure(title: str, height_in: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """A figure with a title and a grid of axes.

    Returns:
        The figure; its axes, one or an array of them as `Figure.subplots` returns them.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
    FigureCanvasAgg(drawn)
    # Of names too long for one line: 84 characters of this size are 6 inches wide.
    drawn.suptitle(title if len(title) <= 84 else title.replace(" · ", "\n", 1))
    return drawn, drawn.subplots(rows, columns)


def legend(
    drawn: Figure, handles: Sequence[Any], labels: Sequence[str], max_columns: int = 8
) -> None:
    """A legend below everything, in as many columns as fit."""
    columns = max(1, min(max_columns, len(labels), 84 // (max(map(len, labels)) + 8)))
    drawn.legend(handles, labels, loc="outside lower center", ncols=columns)


def render(drawn: Figure) -> tuple[str, bytes]:
    """The figure as the text of an SVG file and the bytes of a PNG file."""
    svg, png = io.StringIO(), io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    drawn.savefig(svg, format="svg", metadata=nothing)
    drawn.savefig(png, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return svg.getvalue(), png.getvalue()


_NEAR_PT = 7
"""Labels closer than this to their point need no line."""

_OFFSETS_PT = [
    (away * x, away * y)
    for away in (_NEAR_PT, 16, 28, 44)
    for x in (1, -1, 0.3, -0.3, 0)
    for y in (0, 1, -1)
    if abs(x) == 1 or y
]
"""Candidate positions of a label relative to its point, best first."""

_CROSSING = 1000.0
"""Penalty of a line through a label, in square pixels of overlap: about half a label."""


def label_points(
    drawn: Figure,
    axes: Axes,
    labels: Sequence[str],
    colours: Sequence[str],
    bars: Sequence[tuple[float, float, float, float]],
) -> None:
    """Write labels next to points with error bars, clear of each other, of points and of bars.

    Args:
        drawn: The figure, which keeps its layout from now on.
        axes: With its data drawn and its limits final.
        labels: One per point.
        colours: Of the lines to points, where labels had to move away.
        bars: Of each point x, y and both ends of its bar in y, in units of the data.
    """
    from matplotlib.transforms import Bbox

    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")  # keep the measured layout
    point = drawn.dpi / 72
    taken: list[Bbox] = []
    labelled: list[Bbox] = []
    for x, y, low, high in bars:
        (px, py), (_, bottom), (_, top) = axes.transData.transform([(x, y), (x, low), (x, high)])
        taken += [
            Bbox.from_extents(px - 4 * point, py - 4 * point, px + 4 * point, py + 4 * point),
            Bbox.from_extents(px - 2 * point, bottom, px + 2 * point, top),
        ]
    for label, colour, (x, y, _, _) in zip(labels, colours, bars, strict=True):
        note = axes.annotate(label, (x, y), (0, 0), textcoords="offset points", va="bottom")
        size = note.get_window_extent()
        note.remove()
        px, py = axes.transData.transform((x, y))
        places = [
            Bbox.from_bounds(
                px + _start(dx * point, size.width),
                py + _start(dy * point, size.height),
                size.width,
                size.height,
            )
            for dx, dy in _OFFSETS_PT
        ]
        # Rounded, so that ties resolve equally on every machine.
        costs = [
            round(_cost(place, [*taken, *labelled], axes.bbox), 3)
            + _CROSSING * _n_crossed((px, py), place, labelled)
            for place in places
        ]
        at = costs.index(min(costs))
        labelled.append(places[at])
        dx, dy = _OFFSETS_PT[at]
        axes.annotate(
            label,
            (x, y),
            ((places[at].x0 - px) / point, (places[at].y0 - py) / point),
            textcoords="offset points",
            va="bottom",
            arrowprops=None
            if max(abs(dx), abs(dy)) == _NEAR_PT
            else {
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.8,
                "relpos": (_side(dx), _side(dy)),
                "shrinkA": 1,
                "shrinkB": 0,
            },
        )


def _start(offset: float, size: float) -> float:
    """Where a box begins that lies `offset` off its point, centred on it for 0."""
    return offset if offset > 0 else offset - size if offset < 0 else -size / 2


def _side(offset: float) -> float:
    """The side of a box that faces its point: 0 the left or lower, 1 the other, 0.5 the middle."""
    return 0.0 if offset > 0 else 1.0 if offset < 0 else 0.5


def _cost(place: Bbox, taken: Sequence[Bbox], inside: Bbox) -> float:
    """Occupied area of a position; area outside the axes counts tenfold."""
    out = place.width * place.height - _overlap(place, inside)
    return float(10 * out + sum(_overlap(place, other) for other in taken))


def _n_crossed(point: tuple[float, float], place: Bbox, labelled: Sequence[Bbox]) -> int:
    """Labels that the line from a point to a place would cross."""
    from matplotlib.path import Path

    x, y = point
    end = (min(max(x, place.x0), place.x1), min(max(y, place.y0), place.y1))
    line = Path([point, end])
    return sum(line.intersects_bbox(other, filled=False) for other in labelled)


def _overlap(first: Bbox, second: Bbox) -> float:
    """Area that two boxes share."""
    width = min(first.x1, second.x1) - max(first.x0, second.x0)
    height = min(first.y1, second.y1) - max(first.y0, second.y0)
    return float(max(0.0, width) * max(0.0, height))
