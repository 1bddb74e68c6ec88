"""From questions to scores by the command line: every stage reads what the one before wrote.

Each stage runs in a folder of its own that holds its inputs and nothing else.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pearl.actions.library import load_library
from pearl.cli import run as pearl_command
from pearl.data.log_files import read_journal
from pearl.evals.log import EvalLog, EvalRecord, read_log
from pearl.mining.curator import CurationHeader, CurationRow
from pearl.mining.miner import MinedHeader, MinedRow
from pearl.planner.examples import load_examples

STORY = """\
Nils Brandt left the harbour of Osen at dawn on 3 May. He carried a lantern and a sack of salt.

He sold the boat because the hull was rotten. His sister Ada kept the oars in the barn behind the \
mill.

The buyer, a watchmaker named Tobias, paid with a clock that had no hands. Nils took the clock \
because it reminded him of his mother.

In June the rain came and the mill flooded. Ada moved the oars to the church so that they would \
stay dry.

Tobias mended the boat with tar and sailed to Varn. He never came back because he liked the quiet \
of the island.
"""

TRAINING = [
    ("t1", "Why did Nils sell the boat?", "A", "Because the hull was rotten",
     "Because he was tired of fishing", "Because Ada asked for money", "Because it had sunk"),
    ("t2", "Where did Ada keep the oars?", "B", "Under the bridge", "In the barn behind the mill",
     "At the watchmaker's shop", "On the island"),
    ("t3", "What is the name of the buyer?", "B", "Osen", "Tobias", "Varn", "Brandt"),
]  # fmt: skip
TESTED = [
    ("e1", "Why did Tobias never come back?", "B", "He drowned in the storm",
     "He liked the quiet of the island", "He lost the boat", "He was put in prison"),
    ("e2", "When did Nils leave the harbour?", "C", "In June at noon", "At midnight",
     "At dawn on 3 May", "In the winter"),
    ("e3", "Where did Ada move the oars?", "A", "To the church", "To the harbour", "To Varn",
     "To the mill"),
    # What is said to be right is wrong here, so that something is.
    ("e4", "What did Nils carry?", "D", "A lantern and a sack of salt", "A clock and a knife",
     "A net full of fish", "A letter from Ada"),
]  # fmt: skip


def asks(question: str) -> str:
    return rf"Write the plan for this question\.\n\nQuestion: {question}"


def plan(call: str, new: str = "None") -> str:
    return f"New actions:\n- {new}\n\n1. ans = {call} : Find it out"


RULES = [
    # mine: two drafts that do the same
    ("Sketch.*Question: Why did Nils", plan('FIND_MOTIVE(CTX, "the sale")',
     "FIND_MOTIVE(CTX, X) : Find what somebody hopes to gain by X in CTX")),
    ("Sketch.*Question: Where did Ada", plan('NAME_DRIVING_FORCE(CTX, "Ada")',
     "NAME_DRIVING_FORCE(CTX, X) : Say which wish stands behind X throughout CTX")),
    ("Sketch", plan('FIND(CTX, "the buyer")')),
    # refine actions: the model merges them
    (r"Refine these.*\b(\d+)\. FIND_MOTIVE\(.*\b(\d+)\. NAME_DRIVING",
     r'{"actions": [{"action": "FIND_MOTIVE(CTX, X) : Find what moves somebody to X in CTX", "drafts": [\1, \2]}], "dropped": []}'),
    # plans; the first for t2 leads to a wrong answer
    (asks("Where did Ada keep") + ".*it gave was wrong", plan('FIND_PLACE(CTX, "the oars kept")')),
    (asks("Where did Ada keep"), plan('FIND(CTX, "the bridge")')),
    (asks("Why did Nils sell"), plan('FIND_MOTIVE(CTX, "selling the boat")')),
    (asks("What is the name"), plan('IDENTIFY(CTX, "the buyer")')),
    (asks("Why did Tobias"), plan('FIND_MOTIVE(CTX, "staying away")')),
    (asks("When did Nils"), plan('FIND_TIME(CTX, "leaving")')),
    (asks("Where did Ada move"), plan('NO_SUCH(CTX, "the oars")')),
    (asks("What did Nils carry"), plan('FIND(CTX, "what he carried")')),
    # steps
    ('"the bridge"', "Under the bridge"),
    ('"the oars kept"', "In the barn behind the mill."),
    ('"selling the boat"', "Because the hull was rotten"),
    ('"the buyer"', "Tobias"),
    ('"staying away"', "> He never came back because he liked the quiet\nIt was quiet there."),
    ('"leaving"', "At dawn on 3 May"),
    ('"what he carried"', "A lantern and a sack of salt"),
    ('Answer the question|Answer "', "I cannot say."),
    # options
    ("Answer in words:.*It was quiet there", "B"),
    ("Answer in words:.*I cannot say", "none"),
    ("You answer multiple-choice questions", "C"),
]  # fmt: skip


class Stages:
    """Runs the stages one after the other, each in its folder."""

    def __init__(
        self, home: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str
    ) -> None:
        self._home, self._patch, self._capsys = home, patch, capsys
        self._model = ("--model", model)

    def __call__(self, inputs: Sequence[Path], *args: str, code: int = 0) -> Path:
        """The folder in which a command was run that had these files."""
        folder = self._home / f"stage {len(list(self._home.iterdir()))}"
        folder.mkdir()
        for path in inputs:
            (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / path.name)
        rules = [{"match": match, "reply": reply} for match, reply in RULES]
        (folder / "rules.json").write_text(json.dumps(rules), encoding="utf-8")
        self._patch.chdir(folder)
        self._patch.setenv("PEARL_MAX_REPAIRS", "0")
        got = pearl_command([*args, *self._model])
        said = self._capsys.readouterr()
        assert got == code, f"{args}: exit {got}: {said.err}{said.out}"
        return folder


def questions(path: Path, rows: Sequence[tuple[str, ...]]) -> Path:
    lines = [
        json.dumps({
            "id": id, "question": question, "gold": gold, "options": options, "document": STORY,
            "document_name": "story.txt", "subsets": ["why" if "Why" in question else "what"],
        })
        for id, question, gold, *options in rows
    ]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def recomputed(log: EvalLog, method: str) -> tuple[int, int, int, int]:
    """Records, right ones, failed ones and unmapped ones, by nothing but what the records say."""
    records = [record for record in log.records if record.method == method]
    for record in records:
        is_right = record.status != "failed" and record.choice == record.gold
        assert record.score == float(is_right)
        if record.choice is not None:
            assert record.options[record.choice]
    return (
        len(records), sum(r.choice == r.gold for r in records),
        sum(r.status == "failed" for r in records),
        sum(r.status != "failed" and r.choice is None for r in records),
    )  # fmt: skip


def test_from_questions_to_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = "scripted:rules.json"
    (tmp_path / "data").mkdir()
    (tmp_path / "stages").mkdir()
    train = questions(tmp_path / "data" / "train.jsonl", TRAINING)
    test = questions(tmp_path / "data" / "test.jsonl", TESTED)
    stage = Stages(tmp_path / "stages", monkeypatch, capsys, model)

    mined = stage([train], "mine", "--data", "train.jsonl", "--out", "mined.jsonl") / "mined.jsonl"
    head, drafts = read_journal(mined, MinedHeader, MinedRow)
    assert (head.model, head.library) == (model, "seed")
    assert {row.id: row.question for row in drafts} == {id: asked for id, asked, *_ in TRAINING}
    assert {row.status for row in drafts} == {"mined"}
    declared = {action.split("(")[0] for row in drafts for action in row.actions}
    assert declared == {"FIND_MOTIVE", "NAME_DRIVING_FORCE"}

    args = ("refine", "actions", "mined.jsonl", "-o", "mined.actions", "--report", "refined.json")
    refined = stage([mined], *args, "--max-actions", str(len(head.seed_actions) + 1))
    actions = refined / "mined.actions"
    library = load_library(str(actions))
    new = set(library) - set(load_library("seed"))
    assert new == {"FIND_MOTIVE"}
    fates = json.loads((refined / "refined.json").read_text("utf-8"))["drafts"]
    assert len(fates) == len(head.seed_actions) + len(declared)
    merged = {fate["name"]: fate["into"] for fate in fates if fate["fate"] == "merged"}
    assert merged["NAME_DRIVING_FORCE"] == "FIND_MOTIVE"

    using = ("--library", "mined.actions")
    args = ("refine", "fewshot", "--data", "train.jsonl", "-o", "bank", *using)
    bank = stage([train, actions], *args) / "bank"
    _, tried = read_journal(bank / "curation.jsonl", CurationHeader, CurationRow)
    assert {row.id: row.outcome for row in tried} == {id: "kept" for id, *_ in TRAINING}
    assert all(row.tries[-1].choice == row.gold for row in tried)
    assert {row.id: len(row.tries) for row in tried} == {"t1": 1, "t2": 2, "t3": 1}
    examples = load_examples(bank, library)
    assert [example.question for example in examples] == [asked for _, asked, *_ in TRAINING]
    called = {step.action for example in examples for step in example.plan.steps}
    assert new <= called
    assert called <= set(library)

    shown = (*using, "--examples", "bank")
    args = ("plan", "--data", "test.jsonl", "--out", "plans.jsonl", *shown)
    plans = stage([test, actions, bank], *args, code=1) / "plans.jsonl"
    planned = rows_of(plans)
    assert [row["id"] for row in planned] == [id for id, *_ in TESTED]
    lost = ["e3"]
    assert [row["id"] for row in planned if row["status"] == "failed"] == lost

    args = ("execute", "--tasks", "plans.jsonl", "--out", "results.jsonl", *using)
    results = stage([plans, actions], *args, code=1) / "results.jsonl"
    executed = {row["id"]: row for row in rows_of(results)}
    assert {id: row["gold"] for id, row in executed.items()} == {id: g for id, _, g, *_ in TESTED}
    assert {row["question"] for row in executed.values()} == {asked for _, asked, *_ in TESTED}
    assert [id for id, row in executed.items() if row["status"] == "failed"] == lost
    for row in executed.values():
        for quote in row.get("evidence", ()):
            assert STORY[quote["start"] : quote["end"]] == quote["text"]

    args = ("eval", "--data", "test.jsonl", "--methods", "pearl,direct,mcq", "-o", "log.jsonl")
    run = stage([test, actions, bank], *args, *shown, "--fallback", "none", code=1) / "log.jsonl"
    log = read_log(run)
    assert (log.header.n_samples, log.header.n_examples, log.header.model) == (4, 3, model)
    assert len(log.records) == 12

    # What was planned and executed before is what the method does at once.
    kept: EvalRecord
    for kept in log.of("pearl"):
        assert (kept.status == "failed") == (kept.sample in lost)
        if kept.status == "answered":
            assert kept.answer == executed[kept.sample]["answer"]
            assert kept.plan == executed[kept.sample]["plan"]

    assert recomputed(log, "pearl") == (4, 2, 1, 0)
    assert recomputed(log, "direct") == (4, 0, 0, 4)
    assert recomputed(log, "mcq") == (4, 1, 0, 0)

    # Scored anew, nothing changes, and the figures are those of the records.
    capsys.readouterr()
    monkeypatch.chdir(run.parent)
    assert pearl_command(["eval", "--rescore", "log.jsonl", "--json"]) == 0
    said = capsys.readouterr()
    assert "0 of 12 records changed" in said.err
    for row in json.loads(said.out)["rows"]:
        if row["subset"] == "all":
            counts = row["n"], row["n_correct"], row["n_failed"], row["n_unmapped"]
            assert counts == recomputed(log, row["method"])
            assert row["accuracy"]["estimate"] == row["n_correct"] / 4
