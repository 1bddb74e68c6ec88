"""How well a model checks claims: 75 true ones and 75 lies, in English and German, one by one and in tens.

    python -m experiments.reader.checker requests --truth TRUTH.json > requests.jsonl
    python -m experiments.reader.checker score --truth TRUTH.json RESULTS.jsonl

The claims and passages are those that PEARL sends to its checker about answers and records of
tests/checking, in which the truth of each is known by construction. `requests` writes {"id", "group",
"messages", "schema", "max_tokens"}; `score` reads {"id", "text"}.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from pearl.interpreter.checking import check_constraint, read_verdicts
from pearl.interpreter.prompt import check_messages
from pearl.llm import CheckTask
from pearl.llm.reply_limits import REASONING_TOKENS, reply_limit
from pearl.runs.reviewing import wilson
from tests.checking.checkers import Checker, run_one
from tests.checking.claims import Composition, Extraction, compositions, extractions

N_OF_A_KIND = 75
LANGUAGES = ("en", "de")
GROUPS = {"one": 1, "ten": 10}
"""Claims of a request."""


class Asked(NamedTuple):
    """A claim with its passage as the checker is asked, and what is known of it."""

    claim: str
    passage: str
    kind: str
    language: str
    path: str


def asked_claims(n: int = N_OF_A_KIND, seed: int = 7) -> list[Asked]:
    """The first `n` true claims and `n` lies, half of them sentences of answers, half values of records."""
    wanted = {
        (path, language, is_true): n // 4 + (i < n % 4)
        for is_true in (True, False)
        for i, (path, language) in enumerate((p, la) for p in PATHS for la in LANGUAGES)
    }
    chosen: list[Asked] = []
    for path, make in PATHS.items():
        seen: set[str] = set()
        for case in make(100 * n, seed):
            if case.language not in LANGUAGES:
                continue
            for each in asyncio.run(_asked(case, path)):
                key = (path, each.language, not each.kind)
                if each.claim not in seen and wanted[key]:
                    wanted[key] -= 1
                    seen.add(each.claim)
                    chosen.append(each)
            if not any(n for (of, *_), n in wanted.items() if of == path):
                break
    random.Random(seed).shuffle(chosen)
    return chosen


PATHS: dict[str, Callable[[int, int], Iterator[Composition | Extraction]]] = {
    "sentence": compositions,
    "field": extractions,
}


async def _asked(case: Composition | Extraction, path: str) -> list[Asked]:
    """The claims about a case that go to the checker."""
    checker = Checker()
    await run_one(case, checker)
    found = []
    for task in (request.task for request in checker.requests):
        assert isinstance(task, CheckTask)
        for claim, passage in task.claims:
            if (said := checker.said(claim, case)) is not None:
                found.append(Asked(claim, passage, said.kind, case.language, path))
    return found


def requests_of(asked: Sequence[Asked]) -> Iterator[tuple[dict[str, Any], list[Asked]]]:
    """The requests about claims, and the claims of each: ten claims one by one, then together."""
    places = [
        (group, at, size)
        for tens in range(0, len(asked), 10)
        for group, size in GROUPS.items()
        for at in range(tens, min(tens + 10, len(asked)), size)
    ]
    for group, at, size in places:
        batch = list(asked[at : at + size])
        task = CheckTask("answer", tuple((each.claim, each.passage) for each in batch))
        form = check_constraint(len(batch)).json_form
        assert form is not None
        request = {
            "id": f"{group}/{at // size:03}",
            "group": group,
            "messages": [
                {"role": message.role, "content": message.content}
                for message in check_messages(task)
            ],
            "schema": form.schema,
            "max_tokens": reply_limit(task, None) - REASONING_TOKENS,
        }
        yield request, batch


@click.group()
def main() -> None:
    """Requests to a checker, and how its replies agree with the truth."""


TRUTH = click.option(
    "--truth", type=click.Path(dir_okay=False, path_type=Path), required=True,
    help="What is true of the claims of each request.",
)  # fmt: skip


@main.command()
@TRUTH
@click.option("--n", default=N_OF_A_KIND, show_default=True, help="True claims, and lies.")
def requests(truth: Path, n: int) -> None:
    """Write the requests, and the truth to a file."""
    made = list(requests_of(asked_claims(n)))
    told = {request["id"]: [each._asdict() for each in batch] for request, batch in made}
    truth.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    for request, _ in made:
        click.echo(json.dumps(request, ensure_ascii=False))


@main.command()
@TRUTH
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def score(truth: Path, results: Path) -> None:
    """How many true claims are supported, and how many lies are not."""
    told = json.loads(truth.read_text(encoding="utf-8"))
    verdicts: list[tuple[str, Asked, str]] = []
    for line in results.read_text(encoding="utf-8").splitlines():
        reply = json.loads(line)
        if reply["id"] not in told:
            continue
        batch = [Asked(**each) for each in told[reply["id"]]]
        found, _ = read_verdicts(reply["text"], len(batch))
        group = reply["id"].partition("/")[0]
        verdicts += [(group, each, found.get(i, "")) for i, each in enumerate(batch, start=1)]
    click.echo("\n".join(report(verdicts)))


def report(verdicts: Sequence[tuple[str, Asked, str]]) -> list[str]:
    """The figures of each group."""
    lines = [f"{'':28}{'true: supported':>26}{'lies: accepted':>26}{'not checked':>14}"]
    for group in GROUPS:
        own = [(each, verdict) for of, each, verdict in verdicts if of == group]
        if not own:
            continue
        cells = [
            _share([v == "supported" for each, v in own if v and bool(each.kind) == is_lie])
            for is_lie in (False, True)
        ]
        n_open = sum(not verdict for _, verdict in own)
        lines.append(f"{group + ' all':28}{cells[0]:>26}{cells[1]:>26}{n_open:>14}")
    return lines


def _share(hits: Sequence[bool]) -> str:
    if not hits:
        return "-"
    low, high = wilson(sum(hits), len(hits))
    return f"{sum(hits)}/{len(hits)} [{low:.0%}, {high:.0%}]"


if __name__ == "__main__":
    main()
