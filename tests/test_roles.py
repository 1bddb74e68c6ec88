"""Several models in one run: which request carries which model name, and who decides what."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

import pearl
from pearl import Document, Pearl
from pearl.errors import UsageError
from pearl.llm.prices import Price, Prices
from pearl.runs.executors import Task
from pearl.runs.session import Session
from pearl.trace import StepFinished
from tests.models import verdicts, written
from tests.server import Canned, Seen, Server, completion, serving

FRUITS = """\
1. lines = SPLIT(CTX, "line") : One row for each line
2. fruits = FILTER(lines, "it is a fruit") : Those"""

LINES = Document("apple\nbeet\ncarrot\ndate\negg")


def items(seen: Seen) -> list[str]:
    return [text for _, text in re.findall(r"<item (\d+)>\n(.*?)\n</item \1>", seen.prompt, re.S)]


def lines(seen: Seen, say: Callable[[str], str | None]) -> str:
    """A reply about the items of a prompt that something is said of."""
    return written(seen.prompt, [say(text) for text in items(seen)])


class Models:
    """The models of a server by name: what each says, and was asked."""

    def __init__(self, server: Server, **says: Callable[[Seen], str]) -> None:
        self.server = server
        self.says = says
        server.answer = lambda seen: Canned(completion(says[seen.body["model"]](seen)))

    def asked(self, name: str) -> list[Seen]:
        return [seen for seen in self.server.requests if seen.body["model"] == name]

    def pearl(self, *, concurrency: int = 8, **roles: str) -> Pearl:
        names = {f"{role}_model": f"openai:{name}" for role, name in roles.items()}
        return Pearl(
            "openai:main", base_url=self.server.url, api_key_env="", concurrency=concurrency,
            **names,
        )  # fmt: skip


def test_undecided_rows_and_no_others_go_to_the_escalation_model(openai_server: Server) -> None:
    sure, fruits = {"apple": "yes", "egg": "no"}, {"date": "yes", "beet": "no"}
    models = Models(
        openai_server,
        planner=lambda seen: f"New actions:\n- None\n\n{FRUITS}",
        small=lambda seen: lines(seen, sure.get),
        big=lambda seen: lines(seen, fruits.get),
    )
    asker = models.pearl(planner="planner", rows="small", escalate="big")
    answer = pearl.run(asker.ask("Which lines name a fruit?", LINES))
    step = answer.steps[-1]
    assert step.rows is not None
    assert step.rows.values == ["apple", "date"]
    assert [row.value for row in step.rows.undecided] == ["carrot"]
    marked = {row["text"]: row.get("decided_by") for row in answer.to_dict()["evidence"]}
    assert (marked["apple"], marked["date"]) == (None, ["openai:big"])
    assert {text for seen in models.asked("big") for text in items(seen)} == {
        "beet",
        "carrot",
        "date",
    }
    assert len(models.asked("planner")) == 1
    assert not models.asked("main")
    assert answer.to_dict()["steps"][-1]["models"] == ["openai:small", "openai:big"]
    assert answer.model == (
        "openai:main (planner: openai:planner, rows: openai:small, escalate: openai:big)"
    )
    (event,) = (e for e in answer.trace if isinstance(e, StepFinished) and e.step == "fruits")
    assert (event.models, event.n_calls) == (step.models, len(openai_server.requests) - 1)
    assert "fruits: 2 rows were undecided and then decided by openai:big" in answer.notes


def test_undecided_fields_and_no_others_go_to_the_escalation_model(openai_server: Server) -> None:
    def record(**fields: tuple[object, str]) -> str:
        return json.dumps({n: {"value": v, "quote": quote} for n, (v, quote) in fields.items()})

    man, weighs = "A 54-year-old man", "He weighs 80 kg"
    models = Models(
        openai_server,
        main=lambda seen: record(age=(54, man), weight=(90, weighs), height=(180, "tall")),
        big=lambda seen: record(age=(55, man), weight=(80, weighs), height=(190, "tall")),
    )
    plan = '1. record = EXTRACT(CTX, "age: int, weight: int, height: int") : Read them'
    document = Document(f"{man}. He smokes. {weighs}.")
    answer = pearl.run(models.pearl(escalate="big").execute(plan, document))
    assert answer.record is not None
    fields = {name: field.value for name, field in answer.record.fields.items()}
    assert fields == {"age": 54, "weight": 80, "height": None}
    assert answer.record.undecided == ("height",)
    assert ["age: int" in seen.prompt for seen in models.asked("big")] == [False]
    assert answer.steps[0].models == ("openai:main", "openai:big")


def test_a_refusal_of_the_escalation_model_loses_no_row(openai_server: Server) -> None:
    cut = completion("It is", finish_reason="length")
    refusal = completion(None, refusal="I'm sorry, I can't help with that.")

    def answer(seen: Seen) -> Canned:
        if seen.body["model"] == "big":
            return Canned(refusal)
        return Canned(completion("A fruit.") if "apple" in seen.prompt else cut)

    models = Models(openai_server)
    openai_server.answer = answer
    plan = '1. lines = SPLIT(CTX, "line") : Split\n2. gist = EACH_SUMMARIZE(lines) : Each'
    answered = pearl.run(models.pearl(rows="small", escalate="big").execute(plan, LINES))
    rows = answered.steps[-1].rows
    assert rows is not None
    assert [row.fields["gist"] for row in rows.every] == ["A fruit.", None, None, None, None]


def test_models_of_one_server_share_its_places(openai_server: Server) -> None:
    models = Models(
        openai_server, main=lambda seen: "Yes.", small=lambda seen: lines(seen, lambda text: "no")
    )
    openai_server.delay_s, openai_server.n_together = 0.3, 2
    plan = f'{FRUITS}\n3. why = FIND_REASON(CTX, "fruit") : Find why'
    pearl.run(models.pearl(rows="small", concurrency=1).execute(plan, LINES))
    assert {seen.body["model"] for seen in openai_server.requests} == {"main", "small"}
    assert openai_server.n_at_once == 1


def test_another_backend_is_asked_at_its_own_server_with_its_own_key(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_API_KEY", "of-main")
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    with serving() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        for server in (openai_server, other):
            Models(
                server, main=lambda seen: "Yes.", small=lambda seen: lines(seen, lambda text: "no")
            )
        asker = Pearl("vllm:main", base_url=openai_server.url, rows_model="openai:small")
        plan = f'{FRUITS}\n3. why = FIND_REASON(CTX, "fruit") : Find why'
        pearl.run(asker.execute(plan, LINES))
        keys = [
            {(seen.body["model"], seen.headers.get("authorization")) for seen in server.requests}
            for server in (openai_server, other)
        ]
    assert keys == [{("main", "Bearer of-main")}, {("small", "Bearer of-openai")}]


FREE, DEAR = Price(input_usd=0, output_usd=0), Price(input_usd=1_000, output_usd=0)


@pytest.mark.parametrize(("max_cost", "status"), [(100, "done"), (0.01, "stopped")])
def test_each_model_has_its_own_price(openai_server: Server, max_cost: float, status: str) -> None:
    models = Models(
        openai_server,
        small=lambda seen: lines(seen, {"apple": "yes"}.get),
        big=lambda seen: lines(seen, lambda text: "no"),
    )
    asker = models.pearl(rows="small", escalate="big")
    table = Prices(date.today(), {"main": FREE, "small": FREE, "big": DEAR})
    session = Session(asker, prices=table, max_cost_usd=max_cost)
    tasks = [Task("a", lambda: LINES, plan=FRUITS)]
    found = session.forecast(tasks)
    assert [(step.name, step.model) for step in found.steps] == [
        ("fruits = FILTER", "openai:small"),
        ("fruits = FILTER, undecided", "openai:big"),
    ]
    assert found.cost_usd is not None
    assert found.cost_usd.least == 0 < found.cost_usd.upper
    assert pearl.run(session.run(tasks)).status == status
    assert session.budget is not None
    assert session.budget.cost_usd == pytest.approx(0.1 * len(models.asked("big")))
    assert models.asked("small")
    assert bool(models.asked("big")) == (status == "done")
    assert session.spec(tasks).key != Session(models.pearl()).spec(tasks).key


COMPOSED = """\
1. why = FIND_REASON(CTX, "the sale") : Find why
2. what = FIND_EVENT(CTX, "the sale") : Find what
3. answer = ANSWER("Why was it sold?", why, what) : Answer"""
BOAT = "The boat was sold because it leaked."


def composing(seen: Seen) -> str:
    if "End every sentence" in seen.prompt:
        return "The boat leaked [1]. It leaked in rain [1]. It was not sold [2]."
    return json.dumps({"answer": "It leaked.", "quotes": [BOAT]})


def judging(seen: Seen) -> str:
    claims = re.findall(r"<claim \d+>(.*?)</claim", seen.prompt)
    return verdicts(*("contradicted" if " not " in text else "supported" for text in claims))


def test_a_model_of_its_own_checks_what_an_answer_says(
    openai_server: Server, tmp_path: Path
) -> None:
    models = Models(openai_server, main=composing, small=judging)
    document = Document(f"It rained. {BOAT} It was in May.")
    tasks = [Task("a", lambda: document, plan=COMPOSED)]
    asker = models.pearl(checker="small")
    table = Prices(date.today(), {"main": FREE, "small": DEAR})
    session = Session(asker, store=tmp_path / "kept", prices=table)
    found = {step.name: step for step in session.forecast(tasks).steps}
    row = found["answer = ANSWER, checked"]
    assert (row.model, row.calls.least, row.calls.most) == ("openai:small", 0, 2)
    run = pearl.run(session.run(tasks))
    (result,) = session.rows(run.id)
    assert (result["answer"], result["status"]) == (
        "The boat leaked. It leaked in rain. […]\n\nFind what: It leaked.",
        "degraded",
    )
    assert result["model"] == "openai:main (checker: openai:small)"
    step = result["steps"][-1]
    assert step["models"] == ["openai:main", "openai:small"]
    assert step["checks"]["by"] == "openai:small"
    assert [each["verdict"] for each in step["checks"]["sentences"]] == [
        "supported",
        "supported",
        "contradicted",
    ]
    (seen,) = models.asked("small")
    assert "<passage 1>\nIt rained. [[" + BOAT + "]] It was in May.\n</passage 1>" in seen.prompt
    assert session.budget is not None
    assert session.budget.cost_usd == pytest.approx(0.1)  # of the checker alone
    assert row.usd is not None
    assert session.budget.cost_usd <= row.usd.upper
    openai_server.forget()
    other = Session(models.pearl(checker="small", rows="main"), store=tmp_path / "kept")
    (again,) = other.rows(pearl.run(other.run(tasks)).id)
    assert again["answer"] == result["answer"]
    assert not openai_server.requests  # the replies are kept, those of the checker, too


@pytest.mark.parametrize("budget", [1_500, 4_000, 40_000])
def test_a_token_budget_has_a_share_for_the_check(openai_server: Server, budget: int) -> None:
    models = Models(openai_server, main=composing, small=judging)
    asker = models.pearl(checker="small")
    execution = asker.execute(COMPOSED, Document(f"It rained. {BOAT}"), token_budget=budget)
    answer = pearl.run(execution)
    n_tokens = [asker.client.counter.count(seen.prompt) for seen in openai_server.requests]
    assert sum(n_tokens) <= budget
    assert len(models.asked("small")) == (budget > 1_500)
    assert ("[…]" in answer.text) == (budget > 1_500)


def test_a_cost_limit_names_all_models_without_a_price(openai_server: Server) -> None:
    asker = Models(openai_server).pearl(rows="small", escalate="big")
    with pytest.raises(UsageError, match="'openai:small', 'openai:big' is unknown") as error:
        Session(asker, price=FREE, max_cost_usd=1)
    assert error.value.help is not None
    assert '"small" = { input = ' in error.value.help
    assert '"big" = { input = ' in error.value.help
