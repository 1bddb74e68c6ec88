"""A review by keys and by mouse, at its real server: sixty fields in few keys, marked words become the passage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pearl.runs.decisions import Decisions, in_force
from pearl.view.sources import open_results
from tests.browser.chromium import DESKTOP, PHONE, needed
from tests.browser.payloads import payloads
from tests.reviewing import Person, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

needed()

SCHEMA = "patient: str, age: int, seen: date, ward: str, smoker: yes|no, weight_kg: number"
TEXT = "Patient: Ada Lind, aged 61. This 67-year-old came on 6 May 2024 to ward 7.\nShe smokes. She weighs 58.5 kg."


def passage(quote: str, name: str) -> dict[str, Any]:
    at = TEXT.index(quote)
    return {"text": quote, "start": at, "end": at + len(quote), "source": name}


def row(name: str) -> dict[str, Any]:
    def candidates(*said: tuple[Any, str]) -> dict[str, Any]:
        found = [{"value": value, "evidence": [passage(quote, name)]} for value, quote in said]
        return {"state": "undecided", "value": None, "why": "unsure", "candidates": found}

    record = {
        "patient": candidates(("Ada Lind", "Patient: Ada Lind")), "age": candidates((61, "aged 61"), (67, "67-year-old")),
        "seen": candidates(("2024-05-06", "6 May 2024")), "ward": candidates(("7", "ward 7")),
        "smoker": candidates(("no", "She smokes")), "weight_kg": candidates(),
    }  # fmt: skip
    plan = f'1. record = EXTRACT(CTX, "{SCHEMA}") : Read'
    return {"id": name, "document": name, "status": "degraded", "question": "q", "plan": plan, "record": record}  # fmt: skip


class Reviewer:
    """Works at the page, and counts the keys."""

    def __init__(self, page: Page) -> None:
        self.page, self.n_keys = page, 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.n_keys += 1

    def decide(self, *keys: str) -> None:
        """Press keys, and wait for the next page."""
        before = self.page.url
        self.press(*keys)
        self.page.wait_for_url(lambda url: url != before)

    def mark(self, words: str) -> None:
        """Mark words of the text with the mouse."""
        box = self.page.evaluate(
            """words => {
                const walker = document.createTreeWalker(document.querySelector(".text"), NodeFilter.SHOW_TEXT);
                while (walker.nextNode()) {
                    const at = walker.currentNode.data.indexOf(words);
                    if (at < 0) continue;
                    const range = document.createRange();
                    range.setStart(walker.currentNode, at);
                    range.setEnd(walker.currentNode, at + words.length);
                    walker.currentNode.parentElement.scrollIntoView({ block: "center", behavior: "instant" });
                    const box = range.getBoundingClientRect();
                    return [box.left, box.right, box.top + box.height / 2];
                }
            }""",
            words,
        )
        left, right, y = box
        self.page.mouse.move(left + 1, y)
        self.page.mouse.down()
        self.page.mouse.move(right - 1, y, steps=4)
        self.page.mouse.up()
        self.page.locator("#picked").wait_for(state="visible")


@pytest.fixture
def review(
    browser: Browser, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Reviewer, Person, Decisions]]:
    """Ten documents with six undecided fields each, at their server; nothing may go wrong on its pages."""
    names = getattr(request, "param", [f"{n}.txt" for n in range(10)])
    for name in names:
        (tmp_path / name).write_text(TEXT, encoding="utf-8")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row(name))}\n" for name in names), encoding="utf-8")
    found = open_results(file)
    assert found
    decisions = Decisions.beside(file)
    went_wrong: list[str] = []
    with served(found, decisions) as person:
        context = browser.new_context(viewport=DESKTOP)
        context.on("console", lambda message: went_wrong.append(message.text))
        context.on("weberror", lambda error: went_wrong.append(str(error.error)))
        page = context.new_page()
        page.goto(person.address)
        yield Reviewer(page), person, decisions
        context.close()
    assert not went_wrong


def test_sixty_fields_take_few_keys(review: tuple[Reviewer, Person, Decisions]) -> None:
    reviewer, person, decisions = review
    for _ in range(10):
        reviewer.decide("a")  # patient
        reviewer.decide("2")  # age
        reviewer.decide("a")  # seen
        reviewer.decide("n")  # ward
        reviewer.decide("c", "y", "e", "s", "Enter")  # smoker
        reviewer.decide("c", "5", "8", ".", "5", "Enter")  # weight_kg
    assert "All of it is decided" in reviewer.page.content()
    assert person.report["decided_by_persons"] == 60
    assert reviewer.n_keys / 60 <= 2.5
    values = [each.result["value"] for each in in_force(decisions.all()).values()]
    assert values == ["Ada Lind", 67, "2024-05-06", None, "yes", 58.5] * 10
    reviewer.decide("u")
    assert reviewer.page.locator("h1").inner_text().startswith("weight_kg")


def test_a_key_that_decides_nothing_says_why(review: tuple[Reviewer, Person, Decisions]) -> None:
    reviewer, person, _ = review
    reviewer.decide("a")
    told = reviewer.page.locator("#told")
    reviewer.press("a")
    told.filter(has_text="Several values are proposed").wait_for()
    reviewer.press("c", "x", "Enter")
    told.filter(has_text="is not a whole number").wait_for()
    reviewer.press("Escape", "3", "z")
    assert told.inner_text() == ""
    assert person.report["decided_by_persons"] == 1
    reviewer.decide("s")
    assert reviewer.page.locator("h1").inner_text().startswith("seen")


def test_marked_words_become_the_passage(review: tuple[Reviewer, Person, Decisions]) -> None:
    reviewer, _, decisions = review
    reviewer.decide("a")
    reviewer.mark("61")
    assert reviewer.page.locator("#value").input_value() == "61"
    reviewer.decide("Enter")
    reviewer.mark("6 May 2024")
    assert reviewer.page.locator("#value").input_value() == "2024-05-06"
    reviewer.press("Escape")
    assert reviewer.page.locator("#picked").is_hidden()
    reviewer.mark("came on")
    reviewer.decide("a")
    _, age, seen = [each.result for each in decisions.all()]
    assert (age["value"], [each["text"] for each in age["evidence"]]) == (61, ["61"])
    assert (seen["value"], [each["text"] for each in seen["evidence"]]) == ("2024-05-06", ["came on"])  # fmt: skip
    assert seen["evidence"][0]["start"] == TEXT.index("came on")


def test_a_review_on_a_phone_by_touch(review: tuple[Reviewer, Person, Decisions]) -> None:
    reviewer, person, _ = review
    page = reviewer.page
    page.set_viewport_size(PHONE)
    for button in ("Accept", "67", "Skip", "Not stated", "Undo"):
        before = page.url
        page.get_by_role("button", name=re.compile(button)).first.click()
        page.wait_for_url(lambda url, before=before: url != before)
    assert person.report["decided_by_persons"] == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_texts_of_others_run_nothing(browser: Browser, tmp_path: Path) -> None:
    text = " ".join(payloads())
    (tmp_path / "evil.txt").write_text(text, encoding="utf-8")
    field = {"state": "undecided", "value": None, "why": text, "candidates": [{"value": text, "evidence": []}]}  # fmt: skip
    rows = {"id": text, "document": "evil.txt", "status": "degraded", "question": text, "record": {text: field}}  # fmt: skip
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(rows) + "\n", encoding="utf-8")
    found = open_results(file)
    assert found
    with served(found, Decisions.beside(file), person=text) as person:
        context = browser.new_context()
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        page = context.new_page()
        page.goto(person.address)
        assert page.evaluate("window.ran") is None
        Reviewer(page).decide("a")
        assert page.evaluate("window.ran") is None
        context.close()
        assert all(url.startswith(person.address) for url in asked)
        assert person.report["decided_by_persons"] == 1
