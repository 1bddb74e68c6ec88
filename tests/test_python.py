"""What callers in Python rely on: types, models of their own, flat rows, JSON and back, errors, logs, no network."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

import pearl
import pearl.arguments
from pearl.arguments import AnyModel, types
from pearl.errors import DataError, ExecutionError, ModelError, PausedError, PlanError, UsageError
from pearl.errors.callers import TEXTS
from pearl.llm import Completion, ModelBase, Request
from pearl.llm.client import ClientSettings
from pearl.settings import ROLES, Settings
from pearl.testing import Fake
from tests.root import ROOT

QUOTE = "Ada sold the boat because it leaked."
STORY = pearl.Document(f"{QUOTE} Otto slept.", "story.txt")
QUESTION = "Why did Ada sell the boat?"


class Letter(BaseModel):
    patient: str
    age: int | None = None


LETTER = pearl.Document("Maria Keller\nAge: 54", "letter.txt")

# --- settings ---------------------------------------------------------------------------------


def test_the_types_of_arguments_are_those_of_the_settings() -> None:
    plain = get_type_hints(Settings) | get_type_hints(ClientSettings, localns={"AsyncOpenAI": AsyncOpenAI})  # fmt: skip
    of_roles = {role: types()[role] for role in ROLES}
    wanted = {name: kind for name, kind in plain.items() if name not in ("model", "library")}
    assert types() == wanted | of_roles | {
        "examples": str | Path | None
    }  # files of settings name it
    assert set(of_roles.values()) == {AnyModel | None}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"max_concurency": 3}, "unknown setting 'max_concurency'"),
        ({"window": "3"}, "window: expected int or None, not '3'"),
        ({"prefix": "on"}, "prefix: expected 'auto' or 'off', not 'on'"),
        ({"strict": 1}, "strict: expected bool, not 1"),
        ({"concurrency": True}, "concurrency: expected int, not True"),
        ({"timeout_s": None}, "timeout_s: expected float, not None"),
        ({"as_of": "today"}, "as_of: expected date or None, not 'today'"),
        ({"fiscal_year_end": (9,)}, r"fiscal_year_end: expected \(int, int\), not \(9,\)"),
        ({"rows_model": 3}, "int is no model"),
        ({"model": 3}, "int is no model"),
    ],
)
def test_wrong_names_and_types_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        pearl.Pearl(**settings)
    pearl.Pearl(timeout_s=5, rows_model=lambda messages: "", fiscal_year_end=(12, 31), window=None)


def test_a_setting_may_take_values_in_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pearl.arguments, "types", lambda: {"stop": tuple[str, ...] | None})
    for right in ((), ("a",), ("a", "b"), None):
        pearl.arguments.check_arguments({"stop": right})
    for wrong in (("a", 1), ["a"], "a"):
        with pytest.raises(UsageError, match=r"stop: expected \(str, \.\.\.\) or None, not "):
            pearl.arguments.check_arguments({"stop": wrong})


SNIPPET = """
import pearl
from pydantic import BaseModel
class Letter(BaseModel):
    patient: str
document = pearl.Document("x")
asker = pearl.Pearl("extractive", window=5, rows_model=lambda messages: "x")
async def main() -> None:
    typed = await asker.ask("Who?", document, answer=Letter)
    reveal_type(typed.value)
    reveal_type((await asker.ask("Who?", document, answer="patient: str")).value)
    reveal_type((await asker.extract(Letter, document)).value)
    for found in await pearl.extract(Letter, [document], concurrency=2):
        reveal_type(found.value)
        reveal_type(found.rows)
        reveal_type(found.error)
    reveal_type((await asker.execute("", document)).value)
    pearl.Pearl(max_concurency=3)
    pearl.Pearl(window="3")
    await pearl.extract(Letter, [document], max_concurency=3)
"""


@pytest.mark.slow
def test_type_checkers_know_results_and_refuse_wrong_settings(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SNIPPET)
    told = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(tmp_path / "mine.py")],
        capture_output=True, text=True, check=False, cwd=ROOT, env={"MYPYPATH": str(ROOT)},
    ).stdout  # fmt: skip
    revealed = [line for line in told.splitlines() if "Revealed" in line]
    assert len(revealed) == 7, told
    assert not any("Any" in line for line in revealed), told
    assert sum("Letter | None" in line for line in revealed) == 3, told
    for wrong in ('"max_concurency" for "Pearl"', '"window" to "Pearl"', 'function "extract"'):
        assert wrong in told
    assert told.count("error:") == 4, told  # two for the overloaded function


# --- models of one's own ----------------------------------------------------------------------


def said(messages: list[dict[str, str]]) -> str:
    assert [each["role"] for each in messages] == ["system", "user"]
    writes = "write plans" in messages[0]["content"]
    return '1. why = FIND_REASON(CTX, "it") : Find out why' if writes else f"> {QUOTE}"


async def said_later(messages: list[dict[str, str]]) -> str:
    await asyncio.sleep(0)
    return said(messages)


class Said:
    async def __call__(self, messages: list[dict[str, str]]) -> str:
        return said(messages)


class Mine(ModelBase):
    async def complete(self, request: Request) -> Completion:
        return Completion(
            said([{"role": m.role, "content": m.content} for m in request.messages]), "x"
        )


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (said, "function:said"), (said_later, "function:said_later"), (Said(), "function:Said"),
        (lambda messages: said_later(messages), "function:<lambda>"), (Mine(), "Mine"),
    ],
)  # fmt: skip
def test_a_function_or_a_class_with_one_method_is_a_model(model: Any, name: str) -> None:
    answer = pearl.run(pearl.Pearl(model, check="off").ask(QUESTION, STORY))
    assert (answer.status, answer.evidence[0].text, answer.model) == ("answered", QUOTE, name)
    answer = pearl.run(pearl.Pearl(planner_model=model).ask(QUESTION, STORY))
    assert answer.steps[0].action == "FIND_REASON"


def failing(error: Exception) -> Any:
    def function(messages: list[dict[str, str]]) -> str:
        raise error

    return function


@pytest.mark.parametrize(
    ("function", "told", "kind"),
    [
        (lambda messages: 3, "returned int, not text", "bad_request"),
        (failing(KeyError("x")), "KeyError: 'x'", "bad_request"),
        (failing(ConnectionError("down")), "ConnectionError: down", "transport"),
        (failing(ModelError("busy", kind="rate_limited")), "busy", "rate_limited"),
    ],
)
def test_a_function_that_fails_is_a_model_error(function: Any, told: str, kind: str) -> None:
    with pytest.raises(ModelError, match=told) as caught:
        pearl.run(pearl.Pearl(function, attempts=1).ask(QUESTION, STORY))
    assert caught.value.kind == kind


def test_replies_of_two_functions_of_one_name_are_not_mixed() -> None:
    ones = [pearl.Pearl(lambda messages: said(messages)) for _ in range(2)]
    assert len({one.client.identity for one in ones}) == 2


def test_a_plan_is_a_text_a_path_or_checked_and_errors_name_it(tmp_path: Path) -> None:
    asker, file = pearl.Pearl(), tmp_path / "why.plan"
    text = '1. why = FIND_REASON(CTX, "the boat") : Find out why'
    file.write_text(text)
    for plan in (text, file, asker.compile(text)):
        assert pearl.run(asker.execute(plan, STORY)).text == QUOTE
    file.write_text("1. why = NOPE(CTX) : x")
    with pytest.raises(PlanError, match=rf"{file}:1:10: action 'NOPE'"):
        pearl.run(asker.execute(file, STORY))
    with pytest.raises(PlanError, match="plan:1:10: action 'NOPE'"):
        pearl.run(asker.execute(file.read_text(), STORY))
    with pytest.raises(UsageError, match=r"'why.plan' is no plan[^\0]*Path\(...\)"):
        pearl.run(asker.execute("why.plan", STORY))
    with pytest.raises(DataError, match="no such file"):
        pearl.run(asker.execute(tmp_path / "none.plan", STORY))


# --- rows, JSON and back ----------------------------------------------------------------------

PLANS = {
    "story.txt": '1. why = FIND_REASON(CTX, "the boat") : Find it\n2. all = LIST_ALL(CTX, "names") : List',
    "patients.csv": '1. r = SPLIT(CTX, "record") : Rows\n2. old = FILTER(r, "old") : Old\n3. n = COUNT(old) : Count',
    "visit.txt": '1. r = SPLIT(CTX, "sentence") : Rows\n2. k = CLASSIFY(r, ["a", "b"], "k") : Which\n3. t = GROUP(k, "k") : Table',
}


@pytest.mark.parametrize("name", ["story.txt", "patients.csv", "visit.txt"])
def test_answers_are_read_back_as_they_were_written(name: str) -> None:
    answer = pearl.run(
        pearl.Pearl(Fake()).execute(PLANS[name], pearl.load(ROOT / "tests/docs/folder" / name))
    )
    again = pearl.Answer.from_json(answer.to_json())
    assert again.to_dict() == answer.to_dict()
    for attribute in (
        "status",
        "why",
        "text",
        "value",
        "rows",
        "notes",
        "evidence",
        "usage",
        "coverage",
    ):
        assert getattr(again, attribute) == getattr(answer, attribute), attribute
    assert [step.output for step in again.steps] == [step.output for step in answer.steps]
    assert pearl.Answer.from_json(json.dumps({"id": "7", **answer.to_dict()})).text == answer.text


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"question": 1}', "[" * 100_000])
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="not an answer: "):
        pearl.Answer.from_json(text)


def test_each_field_of_an_answer_is_checked() -> None:
    data = pearl.run(pearl.Pearl().ask(QUESTION, STORY)).to_dict()
    for name in ("answer", "markdown", "evidence", "steps", "parts", "usage", "status", "model"):
        with pytest.raises(DataError, match="not an answer: "):
            pearl.Answer.from_json(json.dumps(data | {name: 7}))


def test_rows_of_an_answer_of_others_have_no_impossible_positions() -> None:
    table = pearl.Document("name,text\nAda,5\nOtto,7\n", "t.csv", kind="table")
    plan = '1. rows = SPLIT(CTX, "record") : Rows\n2. n = COUNT(rows) : Count'
    data = pearl.run(pearl.Pearl().execute(plan, table)).to_dict()
    row = data["evidence"][0]
    assert pearl.Answer.from_json(json.dumps(data)).rows[0]["start"] == row["start"]
    row |= {"start": 9, "end": 4}
    assert pearl.Answer.from_json(json.dumps(data)).rows[0]["start"] is None
    row |= {"cells": [{"column": "name", "text": "Ada"}]}
    with pytest.raises(DataError, match="not an answer: a cell has no position"):
        pearl.Answer.from_json(json.dumps(data))


def test_rows_of_an_answer_are_flat() -> None:
    table = pearl.Document("name,text\nAda,5\nOtto,7\n", "t.csv", kind="table")
    plan = '1. r = SPLIT(CTX, "record") : Rows\n2. n = COUNT(r) : Count'
    first, _ = pearl.run(pearl.Pearl().execute(plan, table)).rows
    assert first == {
        "name": "Ada", "text (field)": "5", "value": "Ada,5", "text": "Ada,5", "state": "found",
        "source": "t.csv", "page": None, "start": 10, "end": 15, "quote": "",
    }  # fmt: skip


def test_extractions_are_flat_rows_and_json() -> None:
    def reply(request: Request) -> str:
        name, dose = {"value": "iron", "quote": "iron 5 mg"}, {"value": 5, "quote": "iron 5 mg"}
        times = [{"value": said, "quote": said} for said in ("at noon", "at nine")]
        ages = [{"value": age, "quote": "Ada takes"} for age in (3, 4)]
        return json.dumps({
            "patient": {"value": "Ada", "quote": "Ada takes"}, "age": ages,
            "drugs": [{"name": name, "mg": dose, "times": times}],
        })  # fmt: skip

    schema = "patient: str, drugs: [{name: str, mg: int, times: [str]}]"
    document = pearl.Document("Ada takes iron 5 mg at noon and at nine.", "ward.txt")
    done, failed = pearl.run(
        pearl.extract(schema, [document, "missing.txt"], model=Fake(reply), check="off")
    )
    (aged,) = pearl.run(pearl.extract(f"{schema}, age: int", [document], model=Fake(reply), check="off"))  # fmt: skip
    assert (aged.value, aged.undecided) == (None, ("age",))
    assert aged.partial["drugs"] == [{"name": "iron", "mg": 5, "times": ["at noon", "at nine"]}]
    row, other = done.rows
    assert [each["drugs.times"] for each in (row, other)] == ["at noon", "at nine"]
    assert row.items() >= {
        "document": "ward.txt", "status": "answered", "patient": "Ada", "patient_state": "found",
        "patient_source": "ward.txt, characters 0-9", "drugs.name": "iron", "drugs.mg": 5,
    }.items()  # fmt: skip
    assert isinstance(failed.error, DataError)
    assert failed.rows == [
        {"document": "missing.txt", "status": "failed", "error": str(failed.error)}
    ]
    for each in (done, aged, failed):
        again = pearl.Extraction.from_dict(json.loads(json.dumps(each.to_dict())))
        assert again.to_dict() == each.to_dict()
        assert (again.value, again.rows, again.reasons) == (each.value, each.rows, each.reasons)
        assert (again.partial, again.undecided) == (each.partial, each.undecided)
        assert type(again.error) is type(each.error)
    for wrong in ({}, {"document": "x", "answer": None, "error": None}, {"document": "x", "answer": {}, "error": None}):  # fmt: skip
        with pytest.raises(DataError, match="not an "):
            pearl.Extraction.from_dict(wrong)


def test_groups_of_fields_are_judged_together() -> None:
    plan = (
        '1. a = EXTRACT(CTX, "patient: str") : A\n2. b = EXTRACT(CTX, "age: int, born: int?") : B'
    )
    for text, status, why in (
        ("Patient: Ada\nAge: 5 or 6\nBorn: 7 or 8", "degraded", "2 of 3 fields are undecided: age, born"),
        ("Patient: Ada\nAge: 5\nBorn: 7", "answered", ""),
    ):  # fmt: skip
        answer = pearl.run(pearl.Pearl().execute(plan, pearl.Document(text, "a")))
        assert (answer.status, answer.why) == (status, why)

    def reply(request: Request) -> str:
        said = {"patient": {"value": "Ada", "quote": "Ada came"}, "age": None, "born": None}
        prompt = str(request.messages)
        return json.dumps({name: said[name] for name in said if f'"{name}"' in prompt or f"{name}:" in prompt})  # fmt: skip

    answer = pearl.run(pearl.Pearl(Fake(reply), check="off").execute(plan, pearl.Document("Ada came.", "a")))  # fmt: skip
    assert answer.status == "answered", answer.why


def test_fields_may_have_the_names_of_columns() -> None:
    document = pearl.Document("document: bill\nstatus: paid\nvalue: 7\nquote: none", "a")
    (found,) = pearl.run(pearl.extract("document, status, value: int, quote", [document]))
    (row,) = found.rows
    assert (row["document"], row["status"]) == ("a", "answered")
    assert (row["document_"], row["status_"], row["value"]) == ("bill", "paid", 7)


def test_a_schema_makes_instances_of_what_is_read_back() -> None:
    (found,) = pearl.run(pearl.extract(Letter, [LETTER], model=Fake()))
    assert found.value == Letter(patient="Maria Keller", age=None)
    again = pearl.Extraction.from_dict(found.to_dict(), schema=Letter)
    assert again.value == found.value
    assert pearl.Extraction.from_dict(found.to_dict()).value == {
        "patient": "Maria Keller",
        "age": None,
    }


def test_documents_of_a_server_that_is_down_have_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pearl.llm.middleware.retry.SILENT_S", 0.0)  # as after a long time
    documents = [pearl.Document(f"Patient: {i}", f"{i}") for i in range(12)]
    found = pearl.run(pearl.extract("patient: str", documents, model=failing(ConnectionError("down")), first_wait_s=0.001))  # fmt: skip
    assert [each.status for each in found] == ["failed"] * 12
    assert all("down" in each.reasons[0] for each in found)
    assert {type(each.error) for each in found} <= {ExecutionError, PausedError}


# --- tests of others --------------------------------------------------------------------------


def test_a_fake_replies_by_schema_by_function_or_as_recorded() -> None:
    fake = Fake()
    answer = pearl.run(pearl.Pearl(fake).ask(QUESTION, STORY))
    assert (answer.method, answer.status, answer.evidence[0].text) == ("plan", "answered", QUOTE)
    plan = '1. why = FIND_REASON(CTX, "it") : Find'
    assert pearl.run(pearl.Pearl(Fake({"why": f"> {QUOTE}"})).execute(plan, STORY)).text == QUOTE
    with pytest.raises(ExecutionError, match="no reply was recorded for step 'why'"):
        pearl.run(pearl.Pearl(Fake({"who": "Ada"})).execute(plan, STORY))
    some = Fake(lambda request: "> Otto slept." if "Ada" in request.prompt and "CTX" not in request.prompt else None)  # fmt: skip
    assert pearl.run(pearl.Pearl(some).ask(QUESTION, STORY)).text == "Otto slept."


# --- hints, logs, the network -----------------------------------------------------------------


def test_hints_name_arguments_and_those_of_commands_options() -> None:
    from pearl.errors.callers import command_running

    def caught() -> str:
        with pytest.raises(ExecutionError) as error:
            pearl.run(pearl.Pearl(Fake(), context="full", window=1_500).execute('1. a = FIND(CTX, "x") : x', pearl.Document("word " * 9_000)))  # fmt: skip
        return str(error.value)

    assert "use `context` map-reduce" in caught()
    with command_running(print):
        assert "use --context map-reduce" in caught()


def test_the_logger_has_retries_and_degraded_answers_and_texts_only_if_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    replies = iter([ModelError("busy", kind="transport"), f'It leaked: "{QUOTE}" and "It sank."'])

    def reply(request: Request) -> str:
        said = next(replies)
        if isinstance(said, ModelError):
            raise said
        return said

    caplog.set_level(logging.DEBUG, "pearl")
    asker = pearl.Pearl(Fake(reply), first_wait_s=0.001, check="off")
    plan = '1. a = FIND(CTX, "x") : x'
    answer = pearl.run(asker.execute(plan, STORY))
    warnings = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert warnings[0].startswith("attempt 1 of 4 failed")
    assert warnings[1:] == [f"story.txt: the answer is degraded: {answer.why}"]
    assert "fake: ActionTask took" in caplog.text
    assert "Otto slept" not in caplog.text
    caplog.set_level(TEXTS, "pearl")
    pearl.run(pearl.Pearl(Fake()).execute(plan, STORY))
    assert "Otto slept" in caplog.text


def test_a_trace_takes_its_listener_alone() -> None:
    heard: list[str] = []
    pearl.run(
        pearl.Pearl().ask(QUESTION, STORY, trace=pearl.Trace(lambda e: heard.append(e.event)))
    )
    assert heard[-1] == "run_finished"


def test_nothing_is_sent_before_the_first_call(tmp_path: Path) -> None:
    code = """
import socket
def refused(*_): raise SystemExit("the network")
for name in ("connect", "connect_ex", "sendto"): setattr(socket.socket, name, refused)
socket.getaddrinfo = socket.create_connection = refused
import pearl
asker = pearl.Pearl("openai:gpt-4o", api_key_env="KEY")
plan = asker.compile('1. a = FIND(CTX, "x") : x')
tasks = [pearl.Task("1", lambda: pearl.Document("word " * 900), plan=str(plan))]
print(pearl.Session(asker).forecast(tasks).n_tasks, asker.client.counter.method)
"""
    env = {"KEY": "x", "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env
    )
    assert done.stdout == "1 estimate: vocabulary o200k_base is not on this machine\n", done.stderr


def test_results_are_printed_without_replies_and_traces() -> None:
    """These may be as long as a document."""
    told = Fake(lambda request: json.dumps({"answer": "It leaked.", "quotes": [QUOTE]}))
    tasks = [pearl.Task("a", lambda: STORY, plan='1. a = FIND(CTX, "why") : Find why')]

    async def outcomes() -> list[Any]:
        return [each async for each in pearl.Session(pearl.Pearl(told)).run(tasks)]

    (outcome,) = asyncio.run(outcomes())
    (step,) = outcome.result.steps
    assert f"\n> {QUOTE}" in step.reply
    assert "output='a'" in repr(step)
    assert f"> {QUOTE}" not in repr(step)
    assert "ModelCalled" in repr(list(outcome.trace))
    assert "ModelCalled" not in repr(outcome)
    assert f"> {QUOTE}" not in repr(outcome.result.parts)
