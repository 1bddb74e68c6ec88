"""Whether what a run takes lies within what is forecast before it."""

from __future__ import annotations

import random
from typing import get_args

from aggregation.bars import Bar
from aggregation.oracle import Fault, Oracle
from aggregation.running import OracleModel, document_of
from aggregation.windows import Window, draw_window

from pearl import Pearl
from pearl.runs.forecast import forecast
from pearl.runs.tasks import Task

__all__ = ["forecasts"]


async def forecasts(n_plans: int, seed: int) -> Bar:
    """Calls and input tokens of random plans over rows, beside their bounds.

    Windows, steps, items of a call and faults are drawn at random. Tokens are counted as they are
    forecast, so that only the number and the size of the prompts can differ.
    """
    bar = Bar(f"forecast of {n_plans:,} plans", {})
    within = 0
    widest = 0.0
    for i in range(seed, seed + n_plans):
        draw = random.Random(i)
        window = draw_window(draw.randint(4, 300), i, repeats=draw.choice([1, 1, 3]))
        kinds = draw.sample(get_args(Fault), draw.randint(0, 2))
        oracle = Oracle(window.labels_of, window.labels, 0.9, i, dict.fromkeys(kinds, 0.3))
        plan, is_native_before = _plan(window, draw)
        async with Pearl(OracleModel(oracle), items_per_call=draw.choice([1, 7, 32, 100])) as pearl:
            document = document_of(window)
            said = forecast(pearl, [Task(str(i), lambda d=document: d, plan=plan)]).total
            await pearl.execute(plan, document)
            n_tokens = sum(pearl.limits.counter.count(call.prompt) for call in oracle.calls)
        calls, tokens = said.calls, said.input_tokens
        is_within = calls.least <= len(oracle.calls) and tokens.least <= n_tokens
        if calls.most is not None and tokens.most is not None:
            is_within &= len(oracle.calls) <= calls.most and n_tokens <= tokens.most
            if is_native_before and not kinds:
                widest = max(widest, tokens.least / n_tokens, n_tokens / tokens.least)
        within += is_within
        bar.require(
            is_within,
            f"seed {i}: {len(oracle.calls)} calls and {n_tokens} tokens, forecast {calls} and {tokens}",
        )
    bar.figures = {"plans": n_plans, "within": within, "least_over_actual": round(widest, 3)}
    return bar


def _plan(window: Window, draw: random.Random) -> tuple[str, bool]:
    """A plan of random steps over rows, and whether only native steps come before its one model step."""
    steps = ['SPLIT(CTX, "entry")', 'FIELD(s1, "Instance")']
    n_model_steps = 0
    for _ in range(draw.randint(1, 4)):
        label, rows = draw.choice(window.labels), f"s{len(steps)}"
        match draw.choice(["filter", "classify", "where", "sample"]):
            case "filter":
                steps.append(f'FILTER({rows}, "it asks for this: {label}")')
                n_model_steps += 1
            case "classify":
                labels = ", ".join(f'"{each}"' for each in window.labels)
                steps.append(f'CLASSIFY({rows}, [{labels}], "aspect {len(steps)}")')
                steps.append(f'FIELD(s{len(steps)}, "Instance")')
                n_model_steps += 1
            case "where":
                steps.append(f'WHERE({rows}, "Date", "after", "2022-{draw.randint(1, 12):02}-01")')
            case _:
                steps.append(f"SAMPLE({rows}, {draw.randint(1, 200)})")
    steps.append(f"COUNT(s{len(steps)})")
    lines = (f"{i}. s{i} = {step} : Step {i}" for i, step in enumerate(steps, start=1))
    return "New actions:\n- None\n\n" + "\n".join(lines) + "\n", n_model_steps == 1
