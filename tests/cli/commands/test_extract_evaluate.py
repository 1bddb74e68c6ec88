"""`pearl extract --evaluate`: values against gold values, over a server on this machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.models import verdicts
from tests.server import Seen, Server

SCHEMA = {
    "type": "object",
    "required": ["patient"],
    "properties": {
        "patient": {"type": "string", "evaluation_config": "string_case_insensitive"},
        "complaint": {"type": ["string", "null"], "evaluation_config": "string_semantic"},
        "age": {"type": ["integer", "null"]},
        "drugs": {"type": "array", "items": {
            "type": "object", "properties": {"name": {"type": "string"}, "mg": {"type": "number"}},
        }},
    },
}  # fmt: skip
LETTERS = {
    "a.txt": "Maria Keller is 54 years old. Her head hurts. She takes ibuprofen 400 mg and aspirin 75 mg.",
    "b.txt": "Georg Brandt, 61 years. This 67-year-old man takes no medicine.",
}


def value(value: object, quote: str) -> dict[str, object]:
    return {"value": value, "quote": quote}


REPLIES = {
    "Keller": {
        "patient": value("Maria Keller", "Maria Keller is 54"), "age": value(54, "is 54 years old"),
        "complaint": value("Her head hurts", "Her head hurts"),
        "drugs": [
            {"name": value("ibuprofen", "takes ibuprofen 400 mg"), "mg": value(400, "takes ibuprofen 400 mg")},
            {"name": value("aspirin", "and aspirin 75 mg"), "mg": value(75, "and aspirin 75 mg")},
        ],
    },
    "Brandt": {
        "patient": value("Georg Brandt", "Georg Brandt, 61 years"), "complaint": None,
        "age": [value(61, "Georg Brandt, 61 years"), value(67, "This 67-year-old man")], "drugs": [],
    },
}  # fmt: skip
GOLD = [
    {"document": "a.txt", "value": {
        "patient": "MARIA KELLER", "complaint": "headache", "age": 54,
        "drugs": [{"name": "aspirin", "mg": 75}, {"name": "ibuprofen", "mg": 600}, {"name": "iron"}],
    }},
    {"id": "b", "patient": "Georg Brandt", "age": 61, "complaint": "cough"},
    {"document": "z.txt", "value": {"patient": "?"}},
]  # fmt: skip


def checked(seen: Seen) -> str:
    """A headache is a head that hurts."""
    claims = re.findall(r"<claim \d+>(.*?)</claim", seen.prompt, re.DOTALL)
    return verdicts(*["supported"] * len(claims))


@pytest.fixture
def model(pearl: Terminal, openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("PEARL_MODEL", "openai:m")
    monkeypatch.setenv("COLUMNS", "80")
    openai_server.on("<claim 1>", checked)
    for name, text in LETTERS.items():
        Path(name).write_text(text, encoding="utf-8")
    for name, reply in REPLIES.items():
        openai_server.on(name, json.dumps(reply))
    Path("schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    rows = [*map(json.dumps, GOLD), '{"value": {}}']
    Path("gold.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return openai_server


COUNTS = {
    "patient": {"gold": 2, "right": 2}, "complaint": {"gold": 2, "right": 1, "missing": 1},
    "age": {"gold": 2, "right": 1, "undecided": 1}, "drugs[].name": {"gold": 3, "right": 2, "missing": 1},
    "drugs[].mg": {"gold": 2, "right": 1, "wrong": 1},
}  # fmt: skip
PARTS = ("right", "wrong", "missing", "undecided", "invented", "not_compared")


@pytest.mark.parametrize("out", [[], ["-o", "out.csv"]], ids=["alone", "with rows"])
def test_values_are_compared_by_the_rules_of_the_schema(
    pearl: Terminal, model: Server, out: list[str]
) -> None:
    ran = pearl("extract", "schema.json", "a.txt", "b.txt", "--evaluate", "gold.jsonl", "--json", *out)  # fmt: skip
    data = json.loads(ran)
    for name, expected in COUNTS.items():
        found = data["fields"][name]
        assert {k: found[k] for k in ("gold", *PARTS) if found[k]} == expected, name
    assert data["lists"] == {"drugs[]": {"gold": 3, "predicted": 2, "missing": 1, "extra": 0}}
    assert data["all"]["right_share"]["share"] == pytest.approx(7 / 11)
    wrong = [each["path"] for each in data["differences"] if each["outcome"] == "wrong"]
    assert wrong == ["drugs[0].mg"]
    assert "gold.jsonl:4: no document is named" in pearl.talk
    assert "gold.jsonl:3: no document is called 'z.txt'" in pearl.talk
    assert Path("out.csv").exists() == bool(out)


def test_without_a_checker_meanings_are_not_compared(pearl: Terminal, model: Server) -> None:
    ran = pearl("extract", "schema.json", "a.txt", "--evaluate", "gold.jsonl", "--check", "off", "--json")  # fmt: skip
    found = json.loads(ran)["fields"]["complaint"]
    assert (found["gold"], found["not_compared"], found["right_share"]) == (1, 1, None)


def test_a_failed_document_is_missing(pearl: Terminal, model: Server) -> None:
    rows = [{"document": "a.txt", "age": 54}, {"document": "gone.txt", "age": 3}]
    Path("gold.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    command = ("extract", "age: int?", "a.txt", "gone.txt", "--evaluate", "gold.jsonl")
    data = pearl.json(*command, code=1)
    assert (data["failed"], data["all"]["right"], data["all"]["missing"]) == (1, 1, 1)
    assert "\n2 documents, 1 of them failed.\n" in pearl(*command, code=1)
    Path("gold.jsonl").write_text(json.dumps(rows[1]), encoding="utf-8")
    pearl("extract", "age: int?", "a.txt", "--evaluate", "gold.jsonl", code=3)
    assert "no document has gold values" in pearl.talk
