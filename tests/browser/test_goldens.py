"""What pages look like, all text set in boxes: where everything is, how large, in which colours.

Letters differ between machines, and a golden that fails for its fonts is worse than none. What stands on
a page is for other tests. `make goldens` makes the pictures anew; look at them before they are committed.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy
import pytest

from tests.browser.boxes import style
from tests.browser.chromium import PHONE, needed
from tests.browser.pages import page_of
from tests.root import ROOT
from tests.skips import NO_PLAYWRIGHT

if TYPE_CHECKING:
    from tests.browser.conftest import Show

needed()

Image = pytest.importorskip("PIL.Image", reason=NO_PLAYWRIGHT)

GOLDENS = ROOT / "tests/browser/goldens"
SEEN = ROOT / "out/browser"
"""Where a picture is written that is not as its golden."""

NEAR = 40
"""Of 255: so much may a colour differ, as edges do."""
MOST = 0.002
"""Share of pixels that may differ by more."""

PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "story": ("a_story", {}),
    "story-dark": ("a_story", {"color_scheme": "dark"}),
    "story-phone": ("a_story", {"viewport": PHONE}),
    "table": ("a_table", {}),
    "composed": ("a_composed_answer", {}),
    "nothing": ("nothing", {}),
    "pdf": ("a_pdf", {}),
    "extraction": ("an_extraction", {}),
    "review": ("a_review", {}),
    "review-phone": ("a_review", {"viewport": PHONE}),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_page_looks_as_it_did(show: Show, name: str, request: pytest.FixtureRequest) -> None:
    kind, options = PICTURES[name]
    page = show(page_of(kind), bypass_csp=True, reduced_motion="reduce", **options)
    page.add_style_tag(content=style())
    page.evaluate("document.fonts.ready")
    seen = page.screenshot(full_page=True, animations="disabled", scale="css")
    golden = GOLDENS / f"{name}.png"
    if request.config.getoption("renew_goldens"):
        golden.parent.mkdir(exist_ok=True)
        Image.open(BytesIO(seen)).convert("P", palette=Image.Palette.ADAPTIVE).save(
            golden, optimize=True
        )
        return
    told = difference(seen, golden.read_bytes())
    if told:
        SEEN.mkdir(parents=True, exist_ok=True)
        (SEEN / f"{name}.png").write_bytes(seen)
    assert not told, f"{told}: {SEEN / name}.png beside {golden}; if it should: make goldens"


def difference(seen: bytes, golden: bytes) -> str:
    """How two pictures differ, for people; "" if they do not."""
    one, other = (
        numpy.asarray(Image.open(BytesIO(each)).convert("RGB")).astype(int)
        for each in (seen, golden)
    )
    if one.shape != other.shape:
        return (
            f"{one.shape[1]} x {one.shape[0]} pixels instead of {other.shape[1]} x {other.shape[0]}"
        )
    share = float((abs(one - other).max(axis=2) > NEAR).mean())
    return f"{100 * share:.2f} % of the pixels differ" if share > MOST else ""
