"""Whatever texts others write: no script runs, nothing is asked for, and none of it becomes markup."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pearl.errors import PearlError
from tests.browser.chromium import needed, put, visited
from tests.browser.pages import SOURCES, page_of
from tests.browser.payloads import ELEMENTS, payloads
from tests.browser.texts import Path, named, places, with_text, with_texts

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


def taking(kind: str, text: str) -> Iterator[tuple[Path, str]]:
    """Every place of the data that such a text can reach, with its page."""
    data, render = SOURCES[kind]()
    for place in places(data):
        with suppress(*REFUSED):
            yield place, render(with_text(data, place, text))


@pytest.mark.parametrize("kind", SOURCES)
def test_each_text_that_data_brings_is_shown_as_what_it_is(
    show: Show, markup: set[str], kind: str
) -> None:
    page = show(page_of(kind))
    shown = []
    for place, text in taking(kind, " ".join([HERE, *payloads()])):
        hold(page, text, markup, named(place))
        if HERE in page.evaluate("document.documentElement.textContent"):
            shown.append(named(place))
    assert len(shown) >= 8, shown


def test_each_payload_in_all_texts_at_once_is_inert(show: Show, markup: set[str]) -> None:
    data, render = SOURCES["a_story"]()
    reached = [place for place, _ in taking("a_story", HERE)]
    page = show(page_of("a_story"))
    for payload in payloads():
        hold(page, render(with_texts(data, payload, reached)), markup, payload)


def test_a_page_that_trusts_its_data_is_found_out(browser: Browser, tmp_path: pathlib.Path) -> None:
    plain = "<!DOCTYPE html><html lang=en><title>x</title><p>"
    with visited(browser, plain, tmp_path / "plain.html") as visit:
        markup = set(visit.page.evaluate(MARKUP))
        for payload in ELEMENTS:
            assert set(visit.page.evaluate(PARSED, plain + payload)) - markup, payload
    with visited(browser, plain + ELEMENTS[0], tmp_path / "trusting.html") as visit:
        assert visit.page.evaluate("window.ran") == 1
        assert {told.split()[0] for told in visit.went_wrong} >= {"dialog", "request"}
