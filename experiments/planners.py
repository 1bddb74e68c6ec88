"""How near the plans of each model come to plans that were written for the same questions.

    python experiments/planners.py [--domain NAME] [--model NAME ...] [--way NAME ...] [--n 25]
    python experiments/planners.py --data FILE --traces FILE... --actions FILE ...

Without --data the questions are those of the shipped banks of examples. With it they are those of a
file of QuALITY for which plans were published (`traces`), and plans call the published
actions. The questions are drawn by --seed. As examples a planner is shown the plans of the other
questions, but none of the same article.

Ways to plan, for each model: `whole` and `short` have no constraint and the whole prompt or that of --nearest 2;
`grammar` and `schema` are constrained, with the whole prompt. Without --way each model plans in all of these that it supports;
`usual` is what `pearl plan` does.

Points of a plan, 0 to 2; where several plans were written for a question, the nearest counts:

    action F1   of the multisets of action names, `CONCAT` aside: it joins, and PEARL joins by itself
    overlap     of the string arguments: token F1 of two, matched greedily from the highest, summed,
                doubled and divided by the number of strings in both plans
    points      their sum; half of it if two steps are identical; 0 if there is no valid plan

Intervals are of 95 %: of the bootstrap over articles for points, Wilson's for shares. `published again`
compares the second plan published for a question with the first: how far two runs of one strong model agree.
`no planner` calls the action that the plans of other groups call most with one text, with the question.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace
from traces import Planned, published, records, strings, trace_files

from pearl import Pearl, PearlError, load_library
from pearl.data.domains import load_domain
from pearl.documents.words import shared_words
from pearl.dsl.nodes import CTX, Plan, Reference, Step, String, print_plan
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import ModelError, PlanningError
from pearl.evals.stats import accuracy, difference
from pearl.llm.client import Client, ClientSettings
from pearl.planner.examples import read_bank
from pearl.runs.reviewing import wilson
from pearl.trace import Trace

WAYS: dict[str, dict[str, Any]] = {
    "whole": {"constrain": "off"}, "short": {"constrain": "off", "nearest": 2},
    "grammar": {"constrain": "grammar"}, "schema": {"constrain": "json"},
    "short, grammar": {"constrain": "grammar", "nearest": 2}, "usual": {},
}  # fmt: skip
"""Settings of the ways to plan."""

JOINING = "CONCAT"
MOST = 2.0
"""Points of a plan at most."""


@dataclass(frozen=True, slots=True)
class Rating:
    """What a plan is worth."""

    question: str
    group: str
    action_f1: float = 0.0
    overlap: float = 0.0
    is_distinct: bool = True
    seconds: float = 0.0
    n_tokens: int = 0
    n_rounds: int = 0
    plan: str = ""
    reason: str = ""

    @property
    def points(self) -> float:
        """0 to `MOST`."""
        return (self.action_f1 + self.overlap) * (1.0 if self.is_distinct else 0.5)


def action_f1(plan: Plan, reference: Plan) -> float:
    """How far two plans call the same actions, 0 to 1."""
    one, two = (
        Counter(step.action for step in each.steps if step.action != JOINING)
        for each in (plan, reference)
    )
    total = one.total() + two.total()
    return 2 * (one & two).total() / total if total else 0.0


def overlap(plan: Plan, reference: Plan) -> float:
    """How far two plans have the same strings, 0 to 1; 1 if neither has any."""
    one, two = (
        [text for step in each.steps for text in strings(step)] for each in (plan, reference)
    )
    if not one or not two:
        return float(one == two)
    pairs = sorted(
        ((shared_words(a, b), i, j) for i, a in enumerate(one) for j, b in enumerate(two)),
        reverse=True,
    )
    total, used_one, used_two = 0.0, set[int](), set[int]()
    for like, i, j in pairs:
        if i not in used_one and j not in used_two:
            total += like
            used_one.add(i)
            used_two.add(j)
    return 2 * total / (len(one) + len(two))


def rate(plan: Plan, item: Planned, references: Sequence[Plan], **measured: Any) -> Rating:
    """A valid plan against the nearest of the references."""
    calls = [(step.action, step.arguments) for step in plan.steps]
    return max(
        (
            Rating(
                item.question, item.group, action_f1(plan, reference), overlap(plan, reference),
                all(call not in calls[:i] for i, call in enumerate(calls)), plan=print_plan(plan), **measured,
            )
            for reference in references
        ),
        key=lambda rating: rating.points,
    )  # fmt: skip


async def plan_one(item: Planned, pearl: Pearl) -> Rating:
    """Plan a question, and rate the plan."""
    began, trace = time.perf_counter(), Trace()

    def measured() -> dict[str, Any]:
        return {
            "seconds": time.perf_counter() - began,
            "n_tokens": trace.usage.n_output_tokens,
            "n_rounds": sum(event.event == "plan_attempted" for event in trace),
        }

    try:
        plan = (await pearl.plan(item.question, trace=trace)).plan
    except (PlanningError, ModelError) as error:
        return Rating(item.question, item.group, reason=error.message, **measured())
    return rate(plan, item, item.plans, **measured())


async def plan_all(
    items: Sequence[Planned], everything: Sequence[Planned], client: Client,
    library: ActionLibrary, nearest: int | None = None,
) -> list[Rating]:  # fmt: skip
    """Plan the questions, one after the other, each without the examples of its group."""
    ratings: list[Rating] = []
    for item in items:
        with tempfile.TemporaryDirectory() as bank:
            for i, other in enumerate(everything):
                if other.group != item.group:
                    shown = print_plan(replace(other.plans[0], question=other.question))
                    (Path(bank) / f"{i:04}.plan").write_text(f"{shown}\n", encoding="utf-8")
            pearl = Pearl(client, library=library, examples=bank, nearest=nearest)
            ratings.append(await plan_one(item, pearl))
    return ratings


def unplanned(item: Planned, everything: Sequence[Planned]) -> Plan:
    """A step with the question and the action that the plans of other groups call most with one text."""
    called = Counter(
        step.action
        for other in everything
        if other.group != item.group
        for step in other.plans[0].steps
        if len(step.arguments) == 2 and len(strings(step)) == 1
    )
    ((action, _),) = called.most_common(1)
    step = Step("answer", action, (Reference(CTX), String(item.question)), "Find it")
    return Plan((step,))


def shipped(bank: str) -> list[Planned]:
    """The examples of a shipped bank, each a group of its own."""
    return [
        Planned(example.plan.question or example.question, str(example.path), (example.plan,))
        for example in read_bank(bank)
    ]


def summary(ratings: Sequence[Rating], first: Sequence[Rating]) -> dict[str, object]:
    """The figures of one model; `ahead` are its points less those of the first."""
    groups = [rating.group for rating in ratings]
    share = [rating.points / MOST for rating in ratings]
    n, n_valid = len(ratings), sum(bool(rating.plan) for rating in ratings)
    n_distinct = sum(bool(rating.plan) and rating.is_distinct for rating in ratings)
    points = accuracy(share, clusters=groups)
    figures: dict[str, object] = {
        "n": n,
        "points": [MOST * end for end in (points.estimate, points.low, points.high)],
        "action_f1": statistics.mean(rating.action_f1 for rating in ratings),
        "overlap": statistics.mean(rating.overlap for rating in ratings),
        "valid": [n_valid, *wilson(n_valid, n)],
        "no_identical_steps": [n_distinct, *wilson(n_distinct, n)],
        "rounds": statistics.mean(rating.n_rounds for rating in ratings),
        "tokens": statistics.median(rating.n_tokens for rating in ratings),
        "seconds": statistics.median(rating.seconds for rating in ratings),
    }
    if ratings is not first and [r.question for r in ratings] == [r.question for r in first]:
        ahead = difference(share, [rating.points / MOST for rating in first], clusters=groups)
        figures["ahead"] = [MOST * end for end in (ahead.estimate, ahead.low, ahead.high)]
    return figures


def ways_of(model: str) -> list[str]:
    """The ways that a model supports; one that takes no constraint plans as usual."""
    by = Client(ClientSettings(model)).constrains.by
    needs = {"whole": by, "short": by, "grammar": {"grammar"}, "schema": {"json"}}
    return [way for way, kinds in needs.items() if kinds & by] or ["usual"]


async def run(
    items: Sequence[Planned], everything: Sequence[Planned], models: Sequence[str],
    library: ActionLibrary, ways: Sequence[str] = (),
) -> dict[str, list[Rating]]:  # fmt: skip
    """The ratings of every model, and of the plans that were published again."""
    found: dict[str, list[Rating]] = {}
    for model in models:
        for way in ways or ways_of(model):
            name = model if way == "usual" else f"{Path(model).name}, {way}"
            nearest = WAYS[way].get("nearest")
            chosen = {key: value for key, value in WAYS[way].items() if key != "nearest"}
            async with aclosing(Client(ClientSettings(model, **chosen))) as client:
                found[name] = await plan_all(items, everything, client, library, nearest)
    if len({each.group for each in everything}) > 1:
        found["no planner"] = [
            rate(unplanned(each, everything), each, each.plans) for each in items
        ]
    again = [rate(item.plans[1], item, item.plans[:1]) for item in items if len(item.plans) > 1]
    return {**found, "published again": again} if again else found


FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.option("--domain", default="quality", show_default=True, help="Its bank and its library.")
@click.option("--data", type=FILE, help="A file of QuALITY, for the published plans.")
@trace_files
@click.option("--actions", help="The library that they were written for.")
@click.option(
    "--model", "models", multiple=True, default=["extractive"], show_default=True,
    help="As for pearl --model.",
)  # fmt: skip
@click.option(
    "--way", "ways", multiple=True, type=click.Choice(list(WAYS)),
    help="How each model plans [default: in every way that it supports].",
)  # fmt: skip
@click.option("--n", type=click.IntRange(min=1), default=25, show_default=True)
@click.option("--seed", default=0, show_default=True, help="Of the choice of questions.")
def main(
    domain: str, data: Path | None, traces: tuple[Path, ...], actions: str | None,
    models: tuple[str, ...], ways: tuple[str, ...], n: int, seed: int,
) -> None:  # fmt: skip
    """Rate models by plans that were written for the same questions: prints figures and plans as JSON."""
    if bool(data) != bool(traces) or bool(data) != bool(actions):
        raise click.UsageError("--data, --traces and --actions go together")
    try:
        known = load_domain(domain)
        everything = published(data, records(traces)) if data else shipped(known.examples)
        items = random.Random(seed).sample(everything, min(n, len(everything)))
        library = load_library(actions or known.library)
        found = asyncio.run(run(items, everything, models, library, ways))
    except PearlError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    first = next(iter(found.values()))
    figures = {name: summary(ratings, first) for name, ratings in found.items()}
    said = {"questions": len(everything), "figures": figures, "plans": msgspec.to_builtins(found)}
    click.echo(json.dumps(said, ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
