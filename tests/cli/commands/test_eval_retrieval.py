"""`pearl eval --retrieval`: files in, figures out; nothing that was left out is silent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

CORPUS = {
    "boat": "Nils sold the boat. The boat was rotten.",
    "clock": "The buyer paid with a clock.",
    "oars": "Ada kept the oars in the barn.",
}
ARGS = ("eval", "--retrieval", "--corpus", "c.jsonl", "--queries", "q.tsv", "--qrels", "qrels")


@pytest.fixture(autouse=True)
def _files(pearl: Terminal) -> None:
    rows = (json.dumps({"id": name, "text": text}) for name, text in CORPUS.items())
    Path("c.jsonl").write_text("\n".join(rows), "utf-8")
    Path("q.tsv").write_text("1\twho sold the boat to the buyer\n2\tthe oars\n", "utf-8")
    Path("qrels").write_text("1 0 boat 2\n1 0 clock 1\n2 0 oars 1\n", "utf-8")


def test_every_method_is_measured_at_every_k(pearl: Terminal) -> None:
    found = json.loads(pearl(*ARGS, "--method", "bm25", "-k", "1", "-k", "2", "--json"))
    assert [row["method"] for row in found["rows"]] == ["bm25"]
    assert found["measures"] == ["nDCG@1", "nDCG@2", "R@1", "R@2", "P@1", "P@2", "RR", "AP"]
    means = {name: it["estimate"] for name, it in found["rows"][0]["measures"].items()}
    assert means == {
        "nDCG@1": 1, "nDCG@2": 1, "R@1": 0.75, "R@2": 1, "P@1": 1, "P@2": 0.75, "RR": 1, "AP": 1,
    }  # fmt: skip
    assert found["rows"][0]["latency_ms"]["p95"] > 0
    assert pearl.talk == ""


def test_people_are_shown_a_table_with_the_oracle(pearl: Terminal) -> None:
    shown = pearl(*ARGS, "--oracle").splitlines()
    assert shown[0] == "2 queries with a relevant document; all figures except ms in percent"
    assert [line.split()[0] for line in shown if line.startswith(("bm25", "oracle"))] == [
        "bm25", "oracle",
    ]  # fmt: skip


def test_a_folder_is_searched_by_paragraph_and_judged_by_document(pearl: Terminal) -> None:
    Path("docs").mkdir()
    for name, text in CORPUS.items():
        Path("docs", f"{name}.txt").write_text(f"{text}\n\nThe end of the {name}.\n", "utf-8")
    names = {row["id"] for row in json.loads(pearl("search", "docs", "end boat oars", "--json"))}
    (boat,) = (name for name in names if "boat" in name)
    Path("qrels").write_text(f"1\t0\t{boat}\t1\n", "utf-8")
    args = ("eval", "--retrieval", "--corpus", "docs", "--queries", "q.tsv", "--qrels", "qrels")
    found = json.loads(pearl(*args, "--json"))
    assert found["rows"][0]["measures"]["P@10"]["estimate"] == 0.1
    assert pearl.talk == "pearl: queries without judgments, left out: 1\n"


def test_the_result_is_written_and_no_input_is_written_over(pearl: Terminal) -> None:
    pearl(*ARGS, "-o", "found.json")
    assert json.loads(Path("found.json").read_text("utf-8"))["coverage"]["n_topics"] == 2
    pearl(*ARGS, "-o", "qrels", code=2)
    assert Path("qrels").read_text("utf-8").startswith("1 0 boat")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (ARGS[:-2], 2, "--retrieval needs --qrels"),
        (ARGS[:2], 2, "--retrieval needs --corpus, --queries, --qrels"),
        ((*ARGS, "--data", "q.tsv"), 2, "--data has no effect with --retrieval"),
        ((*ARGS, "--seeds", "2"), 2, "--seeds has no effect with --retrieval"),
        (("eval", "--data", "q.tsv", "--qrels", "qrels"), 2, "--qrels belongs to --retrieval"),
        (("eval", "--data", "q.tsv", "-k", "3"), 2, "-k belongs to --retrieval"),
        ((*ARGS, "--method", "bn25"), 2, "unknown method 'bn25'"),
        ((*ARGS, "-k", "0"), 2, "0 is not in the range"),
        ((*ARGS[:-1], "none"), 3, "cannot be read"),
        ((*ARGS[:-3], "c.jsonl", "--qrels", "qrels"), 3, "no query has a relevant document"),
    ],
)
def test_what_is_wrong_is_said(
    pearl: Terminal, args: tuple[str, ...], code: int, said: str
) -> None:
    pearl(*args, code=code)
    assert said in pearl.talk
    assert len(pearl.talk.splitlines()) <= 3
