"""Conversations: what methods are told of earlier turns, and what a log says of figures, turns and dialogues."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pearl import Pearl
from pearl.data.samples import Sample, Turn
from pearl.evals import conversations
from pearl.evals.log import EvalLog, EvalRecord
from pearl.evals.runner import Evaluation, History, samples_digest
from pearl.llm import ActionTask, Request, StandaloneTask
from pearl.llm.backends.scripted import Scripted
from tests.evals.asking import STORY, run
from tests.evals.evallogs import header, record

ASKED = ("Who sold the boat?", "And who bought it?", "When did they meet?")
RIGHT = ("Nils", "Ada", "At dawn")


def dialogue(id: str = "d", n_turns: int = 3) -> list[Sample]:
    """The turns of a conversation of three."""
    turns = tuple(map(Turn, ASKED, RIGHT))
    return [
        Sample(
            f"{id}/{i + 1}", turn.question, STORY, reference=turn.answer, history=turns[:i],
            dialogue=id, n_turns=3,
        )
        for i, turn in enumerate(turns[:n_turns])
    ]  # fmt: skip


class Told:
    """A scripted model that keeps which answers of earlier turns a reader is told, and numbers its own."""

    def __init__(self) -> None:
        self.answers: dict[str, list[str]] = {}
        self.n = 0

    def __call__(self, request: Request) -> str:
        match request.task:
            case StandaloneTask() as task:
                return f"Of {', '.join(turn.answer for turn in task.history)}: {task.question}"
            case ActionTask():
                if match := re.search(r"Of (.*): (.*\?)", request.prompt):
                    self.answers[match[2]] = re.findall("'(.*?)'", match[1])
                self.n += 1
                return f"{self.n}. {re.findall('Who sold|who bought|When did', request.prompt)[-1]}"
        raise AssertionError(request.task)


def told(history: History, samples: Sequence[Sample], *methods: str) -> tuple[Told, dict[Any, Any]]:
    model = Told()
    records = run(Pearl(Scripted(model)), samples, *methods, history=history)
    assert all(each.status == "answered" for each in records.values())
    return model, records


def test_methods_are_told_the_right_answers_of_earlier_turns() -> None:
    model, records = told("gold", dialogue(), "direct")
    assert model.answers == {ASKED[1]: [RIGHT[0]], ASKED[2]: [*RIGHT[:2]]}
    assert [(r.dialogue, r.turn, r.n_turns) for r in records.values()] == [
        ("d", i, 3) for i in (1, 2, 3)
    ]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_methods_are_told_their_own_answers_in_any_order_of_turns(order: Sequence[int]) -> None:
    turns = dialogue()
    model, records = told("own", [turns[i] for i in order], "direct")
    answers = [records[f"d/{i}", "direct", 0].answer for i in (1, 2, 3)]
    assert model.answers == {ASKED[1]: answers[:1], ASKED[2]: answers[:2]}
    assert model.n == 3  # each turn once
    assert not set(answers) & set(RIGHT)


def test_a_turn_that_is_not_evaluated_has_no_answer_of_its_own() -> None:
    model, _ = told("own", dialogue()[2:], "direct")
    assert model.answers[ASKED[2]] == []


def test_turns_of_a_conversation_are_in_one_shard_and_have_rows_of_their_own() -> None:
    def units(history: History, samples: Sequence[Sample]) -> list[Any]:
        return list(Evaluation(("direct",), history=history).units(samples))

    gold = units("gold", dialogue())
    assert {unit.shard_key for unit in gold} == {"d"}
    keys = {
        history: [tuple(unit.depends_on) for unit in units(history, dialogue())]
        for history in ("gold", "own", "none")
    }
    assert keys["gold"][0] == keys["own"][0] == keys["none"][0]  # nothing is before it
    assert len({keys[history][2] for history in keys}) == 3
    other = [*dialogue()[:2], replace(dialogue()[2], history=dialogue()[1].history * 2)]
    assert samples_digest(other) != samples_digest(dialogue())


def log(*records: EvalRecord, **fields: Any) -> EvalLog:
    methods = tuple(dict.fromkeys(record.method for record in records))
    return EvalLog(header(methods=methods, scorer="numeric", **fields), records)


def figure(id: str, answer: str, reference: str, **fields: Any) -> EvalRecord:
    known: dict[str, Any] = {
        "options": (), "gold": None, "choice": None, "answer": answer, "reference": reference,
    }  # fmt: skip
    return record(id, **{**known, **fields})


def test_figures_by_the_rule_that_matched() -> None:
    answers = (
        ("9.5%", "9.5%"), ("0.09474", "9.5%"), ("12.04", "12.0"), ("101", "100"), ("7", "100"),
    )  # fmt: skip
    records = [
        figure(f"q{i}", *pair, duration_s=float(i), gold_program="add(1, 2)")
        for i, pair in enumerate(answers)
    ]
    records[0] = records[0].model_copy(update={"program": "add(2, 1)"})
    records[1] = records[1].model_copy(update={"program": "subtract(2, 1)"})
    records.append(figure("q5", "100", "100", status="failed", duration_s=5.0))
    (found,) = conversations.figures(log(*records))
    assert (found.n, found.exact, found.as_shown, found.one_percent) == (6, 1 / 6, 3 / 6, 4 / 6)
    assert (found.n_programs, found.program, found.n_no_program) == (5, 1 / 5, 3)
    assert found.execution == 0.0  # the programs come to 3 and 1; 12.04 is not 12.0
    assert (found.latency_p50_s, found.latency_p90_s) == (2.5, 4.5)


def turn(dialogue: str, number: int, score: float, **fields: Any) -> EvalRecord:
    return record(
        f"{dialogue}/{number}", dialogue=dialogue, turn=number, score=score,
        choice=0 if score else 1, **{"n_turns": 2, **fields},
    )  # fmt: skip


def test_only_whole_dialogues_count_as_such() -> None:
    records = [
        turn("a", 1, 1.0), turn("a", 2, 1.0), turn("b", 1, 1.0), turn("b", 2, 0.0), turn("c", 1, 1.0),
        turn("d", 1, 1.0, n_turns=0), turn("e", 2, 1.0),
    ]  # fmt: skip
    (found,) = conversations.by_dialogue(log(*records))
    assert (found.n, found.n_right, found.n_incomplete) == (2, 1, 3)
    assert found.accuracy is not None
    assert found.accuracy.estimate == 0.5
    turns = conversations.by_turn(log(*records))
    assert [(one.turn, one.n, one.accuracy.estimate) for one in turns] == [
        (1, 4, 1.0),
        (2, 3, 2 / 3),
    ]
    (cut,) = conversations.by_dialogue(log(records[4]))
    assert (cut.n, cut.n_incomplete, cut.accuracy) == (0, 1, None)


def test_every_seed_has_a_dialogue_of_its_own() -> None:
    records = [turn("a", i, float(seed), seed=seed) for seed in (0, 1) for i in (1, 2)]
    (found,) = conversations.by_dialogue(log(*records[:3]))
    assert (found.n, found.n_incomplete) == (1, 1)
    (found,) = conversations.by_dialogue(log(*records))
    assert (found.n, found.n_right) == (2, 1)
