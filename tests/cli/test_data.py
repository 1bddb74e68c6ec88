"""`--data` on the command line: samples in, plans and results out, nothing of a sample lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.terminal import STORY, Terminal
from tests.server import Server
from tests.skips import needs

QUESTION = "Why did Nils sell the boat?"
OPTIONS = ["the hull was rotten", "he was rich"]


def write(name: str, *rows: Any) -> None:
    Path(name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def rows_in(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_plans_are_paid_for_once(pearl: Terminal, openai_server: Server) -> None:
    openai_server.on("", 'New actions:\n- None\n\n1. ans = FIND(CTX, "the key") : Find it')
    write("q.jsonl", *({"id": str(i), "question": f"Why {i}?"} for i in range(3)))
    args = ["--model", "openai:test-model", "--base-url", openai_server.url, "--constrain", "off"]
    first = pearl("plan", "--data", "q.jsonl", *args)
    n_calls = len(openai_server.requests)
    assert pearl("plan", "--data", "q.jsonl", *args) == first
    assert len(openai_server.requests) == n_calls > 0
    pearl("plan", "--data", "q.jsonl", "--fresh", *args)
    assert len(openai_server.requests) == 2 * n_calls
    pearl("plan", "Why?", "--fresh", *args, code=2)


def rows_of(name: str | Path) -> list[dict[str, Any]]:
    return rows_in(Path(name).read_text("utf-8"))


def test_what_is_right_goes_from_data_to_results(pearl: Terminal) -> None:
    known = {"options": OPTIONS, "gold": "A", "reference": "It rotted.", "subsets": ["hard"]}
    write(
        "q.jsonl",
        {"id": "a", "question": QUESTION, "document": STORY, **known, "mine": 1},
        {"id": "b", "question": QUESTION, "document_path": "story.txt"},
    )
    Path("out").mkdir()
    pearl("plan", "--data", "q.jsonl", "-o", "out/plans.jsonl")
    first, second = rows_of("out/plans.jsonl")
    assert {**known, "id": "a", "document": STORY, "mine": 1}.items() <= first.items()
    assert second["document_path"] == "../story.txt"
    pearl("execute", "--tasks", "out/plans.jsonl", "--allow-outside", "--out", "results.jsonl")
    first, second = rows_of("results.jsonl")
    assert {**known, "id": "a", "status": "answered"}.items() <= first.items()
    assert "rotten" in second["answer"]
    assert not known.keys() & second.keys()


def test_data_of_a_domain_with_columns(pearl: Terminal) -> None:
    Path("q.csv").write_text(f"text,story\n{QUESTION},{STORY.splitlines()[2]}\n,\n")
    columns = ["--column", "question=text", "--column", "document=story"]
    out = pearl("plan", "--data", "q.csv", "--domain", "quality", *columns, code=1)
    planned, failed = rows_in(out)
    assert (planned["question"], planned["attempts"], failed["id"]) == (QUESTION, 1, None)
    assert "q.csv:3" in failed["error"]["message"]


@needs("datasets")
def test_split_subset_and_limit(pearl: Terminal) -> None:
    rows = [
        {"question": f"Who left at {i}?", "subsets": ["odd"] if i % 2 else []} for i in range(9)
    ]
    import datasets  # late: not every worker needs it

    datasets.DatasetDict(dev=datasets.Dataset.from_list(rows)).save_to_disk("saved")
    more = ["--split", "dev", "--subset", "odd", "--limit", "2"]
    planned = rows_in(pearl("plan", "--data", "saved", *more))
    assert [row["question"] for row in planned] == ["Who left at 1?", "Who left at 3?"]


# --- real data --------------------------------------------------------------------------------


def test_a_question_without_a_plan_has_a_row_with_the_replies(pearl: Terminal) -> None:
    write("q.jsonl", {"question": QUESTION}, {"question": "Who?"})
    Path("rules.json").write_text('[{"match": ".", "reply": "I would rather not."}]', "utf-8")
    args = ("--model", "scripted:rules.json", "--limit", "1")
    (row,) = rows_in(pearl("plan", "--data", "q.jsonl", *args, code=1))
    assert (row["status"], row["replies"][0]) == ("failed", "I would rather not.")
