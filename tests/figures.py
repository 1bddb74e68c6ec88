"""A library with an action that finds figures, as that of finance has it."""

from __future__ import annotations

from pearl.actions.library import read_library

FIGURES = read_library(
    """\
FIND(CTX, X) : Find what CTX says about X
FIND_FIGURE(CTX, X, PERIOD) : Find the one figure that CTX gives for X in the period PERIOD, as it is written there
""",
    "figures",
)
