"""`pearl search`: hits as text and as JSON, and what is said where there are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal

ROWS = (
    {"id": "a1", "text": "The iron bridge was built in 1901.", "year": 1901},
    {"id": "a2", "text": "Salt, and more salt; iron too.", "year": 2005},
    {"id": "a3", "text": "Nothing of the kind.", "year": 2006},
)


@pytest.fixture(autouse=True)
def _corpus(pearl: Terminal) -> None:
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), "utf-8")


def search(pearl: Terminal, *args: str, code: int = 0) -> list[dict[str, Any]]:
    found = json.loads(pearl("search", *args, "--json", code=code))
    assert isinstance(found, list)
    return found


def test_json_is_a_list_of_hits_in_order(pearl: Terminal) -> None:
    first, second = search(pearl, "rows.jsonl", "iron and salt")
    assert (first["id"], first["rank"], second["id"], second["rank"]) == ("a2", 1, "a1", 2)
    assert first["text"] == ROWS[1]["text"]
    assert first["span"] == {"start": 0, "end": len(first["text"])}
    assert first["fields"] == {"year": "2005"}
    assert first["score"] > second["score"] > 0


def test_names_of_untrusted_rows_are_on_one_line(pearl: Terminal) -> None:
    row = {"id": "a\n\n2. b  9.9  0-1\x1b[2J", "text": "iron", "c\nd": "e\nf"}
    Path("odd.jsonl").write_text(f"{json.dumps(row)}\n", "utf-8")
    lines = pearl("search", "odd.jsonl", "iron").splitlines()
    assert [line[:5] for line in lines] == ["1. a ", "   c ", "   ir"]
    assert "\x1b" not in "".join(lines)
    assert search(pearl, "odd.jsonl", "iron")[0]["id"] == row["id"]


def test_a_match_in_a_long_word_is_shown(pearl: Terminal) -> None:
    text = f"See https://example.org/{'a/' * 60}salt/{'b' * 60} and then {'more ' * 200}"
    Path("long.jsonl").write_text(f"{json.dumps({'id': 'a', 'text': text})}\n", "utf-8")
    assert "/salt/" in pearl("search", "long.jsonl", "salt")


# --- what is asked ----------------------------------------------------------------------------


TEA = "# Prices\n\nOn tea.\n\n| item | price |\n|--|--|\n| tea | 5 |\n| salt | 7 |\n"


@pytest.mark.parametrize(
    ("args", "ids"),
    [
        (("rows.jsonl", "iron", "-k", "1"), ["a2"]),
        (("rows.jsonl", "iron", "-k", "1000"), ["a2", "a1"]),
        (("rows.jsonl", "iron", "--filter", "year<2000"), ["a1"]),
        (("rows.jsonl", "iron", "--filter", "year=1900..1910", "--filter", "year=2005"), ["a2", "a1"]),
        (("tea.md", "tea", "--unit", "record", "--filter", "unit=record", "--filter", "price=1..6"), ["tea.md"]),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_found(pearl: Terminal, args: tuple[str, ...], ids: list[str]) -> None:
    Path("tea.md").write_text(TEA, "utf-8")
    hits = search(pearl, *args)
    assert [hit["id"] for hit in hits] == ids
    if "record" in args:
        assert hits[0]["fields"] == {"unit": "record", "item": "tea", "price": "5"}


# --- vectors ----------------------------------------------------------------------------------

DOWN = ("--embeddings", "openai:m", "--embeddings-url", "http://127.0.0.1:9/v1")


@pytest.mark.usefixtures("_no_waits")
def test_without_the_server_of_embeddings_hybrid_goes_on_and_dense_does_not(
    pearl: Terminal,
) -> None:
    hits = search(pearl, "rows.jsonl", "iron salt", *DOWN)
    assert [hit["id"] for hit in hits] == ["a2", "a1"]
    assert "ranked by words alone (bm25), without vectors: no server at" in pearl.talk
    pearl("search", "rows.jsonl", "iron", "--method", "dense", *DOWN, code=5)
    assert "no server at http://127.0.0.1:9/v1" in pearl.talk
