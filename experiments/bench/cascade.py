"""How often the guarantee of `--accuracy` holds, and the calls that it saves. A table, then one JSON line.

    python experiments/bench/cascade.py [--quick] [--seeds 1000] [--rows 10000] [--target 0.95]

For each profile of rows and each seed, the replies of a strong model and the scores of a scorer are
drawn at random, and `pearl.interpreter.cascade.Cascade` decides the rows. `held` is the share of seeds
in which precision and recall (FILTER) or the accuracy of the scorer's rows (CLASSIFY) reach the
target, `bound` the share in which they lie in the intervals that the answer states, both at least 95 %
in each profile; `strong` is the mean share of rows that the strong model reads, relative to a run
without a cascade; `used` is the share of seeds in which the scorer decides any row.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pearl.interpreter.cascade import Cascade, Replies, Score
from pearl.llm import Usage

PROFILES = (
    "well separated", "usual", "noisy", "rare 1 %", "random", "miscalibrated", "ties", "hidden positives",
    "undecided", "at the edge", "all positive", "none positive", "labels", "labels, noisy",
    "labels, random", "labels, at the edge",
)  # fmt: skip

LABELS = np.array(["a", "b", "c", "d"], dtype=object)
YES_NO = np.array(["no", "yes"], dtype=object)

EDGE = 1.05
"""Errors of the profiles at the edge, relative to those that the target allows: what a wrong bound shows first."""

Objects = NDArray[np.object_]
Drawn = tuple[Objects, Objects, NDArray[np.float64]]
"""Replies of the strong model, replies of the scorer and its confidences."""


def draw(profile: str, n: int, target: float, random: np.random.Generator) -> Drawn:
    """The rows of a FILTER."""
    rate = {"rare 1 %": 0.01, "all positive": 1.0, "none positive": 0.0}.get(profile, 0.3)
    is_yes = random.random(n) < rate
    distance = {"well separated": 3.0, "noisy": 1.0, "random": 0.0}.get(profile, 2.2)
    value = random.normal(np.where(is_yes, distance, -distance), 1.0)
    chance = 1 / (1 + np.exp(-2 * max(distance, 0.5) * value))
    if profile == "miscalibrated":  # sure of everything, and sometimes wrong at any confidence
        chance = np.where(random.random(n) < 0.01, 1 - chance, chance) ** 0.2
    if profile == "ties":
        chance = np.where(chance > 0.5, 0.9, 0.1)
    if profile == "hidden positives":  # an adversary: one yes in ten looks like the surest no
        chance = np.where(is_yes & (random.random(n) < 0.1), 1e-9, chance)
    if profile == "at the edge":
        is_wrong = random.random(n) < EDGE * (1 - target) * np.where(is_yes, 1, rate / (1 - rate))
        chance = (is_yes ^ is_wrong).astype(float)
    strong = YES_NO[is_yes.astype(int)]
    if profile == "undecided":
        strong[random.random(n) < 0.005] = None
    return strong, YES_NO[(chance > 0.5).astype(int)], np.maximum(chance, 1 - chance)


def draw_labels(profile: str, n: int, target: float, random: np.random.Generator) -> Drawn:
    """The rows of a CLASSIFY."""
    true = random.integers(len(LABELS), size=n)
    if profile == "labels, at the edge":
        is_wrong = random.random(n) < EDGE * (1 - target)
        return LABELS[true], LABELS[(true + is_wrong) % len(LABELS)], np.ones(n)
    scores = random.normal(size=(n, len(LABELS)))
    scores[np.arange(n), true] += {"labels, noisy": 2.5, "labels, random": 0.0}.get(profile, 6.0)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return LABELS[true], LABELS[chances.argmax(axis=1)], chances.max(axis=1)


@dataclass
class Simulated:
    """A scorer with these scores."""

    scores: Mapping[str, Score]
    name = "simulated"
    n_calls = 0
    usage = Usage()

    async def score(self, labelled: Replies) -> Mapping[str, Score]:
        """All of them."""
        return self.scores


def simulate(profile: str, n: int, target: float, seeds: Sequence[int]) -> dict[str, float]:
    """The figures of a profile."""
    is_filter = not profile.startswith("labels")
    texts = [str(i) for i in range(n)]
    held: list[bool] = []
    bound: list[bool] = []
    shares: list[float] = []
    for seed in seeds:
        drawn = (draw if is_filter else draw_labels)(
            profile, n, target, np.random.default_rng(seed)
        )
        strong, *scored = drawn
        scores = {text: Score(*score) for text, *score in zip(texts, *scored, strict=True)}

        async def ask(texts: Sequence[str], strong: Objects = strong) -> Replies:
            return {text: strong[int(text)] for text in texts}

        cascade = Cascade(
            texts, dropped=frozenset({"no"} if is_filter else ()), target=target, ask=ask,
            scorer=Simulated(scores), seed=seed,
        )  # fmt: skip
        replies, account = asyncio.run(cascade.run())
        decided = np.array([replies[text] for text in texts], dtype=object)
        # Rows that the strong model leaves undecided do not count.
        kept, true = (decided == "yes") & np.not_equal(strong, None), strong == "yes"
        if is_filter:
            n_right = (kept & true).sum()
            reached = {
                "precision": n_right / kept.sum() if kept.any() else 1.0,
                "recall": n_right / true.sum() if true.any() else 1.0,
            }
        else:
            reached = {"accuracy": 1 - (decided != strong).sum() / max(account.n_scored, 1)}
        lows = account.at_least
        held.append(min(reached.values()) >= target - 1e-9)
        bound.append(all(reached[measure] >= low - 1e-9 for measure, low in lows.items()))
        shares.append(1 - account.n_scored / n)
    used = np.mean(np.array(shares) < 1)
    return {
        "held": float(np.mean(held)), "bound": float(np.mean(bound)),
        "strong": float(np.mean(shares)), "used": float(used),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="20 seeds")
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--target", type=float, default=0.95)
    args = parser.parse_args()
    seeds = range(20 if args.quick else args.seeds)
    print(f"{'profile':20} {'held':>6} {'bound':>6} {'strong':>7} {'used':>6}")
    results = []
    for profile in PROFILES:
        figures = simulate(profile, args.rows, args.target, seeds)
        shown = " ".join(f"{x:{6 + (name == 'strong')}.3f}" for name, x in figures.items())
        print(f"{profile:20} {shown}", flush=True)
        results.append({"profile": profile, **figures})
    print(json.dumps({"bench": "cascade", **vars(args), "seeds": len(seeds), "profiles": results}))


if __name__ == "__main__":
    main()
