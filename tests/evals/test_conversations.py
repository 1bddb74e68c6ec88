"""Conversations: what methods are told of earlier turns."""

from __future__ import annotations

import re
from dataclasses import replace

from pearl import Pearl
from pearl.data.samples import Sample, Turn
from pearl.evals.runner import Evaluation, samples_digest
from pearl.llm import ActionTask, Request, StandaloneTask
from pearl.llm.backends.scripted import Scripted
from tests.evals.asking import STORY, run

ASKED = ("Who sold the boat?", "And who bought it?", "When did they meet?")
RIGHT = ("Nils", "Ada", "At dawn")


def dialogue() -> list[Sample]:
    """The turns of a conversation of three."""
    turns = tuple(map(Turn, ASKED, RIGHT))
    return [
        Sample(f"d/{i + 1}", turn.question, STORY, reference=turn.answer, history=turns[:i])
        for i, turn in enumerate(turns)
    ]


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


def test_methods_are_told_the_right_answers_of_earlier_turns() -> None:
    model = Told()
    records = run(Pearl(Scripted(model)), dialogue(), "direct")
    assert all(each.status == "answered" for each in records.values())
    assert model.answers == {ASKED[1]: [RIGHT[0]], ASKED[2]: [*RIGHT[:2]]}


def test_a_turn_with_other_turns_before_it_is_another_sample() -> None:
    other = [*dialogue()[:2], replace(dialogue()[2], history=dialogue()[1].history * 2)]
    assert samples_digest(other) != samples_digest(dialogue())
    keys = [
        [tuple(unit.depends_on) for unit in Evaluation(("direct",)).units(samples)]
        for samples in (dialogue(), other)
    ]
    assert keys[0][:2] == keys[1][:2]
    assert keys[0][2] != keys[1][2]
