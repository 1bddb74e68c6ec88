"""`pearl eval` of conversations and over a corpus: what is shown, kept and refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal

QUESTIONS = ["what was rent of mills in 2008?", "and what was it in 2007?", "what is the change?"]
PROGRAMS = ["120", "100", "subtract(120, 100)"]
ARGS = ("eval", "--domain", "finance", "--data", "dev.jsonl", "--scorer", "numeric")
QUICK = (*ARGS, "--methods", "direct", "--json")


def dialogue(name: str) -> dict[str, Any]:
    return {
        "id": f"Single_{name}",
        "pre_text": [f"of {name}."], "post_text": [],
        "table": [["", "2008", "2007"], [f"rent of {name}", "120", "100"]],
        "annotation": {
            "dialogue_break": QUESTIONS, "turn_program": PROGRAMS, "exe_ans_list": [120.0, 100.0, 20.0],
        },
    }  # fmt: skip


@pytest.fixture(autouse=True)
def _files(pearl: Terminal) -> None:
    rows = (json.dumps(dialogue(name)) for name in ("mills", "boats"))
    Path("dev.jsonl").write_text("\n".join(rows), "utf-8")
    Path("pages").mkdir()
    Path("pages", "one.txt").write_text("Of mills.\n\nRent of mills in 2008 was 120.\n", "utf-8")


def evaluated(pearl: Terminal, *args: str) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(pearl(*QUICK, *args))
    return shown


def test_turns_dialogues_and_figures_are_reported(pearl: Terminal) -> None:
    found = evaluated(pearl, "-o", "log.jsonl")
    assert [(one["turn"], one["n"]) for one in found["turns"]] == [(1, 2), (2, 2), (3, 2)]
    assert [(one["n"], one["n_incomplete"]) for one in found["dialogues"]] == [(2, 0)]
    (figures,) = found["figures"]
    assert (figures["n"], figures["n_programs"], figures["n_no_program"]) == (6, 6, 6)
    assert "searches" not in found
    assert (found["header"]["history"], found["header"]["corpus"]) == ("gold", "")
    shown = pearl("eval", "--rescore", "log.jsonl")
    for head in ("figures", "turn", "whole dialogues"):
        assert any(line.startswith(head) for line in shown.splitlines()), head
    assert "direct             0/2  0.0" in shown


def test_another_history_is_another_run(pearl: Terminal) -> None:
    runs = [evaluated(pearl, "--history", said)["header"] for said in ("gold", "own", "none")]
    assert [one["history"] for one in runs] == ["gold", "own", "none"]
    assert pearl("runs", "list").count("  done ") == 3


def test_all_documents_together_or_a_corpus_of_its_own(pearl: Terminal) -> None:
    own = evaluated(pearl, "--together", "--window", "700", "-o", "own.jsonl")
    assert own["header"]["corpus"] == "documents of the data"
    other = evaluated(pearl, "--corpus", "pages", "--unit", "sentence", "-o", "other.jsonl")
    assert other["header"]["corpus"] == "pages"
    assert "corpus: documents of the data | pages" in pearl("compare", "own.jsonl", "other.jsonl")
    Path("pages", "two.txt").write_text("Of boats.\n", "utf-8")
    pearl(*QUICK, "--corpus", "pages", "--unit", "sentence", "-o", "other.jsonl", code=2)
    assert "other.jsonl" in pearl.talk  # it is the log of another run


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((*ARGS, "--together", "--corpus", "pages"), "--together makes a corpus"),
        ((*ARGS, "--unit", "sentence"), "--unit needs a corpus"),
        ((*ARGS, "--together", "--at", "x"), "--at applies to --corpus"),
        ((*ARGS, "--together", "--executor", "ray"), "a corpus needs --executor local"),
        ((*ARGS, "--together", "--unit", "sentense"), "unknown unit 'sentense'"),
        (("eval", "--results", "dev.jsonl", "--together"), "--together without --data"),
        ((*ARGS, "--history", "all"), "'all' is not one of 'gold', 'own', 'none'"),
    ],
)
def test_what_makes_no_sense_is_refused(pearl: Terminal, args: tuple[str, ...], said: str) -> None:
    pearl(*args, code=2)
    assert said in pearl.talk
    assert len(pearl.talk.splitlines()) <= 4


def test_a_run_over_a_corpus_is_resumed_as_it_was(pearl: Terminal) -> None:
    args = (*ARGS, "--methods", "direct", "--together", "--history", "own", "--window", "700")
    whole = pearl(*args, "-o", "whole.jsonl")
    pearl(*args, "-o", "cut.jsonl", "--fresh", "--max-calls", "2", code=7)
    (id,) = re.findall(r"pearl runs resume (\S+)", pearl.talk)
    pearl("runs", "resume", id, "--yes", "--max-calls", "100")
    kept = [Path(name).read_text("utf-8").splitlines()[1:] for name in ("whole.jsonl", "cut.jsonl")]
    answers = [[json.loads(line)["answer"] for line in lines] for lines in kept]
    assert answers[0] == answers[1]
    assert "whole dialogues" in whole
