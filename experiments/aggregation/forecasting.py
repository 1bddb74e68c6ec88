"""Whether what a run takes lies within what is forecast before it."""

from __future__ import annotations

import random
from functools import partial
from math import ceil, inf
from typing import get_args

from aggregation.bars import Bar
from aggregation.oracle import Fault, Oracle
from aggregation.running import OracleModel, document_of
from aggregation.windows import Window, draw_window
from msgspec.structs import replace

from pearl import Pearl
from pearl.documents.tokens import Counter
from pearl.errors import ExecutionError, ModelError
from pearl.interpreter.cost_ranges import Range
from pearl.interpreter.results import StepResult
from pearl.runs.executors import Task
from pearl.runs.forecast import forecast

MOST_BY_ACTUAL = 1.15
"""Most tokens of the forecast by those sent, where only native steps come before a held model's."""
MIN_TOKENS = 500
"""Tokens of a call from which that counts: each has a margin of 64 for the hint of a JSON form."""


class Bytes(Counter):
    """Counts bytes / 4, so that prompts add up but for rounding."""

    def count(self, text: str) -> int:  # noqa: D102
        return ceil(len(text.encode("utf-8", "replace")) / 4)

    def bounds(self, text: str, part: str = "") -> tuple[int, int]:  # noqa: D102
        n = self.count(text)
        return max(0, n - 1), n + 1

    def most(self, n: int) -> int:  # noqa: D102
        return n + 1


async def forecasts(n_plans: int, seed: int) -> Bar:
    """Calls and input tokens of random plans over rows, beside their bounds.

    Windows, steps, items of a call and faults are drawn at random; without faults the model counts as
    held to the form of its replies. Tokens are counted as they are
    forecast, so that only the number and the size of the prompts can differ.
    """
    bar = Bar(f"forecast of {n_plans:,} plans", {})
    within, n_exact = 0, 0
    widest = 0.0
    for i in range(seed, seed + n_plans):
        draw = random.Random(i)
        repeats = draw.choice([1, 1, 3])
        window = draw_window(draw.randint(4, 300), i, repeats=repeats)
        kinds = draw.sample(get_args(Fault), draw.randint(0, 2))
        oracle = Oracle(window.labels_of, window.labels, 0.9, i, dict.fromkeys(kinds, 0.3))
        plan, is_known = _plan(window, draw, has_repeats=repeats > 1)
        model = OracleModel(oracle, is_held=not kinds)
        document = document_of(window)
        async with Pearl(model, items_per_call=draw.choice([1, 7, 32, 100])) as pearl:
            limit = draw.choice([None, 3_000])
            pearl.limits = replace(
                pearl.limits, counter=Bytes(), window=limit, max_output_tokens=500
            )
            said = forecast(pearl, [Task(str(i), partial(document_of, window), plan=plan)]).total
            steps: tuple[StepResult, ...] = ()
            try:
                steps = (await pearl.execute(plan, document)).steps
            except ExecutionError as error:
                # No reply to a step was whole: the steps after it do not run.
                bar.require(isinstance(error.__cause__, ModelError), f"seed {i}: {error.message}")
                said = said.or_nothing
            n_tokens = sum(Bytes().count(call.prompt) for call in oracle.calls)
        n_calls = len(oracle.calls)
        is_within = _is_in(n_calls, said.calls) and _is_in(n_tokens, said.input_tokens)
        within += is_within
        what = f"seed {i}: {n_calls} calls, {n_tokens} tokens; forecast {said.calls}, {said.input_tokens}"
        bar.require(is_within, what)
        derived = (step.provenance and step.provenance["sources"] for step in steps if step.rows)
        bar.require(all(derived), f"seed {i}: rows without the text that they derive from")
        if is_known and not kinds and n_tokens:
            n_exact += 1
            if n_tokens >= MIN_TOKENS * n_calls:
                widest = max(widest, (said.input_tokens.most or inf) / n_tokens)
            bar.require(said.calls.least == said.calls.most, f"not exact: {what}")
    bar.figures = {
        "plans": n_plans, "within": within, "held_after_native_steps": n_exact,
        "most_by_actual": round(widest, 3),
    }  # fmt: skip
    bar.require(widest <= MOST_BY_ACTUAL, "a forecast more than 1.15 times what was sent")
    return bar


def _is_in(n: int, said: Range) -> bool:
    return said.least <= n and (said.most is None or n <= said.most)


def _plan(window: Window, draw: random.Random, *, has_repeats: bool) -> tuple[str, bool]:
    """A plan of random steps over rows, and whether only native steps come before its one model step, which reads all.

    No request of it is sent twice, which would be one call: no names are compared twice, and no two groups are equal.
    """
    steps = ['SPLIT(CTX, "entry")', 'FIELD(s1, "Instance")']
    n_model_steps, kinds = 0, ["filter", "classify", "resolve", "where", "limit"]
    for _ in range(draw.randint(1, 4)):
        label, rows = draw.choice(window.labels), f"s{len(steps)}"
        match draw.choice(kinds):
            case "resolve":
                kinds.remove("resolve")
                steps.append(f'RESOLVE({rows}, "User")')
                steps.append(f'FIELD(s{len(steps)}, "Instance")')
                n_model_steps += 1
            case "filter":
                steps.append(f'FILTER({rows}, "it asks for this: {label}")')
                n_model_steps += 1
            case "classify":
                labels = ", ".join(f'"{each}"' for each in window.labels)
                steps.append(f'CLASSIFY({rows}, [{labels}], "aspect {len(steps)}")')
                steps.append(f'FIELD(s{len(steps)}, "Instance")')
                n_model_steps += 1
            case "where" | "limit" if n_model_steps or draw.random() < 0.5:
                steps.append(f'WHERE({rows}, "Date", "after", "2022-{draw.randint(1, 12):02}-01")')
            case _:
                steps.append(f"LIMIT({rows}, {draw.randint(1, 200)})")
    if draw.random() < 0.3 and not has_repeats:
        steps.append(f'GROUP(s{len(steps)}, "{draw.choice(["User", "Date by month"])}")')
    if draw.random() < 0.5:
        steps.append(f'REDUCE(s{len(steps)}, "what they ask for most")')
        n_model_steps += 2  # replies about parts need not be merged
    else:
        steps.append(f"COUNT(s{len(steps)})")
    lines = (f"{i}. s{i} = {step} : Step {i}" for i, step in enumerate(steps, start=1))
    return "New actions:\n- None\n\n" + "\n".join(lines) + "\n", n_model_steps == 1
