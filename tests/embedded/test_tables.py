"""The embedded default asks tables by rule: what it is not sure of is undecided, never a confident wrong row."""

from __future__ import annotations

import asyncio

import pytest

from pearl import Pearl
from pearl.documents.document import Document, from_text
from pearl.embedded import write_plan

STAFF = from_text(
    """Name,Department,City,Salary,Hired,Skills,Email,Notes
Ada Berg,Sales,Oslo,52000,2015-03-01,English; French,ada@x.example,Works part time. Has a company car.
Nils Lund,Engineering,Bergen,71000,2018-07-15,Python; SQL,nils@x.example,On parental leave.
Eva Moe,Engineering,Oslo,69000,2020-01-10,Python; Rust,,Has no company car.
Ole Dahl,Marketing,Trondheim,48000,2012-11-30,English,ole@x.example,
Kari Vik,Sales,Bergen,55000,2019-05-05,German; English,kari@x.example,Speaks at conferences.
Per Oslo,Engineering,Trondheim,83000,2010-09-01,SQL; Rust,per@x.example,Team lead of Oslo projects.
Ida Haug,Human Resources,Oslo,50000,2021-02-02,English; Norwegian,ida@x.example,Works part time.
""",
    "employees.csv",
)
INCOME = from_text(
    """Item,2010,2011,2012
Revenue,"1,200","1,350","1,500"
Cost of sales,(700),(800),(850)
Gross profit,500,550,650
""",
    "income.csv",
)
SHOPS = from_text(
    """Shop,Kind,Town,Hours
Haifa Bakery,Bakery,Lod,Sun-Thu 08:00-16:00
Lod Bakery,Bakery,Haifa,Sun-Thu 08:00-18:00; Fri 08:00-12:00
Gil,Florist,Haifa,Fri 09:00-14:00
""",
    "shops.csv",
)
ORDERS = from_text(
    """Order,Customer,Product,Quantity,Price,Ordered,Status,Country
1001,Acme,Bolt,100,$20.50,2023-01-05,shipped,Norway
1002,Globex,Nut,250,$12.00,2023-02-11,pending,Sweden
1003,Acme,Washer,40,$3.75,2023-02-20,cancelled,Norway
1004,Initech,Bolt,500,$95.00,2023-03-02,shipped,Germany
""",
    "orders.csv",
)
PATIENTS = from_text(
    "id,age,complaint\np01,61,chest pain\np02,35,sprained ankle\np03,72,headache\n", "patients.csv"
)
BOOKS = from_text(
    "Title,Author,On loan\nDune,Herbert,yes\nEmma,Austen,no\nIt,King,yes\n", "books.csv"
)
FILMS = from_text(
    """Title,Director,Year,Genre,Rating,Minutes,Cast
The Mill,Ada Berg,1999,Drama,7.1,124,Nils Lund; Eva Moe
Night Train,Ole Dahl,2004,Thriller; Crime,8.3,98,Eva Moe; Kari Vik
Ada,Per Lie,2010,Documentary,6.9,75,Ada Berg
Long River,Ada Berg,2010,Drama; Romance,7.8,141,Kari Vik; Ida Haug
""",
    "films.csv",
)


def ask(question: str, document: Document) -> tuple[str, str, list[str]]:
    """The status and the text of an answer, and the first cells of its rows."""
    answer = asyncio.run(Pearl().ask(question, document))
    rows = [next(iter(row.fields.values())) or "" for row in answer.rows]
    return answer.status, answer.text, rows


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("Who works in Sales?", ["Ada Berg", "Kari Vik"]),
        ("Who knows Python and SQL?", ["Nils Lund"]),
        ("Who works in Oslo or Bergen?", ["Ada Berg", "Nils Lund", "Eva Moe", "Kari Vik", "Ida Haug"]),
        ("Who works part time?", ["Ada Berg", "Ida Haug"]),
        ("Which employees are not in Oslo?", ["Nils Lund", "Ole Dahl", "Kari Vik", "Per Oslo"]),
        ("Who earns more than 60,000?", ["Nils Lund", "Eva Moe", "Per Oslo"]),
        ("Who was hired after 2019?", ["Eva Moe", "Ida Haug"]),
        ("Who was hired between 2018 and 2019?", ["Nils Lund", "Kari Vik"]),
        ("Who has no email?", ["Eva Moe"]),
        ("Which 2 employees have the lowest salary?", ["Ole Dahl", "Ida Haug"]),
        ("Which employee in Engineering earns least?", ["Eva Moe"]),
        ("What is the email of Nils Lund?", ["Nils Lund"]),
        ("Does Eva Moe have a company car?", ["Eva Moe"]),
        ("Please list all employees in Bergen", ["Nils Lund", "Kari Vik"]),
    ],
)  # fmt: skip
def test_rows(question: str, rows: list[str]) -> None:
    assert ask(question, STAFF)[::2] == ("answered", rows)


@pytest.mark.parametrize(
    ("question", "document", "rows"),
    [
        ("Which orders are cancelled or pending?", ORDERS, ["1002", "1003"]),
        ("What is the status of order 1003?", ORDERS, ["1003"]),
        ("Which orders cost more than $10?", ORDERS, ["1001", "1002", "1004"]),
        ("Which orders were ordered in February 2023?", ORDERS, ["1002", "1003"]),
        ("Which orders have quantity between 50 and 300?", ORDERS, ["1001", "1002"]),
        ("Which films were made in 2010?", FILMS, ["Ada", "Long River"]),
        ("Which films from before 2005 are thrillers?", FILMS, ["Night Train"]),
        ("Which films are longer than 100 minutes?", FILMS, ["The Mill", "Long River"]),
        ("Which films are not dramas?", FILMS, ["Night Train", "Ada"]),
        ("What year was Long River made?", FILMS, ["Long River"]),
    ],
)
def test_rows_by_numbers_and_years(question: str, document: Document, rows: list[str]) -> None:
    assert ask(question, document)[::2] == ("answered", rows)


def test_rows_with_a_number_as_name_are_shown_whole() -> None:
    assert "Globex" in ask("Who ordered nuts?", ORDERS)[1]


@pytest.mark.parametrize(
    ("question", "document", "text"),
    [
        ("How many employees are in Sales?", STAFF, "2"),
        ("How many departments are there?", STAFF, "4"),
        ("How many patients are older than 60?", PATIENTS, "2"),
        ("How many patients have an age older than 70?", PATIENTS, "1"),
        ("How many patients are younger than 61?", PATIENTS, "1"),
        ("How many films are older than 2005?", FILMS, "2"),
        ("What is the average salary in Sales?", STAFF, "53500"),
        ("What is the total salary of Sales?", STAFF, "107000"),
        ("What is the highest salary?", STAFF, "83000"),
        ("What was revenue in 2012?", INCOME, "1,500"),
        ("What is the cost of sales for 2010 and 2011?", INCOME, "(700)"),
        ("Which department has the highest average salary?", STAFF, "74333"),
        ("How many employees per city?", STAFF, "Oslo | 3"),
        ("How many employees were hired each year?", STAFF, "2015 | 1"),
    ],
)
def test_figures(question: str, document: Document, text: str) -> None:
    status, said, _ = ask(question, document)
    assert status == "answered"
    assert text in said


@pytest.mark.parametrize(
    ("question", "document", "why"),
    [
        ("Who lives in Paris?", STAFF, "'Paris'"),
        ("Who is the best employee?", STAFF, "'best'"),
        ("Who was hired before Nils Lund?", STAFF, "'before'"),
        ("Who earns more than Nils Lund?", STAFF, "'more'"),
        ("Who was fired in 2019?", STAFF, "'in 2019'"),
        ("Who has a company car?", STAFF, "negate 'company car'"),
        ("Who is on leave?", STAFF, "some cells of Notes contain"),
        ("Which employees are not in Oslo or Bergen?", STAFF, "'or'"),
        ("Who in Oslo does not know Python?", STAFF, "'not'"),
        ("What is the second highest salary?", STAFF, "'second'"),
        ("What was revenue in 2013?", INCOME, "'in 2013'"),
        ("What was the change in revenue from 2011 to 2012?", INCOME, "'change'"),
        ("What was EBITDA in 2012?", INCOME, "'EBITDA'"),
        ("How many bolts did Initech order?", ORDERS, "rows or their Quantity"),
        ("Which orders are above 10 and from Sweden?", ORDERS, "'above 10'"),
        ("Which films did Ada Berg direct?", FILMS, "Director: Ada Berg or Cast: Ada Berg"),
        ("Which genre has the highest average rating?", FILMS, "Genre list several values"),
        ("Which films won an Oscar?", FILMS, "'Oscar'"),
        ("Which books are on loan?", BOOKS, "which value On loan must have"),
        ("List all books on loan", BOOKS, "which value On loan must have"),
        ("Which books by King are still on loan?", BOOKS, "'still'"),
        ("How many books on loan are there for each author?", BOOKS, "which value On loan must have"),
        ("List films by rating", FILMS, "'by'"),
        ("Which shops are open now?", SHOPS, "'now'"),
        ("Which shops are open on Friday afternoon?", SHOPS, "does not say which hours"),
        ("Which haifa bakery is open on Sunday?", SHOPS, "'haifa bakery' may mean Shop: Haifa Bakery or"),
    ],
)  # fmt: skip
def test_an_ambiguous_question_is_undecided_with_the_reason(
    question: str, document: Document, why: str
) -> None:
    status, text, rows = ask(question, document)
    assert (status, rows) == ("undecided", [])
    assert why in text


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("Which shops are open on Friday at 11:30?", ["Lod Bakery", "Gil"]),
        ("Which bakeries are closed on Friday?", ["Haifa Bakery"]),
        ("What are the hours of the Haifa Bakery in Lod?", ["Haifa Bakery"]),
        ("Which bakeries are in Haifa?", ["Lod Bakery"]),
    ],
)
def test_opening_hours_and_names_that_contain_towns(question: str, rows: list[str]) -> None:
    assert ask(question, SHOPS)[::2] == ("answered", rows)


def test_a_question_of_a_table_is_one_lookup() -> None:
    library = Pearl().material.actions_for("table")
    question = "How many employees are in Sales and who earns most?"
    assert f'LOOKUP(CTX, "{question}")' in write_plan(question, library, "table")
    assert "LOOKUP" not in write_plan(question, library)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the total of Units?", "9"),
        ("What is the sum of Units?", "9"),
        ("What is the average Unit price?", "2"),
        ("Which item has the most Units?", "nut"),
        ("Which unit is the most expensive?", "undecided"),  # neither column is named
    ],
)
def test_the_name_of_a_column_is_not_a_part_of_another(question: str, answer: str) -> None:
    table = from_text("Item,Units,Unit price\nbolt,4,2.50\nnut,5,1.50\n", "parts.csv")
    assert answer in asyncio.run(Pearl().ask(question, table)).text
