"""Training questions → a bank: only plans that reached the gold answer, and nothing that tells it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pearl import Document, Pearl
from pearl.actions.library import load_library
from pearl.cli import run as pearl_command
from pearl.data.samples import Sample
from pearl.errors import ModelError
from pearl.llm import ActionTask, ChooseTask, PlanTask, Request
from pearl.mining.curator import CurationRow, curate_units
from pearl.planner.examples import load_examples
from pearl.runs.executors import local
from tests.evals.asking import OPTIONS, sample
from tests.models import Acting

FIRST = '1. ans = FIND(CTX, "the tired man") : Find him'
SECOND = '1. ans = FIND_REASON(CTX, "the sale") : Find why'
THIRD = '1. ans = FIND_EVENT(CTX, "the sale") : Find what happened'
ADDING = '1. found = FIND(CTX, "numbers") : Find them\n2. ans = SUM(found) : All of them'

GOLD = "The hull was rotten"


def planner(*plans: str, answers: dict[str, str] | None = None) -> Acting:
    """A model that writes these plans in turn, and whose steps answer by their actions."""
    said = answers or {"FIND": OPTIONS[1], "FIND_REASON": GOLD, "FIND_EVENT": OPTIONS[3]}

    async def act(request: Request) -> str:
        match request.task:
            case PlanTask() as task:
                return plans[min(task.n_rejected, len(plans) - 1)]
            case ActionTask() as task:
                return said[task.action.name]
            case ChooseTask():
                return "none"
        raise AssertionError

    return Acting(act)


def tried(model: Acting, *samples: Sample, **settings: Any) -> list[CurationRow]:
    async def main() -> list[CurationRow]:
        pearl = Pearl(model, max_repairs=0)
        units = curate_units(samples, **settings)
        return [outcome.result async for outcome in local.run(pearl, units)]

    return sorted(asyncio.run(main()), key=lambda row: row.index)


def test_a_wrong_plan_goes_back_without_what_is_right() -> None:
    (row,) = tried(model := planner(FIRST, SECOND), sample())
    assert row.outcome == "kept"
    assert [(t.choice, t.answer) for t in row.tries] == [(1, OPTIONS[1]), (0, GOLD)]
    asked = [request for request in model.requests if isinstance(request.task, PlanTask)]
    first, second = asked
    assert second.prompt.startswith(first.prompt)
    more = second.prompt.removeprefix(first.prompt)
    assert FIRST in more
    assert "the answer it gave was wrong" in more
    for request in asked:
        assert not [option for option in OPTIONS if option in request.prompt]
        assert "rotten" not in request.prompt
    # Beside the plan, what is said is the same whatever is right.
    for gold in (2, 3):
        other = planner(FIRST, SECOND)
        tried(other, sample(gold=gold), retries=1)
        prompts = [r.prompt for r in other.requests if isinstance(r.task, PlanTask)]
        assert prompts == [r.prompt for r in asked]


@pytest.mark.parametrize("retries", [0, 2])
def test_retries_are_bounded(retries: int) -> None:
    model = planner(FIRST, THIRD, FIRST.replace("tired", "old"), SECOND)
    (row,) = tried(model, sample(), retries=retries)
    assert (row.outcome, len(row.tries)) == ("wrong", retries + 1)
    assert sum(isinstance(r.task, PlanTask) for r in model.requests) == retries + 1


def test_the_same_plan_again_ends_it() -> None:
    (row,) = tried(model := planner(FIRST), sample(), retries=5)
    assert (row.outcome, len(row.tries)) == ("repeated", 1)
    assert sum(isinstance(r.task, PlanTask) for r in model.requests) == 2


def test_a_plan_that_cannot_be_carried_out_is_a_wrong_plan() -> None:
    (row,) = tried(model := planner(ADDING, SECOND), sample())
    assert row.outcome == "kept"
    second = [r.prompt for r in model.requests if isinstance(r.task, PlanTask)][-1]
    assert "Run over the document, its step 'found' was undecided" in second
    assert "was wrong" not in second
    assert "cannot be read" in (row.tries[0].error or "")
    for word in ("list", OPTIONS[1]):  # of the error, which may be words of the document
        assert word not in second.partition("Run over the document")[2]
    assert row.tries[0].choice is None
    assert row.tries[1].choice == 0


def test_a_server_that_fails_is_no_wrong_plan() -> None:
    async def act(request: Request) -> str:
        if isinstance(request.task, PlanTask):
            return SECOND
        raise ModelError("gone", kind="bad_request")

    (row,) = tried(Acting(act), sample())
    assert (row.outcome, row.tries) == ("failed", ())
    assert "gone" in (row.error or "")
    (unplanned,) = tried(planner("1. ans = NO_SUCH(CTX) : f"), sample())
    assert (unplanned.outcome, unplanned.tries) == ("failed", ())


@pytest.mark.parametrize("context", ["full", "auto"])
def test_a_window_that_is_too_small_is_no_wrong_plan(context: Any) -> None:
    model = planner(SECOND)
    pearl = Pearl(model, max_repairs=0, context=context, window=1_000 if context == "full" else 50)
    long = sample(document=Document("The hull was rotten and the rain came in. " * 500))

    async def main() -> list[CurationRow]:
        return [o.result async for o in local.run(pearl, curate_units([long]))]

    (row,) = asyncio.run(main())
    assert (row.outcome, row.tries) == ("failed", ())
    assert "window" in (row.error or "")
    assert sum(isinstance(r.task, PlanTask) for r in model.requests) == 1


def test_an_error_that_ends_the_run_is_raised_where_its_row_is_wanted() -> None:
    async def act(request: Request) -> str:
        raise RuntimeError("a bug")

    async def main() -> None:
        (outcome,) = [o async for o in local.run(Pearl(Acting(act)), curate_units([sample()]))]
        outcome.to_dict()

    with pytest.raises(RuntimeError, match="a bug"):
        asyncio.run(main())


# --- pearl refine fewshot -----------------------------------------------------------------------


class Bank:
    """`pearl refine fewshot` in a folder of its own, over rows and with replies from rules."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.rules: list[dict[str, str]] = []

    def rows(self, *rows: dict[str, Any], name: str = "train.jsonl") -> None:
        Path(name).write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")

    def __call__(self, *args: str, code: int = 0) -> str:
        rules = json.dumps([*self.rules, {"match": "Write the plan", "reply": SECOND}])
        Path("rules.json").write_text(
            rules[:-1] + ', {"match": "Find (?:the reason|why)", "reply": "The hull was rotten."}, '
            '{"match": ".", "reply": "none"}]', encoding="utf-8",
        )  # fmt: skip
        got = pearl_command([*args, "--model", "scripted:rules.json"])
        said = self._capsys.readouterr()
        assert got == code, said.err
        assert not any(word in said.err for word in ("Traceback", "a bug in PEARL"))
        return said.err

    def make(self, *args: str, code: int = 0) -> str:
        return self("refine", "fewshot", "--data", "train.jsonl", "-o", "bank", *args, code=code)

    @property
    def files(self) -> dict[str, str]:
        return {p.name: p.read_text("utf-8") for p in sorted(Path("bank").glob("*.plan"))}


@pytest.fixture
def bank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Bank:
    monkeypatch.chdir(tmp_path)
    return Bank(tmp_path, capsys)


def row(id: str, question: str, **fields: Any) -> dict[str, Any]:
    known = {"document": "Nils sold it. The hull was rotten.", "options": OPTIONS, "gold": "A"}
    return {"id": id, "question": question, **known, **fields}


def test_a_bank_is_made_and_kept_from_its_questions(bank: Bank) -> None:
    bank.rows(
        row("a", "Why was it sold?"), row("b", "Why did he go?"), row("c", "Why not?", gold="B"),
        {k: v for k, v in row("d", "Who?").items() if k != "gold"},
        {"id": "e", "question": "What?", "document": "x", "reference": "y"},
    )  # fmt: skip
    told = bank.make()
    for line in ("questions 3", "left out 2", "reached the gold answer 2",
                 "never reached it 1", "examples in the bank 2"):  # fmt: skip
        assert line in " ".join(told.split())
    assert list(bank.files) == ["001-why-was-it-sold.plan", "002-why-did-he-go.plan"]
    assert bank.files["001-why-was-it-sold.plan"].startswith("Question: Why was it sold?\n")
    examples = load_examples("bank", load_library("seed"))
    assert [e.question for e in examples] == ["Why was it sold?", "Why did he go?"]
    refused = bank("eval", "--data", "train.jsonl", "--examples", "bank", code=3)
    assert "'Why was it sold?' and 1 more" in refused
    bank.rows(row("a", "Why else?"), name="test.jsonl")
    bank("eval", "--data", "test.jsonl", "--examples", "bank")


def test_a_run_is_resumed_and_failures_are_tried_again(bank: Bank) -> None:
    bank.rows(row("a", "Why was it sold?"), at("b", "b.txt"))
    assert "failed 1" in " ".join(bank.make(code=1).split())
    first, failed = tried_rows()
    assert (first["outcome"], failed["outcome"]) == ("kept", "failed")
    Path("b.txt").write_text("Nils sold it. The hull was rotten.", encoding="utf-8")
    bank.make()
    again, second = tried_rows()
    assert again == first
    assert second["outcome"] == "kept"
    assert len(bank.files) == 2


def at(id: str, path: str) -> dict[str, Any]:
    """A row whose document is a file."""
    known = row(id, f"Why did {id} go?", document_path=path)
    del known["document"]
    return known


def tried_rows() -> list[dict[str, Any]]:
    lines = Path("bank/curation.jsonl").read_text("utf-8").splitlines()[1:]
    return [json.loads(line) for line in lines]


def test_a_bank_has_the_questions_of_the_present_data_only(bank: Bank) -> None:
    bank.rows(row("a", "Why was it sold?"), row("b", "Why did he go?"))
    bank.make()
    bank.rows(row("a", "Why did Ada stay?"))
    bank.make()
    assert list(bank.files) == ["001-why-did-ada-stay.plan"]
    bank.rows(row("b", "Why did he go?"))
    bank.make()
    assert list(bank.files) == ["001-why-did-he-go.plan"]


@pytest.mark.parametrize("change", [("--nearest", "1"), ("--retries", "1")])
def test_a_bank_made_with_other_settings_is_not_overwritten(
    bank: Bank, change: tuple[str, str]
) -> None:
    bank.rows(row("a", "Why was it sold?"))
    bank.make()
    before = tried_rows()
    assert "exists already" in bank.make(*change, code=2)
    assert tried_rows() == before


def test_folders_of_others_stay_as_they_are(bank: Bank) -> None:
    bank.rows(row("a", "Why was it sold?"))
    bank.make("--dry-run")
    assert not Path("bank").exists()
    Path("bank").mkdir()
    Path("bank/mine.plan").write_text("mine", encoding="utf-8")
    for option in ((), ("--dry-run",)):
        assert "not empty and was not created by" in bank.make(*option, code=3)
    assert bank.files == {"mine.plan": "mine"}
    Path("bank/mine.plan").unlink()
    Path("bank/curation.jsonl").write_text("Dear diary\n", encoding="utf-8")
    assert "exists already" in bank.make(code=2)
    bank.make("--force")
    assert [each["outcome"] for each in tried_rows()] == ["kept"]
    assert list(bank.files) == ["001-why-was-it-sold.plan"]


def test_questions_to_be_evaluated_on_stay_out_of_the_bank(bank: Bank) -> None:
    bank.rows(row("a", "Why did Nils sell the boat?"), row("b", "Who kept the oars?"))
    bank.rows({"id": "x", "question": "why did NILS sell the boat"}, name="dev.jsonl")
    bank.make("--except", "dev.jsonl")
    assert [e.question for e in load_examples("bank", load_library("seed"))] == [
        "Who kept the oars?"
    ]
    Path("dev.jsonl").write_text('{"question": "Who kept the oars?", "gold": "A"}\n')
    told = bank(
        "refine", "fewshot", "--data", "train.jsonl", "-o", "other", "--except", "dev.jsonl", code=3
    )
    assert "dev.jsonl:1" in told
    assert not Path("other").exists()


def test_plans_of_a_person_stay_in_the_bank(bank: Bank) -> None:
    bank.rows(row("a", "Why was it sold?"), row("b", "Why did he go?"), row("c", "Why not?"))
    bank.make()
    names = list(bank.files)
    assert names == ["001-why-was-it-sold.plan", "002-why-did-he-go.plan", "003-why-not.plan"]
    edited = bank.files[names[1]].replace("Find", "Look for")
    Path("bank", names[1]).write_text(edited, encoding="utf-8")
    mine = bank.files[names[0]].replace("Why was it sold?", "What else?")
    Path("bank", "mine.plan").write_text(mine, encoding="utf-8")
    told = bank.make()
    assert "files of yours, kept 2" in " ".join(told.split())
    assert bank.files[names[1]] == edited
    assert bank.files["mine.plan"] == mine
    questions = [e.question for e in load_examples("bank", load_library("seed"))]
    assert sorted(questions) == ["What else?", "Why did he go?", "Why not?", "Why was it sold?"]


def test_the_reason_is_reported_if_all_questions_fail(bank: Bank) -> None:
    bank.rows(row("a", "Why was it sold?"))
    bank.rules = [{"match": "Write the plan", "reply": "I would rather not."}]
    told = bank.make("--max-repairs", "0", code=1)
    assert "failed 1 time: no valid plan" in told
    told = bank.make("--examples", "nobank", code=3)
    assert "cannot find a folder of examples 'nobank'" in told


def test_a_broken_plan_in_the_bank_is_reported_before_anything_is_written(bank: Bank) -> None:
    bank.rows(row("a", "Why was it sold?"))
    bank.make()
    Path("bank", "zzz.plan").write_text("junk", encoding="utf-8")
    told = bank.make(code=3)
    assert "zzz.plan:1: not a plan" in told
    assert "fix or remove the file" in told
    assert sorted(bank.files) == ["001-why-was-it-sold.plan", "zzz.plan"]
