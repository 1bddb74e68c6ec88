"""FIND_FIGURE and FIND_PERIODS by rule: the cell that is named, or none."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import load_library
from pearl.documents.document import Document
from pearl.documents.table import find_tables
from pearl.documents.table.apart import TablesApart
from pearl.documents.table.quantities import read_quantity
from pearl.embedded import ExtractiveModel
from pearl.embedded.figures import find_figure, find_periods, read_period_words
from pearl.llm import ActionTask, Request, Task

PAGE = """\
The mills sold more paper. Rent was $ 3.1 million , $ 2.8 million and $ 2.5 million in 2010 , 2009 and 2008 .
The company expects capital spending of $ 9 million .
The following table has the results of the paper segment ( in millions ) :

| item | december 31 2010 | 2009 | % change |
| --- | --- | --- | --- |
| net sales | $ 5,735 | $ 5,180 | 10.7% |
| costs and expenses : | | | |
| wages | 1,200 | (1,100) | 9.1% |
| energy | 310 | 300 | 3.3% |
| operating profit | 640 | — | |
| income before taxes | 610 | 590 | 3.4% |
| income taxes | 200 | 190 | 5.3% |
"""


def figure(what: str, when: str = "2010", page: str = PAGE) -> str:
    return find_figure(page, what, when).partition("\n")[0]


@pytest.mark.parametrize(
    ("what", "when", "is_"),
    [
        ("net sales", "2010", "$ 5,735 million"),
        ("net sales", "fiscal 2009", "$ 5,180 million"),
        ("net sales", "december 31, 2010", "$ 5,735 million"),
        ("the revenues of paper", "2009", "$ 5,180 million"),
        ("operating income", "2010", "640 million"),
        ("income taxes", "2009", "190 million"),
        ("income before taxes", "2009", "590 million"),
        ("the % change in net sales", "", "10.7%"),
    ],
)
def test_the_matching_cell_is_found(what: str, when: str, is_: str) -> None:
    assert figure(what, when) == is_


@pytest.mark.parametrize(
    ("what", "when"),
    [
        ("net sales", "2008"),  # no column of that year
        ("net sales", "june 2010"),  # the column is that of another month
        ("net sales", "first quarter of 2010"),  # the column is that of the whole year
        ("operating profit", "2009"),  # a dash
        ("taxes", "2010"),  # two rows fit
        ("net sales excluding paper", "2010"),
        ("wages of the glass works", "2010"),
        ("income after taxes", "2010"),
        ("rent", "2007"),
        ("capital spending", "2010"),  # the sentence has no year
        ("", "2010"),
        ("the amount", "2010"),
    ],
)
def test_missing_and_ambiguous_figures_are_not_found(what: str, when: str) -> None:
    assert find_figure(PAGE, what, when).startswith("Nothing found: ")


def test_the_candidates_of_an_ambiguous_figure_are_listed() -> None:
    twice = PAGE.replace("| energy |", "| net sales |")
    reply = find_figure(twice, "net sales", "2009")
    assert reply.startswith("Nothing found: several figures may be meant by net sales, 2009: ")
    assert "row 'net sales', column '2009': $ 5,180 million" in reply
    assert "300 million" in reply


def test_a_year_may_be_a_row_and_the_thing_a_column() -> None:
    page = "| item | rent | leases |\n|---|---|---|\n| 2010 | 31 | 7 |\n| 2011 | 28 | 8 |\n| thereafter | 5 | 9 |"
    assert figure("rent", "2011", page) == "28"
    assert figure("leases", "2010", page) == "7"
    assert figure("rent", "2012", page).startswith("Nothing")


def test_the_text_above_a_table_names_rows_that_are_periods() -> None:
    page = (
        "The maturities of the bonds are as follows :\n\n| item | amount |\n|---|---|\n"
        "| 2014 | 385 |\n| 2015 | 1,110 |"
    )
    assert figure("maturities of bonds", "2015", page) == "1,110"
    assert figure("maturities of leases", "2015", page).startswith("Nothing")


def test_a_table_shown_apart_is_named_by_the_text_at_its_place() -> None:
    page = (
        "Of the mills. "
        + "They were sold in the spring , and nobody answered the board. " * 4
        + "The maturities of the bonds are as follows :\n\n| item | amount |\n|---|---|\n| 2014 | 385 |\n\nThe mills were sold."
    )
    apart = TablesApart(Document(page)).whole
    assert apart != page
    assert figure("maturities of bonds", "2014", page) == "385"
    assert figure("maturities of bonds", "2014", apart) == "385"
    assert figure("mills", "2014", apart).startswith("Nothing")


@pytest.mark.parametrize(("when", "is_"), [("beginning", "30"), ("end", "36"), ("", "36")])
def test_balances_are_those_at_the_end(when: str, is_: str) -> None:
    page = (
        "Reserves for claims :\n\n| item | 2010 |\n|---|---|\n| balance at beginning of year | 30 |\n"
        "| payments | -4 |\n| balance at end of year | 36 |"
    )
    assert figure(f"reserves for claims {when}", "2010", page) == is_


def test_periods_without_a_figure_are_left_out() -> None:
    assert find_periods(PAGE, "net sales").splitlines()[:2] == ["- 2010", "- 2009"]
    assert find_periods(PAGE, "operating profit").splitlines()[0] == "- 2010"
    assert find_periods(PAGE, "goodwill").startswith("Nothing found")


def task(name: str, document: str, *arguments: str) -> ActionTask:
    names = ("X", "PERIOD")[: len(arguments)]
    return ActionTask(
        "a", load_library("finance")[name], tuple(zip(names, arguments, strict=True)), document
    )


def replied(model: ExtractiveModel, task: Task) -> str:
    return asyncio.run(model.complete(Request((), task))).text


@pytest.mark.parametrize(
    ("others", "is_"),
    [
        ((), "$ 5,180 million"),
        (("Nothing about it.",), "$ 5,180 million"),
        ((PAGE.replace("5,180", "5,181"),), "Nothing found: several figures may be meant"),
    ],
)
def test_parts_of_a_document_give_one_figure_or_none(others: tuple[str, ...], is_: str) -> None:
    model = ExtractiveModel()
    steps = [task("FIND_FIGURE", part, "net sales", "2009") for part in (PAGE, *others)]
    replies = tuple(replied(model, step) for step in steps)
    assert replied(model, replace(steps[0], parts=replies)).startswith(is_)


def test_periods_of_parts_are_merged() -> None:
    model = ExtractiveModel()
    later = PAGE.replace("2010", "2012").replace("2009", "2011")
    steps = [task("FIND_PERIODS", part, "net sales") for part in (PAGE, later)]
    merged = replied(model, replace(steps[0], parts=tuple(replied(model, s) for s in steps)))
    said = merged.splitlines()
    assert said[:5] == ["- 2012", "- 2011", "- 2010", "- 2009", ""]
    assert said[5].startswith("> | net sales")


@given(st.text(max_size=60), st.text(max_size=40), st.text(max_size=20))
def test_any_text_gives_a_reply(text: str, what: str, when: str) -> None:
    page = f"{text}\n\n| {what} | 2009 |\n|---|---|\n| {text} | 5 |"
    assert find_figure(page, what, when)
    assert find_periods(page, what)
    read_period_words(text)


@given(
    st.integers(-(10**9), 10**9),
    st.sampled_from(["{:,}", "$ {:,}", "{}%", "{:.2f}", "({})"]),
    st.sampled_from(["", "in millions :", "in thousands of dollars :"]),
)
def test_a_figure_is_read_back_as_the_cell_was(number: int, form: str, above: str) -> None:
    cell = form.format(number)
    page = f"{above}\n\n| item | 2009 |\n|---|---|\n| sales | {cell} |\n| costs | 1.5 |"
    (table,) = find_tables(Document(page))
    quantity = table.cell(1, "2009").quantity
    said = figure("sales", "2009", page)
    if quantity is None:
        assert said.startswith("Nothing")
    else:
        assert (again := read_quantity(said, is_point_decimal=True)) is not None
        assert again.amount == quantity.amount


def test_time_does_not_explode_with_long_texts() -> None:
    rows = "\n".join(f"| item {i} | {i} |" for i in range(2_000))
    page = f"{'$ 5 , ' * 5_000} in 2009\n\n| item | 2009 |\n|---|---|\n{rows}\n"
    assert figure("item 77", "2009", page) == "77"
