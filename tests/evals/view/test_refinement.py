"""The page about a refinement: complete, escaped, and on its own."""

from __future__ import annotations

import asyncio
from html.parser import HTMLParser

import pytest

from pearl.actions.library import read_library
from pearl.errors import ModelError
from pearl.evals.pages import refinement_page
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.mining.refinement import Refinement, compared
from pearl.mining.refining import RefineSettings, read_drafts, refine_actions
from tests.mining.refine.drafts import PLAIN, mined, pairs, row

EVIL = "FIND_EVIL(CTX) : Find <script>alert('x')</script> & \"more\""
VOID = {"meta", "br", "wbr"}


class Reader(HTMLParser):
    """Checks that tags close in order, and collects what is shown."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def refined(text: str, *, is_broken: bool = False, max_actions: int = 80) -> Refinement:
    def reply(request: Request) -> str:
        if is_broken and "FIND_EFFECT" in request.prompt:
            raise ModelError("<b>the line is dead</b>", kind="transport")
        return pairs(request)

    settings = RefineSettings(max_actions=max_actions, shard_size=2)
    return asyncio.run(refine_actions(read_drafts(text, "<mined>"), Scripted(reply), settings))


@pytest.fixture(scope="module")
def refinement() -> Refinement:
    actions = [line for line in PLAIN.splitlines()[1:] if "CTX" in line]
    text = mined(row(0, EVIL, *actions), row(1, status="failed", error="<i>no</i>"))
    library = read_library("FIND_OTHER(CTX) : Find <u>it</u>\nFIND_EVIL(CTX) : Find", "<theirs>")
    return compared(refined(text, is_broken=True, max_actions=4), library)


def test_the_page_stands_alone_and_is_escaped(refinement: Refinement) -> None:
    page = refinement_page(refinement)
    reader = Reader(page)
    assert not {"script", "img", "link", "iframe", "b", "i", "u"} & set(reader.seen)
    assert reader.links == ["#main"]  # nothing from outside
    assert "url(" not in page
    assert "@import" not in page


def test_everything_is_on_it(refinement: Refinement) -> None:
    text = Reader(refinement_page(refinement)).text
    for draft in refinement.drafts:
        assert draft.text in text
        assert not draft.why or draft.why in text
    for action in refinement.actions:
        assert action.text.partition(" : ")[0] in text
        assert action.text.partition(" : ")[2] in text
    for problem in (*refinement.unread, "the line is dead", "failed", "Beside <theirs>"):
        assert problem in text
    assert "FIND_OTHER" in text


def test_a_page_without_rounds_and_comparison_says_so() -> None:
    text = Reader(refinement_page(refined(PLAIN))).text
    assert "None: the library fitted" in text
    assert "Beside" not in text
    assert "Could not be read" not in text
