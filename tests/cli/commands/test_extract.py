"""`pearl extract`: a schema and documents → a table, over a server on this machine."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import openpyxl
import pytest

from tests.cli.terminal import Terminal, rows_of
from tests.models import verdicts
from tests.root import ROOT
from tests.server import Seen, Server

RESULTS = json.loads((ROOT / "docs/results.schema.json").read_text("utf-8"))
SCHEMA = "patient: str, age: int?, drugs: [{name: str, dose_mg: number}]"
LETTERS = {
    "a.txt": "Maria Keller is 54 years old. She takes ibuprofen 0.4 g and aspirin.",
    "b.txt": "Georg Brandt, 61 years. This 67-year-old man takes no medicine.",
    "c.txt": "Ngozi Okafor came today. She takes nothing.",
}


def value(value: object, quote: str) -> dict[str, object]:
    return {"value": value, "quote": quote}


REPLIES: dict[str, dict[str, Any]] = {
    "Keller": {
        "patient": value("Maria Keller", "Maria Keller is 54"), "age": value(54, "is 54 years old"),
        "drugs": [
            {"name": value("ibuprofen", "takes ibuprofen 0.4 g"), "dose_mg": value(400, "takes ibuprofen 0.4 g")},
            {"name": value("aspirin", "and aspirin"), "dose_mg": value(75, "and aspirin")},
        ],
    },
    "Brandt": {
        "patient": value("Georg Brandt", "Georg Brandt, 61 years"),
        "age": [value(61, "Georg Brandt, 61 years"), value(67, "This 67-year-old man")], "drugs": [],
    },
    "Okafor": {"patient": value("Ngozi Okafor", "Ngozi Okafor came today"), "age": None, "drugs": []},
}  # fmt: skip


def checked(seen: Seen) -> str:
    """Everything is so but what is said of ibuprofen."""
    claims = re.findall(r"<claim \d+>(.*?)</claim", seen.prompt, re.DOTALL)
    return verdicts(*("contradicted" if "ibuprofen" in each else "supported" for each in claims))


@pytest.fixture
def model(pearl: Terminal, openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Three letters in the folder, and a model that reads them."""
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("PEARL_MODEL", "openai:m")
    monkeypatch.setenv("PEARL_CHECK", "off")
    openai_server.on("<claim 1>", checked)
    for name, text in LETTERS.items():
        Path(name).write_text(text, encoding="utf-8")
    for name, reply in REPLIES.items():
        openai_server.on(name, json.dumps(reply))
    return openai_server


def table(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(name).read_text("utf-8").splitlines()))


def test_tables_and_pages_that_runs_wrote_are_no_documents_of_their_folder(
    pearl: Terminal, model: Server
) -> None:
    Path("letters").mkdir()
    for name in LETTERS:
        Path(name).rename(f"letters/{name}")
    for out in ("letters/o.xlsx", "letters/o.html", "letters/o.html", "letters/o.jsonl"):
        pearl("extract", SCHEMA, "letters", "-o", out, code=1)
    assert "left out: 2 files that runs wrote" in pearl.talk
    assert [row["id"] for row in rows_of("letters/o.jsonl")] == [
        f"letters/{name}" for name in LETTERS
    ]
    assert len(model.requests) == 3
    pearl("extract", SCHEMA, "letters/o.html", "-o", "page.jsonl", code=1)
    assert [row["id"] for row in rows_of("page.jsonl")] == ["letters/o.html"]
    for name in LETTERS:
        Path("letters", name).unlink()
    pearl("extract", SCHEMA, "letters", "-o", "none.csv", code=3)
    assert "the folder has no documents" in pearl.talk
    assert not Path("none.csv").exists()


def test_a_run_is_resumed_and_exported(pearl: Terminal, model: Server) -> None:
    names = list(LETTERS)
    pearl("extract", SCHEMA, *names, "-o", "out.csv", "--max-calls", "1", code=7)
    assert sorted(row["status"] for row in table("out.csv")) == [
        "degraded",
        "unfinished",
        "unfinished",
    ]
    [run] = json.loads(pearl("runs", "list", "--json"))
    pearl("runs", "resume", run["id"], "--max-calls", "9", code=1)
    assert len(table("out.csv")) == 3
    pearl("extract", SCHEMA, *names, "-o", "out.csv", code=1)
    assert len(model.requests) == 3
    assert "3 of them from earlier runs" in pearl.talk
    pearl("runs", "export", run["id"], "-o", "again.csv")
    assert Path("again.csv").read_bytes() == Path("out.csv").read_bytes()
    assert Path("again.drugs.csv").read_bytes() == Path("out.drugs.csv").read_bytes()
    pearl("extract", SCHEMA, *names, "-o", "out.xlsx", code=1)
    book = openpyxl.load_workbook("out.xlsx")
    assert book.sheetnames == ["documents", "drugs", "Sources", "README"]
    assert book["documents"]["C2"].hyperlink.target == "a.txt"  # there is no page
    about = dict(book["README"].values)
    assert (about["model"], about["run"]) == ("openai:m", run["id"])
    assert about["plan"].endswith("Extract patient, age and drugs")
    assert about["rows"] == "2 degraded, 1 answered"
    assert about["cost"].startswith("price unknown; 3")
    pearl("extract", SCHEMA, *names, "-o", "out.jsonl", code=1)
    assert rows_of("out.jsonl")[0]["record"]["age"]["value"] == 54
    for row in rows_of("out.jsonl"):
        jsonschema.validate(row, RESULTS)
    pearl("extract", SCHEMA, *names, "-o", "out.html", code=1)
    assert "Maria Keller" in Path("out.html").read_text("utf-8")
    pearl("extract", SCHEMA, *names, "-o", "out.xlsx", "--price", "input=2,output=2", code=1)
    pearl("runs", "export", run["id"], "-o", "again.xlsx")
    Path("again.html").write_text("a page of another run", "utf-8")
    pearl("runs", "export", run["id"], "-o", "again.xlsx", "--force")
    places = [(name, openpyxl.load_workbook(name)) for name in ("out.xlsx", "again.xlsx")]
    linked = {name: book["documents"]["C2"].hyperlink for name, book in places}
    assert (linked["out.xlsx"].target, linked["out.xlsx"].location) == ("out.html", "r1f1")
    assert 'id="r1f1"' in Path("out.html").read_text("utf-8")
    assert linked["again.xlsx"].target == "a.txt"
    assert dict(places[0][1]["README"].values)["cost"].startswith("$0.0")
    assert len(model.requests) == 3


APP = """
from decimal import Decimal
from pydantic import BaseModel, Field, field_validator

class Item(BaseModel):
    name: str
    price: Decimal | None = None

class Bill(BaseModel):
    number: str = Field(alias="orderNumber")
    items: list[Item]

    @field_validator("number")
    @classmethod
    def known(cls, value):
        assert value[0] == "A", "no such order"
        return value
"""
BILLS = {"d.txt": "Bill. Order A1: bolt at 0.10.", "e.txt": "Note. Order B2: nut at 0.20 or 0.30."}
BILL_REPLIES: dict[str, dict[str, Any]] = {
    kind: {
        "orderNumber": value(number, f"Order {number}"),
        "items": [{"name": value(item, quote), "price": value(price, quote)}],
    }
    for kind, number, item, price, quote in (
        ("Bill", "A1", "bolt", "0.10", "bolt at 0.10"), ("Note", "B2", "nut", "0.25", "nut at 0.20"),
    )
}  # fmt: skip


@pytest.fixture
def bills(model: Server) -> Server:
    """Two bills in the folder, and the model of the user."""
    Path("app.py").write_text(APP, "utf-8")
    for name, text in BILLS.items():
        Path(name).write_text(text, "utf-8")
    for name, reply in BILL_REPLIES.items():
        model.on(name, json.dumps(reply))
    return model


TYPED = ("value", "partial", "undecided", "reasons")


def typed(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in TYPED if name in row}


def test_rows_have_the_nested_value_of_the_schema_and_are_resumed_without_its_code(
    pearl: Terminal, bills: Server
) -> None:
    pearl("extract", "app:Bill", *BILLS, "-o", "out.jsonl", code=1)
    d, e = rows_of("out.jsonl")
    assert d["value"] == {"orderNumber": "A1", "items": [{"name": "bolt", "price": "0.10"}]}
    assert e["value"] is None
    assert e["partial"]["items"] == [{"name": "nut", "price": None}]
    assert e["undecided"] == ["items[0].price", "orderNumber"]
    assert any("no such order" in each for each in e["reasons"])
    for row in (d, e):
        jsonschema.validate(row, RESULTS)
    shown = [json.loads(line) for line in pearl("extract", "app:Bill", *BILLS, "--json", code=1).splitlines()]  # fmt: skip
    assert list(map(typed, shown)) == [typed(d), typed(e)]
    pearl("extract", "app:Bill", *BILLS, "-o", "more.jsonl", "--fresh", "--max-calls", "1", code=7)
    Path("app.py").write_text("1 / 0", "utf-8")
    run = json.loads(pearl("runs", "list", "--json"))[0]
    pearl("runs", "resume", run["id"], "--max-calls", "9", code=1)
    again, other = rows_of("more.jsonl")
    assert again["value"] == d["value"]
    assert other["undecided"] == ["items[0].price"]  # validators are code
    pearl("runs", "export", run["id"], "-o", "again.csv")
    assert table("again.items.csv")[0]["price"] == "0.10"


def test_a_run_of_a_named_store_is_resumed_as_its_message_says(
    pearl: Terminal, model: Server
) -> None:
    pearl(
        "extract", SCHEMA, *LETTERS, "-o", "out.csv", "--store", "kept", "--max-calls", "1", code=7
    )
    words = re.findall(r"pearl (runs resume .*)", pearl.talk)[0].split()
    pearl(*words, "--yes", "--max-calls", "9", code=1)
    assert [row["status"] for row in table("out.csv")] == ["degraded", "degraded", "answered"]


def test_a_run_replaces_what_it_wrote_in_any_order_and_nothing_else(
    pearl: Terminal, model: Server
) -> None:
    words = ("extract", SCHEMA, "a.txt", "b.txt")
    outs = [("-o", "n.csv"), ("-o", "o.html"), ("-o", "n.csv", "--trace", "t.jsonl")]
    for order in ((0, 1, 2), (1, 0)):
        for i in order:
            pearl(*words, *outs[i], code=1)
    assert len(model.requests) == 2
    pearl("extract", SCHEMA, "c.txt", "-o", "other.csv")
    for name in ("other.csv", "other.drugs.csv"):  # of another run
        pearl(*words, "-o", name, code=2)
        assert f"'{name}' exists already" in pearl.talk


def test_a_question_is_answered_in_a_schema(pearl: Terminal, model: Server) -> None:
    question = "Who was seen, and how old is she?"
    row = pearl.json("ask", question, "a.txt", "--schema", "patient: str, age: int?", code=0)
    assert row["question"] == question
    assert row["value"] == {"patient": "Maria Keller", "age": 54}
    jsonschema.validate({"id": "a", **row}, RESULTS)
    assert question in model.requests[0].prompt


def test_the_plan_can_be_kept_and_run(pearl: Terminal, model: Server) -> None:
    Path("fields.plan").write_text(pearl("extract", SCHEMA, "--show-plan"), encoding="utf-8")
    assert not model.requests
    pearl("check", "fields.plan")
    pearl("execute", "fields.plan", "a.txt", "c.txt", "--out", "rows.jsonl", code=1)
    [run] = json.loads(pearl("runs", "list", "--json"))
    pearl("runs", "export", run["id"], "-o", "rows.csv")
    assert [row["age"] for row in table("rows.csv")] == ["54", ""]
