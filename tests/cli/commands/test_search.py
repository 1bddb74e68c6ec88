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


def test_people_are_shown_place_fields_and_passage_without_colours_in_a_pipe(
    pearl: Terminal,
) -> None:
    assert pearl("search", "rows.jsonl", "bridges", "-k", "1").splitlines() == [
        # ln(1 + 2.5 / 1.5) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 7 / (17 / 3)))
        "1. a1  0.8947  0-34",
        "   year: 1901",
        "   The iron bridge was built in 1901.",
    ]


def test_names_of_untrusted_rows_are_on_one_line(pearl: Terminal) -> None:
    row = {"id": "a\n\n2. b  9.9  0-1\x1b[2J", "text": "iron", "c\nd": "e\nf"}
    Path("odd.jsonl").write_text(f"{json.dumps(row)}\n", "utf-8")
    lines = pearl("search", "odd.jsonl", "iron").splitlines()
    assert [line[:5] for line in lines] == ["1. a ", "   c ", "   ir"]
    assert "\x1b" not in "".join(lines)
    assert search(pearl, "odd.jsonl", "iron")[0]["id"] == row["id"]


# --- what is asked ----------------------------------------------------------------------------


TEA = "# Prices\n\nOn tea.\n\n| item | price |\n|--|--|\n| tea | 5 |\n| salt | 7 |\n"


@pytest.mark.parametrize(
    ("args", "ids"),
    [
        (("rows.jsonl", "iron", "-k", "1"), ["a2"]),
        (("rows.jsonl", "iron", "-k", "1000"), ["a2", "a1"]),
        (("rows.jsonl", "iron", "-k", "0"), []),
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


# --- what is shown ----------------------------------------------------------------------------


def test_words_that_match_are_coloured_and_long_passages_shortened() -> None:
    from pearl.cli.commands.search import MATCH, excerpt, matcher

    text = "word " * 100 + "the keys\nwere kept " + "word " * 100
    shown = excerpt(text, matcher("key keep", "english"))
    assert shown.plain.startswith("… word")
    assert shown.plain.endswith("word …")
    assert len(shown.plain) <= 404
    styled = [shown.plain[span.start : span.end] for span in shown.spans if span.style == MATCH]
    assert styled == ["keys", "kept"]
    assert excerpt("x" * 1_000, matcher("y", "english")).plain == "x" * 400 + " …"
    both = excerpt(f"a key {'word ' * 200} keys kept", matcher("key keep", "english")).plain
    assert both.startswith("… word")  # the stretch with both words, not the first one
    assert both.endswith("keys kept")
    assert excerpt("a key", matcher("key", "english")).plain == "a key"


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
