"""What notebooks show of objects: texts of others are never markup, and nothing is unbounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from pearl.errors import (
    Diagnostic,
    Fix,
    LibraryError,
    PearlError,
    PlanningError,
    PlanSyntaxError,
    Span,
)
from pearl.view.notebook import Html, card, element, lines, shortened
from tests.notebooks import OURS, parsed, texts

TEXT = 'ok\n2. b = FIND_EVNT(CTX, "it") : f\nlast'
SPAN = Span(TEXT.index("FIND"), TEXT.index("FIND") + 9)


@given(texts, texts)
def test_texts_and_attributes_are_no_markup(text: str, label: str) -> None:
    html = card(lines(text, 10**6), element("p", text, aria_label=label))
    tree = parsed(html)
    assert [each.tag for each in tree.iter()] == ["div", "pre", "p"]
    assert "\x00" not in html


def test_elements_stay_and_texts_are_escaped() -> None:
    assert element("p", "<b>", Html("<b>1</b>")) == "<p>&lt;b&gt;<b>1</b></p>"
    assert element("i", "\ud800\x1b[0m") == "<i>\\ud800\\u001b[0m</i>"
    assert shortened("abc", 3) == "abc"


def test_formulas_are_not_typeset() -> None:
    assert "tex2jax_ignore" in str(parsed(card("from $5 to $6")).get("class"))


def test_a_diagnostic_of_a_plan_underlines_its_place_in_its_line() -> None:
    found = Diagnostic("unknown-action", "no <action>", SPAN, help="a & b", fix=Fix(SPAN, "FIND"))
    tree = parsed(PlanSyntaxError(TEXT, [found])._repr_html_())
    assert etree.tostring(tree, method="text", encoding="unicode") == (
        "PlanSyntaxErrorerror 2:8: no <action> [unknown-action]"
        '2 | 2. b = FIND_EVNT(CTX, "it") : fhelp: a & bfix: FIND'
    )
    (underlined,) = tree.xpath(".//pre/span")
    assert underlined.text == "FIND_EVNT"
    alone = parsed(found._repr_html_())
    assert "characters 10-19" in "".join(alone.itertext())


def test_errors_show_all_that_they_know() -> None:
    found = [Diagnostic("a-code", f"message {n}", SPAN) for n in range(99)]
    told = "".join(parsed(PlanSyntaxError(TEXT, found)._repr_html_()).itertext())
    assert "message 14" in told
    assert "message 15" not in told
    assert "and 84 more" in told
    told = "".join(parsed(LibraryError("bad", diagnostics=found[:2])._repr_html_()).itertext())
    assert "message 1" in told

    class Attempt:
        text, diagnostics = TEXT, tuple(found[:1])

    told = "".join(parsed(PlanningError("none", attempts=[Attempt()])._repr_html_()).itertext())
    assert "message 0" in told
    assert "FIND_EVNT" in told
    told = "".join(parsed(PearlError("it broke", help="mend it")._repr_html_()).itertext())
    assert told == "PearlErrorit brokehelp: mend it"


@given(texts, texts, st.integers(0, 60), st.integers(0, 60))
def test_diagnostics_of_any_text_are_shown(text: str, said: str, start: int, length: int) -> None:
    found = Diagnostic("c", said, Span(start, start + length), help=said)
    html = PlanSyntaxError(text, [found] * 3)._repr_html_()
    assert {each.tag for each in parsed(html).iter()} <= OURS


def test_a_huge_error_is_small() -> None:
    text = "&" * 10**6
    found = [Diagnostic("c", text, Span(500_000, 10**6), help=text, fix=Fix(SPAN, text))] * 999
    assert len(PlanSyntaxError(text, found)._repr_html_()) < 100_000
