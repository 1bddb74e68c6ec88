"""What people see while they wait."""

from __future__ import annotations

import asyncio

import pytest

from pearl import Document, Pearl, Trace
from pearl.cli import progress
from pearl.cli.progress import Reporter
from pearl.llm.backends.scripted import Scripted
from pearl.trace import Event, ModelProgressed, StepFailed

PLAN = 'New actions:\n- None\n\n1. reason = FIND_REASON(CTX, "the boat") : Find why it was sold\n'
QUESTION = "Why did Ada sell the boat?"


@pytest.mark.parametrize("total", [1, 2])
def test_the_progress_of_a_private_run_has_no_words_of_data_questions_and_replies(
    total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_PRIVATE", "1")
    reporter, screen, lines = Reporter(total), progress.PlanProgress(), []

    def listen(event: Event) -> None:
        reporter("Zelmira", event)
        screen.note(event)
        lines.append(reporter._line())
        lines.extend(map(str, (*screen.parts.values(), *screen.steps.values())))

    plans = [
        "1. Zelmira = NO_SUCH(CTX) : x",
        PLAN.replace("reason", "zelmira").replace("boat", "Zelmira"),
    ]
    asker = Pearl(Scripted(lambda request: plans.pop(0) if plans else "It leaked."))
    asyncio.run(asker.ask(QUESTION, Document("It leaked."), trace=Trace("Zelmira", listen)))
    listen(ModelProgressed(purpose="step", phase="writing", step="zelmira", text="Zelmira"))
    listen(StepFailed(step="zelmira", error="no Zelmira"))
    assert "1 problem in attempt 1" in str(lines)
    assert "step 1 of 1" in str(lines)
    assert "zelmira" not in str(lines).casefold()
