"""Several plans over one document, written by a scripted model that is no language model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from pearl.documents.document import Document
from pearl.errors import ExecutionError, ModelError, PlanningError
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask, PlanTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.runs.store import Store
from pearl.trace import PlansCompared, RunFinished, Trace
from tests.server import Canned, Seen, Server, completion

DOCUMENT = Document("Mara stayed because she had lost the ticket. Ada paid 5 dollars.", "story")


def model(*answers: str) -> Scripted:
    """A scripted model: plan n asks for `part n`, whose answer is the n-th; "!" fails, "" writes no plan."""
    seeds: dict[int | None, int] = {}

    def reply(request: Request) -> str:
        task = request.task
        if isinstance(task, PlanTask):
            number = seeds.setdefault(request.seed, len(seeds) + 1)
            if not answers[number - 1]:
                return "no plan"
            return f'1. ans = FIND(CTX, "part {number}") : Find it'
        assert isinstance(task, ActionTask)
        said = answers[int(dict(task.arguments).get("X", "part 1").removeprefix("part ")) - 1]
        if said == "!":
            raise ModelError("cut off", kind="bad_request")
        return said

    return Scripted(reply)


def asked(*answers: str, **settings: object) -> tuple[Answer, Scripted]:
    scripted = model(*answers)
    pearl = Pearl(scripted, n_plans=len(answers), max_repairs=0, **settings)  # type: ignore[arg-type]
    return asyncio.run(pearl.ask("How much did Ada pay?", DOCUMENT)), scripted


def test_the_answer_is_that_of_most_plans_with_the_others_kept() -> None:
    answer, scripted = asked("$6", "$5", "$5.00")
    assert answer.text == "$5"
    assert 'FIND(CTX, "part 2")' in answer.plan
    assert answer.agreement is not None
    assert answer.agreement.confidence == pytest.approx(2 / 3)
    assert [each.text for each in answer.agreement.others] == ["$6"]
    assert len(scripted.requests) == 6


def test_equal_plans_are_run_once_and_confirm_nothing() -> None:
    scripted = Scripted(
        lambda r: '1. ans = FIND(CTX, "it") : f' if isinstance(r.task, PlanTask) else "5"
    )
    answer = asyncio.run(Pearl(scripted, n_plans=5).ask("How much?", DOCUMENT))
    assert sum(isinstance(request.task, ActionTask) for request in scripted.requests) == 1
    assert answer.text == "5"
    assert answer.agreement is not None
    assert answer.agreement.confidence is None
    assert str(answer.agreement).startswith("unknown: one plan was written 5 times")


def test_a_tie_is_undecided_and_shows_both() -> None:
    answer, _ = asked("the mill", "the boat")
    assert answer.status == "undecided"
    assert answer.text == f"undecided: {answer.why}"
    assert "the mill" in answer.text
    assert "the boat" in answer.text
    row = json.loads(json.dumps(answer.to_dict()))
    assert (row["status"], row["agreement"]["confidence"]) == ("undecided", None)
    assert "the plans disagree" in answer._repr_html_()


def test_plans_that_fail_are_counted_and_confirm_nothing() -> None:
    answer, _ = asked("$5", "!", "$5", "", "!")
    assert answer.text == "$5"
    assert str(answer.agreement) == (
        "2 of 4 different plans (50 %); 1 of 5 plans could not be written"
    )


def test_where_every_plan_fails_the_question_does() -> None:
    with pytest.raises(ExecutionError, match="cut off"):
        asked("!", "!")
    with pytest.raises(PlanningError):
        asked("", "")


def test_usage_and_events_are_those_of_all_plans() -> None:
    trace = Trace("q")
    scripted = model("$5", "$6", "$5")
    answer = asyncio.run(Pearl(scripted, n_plans=3).ask("How much?", DOCUMENT, trace=trace))
    finished = [event for event in trace if isinstance(event, RunFinished)]
    assert sorted(event.plan_number or 0 for event in finished) == [1, 2, 3]
    (compared,) = [event for event in trace if isinstance(event, PlansCompared)]
    assert (compared.n_plans, compared.n_different, compared.n_agreeing) == (3, 3, 2)
    assert answer.trace is trace
    assert trace.n_calls == 6
    assert answer.usage == trace.usage
    again = Trace.from_jsonl("q", trace.to_jsonl())
    assert list(again) == list(trace)


def test_a_question_asked_of_several_documents_has_its_plans_written_once() -> None:
    scripted = model("$5", "$6", "$5")

    async def main() -> None:
        async with Pearl(scripted, n_plans=3) as pearl:
            for name in "abc":
                await pearl.ask("How much?", Document(DOCUMENT.text, name))

    asyncio.run(main())
    assert sum(isinstance(request.task, PlanTask) for request in scripted.requests) == 3


def test_different_plans_share_the_budget_of_a_question() -> None:
    long = Document("Ada paid 5 dollars. " * 2_000, "long")

    def largest(n_plans: int) -> int:
        scripted = model(*["$5"] * n_plans)
        pearl = Pearl(scripted, n_plans=n_plans)
        asyncio.run(pearl.ask("How much?", long, token_budget=6_000))
        tasks = [r.task for r in scripted.requests if isinstance(r.task, ActionTask)]
        return max(len(task.document or "") for task in tasks)

    assert 2.5 < largest(1) / largest(3) < 4


def test_seeds_go_over_the_wire_and_kept_replies_are_not_asked_for_again(
    openai_server: Server, tmp_path: Path
) -> None:
    numbers: dict[int | None, int] = {}

    def answer(seen: Seen) -> Canned:
        if "New actions" in seen.prompt:
            number = numbers.setdefault(seen.body.get("seed"), len(numbers))
            return Canned(completion(f'1. ans = FIND(CTX, "amount {number}") : Find it'))
        number = int(seen.prompt.rpartition('"amount ')[2][0])
        return Canned(completion(["$6", "$5", "5 dollars"][number]))

    openai_server.answer = answer

    async def main() -> Answer:
        with Store.open(tmp_path / "store") as store:
            async with Pearl(
                "openai:m", n_plans=3, replies=store,
                base_url=openai_server.url, api_key_env="", constrain="off",
            ) as pearl:  # fmt: skip
                return await pearl.ask("How much did Ada pay?", DOCUMENT)

    first, n_sent = asyncio.run(main()), len(openai_server.requests)
    assert first.text in ("$5", "5 dollars")
    assert str(first.agreement) == "2 of 3 different plans (67 %)"
    planned = [seen.body for seen in openai_server.requests if "New actions" in seen.prompt]
    assert sorted(body["temperature"] for body in planned) == [0.0, 0.7, 0.7]
    assert len({body.get("seed") for body in planned}) == 3
    assert asyncio.run(main()).agreement == first.agreement
    assert n_sent == len(openai_server.requests) == 6
