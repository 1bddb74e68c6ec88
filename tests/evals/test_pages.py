"""Pages of evaluations and refinements: what is on them, escaped, and complete."""

from __future__ import annotations

import asyncio
from html.parser import HTMLParser
from typing import Any

import pytest

from pearl.errors import ModelError
from pearl.evals.log import EvalLog
from pearl.evals.pages import MAX_RECORDS, heading, page, refinement_page, series_of, subsets_of
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.prices import Price
from pearl.mining.refinement import Refinement
from pearl.mining.refining import RefineSettings, read_drafts, refine_actions
from tests.evals.evallogs import header, log, record
from tests.mining.drafts import PLAIN, mined, pairs, row

VOID = {"meta", "br", "wbr"}


class Reader(HTMLParser):
    """Text, tags and ids of a page; every tag must be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name == "id":
                self.ids.append(str(value))
            if name in ("src", "href", "xlink:href"):
                self.links.append(str(value))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] != "style":
            self.text += data


def read_page(*logs: EvalLog) -> Reader:
    return Reader(page(logs))


def test_a_page_has_no_inline_styles_and_needs_no_unsafe_policy() -> None:
    seen = page([log(6)])
    assert "unsafe" not in seen
    assert 'style="' not in seen
    assert seen.count("<style") == 1


def of(*records: Any, **fields: Any) -> EvalLog:
    return EvalLog(header(**fields), records)


def test_a_page_shows_table_facts_and_records() -> None:
    seen = read_page(log(3), log(3, n_actions=3))
    assert len(seen.ids) == len(set(seen.ids))
    assert {link.removeprefix("#") for link in seen.links} <= set(seen.ids)  # nothing from outside
    assert seen.tags.count("details") == 12
    for text in (
        "all samples",
        "easy",
        "hard",
        "pearl, 3 actions",
        "quality-dev",
        "input 2, output 8",
    ):
        assert text in seen.text


def test_a_record_tells_everything() -> None:
    seen = read_page(
        of(
            record(
                choice=2, score=0.0, status="fell_back", plan="1. ans = X(CTX) : y", seed=3,
                subsets=("hard",), cost_usd=0.5, reference="rot",
            ),
            record("q2", status="failed", choice=None, score=0.0, error="the model gave up"),
            record("q3", choice=None, score=0.0, reply="perhaps"),
        )
    )  # fmt: skip
    for text in (
        "wrong q1, seed 3: Why did Nils sell the boat?", "The hull was rotten. ← gold",
        "Nobody asked. ← chosen", "1. ans = X(CTX) : y", "answered without a valid plan",
        "Reference rot", "$0.5000", "failed q2", "Error the model gave up",
        "No option recognised in the reply",
    ):  # fmt: skip
        assert text in seen.text, text


def test_hostile_text_stays_text() -> None:
    evil = "<script>alert(1)</script><img src=x onerror=y>\"'&amp;"
    seen = read_page(
        of(
            record(
                evil, evil, question=evil, document=evil, subsets=(evil,), options=(evil, evil),
                answer=evil, reply=evil, error=evil, plan=evil, reference=evil,
            ),
            methods=(evil,), data=evil, model=evil, library=evil,
        )
    )  # fmt: skip
    assert "script" not in seen.tags
    assert "img" not in seen.tags
    assert evil in seen.text


@pytest.mark.parametrize(("n", "listed"), [(MAX_RECORDS, MAX_RECORDS), (MAX_RECORDS + 1, 3)])
def test_of_a_large_log_only_what_went_wrong_is_listed(n: int, listed: int) -> None:
    bad = [record("b1", score=0.0), record("b2", status="failed"), record("b3", score=0.5)]
    seen = read_page(of(*bad, *(record(str(i)) for i in range(n - len(bad)))))
    assert seen.tags.count("details") == listed
    assert ("only those that are wrong or failed are listed: 3 of 3" in seen.text) == (listed == 3)


def test_methods_are_compared_in_pairs() -> None:
    made = log(30, methods=("direct", "pearl", "retrieve"))
    html = page([made])
    assert html.count("<td>direct − ") == 2
    assert "McNemar p" in html
    alone = log(3, methods=("pearl",))
    assert "Paired differences" not in page([alone])


def test_subsets_without_records_of_a_method_have_no_cell() -> None:
    records = (record("a", subsets=("hard",)), record("b", "direct", subsets=("easy",)))
    rows = series_of([EvalLog(header(), records)])
    assert [set(row.cells) for row in rows] == [{None, "easy"}, {None, "hard"}]
    assert subsets_of(rows) == ("easy", "hard")


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ([{}], ["pearl"]),
        ([{"n_actions": 9, "library": "a"}, {}], ["pearl, 9 actions", "pearl, 80 actions"]),
        ([{"model": "m"}, {"model": "n"}], ["pearl, m", "pearl, n"]),
        ([{"price": Price(input_usd=1, output_usd=1)}, {}], ["pearl, log 1", "pearl, log 2"]),
        ([{"data": "x"}, {}, {}],
         ["pearl, x, log 1", "pearl, quality-dev, log 2", "pearl, quality-dev, log 3"]),
    ],
)  # fmt: skip
def test_labels_name_the_differences_between_logs(
    fields: list[dict[str, object]], labels: list[str]
) -> None:
    logs = [EvalLog(header(**each), (record(),)) for each in fields]
    assert [row.label for row in series_of(logs)] == labels


def test_the_heading_says_data_model_and_n() -> None:
    rows = series_of([log(6, seeds=(0, 1)), log(4, model="other", seeds=(0, 1))])
    assert heading(rows) == "quality-dev · openai:gpt-x, other · n = 4 to 6, 2 seeds"


EVIL = "FIND_EVIL(CTX) : Find <script>alert('x')</script> & \"more\""


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
    return refined(text, is_broken=True, max_actions=4)


def test_the_page_stands_alone_and_is_escaped(refinement: Refinement) -> None:
    page = refinement_page(refinement)
    reader = Reader(page)
    assert not {"script", "img", "link", "iframe", "b", "i", "u"} & set(reader.tags)
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
    for problem in (*refinement.unread, "the line is dead", "failed"):
        assert problem in text
