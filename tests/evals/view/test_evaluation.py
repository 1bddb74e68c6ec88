"""The page of an evaluation: on its own, escaped, every record or the wrong ones."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from pearl.evals.log import EvalLog
from pearl.evals.view.evaluation import MAX_RECORDS, page
from pearl.evals.view.pictures import draw
from pearl.evals.view.summary import series_of
from tests.evals.evallogs import header, log, record

VOID = {"meta", "br"}


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


def read(*logs: EvalLog, pictures: bool = False) -> Reader:
    rows = series_of(logs)
    return Reader(page(rows, [each.header for each in logs], draw(rows)[0] if pictures else []))


def test_the_policy_of_a_page_allows_all_that_is_on_it() -> None:
    rows = series_of([log(6)])
    seen = page(rows, [log(6).header], draw(rows)[0])
    assert "unsafe" not in seen
    assert 'style="' not in seen  # pictures come with such
    assert seen.count("<style") == 1


def of(*records: Any, **fields: Any) -> EvalLog:
    return EvalLog(header(**fields), records)


def test_a_page_shows_pictures_table_facts_and_records() -> None:
    seen = read(log(6), log(6, n_actions=3), pictures=True)
    assert seen.tags.count("figure") == seen.tags.count("svg") == 4
    assert len(seen.ids) == len(set(seen.ids))
    assert {link.removeprefix("#") for link in seen.links} <= set(seen.ids)  # nothing from outside
    assert seen.tags.count("details") == 24
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
    seen = read(
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
    seen = read(
        of(
            record(
                evil, evil, question=evil, document=evil, subsets=(evil,), options=(evil, evil),
                answer=evil, reply=evil, error=evil, plan=evil, reference=evil,
            ),
            methods=(evil,), data=evil, model=evil, library=evil,
        ),
        pictures=True,
    )  # fmt: skip
    assert "script" not in seen.tags
    assert "img" not in seen.tags
    assert evil in seen.text


@pytest.mark.parametrize(("n", "listed"), [(MAX_RECORDS, MAX_RECORDS), (MAX_RECORDS + 1, 3)])
def test_of_a_large_log_only_what_went_wrong_is_listed(n: int, listed: int) -> None:
    bad = [record("b1", score=0.0), record("b2", status="failed"), record("b3", score=0.5)]
    seen = read(of(*bad, *(record(str(i)) for i in range(n - len(bad)))))
    assert seen.tags.count("details") == listed
    assert ("only those that are wrong or failed are listed: 3 of 3" in seen.text) == (listed == 3)


def test_of_many_wrong_ones_the_first_are_listed() -> None:
    seen = read(of(*(record(str(i), score=0.0) for i in range(MAX_RECORDS + 100))))
    assert seen.tags.count("details") == MAX_RECORDS
    assert "500 of 600" in seen.text


def test_without_records_or_prices() -> None:
    assert "No records." in read(of(price=None)).text
    assert "–" in read(of(record(), price=None)).text


def test_methods_are_compared_in_pairs() -> None:
    made = log(30, methods=("direct", "pearl", "retrieve"))
    html = page(series_of([made]), [made.header], [])
    assert html.count("<td>direct − ") == 2
    assert "McNemar p" in html
    alone = log(3, methods=("pearl",))
    assert "Paired differences" not in page(series_of([alone]), [alone.header], [])
