"""`pearl view` as people meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pearl.runs.store import Store
from tests.cli.terminal import Terminal
from tests.view.test_answer_page import Page


@pytest.fixture(autouse=True)
def folder(pearl: Terminal) -> Path:
    for path in list(pearl.folder.iterdir()):
        path.unlink()
    return pearl.folder


STORY = "Nils sold the boat because the hull was rotten.\nAda bought the boat from Nils.\n"
WHY = "Why did Nils sell the boat?"


@pytest.fixture
def asked(folder: Path, pearl: Terminal) -> Path:
    """Two results of a run in a store, their file, and their traces."""
    (folder / "story.txt").write_text(STORY)
    (folder / "other.txt").write_text("Ada sold the boat, too, because it leaked.\n")
    (folder / "why.plan").write_text(
        f'Question: {WHY}\n\n1. a = FIND_REASON(CTX, "Nils sold the boat") : Find why\n'
    )
    args = ["execute", "why.plan", "story.txt", "other.txt", "--out", "rows.jsonl", "--store", "s"]
    pearl(*args, "--trace", "t.jsonl")
    return folder


def test_one_result_is_shown_beside_its_document(asked: Path, pearl: Terminal) -> None:
    with Store.open(asked / "s", read_only=True) as store:
        (one,) = store.runs()
    shown = {}
    for source in ("rows.jsonl", "t.jsonl", one.id):
        args = ["view", source, "--row", "story.txt", "-o", "p.html", "--store", "s", "--force"]
        assert pearl(*args) == "p.html\n"
        shown[source] = Page(Path("p.html").read_text(encoding="utf-8"))
    for source, page in shown.items():
        assert "Ada bought the boat from Nils." in page.text, source  # the document
        assert "US dollars" in page.text or "nothing" in page.text
    for source in ("t.jsonl", one.id):
        assert "[system]" in shown[source].text  # what was asked
        assert f"<text: {len(STORY)} characters>" in shown[source].text
    assert "The result has no trace." in shown["rows.jsonl"].text
    for page in shown.values():
        assert page.marked == ["Nils sold the boat because the hull was rotten."]
    pearl("view", one.id, "-o", "p.html", "--store", "s", "--force")
    assert "left out" not in Path("p.html").read_text(encoding="utf-8")  # no row is damaged
    pearl("view", "rows.jsonl", "--trace", "t.jsonl", "--row", "story.txt")
    assert "[system]" in Page(Path("rows.html").read_text(encoding="utf-8")).text


def _results(*answers: str) -> str:
    rows = [
        {"id": f"q{n}", "status": "answered", "question": "Who?", "answer": answer}
        for n, answer in enumerate(answers)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_several_results_are_listed_and_two_files_compared(folder: Path, pearl: Terminal) -> None:
    Path("a.jsonl").write_text(_results("Ada", "Nils sold it"))
    Path("b.jsonl").write_text(_results("Ada", "Runa sold it"))
    assert pearl("view", "a.jsonl") == "a.html\n"
    assert ">Nils sold it</td>" in Path("a.html").read_text()
    assert pearl("view", "a.jsonl", "b.jsonl") == "a-b.html\n"
    assert "<del>Nils</del><ins>Runa</ins> sold it" in Path("a-b.html").read_text()


def test_a_document_that_has_changed_or_is_gone_is_told(asked: Path, pearl: Terminal) -> None:
    args = ["view", "rows.jsonl", "--trace", "t.jsonl", "--row", "story.txt", "--force"]
    (asked / "story.txt").write_text("It rained.")
    pearl(*args)
    page = Page(Path("rows.html").read_text(encoding="utf-8"))
    assert "The document has changed since the run" in page.text
    assert page.marked == []
    (asked / "story.txt").unlink()
    pearl(*args)
    page = Page(Path("rows.html").read_text(encoding="utf-8"))
    assert "The document, story.txt, was not found" in page.text
    (asked / "kept").mkdir()
    (asked / "kept/story.txt").write_text(STORY)
    pearl(*args, "--documents", "kept")
    page = Page(Path("rows.html").read_text(encoding="utf-8"))
    assert page.marked == ["Nils sold the boat because the hull was rotten."]
    assert "was not found" not in page.text
