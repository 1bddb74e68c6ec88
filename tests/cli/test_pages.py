"""`--page`: the answer beside its document, of one answer."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal import Terminal
from tests.view.test_answer_page import Page


def test_pearl_ask_writes_it_and_refuses_several(pearl: Terminal) -> None:
    pearl("ask", "Why did Nils sell the boat?", "story.txt", "--page", "answer.html")
    page = Page(Path("answer.html").read_text("utf-8"))
    assert any("hull was rotten" in marked for marked in page.marked)
    Path("other.txt").write_text("Nils sold it.", "utf-8")
    pearl("ask", "Why?", "story.txt", "other.txt", "--page", "both.html", code=2)
    assert "--page is of one answer" in pearl.talk
    Path("mine.html").write_text("mine", "utf-8")
    pearl("ask", "Why did Nils sell the boat?", "story.txt", "--page", "mine.html", code=2)
    assert Path("mine.html").read_text("utf-8") == "mine"
