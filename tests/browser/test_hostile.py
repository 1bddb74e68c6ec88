"""Whatever texts others write: no script runs, nothing is asked for, and none of it becomes markup."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice, product
from typing import TYPE_CHECKING

import pytest

from pearl.errors import PearlError
from tests.browser.chromium import needed, put, visited
from tests.browser.pages import SOURCES, page_of
from tests.browser.payloads import ELEMENTS, payloads
from tests.browser.texts import Path, places, with_text

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.conftest import Show

needed()

MARKUP = """within => {
    const found = new Set();
    for (const element of (within ?? document).querySelectorAll("*")) {
        found.add(element.localName);
        for (const {name, value} of element.attributes)
            found.add(`${element.localName} ${name}${name.endsWith("href") && !value.startsWith("#") ? " outside" : ""}`);
    }
    return [...found];
}"""
"""Names of elements and of their attributes."""

PARSED = f"text => ({MARKUP})(new DOMParser().parseFromString(text, 'text/html'))"

REFUSED = (ValueError, PearlError, KeyError)
"""Data with such a text there does not get as far as a page: names of steps and of states are checked."""


HERE = "here-it-is"


@pytest.fixture(scope="module")
def markup(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """All that pages of texts without malice are made of."""
    found: set[str] = set()
    for kind in SOURCES:
        at = tmp_path_factory.mktemp("harmless") / f"{kind}.html"
        with visited(browser, page_of(kind), at) as visit:
            found |= set(visit.page.evaluate(MARKUP))
    return found


def hold(page: Page, text: str, markup: set[str], what: str) -> None:
    """The page of hostile data is as inert as any."""
    put(page, text)
    assert set(page.evaluate(MARKUP)) <= markup, what
    assert page.evaluate("window.ran") is None, what


def taking(kind: str) -> dict[Path, str]:
    """Every place of the data that such a text can reach, and a mark of its own if the page has the text."""
    data, render = SOURCES[kind]()
    found: dict[Path, str] = {}
    for place in places(data):
        with suppress(*REFUSED):
            page = render(with_text(data, place, " ".join([HERE, *payloads()])))
            found[place] = f"{HERE}-{len(found)}." if HERE in page else ""
    return found


def together(kind: str, marks: Mapping[Path, str]) -> Iterator[str]:
    """Pages of the data with all payloads in these places, behind their marks: in all at once, unless some of them hide others."""
    data, render = SOURCES[kind]()
    with suppress(*REFUSED):
        there = data
        for place, mark in marks.items():
            there = with_text(there, place, " ".join([mark, *payloads()]))
        page = render(there)
        if len(marks) == 1 or all(mark in page for mark in marks.values()):
            yield page
            return
    half = len(marks) // 2
    for some in (dict(islice(marks.items(), half)), dict(islice(marks.items(), half, None))):
        if len(some) < len(marks):
            yield from together(kind, some)


@pytest.mark.parametrize("kind", SOURCES)
def test_each_text_that_data_brings_is_shown_as_what_it_is(
    show: Show, markup: set[str], kind: str
) -> None:
    page, marks = show(page_of(kind)), taking(kind)
    said = ""
    for text in together(kind, marks):
        hold(page, text, markup, kind)
        said += page.evaluate("document.documentElement.textContent")
    assert sum(mark in said for mark in filter(None, marks.values())) >= 8


def test_each_payload_by_itself_is_inert(show: Show, markup: set[str]) -> None:
    """In a text of its own, as one of several may hide the next; in three places each."""
    data, render = SOURCES["a_story"]()
    reached = [*taking("a_story")]
    page, all_of_them, n = show(page_of("a_story")), payloads(), len(reached)
    for start, shift in product(range(0, len(all_of_them), n), range(3)):
        texts, there = all_of_them[start : start + n], data
        for place, text in zip(reached[shift:] + reached[:shift], texts, strict=False):
            there = with_text(there, place, text)
        hold(page, render(there), markup, "\n".join(texts))


def test_a_page_that_trusts_its_data_is_found_out(browser: Browser, tmp_path: pathlib.Path) -> None:
    plain = "<!DOCTYPE html><html lang=en><title>x</title><p>"
    with visited(browser, plain, tmp_path / "plain.html") as visit:
        markup = set(visit.page.evaluate(MARKUP))
        for payload in ELEMENTS:
            assert set(visit.page.evaluate(PARSED, plain + payload)) - markup, payload
    with visited(browser, plain + ELEMENTS[0], tmp_path / "trusting.html") as visit:
        assert visit.page.evaluate("window.ran") == 1
        assert {told.split()[0] for told in visit.went_wrong} >= {"dialog", "request"}
