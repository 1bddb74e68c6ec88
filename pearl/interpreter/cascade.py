"""Many rows + a cheap scorer + a strong model → a reply about each row, with a guarantee.

The scorer decides the rows of which a random sample, labelled by the strong model, shows that the
target is met with 95 % confidence; the strong model decides all others. The method and its sources:
docs/decisions/0019-cascades.md.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from pearl.interpreter.context import off_loop
from pearl.llm import Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.float64]

RISK = 0.05  # Probability that the guarantee of a step does not hold

MAX_SAMPLED = 0.5  # with larger samples, as a share of the rows, there is no cascade
PILOT = 3  # size of the pilot sample, relative to the smallest sample that shows the target
MAX_PILOT = 2_000  # rows of a pilot sample of 2 %
N_TRIED = 20  # thresholds, and sample sizes for each, that are compared

Measure = Literal["accuracy", "precision", "recall"]
Replies: TypeAlias = Mapping[str, "str | None"]


@dataclass(frozen=True, slots=True)
class Score:
    """The scorer's reply about a text, and its confidence in the reply."""

    reply: str | None
    confidence: float


class Scoring(Protocol):
    """Scores the texts of a step."""

    name: str
    n_calls: int
    usage: Usage
    quotes: dict[str, str]  # The words that decided texts, by text; a classifier has none

    async def score(self, labelled: Replies) -> Mapping[str, Score]:
        """The scores of all texts; the strong model's replies about some are known."""
        ...


@dataclass(frozen=True, slots=True)
class CascadeAccount:
    """Who decided the rows of a step; the lower bounds hold together with 95 % confidence."""

    target: float
    scorer: str
    n_sampled: int
    n_scored: int
    n_strong: int
    at_least: Mapping[Measure, float] = field(default_factory=dict)
    why: str = ""  # the scorer decided no row
    scored: frozenset[str] = field(default=frozenset(), repr=False)

    def note(self, output: str, strong: str) -> str:
        """The account in one line."""
        n = self.n_scored + self.n_sampled + self.n_strong
        if not self.n_scored:
            return f"{output}: {strong} decided all {n:,} rows: {self.why}"
        # Rounded down, so that no bound is overstated.
        lows = {name: math.floor(1_000 * low) / 10 for name, low in self.at_least.items()}
        bounds = (f"{name} {f'{x:g} to ' * (x < 100)}100 %" for name, x in lows.items())
        return (
            f"{output}: {self.scorer} decided {self.n_scored:,} of {n:,} rows, {strong} the others, "
            f"{self.n_sampled:,} of them as random samples; 95 % interval, relative to {strong}: "
            f"{', '.join(bounds)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The account as JSON data."""
        return {
            "accuracy": self.target,
            "scorer": self.scorer,
            "rows": {"scorer": self.n_scored, "sample": self.n_sampled, "strong": self.n_strong},
            "intervals": {measure: [low, 1.0] for measure, low in self.at_least.items()},
            **({"why": self.why} if self.why else {}),
        }


def smallest_sample(target: float, risk: float) -> int:
    """Size of the smallest sample that shows a target: one without an error.

    Example:
        >>> smallest_sample(0.98, 0.05)
        149
    """
    return math.ceil(math.log(risk) / math.log(target))


def most_errors(k: int, m: int, n: int, risk: float) -> int:
    """Upper confidence bound of the errors among n rows with k errors in a random sample of m.

    The exact bound of Clopper and Pearson, for samples without replacement: the largest number of
    errors at which at most k are sampled with a probability above the risk.

    Example:
        >>> most_errors(0, 149, 1_000_000, 0.05), most_errors(3, 50, 50, 0.05)
        (19903, 3)
    """
    from scipy.stats import hypergeom  # on use: it takes half a second

    low, high = k, n - (m - k)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if hypergeom.cdf(k, n, middle, m) > risk else (low, middle - 1)
    return low


def _plan(
    rows: Numbers, pilot: Numbers, errors: Numbers, target: float, risk: float, n_kept: float
) -> tuple[float, int]:
    """The threshold and sample size with the fewest expected rows for the strong model; a bad choice only costs calls, as a sample drawn later decides."""
    import numpy as np
    from scipy import special

    rows, least = np.sort(rows), smallest_sample(target, risk)
    if len(rows) <= least:
        return 0.0, 0
    best = (float(len(rows)), 0.0, 0)
    for threshold in np.unique(rows[np.arange(N_TRIED) * len(rows) // N_TRIED]):
        n, is_in = int((rows >= threshold).sum()), pilot >= threshold
        n_errors, n_right = errors[is_in].sum() + 1, (~errors[is_in]).sum() + 1
        if n <= least:
            break
        m = np.unique(np.geomspace(least, n - 1, N_TRIED).astype(int))
        allowed = (1 - target) * np.minimum(n - m, n_kept)
        low, high = np.full(len(m), -1), m - 1
        while (low < high).any():
            k = (low + high + 1) // 2
            # The bound for an infinite population, narrowed for this one.
            most = special.betaincinv(k + 1, m - k, 1 - risk) * n
            most = k * n / m + (most - k * n / m) * np.sqrt(1 - m / n)
            fits = most - k <= allowed
            low, high = np.where(fits, k, low), np.where(fits, high, k - 1)
        # The rate in a sample has the spread of both samples.
        spread = m / (m + n_errors + n_right)
        passes = special.betainc(n_errors * spread, n_right * spread, np.maximum(low + 0.5, 0) / m)
        passes = np.where(low < 0, 0, passes)
        costs = len(rows) - n + m + (1 - passes) * (n - m)
        i = int(costs.argmin())
        best = min(best, (float(costs[i]), float(threshold), int(m[i])))
    return best[1:]


class Cascade:
    """Decides rows; `dropped` are the strong model's replies about rows that a FILTER does not keep."""

    def __init__(
        self, texts: Sequence[str], *, dropped: frozenset[str], target: float,
        ask: Callable[[Sequence[str]], Awaitable[Replies]],
        scorer: Scoring, seed: int,
    ) -> None:  # fmt: skip
        import numpy as np

        self._texts, self._target, self._scorer, self._dropped = texts, target, scorer, dropped
        self._measures: tuple[Measure, ...] = ("precision", "recall") if dropped else ("accuracy",)
        self._risk = RISK / len(self._measures)
        self._ask = ask
        self._random = np.random.default_rng(seed)
        self._replies: dict[str, str | None] = {}
        self._scores: Mapping[str, Score] = {}
        self._n_sampled = 0

    async def run(self) -> tuple[dict[str, str | None], CascadeAccount]:
        """The reply about each text."""
        n = len(self._texts)
        least = smallest_sample(self._target, self._risk)
        n_pilot = max(round(PILOT * least), min(n // 50, MAX_PILOT))
        if n_pilot + len(self._measures) * least > MAX_SAMPLED * n:
            return await self.without(f"the samples would be most of the {n:,} rows")
        pilot = tuple(map(int, self._random.choice(n, n_pilot, replace=False)))
        await self._read(pilot)
        self._n_sampled = n_pilot
        self._scores = await self._scorer.score(dict(self._replies))
        regions = await off_loop(100 * n, partial(self._regions, pilot))
        if not regions:
            return await self.without("no smaller sample can show the target")
        samples = [i for _, sample in regions.values() for i in sample]
        self._n_sampled += len(samples)
        inside = {i for rows, _ in regions.values() for i in rows}
        await self._read([*samples, *(i for i in range(n) if i not in inside)])
        unread: dict[Measure, tuple[int, int]] = {}
        scored = set[str]()
        for measure, (region, sample) in regions.items():
            rows = [i for i in region if self._texts[i] not in self._replies]
            k = sum(self._is_wrong(i, measure) for i in sample)
            n_errors = most_errors(k, len(sample), len(region), self._risk) - k
            unread[measure] = len(rows), min(n_errors, len(rows))
            # Missing few of many rows is no reason to let a scorer decide that is often wrong.
            is_right = n_errors <= (1 - self._target) * len(rows)
            if is_right and self._at_least(unread)[measure] >= self._target:
                scored.update(self._texts[i] for i in rows)
            else:
                del unread[measure]
                await self._read(rows)
        if not scored:
            return await self.without("the samples do not show the target")
        n_scored = sum(n for n, _ in unread.values())
        account = CascadeAccount(
            self._target, self._scorer.name, self._n_sampled, n_scored, n - n_scored - self._n_sampled,
            self._at_least(unread), scored=frozenset(scored),
        )  # fmt: skip
        return {**{text: self._scores[text].reply for text in scored}, **self._replies}, account

    async def without(self, why: str) -> tuple[dict[str, str | None], CascadeAccount]:
        """The replies of the strong model about all rows."""
        await self._read(range(len(self._texts)))
        n_strong = len(self._texts) - self._n_sampled
        account = CascadeAccount(
            self._target, self._scorer.name, self._n_sampled, 0, n_strong, why=why
        )
        return self._replies, account

    async def _read(self, rows: Iterable[int]) -> None:
        """Request the strong model's replies about rows."""
        texts = dict.fromkeys(self._texts[i] for i in rows)
        self._replies.update(await self._ask([t for t in texts if t not in self._replies]))

    def _regions(self, pilot: Sequence[int]) -> dict[Measure, tuple[list[int], list[int]]]:
        """The rows that the scorer decides if samples show the target, and these samples."""
        import numpy as np

        n_yes = sum(self._replies[self._texts[i]] == "yes" for i in pilot)
        n_kept = len(self._texts) * n_yes / len(pilot)
        open_rows = [i for i in range(len(self._texts)) if self._texts[i] not in self._replies]
        regions: dict[Measure, tuple[list[int], list[int]]] = {}
        for measure in self._measures:
            rows, tried = (
                [i for i in some if self._is_of(i, measure)] for some in (open_rows, pilot)
            )
            confidences, known = (
                np.array([self._scores[self._texts[i]].confidence for i in some], dtype=float)
                for some in (rows, tried)
            )
            errors = np.array([self._is_wrong(i, measure) for i in tried], dtype=bool)
            # Precision and accuracy are those of the rows themselves.
            most = n_kept if measure == "recall" else math.inf
            threshold, m = _plan(confidences, known, errors, self._target, self._risk, most)
            if m:
                inside = [rows[i] for i in np.flatnonzero(confidences >= threshold)]
                sample = self._random.choice(inside, m, replace=False)
                regions[measure] = inside, list(map(int, sample))
        return regions

    def _is_of(self, row: int, measure: Measure) -> bool:
        """Whether the scorer's reply about a row counts for a measure."""
        reply = self._scores[self._texts[row]].reply
        if measure == "accuracy":
            return reply is not None
        return reply == "yes" if measure == "precision" else reply in self._dropped

    def _is_wrong(self, row: int, measure: Measure) -> bool:
        """Whether the strong model does not confirm the scorer; an undecided row never does."""
        reply = self._replies[self._texts[row]]
        if measure == "accuracy":
            return reply is None or reply != self._scores[self._texts[row]].reply
        return reply != "yes" if measure == "precision" else reply not in self._dropped

    def _at_least(self, unread: Mapping[Measure, tuple[int, int]]) -> dict[Measure, float]:
        """The lower bound of each measure, by the rows that only the scorer decides and their errors."""
        if self._measures == ("accuracy",):
            n, n_errors = unread["accuracy"]
            return {"accuracy": 1 - n_errors / n if n else 1.0}
        n_yes = sum(self._replies.get(text) == "yes" for text in self._texts)
        n_accepted, n_wrong = unread.get("precision", (0, 0))
        _, n_missed = unread.get("recall", (0, 0))
        n_kept = n_yes + n_accepted
        n_right = n_kept - n_wrong
        return {
            "precision": n_right / n_kept if n_kept else 1.0,
            "recall": n_right / (n_right + n_missed) if n_right + n_missed else 1.0,
        }
