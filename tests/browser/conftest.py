"""A browser for each file of tests, and pages in it, which nothing may go wrong on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    Show = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium."""
    from tests.browser.chromium import launched

    with launched() as chromium:
        yield chromium


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    """Opens a page, given its text and options of the context; at the end nothing must have gone wrong."""
    from tests.browser.chromium import Visit, visited

    visits: list[Visit] = []
    with ExitStack() as stack:

        def open_it(text: str, **options: Any) -> Page:
            at = tmp_path / f"{len(visits)}.html"
            visits.append(stack.enter_context(visited(browser, text, at, **options)))
            return visits[-1].page

        yield open_it
        assert not [told for visit in visits for told in visit.went_wrong]
