"""FIRST_FOUND: the first result that found something; the steps of later ones run only if they are needed."""

from __future__ import annotations

import asyncio
import json
import random
import sys

import pytest

from pearl import Pearl
from pearl.cli.output import print_steps
from pearl.documents.document import Document
from pearl.dsl.graph import build_graph
from pearl.dsl.passes import n_following
from pearl.errors import ModelError, PlanError
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.runs.executors import Task
from pearl.runs.forecast import forecast
from pearl.trace import Trace
from pearl.view.answer_page import answer_page
from tests.figures import FIGURES

SENTENCE = "Turnover was 40 million in 2015."
DOCUMENT = Document(f"{SENTENCE}\n\nThe mill has 12 looms.\n\nAda runs the mill.", "mill.txt")


def said(value: str | None, quote: str | None = None) -> str:
    return json.dumps({"answer": value, "quote": quote})


FOUND, NOTHING, UNCLEAR = said("40 million", SENTENCE), said(None), '{"answer": {"a": ['
REPLIES = {"found": FOUND, "nothing": NOTHING, "undecided": UNCLEAR}


def model(**replies: str) -> Scripted:
    """A model with a reply for each step that may run."""

    def reply(request: Request) -> str:
        assert isinstance(request.task, ActionTask)
        text = replies[request.task.output]
        if text == "refused":
            raise ModelError("I cannot help with that", kind="refused")
        return text

    return Scripted(reply)


def plan(*steps: str) -> str:
    return "\n".join(f"{i}. {step} : Step {i}" for i, step in enumerate(steps, start=1))


TWO = plan('a = FIND(CTX, "net sales")', 'b = FIND(CTX, "turnover")', "ans = FIRST_FOUND(a, b)")


def pearl(by: Scripted) -> Pearl:
    return Pearl(by, library=FIGURES, check="off")


def run(text: str, by: Scripted, trace: Trace | None = None) -> Answer:
    async def work() -> Answer:
        async with pearl(by) as session:
            return await session.execute(text, DOCUMENT, trace=trace)

    return asyncio.run(work())


def states(answer: Answer) -> list[str]:
    return [step.state for step in answer.steps]


def test_a_later_step_runs_only_if_needed() -> None:
    trace = Trace()
    answer = run(TWO, model(a=FOUND), trace)
    assert (answer.text, answer.status, answer.value) == ("40 million", "answered", "40 million")
    assert states(answer) == ["found", "not_needed", "found"]
    assert [each.steps for each in answer.evidence] == [("a",)]
    assert answer.parts[0].evidence == (1,)
    assert answer.provenance["steps"] == ["a", "ans"]
    assert [(e.step, e.state) for e in trace if e.event == "step_finished"][-1] == (
        "b",
        "not_needed",
    )
    assert Answer.from_json(answer.to_json()).steps[1].state == "not_needed"
    page = answer_page(answer, DOCUMENT)
    assert "; not needed</p>" in page


def test_the_terminal_tells_what_was_not_needed(capsys: pytest.CaptureFixture[str]) -> None:
    print_steps(run(TWO, model(a=FOUND)).steps, sys.stdout)
    assert "b = FIND (not needed)\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", ['a', 'a, CTX', 'a, "unknown"', "a, 0", "a, [a, b]"],
)  # fmt: skip
def test_only_results_are_tried(arguments: str) -> None:
    text = plan('a = FIND(CTX, "x")', 'b = FIND(CTX, "y")', f"ans = FIRST_FOUND({arguments})")
    with pytest.raises(PlanError):
        run(text, model())


def random_plan(seed: int) -> tuple[str, dict[str, str]]:
    """A plan of reading, joining and trying steps, and the state of each reading step."""
    draw = random.Random(seed)
    steps, is_read = [], {}
    for i in range(draw.randint(3, 12)):
        earlier = [f"s{j}" for j in range(i)]
        kind = draw.choice(["read", "read", "try", "join"]) if len(earlier) > 1 else "read"
        if kind == "read":
            is_read[f"s{i}"] = draw.choice(["found", "nothing", "nothing", "undecided"])
            steps.append(f's{i} = FIND(CTX, "thing {i}")')
        else:
            used = draw.sample(earlier, draw.randint(2, min(4, len(earlier))))
            steps.append(
                f"s{i} = {'FIRST_FOUND' if kind == 'try' else 'CONCAT'}({', '.join(used)})"
            )
    return plan(*steps), is_read


@pytest.mark.parametrize("seed", range(25))
def test_exactly_what_is_needed_runs(seed: int) -> None:
    """The steps that run are those of an evaluation on demand, and the forecast holds them."""
    text, known = random_plan(seed)
    by = model(**{name: REPLIES[state] for name, state in known.items()})
    session = pearl(by)
    graph = build_graph(session.compile(text))
    steps = {step.output: step for step in graph.steps}
    ran: dict[str, str] = {}

    def state(name: str) -> str:
        if name not in ran:
            step, given = steps[name], [each.name for each in steps[name].references()]
            if step.action == "FIND":
                ran[name] = known[name]
            elif step.action == "CONCAT":
                found = [state(each) for each in given if each != "CTX"]
                ran[name] = next((s for s in ("undecided", "found") if s in found), "nothing")
            else:
                tried: list[str] = []
                for each in given:
                    tried.append(state(each))
                    # joined texts have what they found beside what is undecided
                    if tried[-1] == "found":
                        break
                ran[name] = next((s for s in ("found", "undecided") if s in tried), "nothing")
        return ran[name]

    for name in graph.checked.outputs:
        state(name)
    answer = run(text, by)
    got = {step.output: step.state for step in answer.steps if step.state != "not_needed"}
    assert got == ran
    asked = {request.task.output for request in by.requests if isinstance(request.task, ActionTask)}
    assert asked == {name for name in ran if name in known}
    bounds = forecast(session, [Task("1", plan=text, document=lambda: DOCUMENT)]).total
    assert bounds.calls.least <= len(asked) <= bounds.calls.upper == len(known)


def test_what_is_tried_second_comes_later() -> None:
    graph = build_graph(pearl(model()).compile(TWO))
    assert graph.levels() == ((0,), (1,), (2,))
    assert max(n_following(graph)) == 2
