"""Pages of extractions: what is lit, what is undecided, and what a page may hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pearl import Document, load
from pearl.dsl.fields import Field, parse_fields
from pearl.view.extraction_page import extraction_page
from tests.view.test_answer_page import HOSTILE, Page

TEXT = "Report.\n\nMs Ada is 70 years old. Later: she is 80 years old. She takes aspirin."
FIELDS = (Field("age", "int"), Field("drugs", is_list=True), Field("ward", is_optional=True))


def quoted(text: str, at: int | None = None) -> dict[str, Any]:
    start = TEXT.index(text) if at is None else at
    return {"text": text, "start": start, "end": start + len(text), "source": "a.txt"}


def page_of(text: str | None = TEXT, **record: Any) -> str:
    rows = [{"id": "a.txt", "status": "answered", "record": record}]
    return extraction_page(rows, FIELDS, lambda name: text and Document(text, name))


def test_candidates_of_an_undecided_field_are_lit_at_their_places() -> None:
    candidates = [
        {"value": 70, "evidence": [quoted("70 years")]},
        {"value": 80, "evidence": [quoted("80 years")]},
    ]
    why = "two parts of the document say different things"
    age = {"state": "undecided", "value": None, "why": why, "candidates": candidates}
    text = page_of(age=age, drugs={"state": "not_stated"}, ward={"state": "not_stated"})
    page = Page(text)
    assert [mark.strip() for mark in page.marked] == ["70 years", "80 years"]
    assert why in page.text
    ids, links = page.all("id"), page.all("href")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert "1 document · 3 fields: 2 not stated, 1 undecided" in page.text


def test_only_what_the_text_has_at_its_place_is_lit() -> None:
    entries = [
        {"value": {"state": "found", "value": "aspirin", "evidence": [quoted("aspirin")]}},
        {"value": {"state": "found", "value": "gold", "evidence": [quoted("takes gold", 5)]}},
    ]
    age = {"state": "found", "value": 70, "evidence": [{"text": "70", "source": "a.txt"}]}
    page = Page(page_of(age=age, drugs={"state": "found", "value": None, "entries": entries}))
    assert [mark.strip() for mark in page.marked] == ["aspirin"]
    assert not Page(page_of(None, age=age, drugs={"state": "found", "entries": entries})).marked


def test_a_failed_or_odd_row_does_not_keep_the_others_out() -> None:
    evidence = [{"text": HOSTILE, "start": 0, "end": len(HOSTILE)}]
    record = {
        "age": {"state": HOSTILE, "value": {"x": HOSTILE}, "evidence": evidence, "why": HOSTILE},
        "drugs": {"state": "found", "entries": [HOSTILE, {"value": HOSTILE}], "candidates": 3},
        "ward": [HOSTILE],
    }
    rows: list[dict[str, Any]] = [
        {"id": HOSTILE, "status": "failed", "error": {"type": "E", "message": HOSTILE}},
        {"id": "b", "status": "answered", "record": record},
        {"id": "c", "record": {"age": {"state": "found", "value": 71}}},
    ]
    page = Page(extraction_page(rows, FIELDS, lambda name: Document(HOSTILE, name)))
    assert not {"img"} & {tag for tag, _ in page.tags}
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "71" in page.text
    assert "has the wrong type" in page.text


def test_of_long_documents_a_page_has_the_text_around_passages() -> None:
    text = "x " * 500_000 + TEXT + " y" * 500_000
    quote = quoted("aspirin", text.index("aspirin"))
    record = {"drugs": {"state": "found", "entries": [{"value": {"state": "found", "value": "aspirin", "evidence": [quote]}}]}}  # fmt: skip
    rows = [{"id": f"{n}.txt", "status": "answered", "record": record} for n in range(50)]
    page = extraction_page(rows, FIELDS, lambda name: text and Document(text, name))
    assert page.count("aspirin</mark>") == 50
    assert len(page) < 250_000


def test_a_pdf_is_shown_as_its_pages_with_the_boxes_of_passages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reportlab.pdfgen.canvas import Canvas

    monkeypatch.setattr("pearl.view.extraction_page.MAX_SHEETS", 1)
    path = str(tmp_path / "a.pdf")
    canvas = Canvas(path)
    canvas.drawString(72, 700, "Ms Ada is 70 years old.")
    canvas.save()
    document = load(path)
    at = document.text.index("70 years")
    quote = {"text": "70 years", "start": at, "end": at + 8, "source": path}
    record = {"age": {"state": "found", "value": 70, "evidence": [quote]}}
    rows = [{"id": path, "status": "answered", "record": record}] * 2
    page = Page(extraction_page(rows, FIELDS, lambda name: document))
    boxes = {each["id"]: each["href"] for _, each in page.tags if each.get("class") == "box"}
    assert boxes == {"m1-1": "#r1f1"}
    assert page.text.count("Cited pages beyond the first") == 1  # that of the second document
    assert [mark.strip() for mark in page.marked] == ["70 years"] * 2


def test_counts_are_of_one_kind_and_add_up() -> None:
    def value(state: str) -> dict[str, Any]:
        return {"state": state, "value": 1 if state == "found" else None, "why": "why"}

    entries = [{"value": value(state)} for state in ("found", "undecided", "found")]
    record = {"age": value("undecided"), "drugs": {"state": "found", "entries": entries}}
    rows = [
        *[{"id": f"{i}", "record": {**record, "ward": value("not_stated")}} for i in range(2)],
        {"id": "c", "record": {"age": value("found"), "drugs": {"state": "undecided", "entries": entries[:1]}, "ward": value("found")}},
        {"id": "d", "status": "failed", "error": {"message": "no file"}},
    ]  # fmt: skip
    page = Page(extraction_page(rows, FIELDS, lambda name: None))
    told = "4 documents · 1 failed · 9 fields: 4 with a value, 2 not stated, 3 undecided · 7 values in lists · 2 of them undecided"
    assert told in page.text


def page_of_nested(fields: tuple[Field, ...], names: list[str], n: int = 1) -> str:
    each: dict[str, Any] = {"state": "found", "value": "x"}
    for name in reversed(names):
        entries = [{name: each}] * (n if name != names[0] else 1)
        each = {"state": "found", "value": None, "entries": entries}
    record = each["entries"][0]
    return extraction_page([{"id": "a", "record": record}], fields, lambda name: None)


def test_lists_in_lists_of_many_entries_are_shown_in_part_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pearl.view.extraction_page.MAX_ENTRIES", 10)
    monkeypatch.setattr("pearl.view.extraction_page.MAX_INNER", 30)
    fields = parse_fields("a: [{b: [{c: [{d: str}]}]}]")
    text = page_of_nested(fields, ["a", "b", "c", "d"], 12)
    assert Page(text).text.count("7 more") == 2 * (10 + 10 * 5)
    assert text.count("</span> x") == 2 * 10 * 5 * 5
