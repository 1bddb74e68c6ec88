"""Windows of dated entries by users, in the layout of OOLONG, with a hidden label for each text.

A line is `Date: Feb 02, 2023 || User: 76153 || Instance: ...`; a sentence of description stands before
and after the lines. Texts are put together from words at random and labels are drawn independently of
them, so that no word betrays a label: only whoever holds the table `Window.labels_of` knows it. With

"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from math import prod

LABELS = (
    "abbreviation", "entity", "description and abstract concept", "human being", "location",
    "numeric value", "event", "opinion", "material", "method",
)  # fmt: skip
"""The six of TREC's questions, whose names the published results use, and four more."""

_SLOTS: tuple[tuple[str, ...], ...] = (
    (
        "Which", "What", "Whose", "How", "Why", "In what way", "Since when", "For what reason",
        "Under which rule", "With what result",
    ),
    (
        "did the", "was the", "could the", "will the", "should the", "might the", "has the", "does the",
    ),
    (
        "quiet", "amber", "second", "narrow", "former", "borrowed", "striped", "uneven", "early",
        "hollow", "patient", "folded", "northern", "silver", "common", "faded", "spare", "double",
        "minor", "wooden", "gentle", "rusted", "distant", "printed", "hidden",
    ),
    (
        "lantern", "ledger", "orchard", "engine", "ribbon", "council", "ferry", "pattern", "kettle",
        "garden", "signal", "archive", "saddle", "chorus", "pillar", "market", "compass", "weaver",
        "tunnel", "letter", "harvest", "mirror", "anchor", "bakery", "riddle", "pasture", "whistle",
        "canvas", "trophy", "meadow", "button", "turbine", "blanket", "gallery", "sparrow", "hammer",
    ),
    (
        "stand beside", "belong to", "follow", "replace", "resemble", "outlast", "carry", "measure",
        "interrupt", "predate", "mention", "divide", "support", "overlook", "answer", "cover",
    ),
    (
        "the long table", "a borrowed coat", "the third chapter", "an open gate", "the old contract",
        "a paper crown", "the last train", "a broken string", "the winter fair", "an empty frame",
        "the copper roof", "a salted road", "the night shift", "a folded map", "the first draft",
        "an iron bell", "the choir loft", "a stone bench", "the tax office", "a glass jar",
    ),
    (
        "today", "after dark", "in spring", "by accident", "on purpose", "at noon", "twice",
        "without notice", "before the war", "as promised", "in the end", "for a while",
    ),
)  # fmt: skip
N_TEXTS = prod(map(len, _SLOTS))
"""Different texts there are."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a window, with the label that it does not show."""

    date: date
    user: str
    text: str
    label: str


def line(entry: Entry) -> str:
    """An entry as its window shows it.

    Example:
        >>> line(Entry(date(2023, 2, 2), "76153", "What did the ferry carry?", "entity"))
        'Date: Feb 02, 2023 || User: 76153 || Instance: What did the ferry carry?'
    """
    return f"Date: {entry.date:%b %d, %Y} || User: {entry.user} || Instance: {entry.text}"


@dataclass(frozen=True)
class Window:
    """Entries and the labels that they can have; `text` is what a reader sees."""

    entries: tuple[Entry, ...]
    labels: tuple[str, ...]

    @cached_property
    def labels_of(self) -> dict[str, str]:
        """The label of each different text: the hidden table."""
        return {entry.text: entry.label for entry in self.entries}

    @cached_property
    def text(self) -> str:
        """Description, a line for each entry, description."""
        about = (
            f"{len(self.entries):,} questions follow, a line each with its date and its user. Each can "
            f"be given one of {len(self.labels)} labels: {', '.join(self.labels)}."
        )
        lines = "\n".join(map(line, self.entries))
        return f"{about}\n\n{lines}\n\nThese were the questions. {about}\n"


def draw_window(
    n: int,
    seed: int,
    *,
    labels: int = 6,
    users: int | None = None,
    days: int = 1_200,
    skew: float = 0.8,
    repeats: float = 1.0,
) -> Window:
    """Draw a window."""
    draw = random.Random(seed)
    names = LABELS[:labels]
    shares = [draw.gammavariate(2.0, 1.0) + 0.1 for _ in names]
    texts = _texts(max(1, round(n / repeats)), draw)
    hidden = dict(zip(texts, draw.choices(names, shares, k=len(texts)), strict=True))
    texts = [*hidden, *draw.choices([*hidden], k=n - len(hidden))]
    draw.shuffle(texts)
    n_users = users or max(2, round(n / 3.4))
    drawn = _users(n, n_users, skew, draw)
    first = date(2022, 1, 1)
    dates = [first + timedelta(days=draw.randrange(days)) for _ in range(n)]
    return Window(
        tuple(
            Entry(day, user, text, hidden[text])
            for day, user, text in zip(dates, drawn, texts, strict=True)
        ),
        names,
    )


def _texts(n: int, draw: random.Random) -> list[str]:
    """`n` different texts."""
    return [_text(number) for number in draw.sample(range(N_TEXTS), n)]


def _text(number: int) -> str:
    """The text of a number in the mixed radix of the slots."""
    words = []
    for slot in _SLOTS:
        number, place = divmod(number, len(slot))
        words.append(slot[place])
    return f"{' '.join(words)}?"


def _users(n: int, n_users: int, skew: float, draw: random.Random) -> Sequence[str]:
    """The user of each entry; numbers of four and of five digits, so that order by text shows."""
    names = [
        str(number) for number in draw.sample(range(1_000, max(100_000, 10 * n_users)), n_users)
    ]
    n_busy = max(1, n_users // 5)
    weights = [skew / n_busy] * n_busy + [(1 - skew) / (n_users - n_busy)] * (n_users - n_busy)
    return draw.choices(names, weights, k=n)
