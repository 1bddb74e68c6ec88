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

    The ids in the SVG are made with `salt`: figures of one page need different ones.
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
    """A figure with a title and a grid of axes."""
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
    """A legend below everything, in as many columns as fit; the figure grows by its lines."""
    columns = max(1, min(max_columns, len(labels), 84 // (max(map(len, labels)) + 8)))
    drawn.set_figheight(drawn.get_figheight() + LINE_IN * (len(labels) / columns - 1))
    drawn.legend(handles, labels, loc="outside lower center", ncols=columns)


def render(drawn: Figure) -> tuple[str, bytes]:
    """The figure as the text of an SVG file and the bytes of a PNG file."""
    svg, png = io.StringIO(), io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    drawn.savefig(svg, format="svg", metadata=nothing)
    drawn.savefig(png, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return svg.getvalue(), png.getvalue()
