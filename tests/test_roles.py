"""Several models in one run: which request carries which model name, and who decides what."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date

import pytest

import pearl
from pearl import Document, Pearl
from pearl.errors import UsageError
from pearl.llm.prices import Price, Prices
from pearl.replies.items import first_words, n_first_words
from pearl.runs.executors import Task
from pearl.runs.session import Session
from pearl.trace import StepFinished
from tests.server import Canned, Seen, Server, completion, serving

PLAN = """\
New actions:
- None

1. ans = FIND_REASON(CTX, "Nils selling the boat") : Find why he sold it"""

STORY = Document("Nils sold the boat because the hull was rotten.")

FRUITS = """\
1. lines = SPLIT(CTX, "line") : One row for each line
2. fruits = FILTER(lines, "it is a fruit") : Those"""

LINES = Document("apple\nbeet\ncarrot\ndate\negg")


def items(seen: Seen) -> list[str]:
    return [text for _, text in re.findall(r"<item (\d+)>\n(.*?)\n</item \1>", seen.prompt, re.S)]


def lines(seen: Seen, say: Callable[[str], str | None]) -> str:
    """A line for each item of a prompt; none for items without a reply."""
    n = n_first_words(items(seen)) if "with the first" in seen.prompt else 0
    said = [(i, text, say(text)) for i, text in enumerate(items(seen), start=1)]
    return (
        "\n".join(
            f"{i} | {first_words(text, n)}: {reply}" if n else f"{i}: {reply}"
            for i, text, reply in said
            if reply
        )
        or "I cannot say."
    )


class Models:
    """The models of a server by name, and what each was asked."""

    def __init__(self, server: Server, **says: Callable[[Seen], str]) -> None:
        self.server = server
        self.says = says
        server.answer = self.answer

    def answer(self, seen: Seen) -> Canned:
        return Canned(completion(self.says[seen.body["model"]](seen)))

    def asked(self, name: str) -> list[Seen]:
        return [seen for seen in self.server.requests if seen.body["model"] == name]

    def pearl(self, **roles: str) -> Pearl:
        names = {f"{role}_model": f"openai:{name}" for role, name in roles.items()}
        return Pearl("openai:main", base_url=self.server.url, api_key_env="", **names)


def test_plans_are_written_by_the_model_for_plans(openai_server: Server) -> None:
    models = Models(
        openai_server, planner=lambda seen: PLAN, main=lambda seen: "The hull was rotten."
    )
    answer = pearl.run(models.pearl(planner="planner").ask("Why did Nils sell the boat?", STORY))
    assert answer.text == "The hull was rotten."
    assert [seen.body["model"] for seen in openai_server.requests] == ["planner", "main"]


def test_only_undecided_rows_go_to_the_escalation_model(openai_server: Server) -> None:
    sure = {"apple": "yes", "egg": "no"}
    fruits = {"date": "yes", "beet": "no"}
    models = Models(
        openai_server,
        small=lambda seen: lines(seen, sure.get),
        big=lambda seen: lines(seen, fruits.get),
    )
    answer = pearl.run(models.pearl(rows="small", escalate="big").execute(FRUITS, LINES))
    rows = answer.steps[-1].rows
    assert rows is not None
    assert rows.values == ["apple", "date"]
    assert [row.value for row in rows.undecided] == ["carrot"]
    asked = [item for seen in models.asked("big") for item in items(seen)]
    assert {*asked} == {"beet", "carrot", "date"}
    assert not models.asked("main")
    assert answer.steps[-1].models == ("openai:small", "openai:big")
    assert answer.to_dict()["steps"][-1]["models"] == ["openai:small", "openai:big"]
    (event,) = (e for e in answer.trace if isinstance(e, StepFinished) and e.step == "fruits")
    assert event.models == answer.steps[-1].models
    assert event.n_calls == len(openai_server.requests)
    assert "fruits: 2 rows were undecided and then decided by openai:big" in answer.notes


def test_only_undecided_fields_go_to_the_escalation_model(openai_server: Server) -> None:
    def record(**fields: tuple[object, str | None]) -> str:
        return json.dumps({n: {"value": v, "quote": quote} for n, (v, quote) in fields.items()})

    text = "A 54-year-old man. He smokes. He weighs 80 kg."
    models = Models(
        openai_server,
        main=lambda seen: record(
            age=(54, "A 54-year-old man"), weight=(90, "He weighs 80 kg"), height=(180, "tall")
        ),
        big=lambda seen: record(
            age=(55, "A 54-year-old man"), weight=(80, "He weighs 80 kg"), height=(190, "tall")
        ),
    )
    plan = '1. record = EXTRACT(CTX, "age: int, weight: int, height: int") : Read them'
    answer = pearl.run(models.pearl(escalate="big").execute(plan, Document(text)))
    assert answer.record is not None
    fields = answer.record.fields
    assert {name: f.value for name, f in fields.items()} == {
        "age": 54,
        "weight": 80,
        "height": None,
    }
    assert fields["height"].state == "undecided"
    for seen in models.asked("big"):
        assert "weight: int" in seen.prompt
        assert "age: int" not in seen.prompt
    assert answer.steps[0].models == ("openai:main", "openai:big")


def test_a_refusal_of_the_escalation_model_loses_no_row(openai_server: Server) -> None:
    models = Models(openai_server, small=lambda seen: lines(seen, {"apple": "yes"}.get))
    refusal = completion(None, refusal="I'm sorry, I can't help with that.")
    openai_server.answer = lambda seen: (
        models.answer(seen) if seen.body["model"] == "small" else Canned(refusal)
    )
    answer = pearl.run(models.pearl(rows="small", escalate="big").execute(FRUITS, LINES))
    rows = answer.steps[-1].rows
    assert rows is not None
    assert (rows.values, len(rows.undecided)) == (["apple"], 4)


def test_another_backend_is_asked_at_its_own_server_with_its_own_key(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    with serving() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        monkeypatch.setenv("PEARL_API_KEY", "of-main")
        for server in (openai_server, other):
            Models(
                server, main=lambda seen: PLAN, small=lambda seen: lines(seen, lambda text: "no")
            )
        asker = Pearl("vllm:main", base_url=openai_server.url, rows_model="openai:small")
        plan = f'{FRUITS}\n3. ans = FIND_REASON(CTX, "fruit") : Find why'
        pearl.run(asker.execute(plan, LINES))
        keys = [
            {(seen.body["model"], seen.headers.get("authorization")) for seen in server.requests}
            for server in (openai_server, other)
        ]
    assert keys == [{("main", "Bearer of-main")}, {("small", "Bearer of-openai")}]


FREE, DEAR = Price(input_usd=0, output_usd=0), Price(input_usd=1_000, output_usd=0)


def fruit_models(server: Server) -> Models:
    """A model that decides one row in five, and one that decides all."""
    return Models(
        server,
        small=lambda seen: lines(seen, {"apple": "yes"}.get),
        big=lambda seen: lines(seen, lambda text: "no"),
    )


def test_each_model_is_billed_at_its_own_price(openai_server: Server) -> None:
    models = fruit_models(openai_server)
    table = Prices(date.today(), {"main": FREE, "small": FREE, "big": DEAR})
    tasks = [Task("a", lambda: LINES, plan=FRUITS)]
    asker = models.pearl(rows="small", escalate="big")
    session = Session(asker, prices=table, max_cost_usd=100)
    found = session.forecast(tasks)
    assert [(step.name, step.model) for step in found.steps] == [
        ("fruits = FILTER", "openai:small"),
        ("fruits = FILTER, undecided", "openai:big"),
    ]
    assert found.cost_usd is not None
    assert found.cost_usd.least == 0 < (found.cost_usd.most or 0)
    assert pearl.run(session.run(tasks)).status == "done"
    assert session.budget is not None
    assert session.budget.cost_usd == pytest.approx(0.1 * len(models.asked("big")))
    assert models.asked("big")


def test_a_limit_stops_before_a_call_of_the_dear_model(openai_server: Server) -> None:
    models = fruit_models(openai_server)
    table = Prices(date.today(), {"main": FREE, "small": FREE, "big": DEAR})
    asker = models.pearl(rows="small", escalate="big")
    session = Session(asker, prices=table, max_cost_usd=0.01)
    summary = pearl.run(session.run([Task("a", lambda: LINES, plan=FRUITS)]))
    assert (summary.status, summary.n_unfinished) == ("stopped", 1)
    assert models.asked("small")
    assert not models.asked("big")


def test_a_cost_limit_names_the_model_without_a_price(openai_server: Server) -> None:
    asker = fruit_models(openai_server).pearl(rows="small")
    with pytest.raises(UsageError, match="'openai:small' is unknown") as error:
        Session(asker, price=FREE, max_cost_usd=1)
    assert error.value.help is not None
    assert '"small" = { input = ' in error.value.help
