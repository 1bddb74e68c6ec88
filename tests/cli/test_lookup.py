"""A question of a directory at the command line: the planner and the query of a model, over a real socket."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from experiments.directory.records import records, write
from tests.cli.terminal import Terminal
from tests.server import Server

QUESTION = "Which pharmacies are in Tel Aviv?"
PLAN = f'1. found = LOOKUP(CTX, "{QUESTION}") : Ask the table'
QUERY = {
    "select": ["Clinic name", "Phone"],
    "where": {
        "all": [
            {"column": "Clinic type", "op": "is", "value": ["Pharmacy"]},
            {"column": "City", "op": "is", "value": ["Tel Aviv-Yafo"]},
        ]
    },
}


def test_ask_and_execute_a_question_of_a_directory(pearl: Terminal, openai_server: Server) -> None:
    write(Path("directory.csv"), records(600, 3))
    with Path("directory.csv").open(encoding="utf-8", newline="") as file:
        gold = [
            (number, row["Clinic name"], row["Phone"])
            for number, row in enumerate(csv.DictReader(file), 1)
            if (row["Clinic type"], row["City"]) == ("Pharmacy", "Tel Aviv-Yafo")
        ]
    assert gold
    openai_server.on("You write plans", f"New actions:\n- None\n\n{PLAN}")
    openai_server.on("A table has 600 rows", json.dumps(QUERY))
    words = ("directory.csv", "--model", "openai:test", "--base-url", openai_server.url, "--json")
    Path("lookup.plan").write_text(f"Question: {QUESTION}\n\n{PLAN}\n", encoding="utf-8")
    for command in (("ask", QUESTION), ("execute", "lookup.plan")):
        answer = json.loads(pearl(*command, *words))
        assert answer["status"] == "answered"
        found = [
            (row["row"], row["cells"][0]["text"], row["cells"][1]["text"])
            for row in answer["evidence"]
        ]
        assert found == gold
        assert answer["evidence"][0]["source"] == "directory.csv"
        assert '"Tel Aviv-Yafo"' in answer["notes"][0]
    for seen in openai_server.requests:
        assert len(seen.prompt) < 20_000
