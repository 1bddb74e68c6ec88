"""How long until the page of an answer can be used, beside the same text in a bare `<pre>`.

    .venv-browser/bin/python experiments/bench/pages.py [--rounds N] [--characters N ...] [--steps N] [--page FILE ...]

A scripted model quotes 200 sentences of a made-up text; Chromium opens the page and follows the last of
its passages into the document. Seconds are those from the start of the navigation until the passage is
painted where the reader looks, the median of some rounds; the peer has the same marks in a `<pre>`, opened
in turn with the page. Then a plan of many steps: the delays of clicks, as the browser's event timing has
them (`delay`: until the event is handled; `paint`: until the next frame). Prints a table and JSON.

Needs the group `browser` and Chromium: `make test-browser` sets both up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import statistics
import tempfile
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from pearl import Document, Pearl
from pearl.llm import PlanTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.view.answer_page import answer_page

MARKS = 200
QUOTED_BY_STEP = 20
WORDS = [
    "the",
    "a",
    "boat",
    "hull",
    "mill",
    "river",
    "ferry",
    "keel",
    "plank",
    "yard",
    "letter",
    "captain",
    "widow",
    "lantern",
    "market",
    "autumn",
    "debt",
    "price",
    "harbour",
    "morning",
    "sold",
    "bought",
    "carried",
    "painted",
    "refused",
    "promised",
    "waited",
    "found",
    "lost",
    "under",
    "behind",
    "before",
    "because",
    "although",
    "nobody",
    "everyone",
    "slowly",
    "again",
    "never",
    "two",
    "seven",
    "old",
    "rotten",
    "empty",
]

# Until the address of the passage is the target, laid out and painted.
FOLLOW = """async link => {
    const at = document.getElementById(link.slice(1));
    location.hash = link;
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const box = at.getBoundingClientRect();
    return {ms: performance.now(), isSeen: box.top >= 0 && box.top < innerHeight};
}"""

WATCH = """window.delays = [];
new PerformanceObserver(list => {
    for (const each of list.getEntries())
        if (each.interactionId) delays.push([each.processingStart - each.startTime, each.duration]);
}).observe({type: "event", durationThreshold: 16, buffered: true});"""


def prose(n_characters: int, chance: random.Random) -> list[str]:
    """Sentences, each another, of so many characters in all."""
    sentences, n = [], 0
    while n < n_characters:
        words = chance.choices(WORDS, k=chance.randint(8, 18))
        sentence = f"{' '.join(words).capitalize()} {len(sentences):,}."
        sentences.append(sentence)
        n += len(sentence) + 1
    return sentences


def quoting_page(sentences: list[str]) -> tuple[str, str]:
    """The page of an answer that quotes sentences from all over the text, and its peer."""
    text = "".join(
        f"{each}{chr(10) * 2 if i % 7 == 6 else ' '}" for i, each in enumerate(sentences)
    )
    quoted = sentences[:: max(1, len(sentences) // MARKS)][:MARKS]
    n_steps = MARKS // QUOTED_BY_STEP
    plan = "\n".join(f'{i + 1}. s{i} = FIND(CTX, "boat {i}") : Find it' for i in range(n_steps))

    def reply(request: Request) -> str:
        if isinstance(request.task, PlanTask):
            return plan
        at = int(request.task.output[1:]) * QUOTED_BY_STEP  # type: ignore[union-attr]
        return "\n\n".join(f"> {each}" for each in quoted[at : at + QUOTED_BY_STEP])

    document = Document(text, "made-up.txt")
    answer = answered(Scripted(reply), document)
    assert len(answer.evidence) == len(quoted)
    pieces, at = [], 0
    for number, each in enumerate(sorted(answer.evidence, key=lambda e: e.span.start), start=1):
        span = each.span
        pieces += [
            escape(text[at : span.start]),
            f'<mark id="d{number}">{escape(each.text)}</mark>',
        ]
        at = span.end
    peer = f"<!DOCTYPE html><meta charset=utf-8><title>peer</title><pre>{''.join(pieces)}{escape(text[at:])}</pre>"
    return answer_page(answer, document), peer


def answered(model: Any, document: Document) -> Any:
    """Its answer to a question that does not matter."""

    async def ask() -> Any:
        async with Pearl(model, library="seed") as pearl:
            return await pearl.ask("What became of the boat?", document)

    return asyncio.run(ask())


def stepping_page(n_steps: int, chance: random.Random) -> str:
    """The page of a plan of so many steps, each of which takes some before it."""
    lines = ['1. s1 = FIND(CTX, "the boat") : Find it']
    for number in range(2, n_steps + 1):
        first = max(1, number - 30)
        read, sought = (chance.randint(first, number - 1) for _ in range(2))
        lines.append(f"{number}. s{number} = FIND(s{read}, s{sought}) : Find it there")
    document = Document("The boat was sold.", "short.txt")
    pearl = Pearl(Scripted(lambda _: "a boat"), library="seed", max_steps=n_steps)
    return answer_page(asyncio.run(pearl.execute("\n".join(lines), document)), document)


def opened(
    browser: Browser, path: Path, work: Callable[[Page], Any]
) -> tuple[Any, dict[str, float]]:
    """What is found on a page, in a context of its own, and how much memory it takes."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(path.as_uri())
    found = work(page)
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    metrics = {
        each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]
    }
    context.close()
    return found, metrics


def until_followed(page: Page) -> float:
    """Seconds until the last passage is seen."""
    link = page.evaluate("'#' + [...document.querySelectorAll('mark[id]')].at(-1).id")
    found = page.evaluate(FOLLOW, link)
    assert found["isSeen"]
    return float(found["ms"]) / 1000


def delays(page: Page) -> dict[str, float]:
    """Milliseconds of the slowest of some clicks and keys."""
    page.evaluate(WATCH)
    for what in ("summary", "th button, button", "a[href^='#step-']"):
        for each in page.locator(what).locator("visible=true").all()[:8]:
            each.click()
    for each in page.locator("input[type=search], input[type=text]").locator("visible=true").all():
        each.press_sequentially("boat")
    for _ in range(10):
        page.keyboard.press("Tab")
    page.wait_for_timeout(300)
    found = page.evaluate("delays")
    return {
        "events": len(found),
        "delay_ms": round(max((each[0] for each in found), default=0.0)),
        "paint_ms": round(max((each[1] for each in found), default=0.0)),
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--characters", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--page", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    result: list[dict[str, Any]] = []
    made = {n: quoting_page(prose(n, chance)) for n in options.characters}
    steps = stepping_page(options.steps, chance)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for n, (ours, peer) in made.items():
            paths = Path(folder) / "ours.html", Path(folder) / "peer.html"
            for path, text in zip(paths, (ours, peer), strict=True):
                path.write_text(text, encoding="utf-8")
            rounds = [
                [opened(browser, path, until_followed) for path in paths]
                for _ in range(options.rounds)
            ]
            for at, name in enumerate(("page", "<pre>")):
                times, metrics = zip(*(each[at] for each in rounds), strict=True)
                result.append(
                    {
                        "what": name,
                        "characters": n,
                        "seconds": round(statistics.median(times), 3),
                        "heap_mb": round(max(each["JSHeapUsedSize"] for each in metrics) / 1e6, 1),
                        "nodes": int(metrics[0]["Nodes"]),
                        "kb": round(len((ours, peer)[at].encode()) / 1000),
                    }
                )
        steps_path = Path(folder) / f"{options.steps}-steps.html"
        steps_path.write_text(steps, encoding="utf-8")
        for path in (steps_path, *options.page):
            found, metrics = opened(browser, path.absolute(), delays)
            kb, nodes = round(path.stat().st_size / 1000), int(metrics["Nodes"])
            heap_mb = round(metrics["JSHeapUsedSize"] / 1e6, 1)
            result.append(
                {"what": path.name, "kb": kb, "nodes": nodes, "heap_mb": heap_mb, **found}
            )
        browser.close()
    for row in result:
        print(" | ".join(f"{key} {value}" for key, value in row.items()))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
