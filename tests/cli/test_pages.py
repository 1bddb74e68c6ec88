"""`--page`: the answer beside its document, of one answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.own_terminal import OnTerminal
from tests.cli.terminal import PLAN, Terminal
from tests.server import Server
from tests.view.test_answer_page import Page


def test_it_is_written_of_one_answer_and_refused_of_several(pearl: Terminal) -> None:
    for command in (["ask", "Why did Nils sell the boat?"], ["execute", "why.plan"]):
        pearl(*command, "story.txt", "--page", "answer.html", "--force")
        page = Page(Path("answer.html").read_text("utf-8"))
        assert any("hull was rotten" in marked for marked in page.marked)
    args = ("execute", "why.plan", "story.txt", "--page", "more.html", "--out", "rows.jsonl")
    pearl(*args, code=2)
    assert "pearl view" in pearl.talk
    Path("other.txt").write_text("Nils sold it.", "utf-8")
    pearl("ask", "Why?", "story.txt", "other.txt", "--page", "both.html", code=2)
    assert "--page needs exactly one answer" in pearl.talk
    Path("mine.html").write_text("mine", "utf-8")
    pearl("ask", "Why did Nils sell the boat?", "story.txt", "--page", "mine.html", code=2)
    assert Path("mine.html").read_text("utf-8") == "mine"


@pytest.mark.parametrize(("page", "is_named"), [("answer.html", True), ("/dev/null", False)])
def test_on_a_terminal_a_page_is_named_if_it_is_a_file(
    pearl: Terminal, page: str, is_named: bool
) -> None:
    child = OnTerminal(
        pearl.folder, "-m", "pearl", "execute", "why.plan", "story.txt", "--page", page
    )
    assert child.end() == 0
    assert "hull was rotten" in child.written
    assert (f"page: {page}" in child.written) == is_named


@pytest.mark.usefixtures("_no_waits")
@pytest.mark.parametrize(
    ("faults", "n_calls", "n_input"),
    [([], 2, 200), (["reset", "503"], 4, 200), (["empty content"], 3, 300)],
)
def test_page_and_terminal_count_the_same_calls_and_tokens(
    pearl: Terminal, openai_server: Server, faults: list[str], n_calls: int, n_input: int
) -> None:
    def counts() -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Calls, failed calls and tokens as the page and as the terminal have them."""
        pearl(
            "ask", "Why did Nils sell the boat?", "story.txt", "--page", "p.html", "--price", "input=2,output=8",
            "--model", "openai:test-model", "--base-url", openai_server.url, "--force",
        )  # fmt: skip
        text = Page(Path("p.html").read_text("utf-8")).text
        (shown,) = re.findall(
            r"calls(\d+)(?: \((\d+) failed\))?.*?tokens in, cached(\d+), (\d+)\s*tokens out(\d+)",
            text,
            re.S,
        )
        (told,) = re.findall(
            r"spent +(\d+) calls?(?: \((\d+) failed\))?, (\d+) \+ (\d+) tokens(?: \((\d+))?",
            pearl.talk,
        )
        calls, n_failed, n_input, n_output, n_cached = told
        return shown, (calls, n_failed, n_input, n_cached or "0", n_output)

    openai_server.on("Question: .*Nils", PLAN)
    openai_server.on("", "The hull was rotten")
    openai_server.next(*faults)
    page, terminal = counts()  # a plan and a step
    assert page == terminal
    assert page[:3] == (str(n_calls), str(len(faults) or ""), str(n_input))
    assert len(openai_server.requests) == n_calls
    page, terminal = counts()  # both replies are cached
    assert page == terminal == ("0", "", "0", "0", "0")
