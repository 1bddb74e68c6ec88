"""The benchmark's questions, planned by rule and answered from labels that are all right."""

from __future__ import annotations

import asyncio
import importlib

import pytest

from pearl import Document, Pearl
from pearl.llm import ItemsTask, PlanTask, Request
from pearl.llm.backends.extractive.planning import write_plan
from pearl.llm.backends.scripted import Scripted
from tests.models import item_lines
from tests.root import ROOT

NOT_PLANNED = {"first month with more", "months with more", "months with most"}
"""What asks for the most of each of many groups."""


@pytest.mark.slow
def test_the_plans_give_the_right_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments")
    windows, questions, wording, scoring = (
        importlib.import_module(f"aggregation.{name}")
        for name in ("windows", "questions", "wording", "scoring")
    )
    window = windows.draw_window(300, 1)

    def reply(request: Request) -> str:
        task = request.task
        if isinstance(task, PlanTask):
            return write_plan(task.question, task.library)
        assert isinstance(task, ItemsTask)

        def label(item: str) -> str:
            right: str = window.labels_of[item.partition("Instance: ")[2].strip()]
            return right if right in task.labels else "another label"

        return item_lines(request, label)

    async def ask() -> dict[str, float]:
        pearl = Pearl(Scripted(reply))
        document = Document(window.text, "window.txt")
        scores = {}
        for asked in questions.draw_questions(window, 1, 29):
            if asked.template not in NOT_PLANNED:
                answer = await pearl.ask(wording.words(asked.query, window.labels), document)
                scores[asked.template] = scoring.score(asked.query.kind, answer.text, asked.right)
        await pearl.aclose()
        return scores

    scores = asyncio.run(ask())
    assert len(scores) > 22
    assert set(scores.values()) == {1.0}, scores
