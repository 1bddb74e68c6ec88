"""Chromium of the system, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.skips import NO_CHROMIUM, NO_PLAYWRIGHT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
ZOOMED = {"width": 640, "height": 400}
"""A window of 1280 x 800 at 200 %: as many CSS pixels."""

FLAGS = (
    "--disable-gpu",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--disable-lcd-text",
)


def needed() -> None:
    """Skips the file of tests that calls this where there is no Playwright or no Chromium."""
    if find_spec("playwright") is None or find_spec("axe_playwright_python") is None:
        pytest.skip(NO_PLAYWRIGHT, allow_module_level=True)
    if PROGRAM is None:
        pytest.skip(NO_CHROMIUM, allow_module_level=True)


@dataclass
class Visit:
    """A page that is open."""

    page: Page
    went_wrong: list[str] = field(default_factory=list)


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser, for a file of tests: each test has a context of its own in it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def visited(browser: Browser, text: str, at: Path, **options: Any) -> Iterator[Visit]:
    """A page, written to a file and opened from there."""
    at.write_text(text, encoding="utf-8")
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    visit = Visit(context.new_page())
    address = at.as_uri()

    def note(what: str) -> None:
        visit.went_wrong.append(what)

    context.on("page", lambda page: note(f"window {page.url}"))
    context.on(
        "request",
        lambda request: request.url == address or note(f"request {request.method} {request.url}"),
    )
    context.on("console", lambda message: note(f"console {message.text}"))
    context.on("weberror", lambda error: note(f"error {error.error}"))

    def refuse(dialog: Any) -> None:
        note(f"dialog {dialog.message}")
        dialog.dismiss()

    context.on("dialog", refuse)
    visit.page.on(
        "framenavigated",
        lambda frame: frame.url.partition("#")[0] == address or note(f"address {frame.url}"),
    )
    visit.page.goto(address)
    try:
        yield visit
    finally:
        context.close()


def put(page: Page, text: str) -> None:
    """Another page at the same address."""
    Path(unquote(urlsplit(page.url).path)).write_text(text, encoding="utf-8")
    page.reload()
