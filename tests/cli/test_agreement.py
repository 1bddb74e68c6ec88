"""What people are told of how far the plans of a question agree; the model is scripted."""

from __future__ import annotations

import asyncio
from io import StringIO

from pearl import Document, Pearl, Trace
from pearl.cli.output import print_answer
from pearl.cli.progress import Reporter
from pearl.interpreter.answer import Answer
from tests.interpreter.test_several_plans import DOCUMENT, asked, model


def shown(answer: Answer, *, with_steps: bool = False) -> str:
    file = StringIO()
    print_answer(answer, file, with_steps=with_steps)
    return file.getvalue()


def test_one_line_says_how_many_plans_agree() -> None:
    answer, _ = asked("$6", "$5", "$5.00", "!")
    assert "\nagreement: 2 of 4 different plans (50 %)\n" in shown(answer)
    assert "$6" not in shown(answer)


def test_verbose_shows_what_the_other_plans_say() -> None:
    answer, _ = asked("$6", "$5", "$5.00", "!")
    said = shown(answer, with_steps=True)
    assert "\n  plan 1 (answered): $6\n" in said
    assert "\n  plan 4 (failed): " in said
    assert "plan 2 (" not in said


def test_without_several_plans_nothing_is_said_of_agreement() -> None:
    answer = asyncio.run(Pearl().ask("Why did Ada go?", Document("Ada went because it rained.")))
    assert "agreement" not in shown(answer)


def test_progress_tells_plans_that_run_at_the_same_time_apart() -> None:
    reporter = Reporter(1)
    seen: set[str] = set()

    def listen(event: object) -> None:
        reporter("q", event)  # type: ignore[arg-type]
        seen.update(reporter._tasks)

    pearl = Pearl(model("$5", "$6", "$5"), n_plans=3)
    asyncio.run(pearl.ask("How much?", DOCUMENT, trace=Trace("q", listen)))
    assert seen == {"q plan 1", "q plan 2", "q plan 3"}
    assert reporter._tasks == {}
