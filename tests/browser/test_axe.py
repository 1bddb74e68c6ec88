"""Every kind of page, by the rules of axe: none is broken, in light and dark, at any width, with any setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.chromium import DESKTOP, PHONE, ZOOMED, needed
from tests.browser.pages import SOURCES, page_of

if TYPE_CHECKING:
    from tests.browser.conftest import Show

needed()

SETTINGS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": PHONE, "has_touch": True, "is_mobile": True},
    "zoomed": {"viewport": ZOOMED, "device_scale_factor": 2, "color_scheme": "dark"},
    "few colours": {"forced_colors": "active"},
    "little motion": {"reduced_motion": "reduce"},
}

CUT_OFF = """width => [...document.querySelectorAll("body *")].filter(element => {
    const isScrolled = up => up && (getComputedStyle(up).overflowX !== "visible" || isScrolled(up.parentElement));
    const isBeyond = element.getBoundingClientRect().right > width + 1;
    return isBeyond && !isScrolled(element.parentElement) && !element.matches(".skip");
}).map(element => element.outerHTML.slice(0, 100))"""
"""What lies beyond the window, and in nothing that is scrolled."""


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", SOURCES)
def test_no_rule_of_axe_is_broken(show: Show, kind: str, setting: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = show(page_of(kind), bypass_csp=True, **SETTINGS[setting])
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    result = Axe().run(page)
    assert not result.response["violations"], result.generate_report()
    assert result.response["passes"]


@pytest.mark.parametrize("kind", SOURCES)
def test_no_page_is_wider_than_its_window(show: Show, kind: str) -> None:
    page = show(page_of(kind))
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    for width in (320, PHONE["width"], ZOOMED["width"], DESKTOP["width"], 2560):
        page.set_viewport_size({"width": width, "height": 800})
        assert not page.evaluate(CUT_OFF, width), f"at {width} pixels"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
