"""Pages are read by keyboard, aloud, on paper and without scripts as well as by eye and mouse."""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest

from pearl.documents.document import Document
from pearl.view.answer_page import answer_page
from tests.browser.chromium import DESKTOP, PHONE, needed
from tests.browser.pages import (
    PLAN,
    REPLIES,
    SOURCES,
    STORY,
    an_extraction,
    asked,
    looked_up,
    page_of,
    scripted,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Show

needed()

TABBABLE = """() => [...document.querySelectorAll("a[href], summary, button, input, select, textarea, [tabindex='0']")]
    .filter(element => element.checkVisibility() && !element.disabled && element.tabIndex >= 0 && (element.type !== "radio" || element.checked)).length"""

FOCUSED = """() => {
    const now = document.activeElement;
    if (now === document.body || now === document.documentElement) return null;
    (window.walked ??= new Set()).add(now);
    const style = getComputedStyle(now), box = now.getBoundingClientRect();
    return {
        n: window.walked.size,
        told: now.outerHTML.slice(0, 120),
        isMarked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1,
        isSeen: box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight,
    };
}"""


def walk(page: Page) -> int:
    """How many elements Tab comes to, each marked and in sight when it has the focus."""
    n = 0
    for _ in range(1_000):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUSED)
        if at is None or at["n"] == n:
            return n
        assert at["isMarked"], at["told"]
        assert at["isSeen"], at["told"]
        n = at["n"]
    raise AssertionError("a thousand times Tab, and no end")


@pytest.mark.parametrize("kind", SOURCES)
def test_the_keyboard_comes_to_everything(show: Show, kind: str) -> None:
    page = show(page_of(kind), reduced_motion="reduce")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert walk(page) == page.evaluate(TABBABLE) > 0


@pytest.mark.parametrize("kind", SOURCES)
def test_no_link_leads_nowhere_and_the_first_one_skips(show: Show, kind: str) -> None:
    page = show(page_of(kind))
    links = page.evaluate("[...document.links].map(a => a.getAttribute('href'))")
    links += page.evaluate(
        "[...document.querySelectorAll('svg a')].map(a => a.getAttribute('href'))"
    )
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in links} <= set(ids)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    # A list keeps its filters there.
    assert page.evaluate("location.hash") in {
        "#document",
        "#main",
        "#changes",
        "#grid",
        "#rows",
        "",
    }


def test_a_mark_and_what_rests_on_it_lead_to_each_other(show: Show) -> None:
    page = show(page_of("a_story"))
    link = page.locator("ol.evidence a.n").first
    link.click()
    mark = page.locator("mark:target")
    assert mark.inner_text().startswith("He sold the boat because the hull was rotten.")
    assert mark.evaluate("e => e.getBoundingClientRect().top < innerHeight")
    mark.locator("a.n").click()
    assert page.locator("ol.evidence li:target").count() == 1


def test_the_graph_is_told_in_words(show: Show) -> None:
    page = show(page_of("a_story"))
    page.get_by_text("Plan and steps").click()
    told = page.locator("svg").first.aria_snapshot()
    for step in ("1. reason", "2. buyer", "3. ans"):
        assert step in told
    described = page.evaluate(
        "document.getElementById(document.querySelector('svg').getAttribute('aria-describedby')).textContent"
    )
    assert "Step 3, ans, CONCAT, uses reason, buyer." in described
    assert "Step 1, reason, FIND_REASON, uses the document." in described


@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind != "a_list"])
def test_without_scripts_there_is_the_same_to_read(show: Show, kind: str) -> None:
    with_them = show(page_of(kind)).locator("body").inner_text()
    without = show(page_of(kind), java_script_enabled=False).locator("body").inner_text()
    assert without.split() == with_them.split()


def test_without_scripts_a_list_has_its_rows_and_its_sums(show: Show) -> None:
    text = show(page_of("a_list"), java_script_enabled=False).locator("body").inner_text()
    for told in ("lost.txt", "ModelError", "Why did Nils sell the boat", "Line 9"):
        assert told in text, told


IS_IN_SIGHT = """mark => {
    const box = mark.getBoundingClientRect(), paper = mark.closest(".paper").getBoundingClientRect();
    return box.top >= paper.top && box.bottom <= Math.min(paper.bottom, innerHeight);
}"""


def test_a_number_leads_to_its_place_although_the_document_was_not_opened_yet(show: Show) -> None:
    text = "".join(f"Line {number} of many, and nothing in it.\n" for number in range(4000))
    first, second = STORY.split("Ada bought")
    document = Document(f"{text}{first}\n{text}Ada bought{second}\n{text}", "long.txt")
    answer = asked("Why, and who?", document, scripted(PLAN, REPLIES), library="seed")
    page = show(answer_page(answer, document), viewport=PHONE, reduced_motion="reduce")
    page.locator("#e2 a.n").click()
    page.wait_for_function(f"({IS_IN_SIGHT})(document.querySelector('#d2'))")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.locator("#d2").evaluate(IS_IN_SIGHT)


def test_keys_and_buttons_step_through_the_evidence(show: Show) -> None:
    page = show(page_of("a_corpus_of_rows"), reduced_motion="reduce")
    page.keyboard.press("j")
    page.locator(".on").click()
    assert page.locator("#d2").evaluate(IS_IN_SIGHT)
    assert page.locator(".behind .now").get_attribute("id") == "e2"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("k")
    assert page.evaluate("location.hash") == "#d1"
    assert page.evaluate("scrollY") == 0


def test_a_number_leads_to_its_box_on_the_picture_of_its_page(show: Show) -> None:
    page = show(page_of("a_pdf"), reduced_motion="reduce")
    assert page.locator("figcaption:visible").all_inner_texts() == ["Page 1", "Page 3"]
    page.locator("#e2 a.n").click()
    box = page.locator("svg a:target rect")
    assert box.evaluate(IS_IN_SIGHT)
    assert page.locator(".sheet img").last.evaluate("e => e.complete && e.naturalWidth > 400")
    # What is lit is the line of the quote and not the one below it.
    place, sheet = box.bounding_box(), page.locator(".sheet img").last.bounding_box()
    assert place
    assert sheet
    scale = sheet["width"] / 420
    assert place["y"] - sheet["y"] <= (300 - 200 - 8) * scale
    assert place["y"] + place["height"] - sheet["y"] <= (300 - 180 - 9) * scale


def test_ten_thousand_rows_are_a_short_page_and_can_be_searched(show: Show) -> None:
    rows = "".join(f"Boat {n},{'Ada' if n != 9_876 else 'Nils'},{n}\n" for n in range(10_000))
    document = Document(f"Boat,Owner,Length\n{rows}", "boats.csv", kind="table")
    made, draw = looked_up("What is the sum of the length by owner?", document)
    page = show(draw(made))
    assert page.evaluate("document.documentElement.scrollHeight") <= 3 * DESKTOP["height"]
    visible = "rows => rows.filter(row => row.checkVisibility()).length"
    rows_behind = page.locator(".behind tbody tr")
    assert rows_behind.evaluate_all(visible) == 10
    page.locator(".search input").fill("boat nils")
    page.get_by_text("1 of 10,000 rows").wait_for()
    assert rows_behind.evaluate_all("rows => rows.filter(row => !row.hidden).length") == 1


@pytest.mark.parametrize("setting", [{}, {"viewport": PHONE}], ids=["desktop", "phone"])
def test_arrows_move_in_a_grid_and_enter_shows_the_passage(
    show: Show, setting: dict[str, Any]
) -> None:
    page = show(page_of("an_extraction"), reduced_motion="reduce", **setting)
    page.locator("#grid tbody a").first.focus()
    for key in ["ArrowRight"] * 7 + ["ArrowLeft", "ArrowRight", "Enter"]:
        page.keyboard.press(key)
    lit = page.locator("mark.now")
    assert lit.all_inner_texts() == ["5 In the spring", "6 In the summer"]
    assert lit.first.evaluate(
        "mark => { const at = mark.getBoundingClientRect();"
        "return mark.contains(document.elementFromPoint(at.left + 40, at.top + 8)); }"
    )
    page.keyboard.press("Escape")
    assert not page.locator("article:visible").count()
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#r1f6"


def test_a_list_unfolds_and_what_it_hides_is_found(show: Show) -> None:
    rows, make = an_extraction()
    more = [
        {**rows[0], "id": f"{i}.txt", "record": {"price": {"state": "not_stated"}}}
        for i in range(5)
    ]
    page = show(make([*more, *rows]), viewport=PHONE)
    cards = page.locator("#grid > table > tbody > tr:visible")
    assert cards.count() == 7
    width = page.locator("#grid").evaluate("grid => grid.scrollWidth - grid.clientWidth")
    assert width <= 0  # a card for each document, nothing to scroll to
    assert page.locator("#grid details[open]").count() == 0
    page.locator(".search input").fill("PLANKS")
    page.get_by_text("1 of 7").wait_for()
    assert cards.count() == 1
    assert page.locator("#grid details[open] tbody td").all_inner_texts()[:2] == ["planks", "9"]
    page.locator(".search input").fill("")
    assert cards.count() == 7


def test_without_scripts_a_cell_leads_to_its_passages(show: Show) -> None:
    page = show(page_of("an_extraction"), java_script_enabled=False)
    page.locator("#grid a[href='#r1f3']").click()
    assert page.locator("article li:target td").all_inner_texts() == [
        "planks2", "92", "keel3", "? undecided the quote has no number"
    ]  # fmt: skip
    page.locator("article li:target a.n").first.click()
    assert page.locator("mark:target").inner_text() == "2 nine planks"


def test_printed_it_has_the_answer_the_evidence_and_the_document(show: Show) -> None:
    import pypdfium2

    page = show(page_of("a_story"))
    with pypdfium2.PdfDocument(BytesIO(page.pdf())) as pdf:
        pages = [one.get_textpage().get_text_bounded() for one in pdf]
    printed = re.sub(r"\W+", "", "".join(pages))
    for text in (*STORY.split("\n\n"), "Ada bought the boat from Nils", *PLAN.splitlines(), *REPLIES["buyer"].split("\n\n")[:1]):  # fmt: skip
        text = re.sub(r"\W+", "", text)
        assert text in printed or text in re.sub(r"\d+", "", printed), text
