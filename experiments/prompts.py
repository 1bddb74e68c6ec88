"""How long the prompts of planning are, for questions with published plans.

    python experiments/prompts.py --data FILE --traces FILE... --actions FILE [--model NAME]

Tokens are those of the vocabulary that tiktoken has for --model; without a network the estimate,
which is higher by half. Measured are the planning prompts of every domain, for each question of a
file of QuALITY, and the share of the actions of these plans that the planning prompt explains, whole and
shortened.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import get_args

import click
from traces import Planned, published, records, trace_files

from pearl import PearlError, load_library
from pearl.actions.native import is_operator
from pearl.data.domains import Source, load_domain, read_samples
from pearl.data.samples import Sample
from pearl.documents.document import DocumentKind
from pearl.documents.tokens import Counter
from pearl.dsl.signatures import ActionLibrary
from pearl.llm import Message
from pearl.planner.examples import Example
from pearl.planner.prompt import plan_messages
from pearl.planner.prompt_selection import PlannerMaterial

DOMAINS = ("generic", "finance", "medical", "quality")


def n_tokens(messages: Iterable[Message], counter: Counter) -> int:
    return counter.count("\n\n".join(message.content for message in messages))


def planning(questions: Sequence[str], counter: Counter) -> dict[str, dict[str, float]]:
    """The tokens of the planning prompts of every domain and kind of document, and those that all share."""
    figures: dict[str, dict[str, float]] = {}
    for name in DOMAINS:
        domain = load_domain(name)
        own = PlannerMaterial(load_library(domain.library), domain.examples)
        for kind in get_args(DocumentKind):
            prompts = [plan_messages(each, own.shown(each, kind), kind=kind) for each in questions]
            tokens = [n_tokens(prompt, counter) for prompt in prompts]
            texts = ["\n\n".join(message.content for message in prompt) for prompt in prompts]
            first, last = min(texts), max(texts)
            same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
            shared = counter.count(first[: sum(1 for _ in same)])
            figures[f"{name}, {kind}"] = {
                "mean": statistics.mean(tokens), "most": max(tokens), "shared": shared,
            }  # fmt: skip
    return figures


def explained(
    items: Sequence[Planned], library: ActionLibrary, counter: Counter, nearest: int | None = None
) -> dict[str, float]:
    """The share of the actions of published plans that the planning prompt explains."""
    bank = {item.group: Example(item.question, item.plans[0]) for item in items}
    n = n_explained = 0
    tokens: list[int] = []
    for item in items:
        own = PlannerMaterial(library, "generic", nearest)
        own.examples = tuple(each for group, each in bank.items() if group != item.group)
        messages = plan_messages(item.question, own.shown(item.question))
        prompt = messages[-1].content
        tokens.append(n_tokens(messages, counter))
        for plan in item.plans:
            for name in {step.action for step in plan.steps} & set(library):
                if not is_operator(library[name]):
                    n += 1
                    n_explained += f"\n- {library[name].signature} : " in prompt
    return {
        "actions": n, "explained": n_explained / n, "tokens": statistics.mean(tokens),
    }  # fmt: skip


FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.option("--data", type=FILE, required=True, help="A file of QuALITY.")
@trace_files
@click.option("--actions", required=True, help="The library that they were written for.")
@click.option("--model", default="openai:gpt-4", show_default=True, help="Whose tokens count.")
def main(data: Path, traces: tuple[Path, ...], actions: str, model: str) -> None:
    """Measure the prompts."""
    if not traces:
        raise click.UsageError("name at least one file: --traces FILE...")
    try:
        items = published(data, records(traces))
        library = load_library(actions)
        samples = read_samples("quality", Source(str(data)))
        questions = [each.question for each in samples if isinstance(each, Sample)]
        counter = Counter.for_model(model)
        figures = {
            "planning": planning(questions, counter),
            **{
                f"published plans, {f'--nearest {n}' if n else 'whole prompt'}": explained(
                    items, library, counter, n
                )
                for n in (None, 2)
            },
        }
    except PearlError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    click.echo(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
