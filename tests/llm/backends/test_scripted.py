"""Replies written beforehand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pearl.errors import DataError, ModelError, UsageError
from pearl.llm import Message, Model, Request
from pearl.llm.backends import create_model
from pearl.llm.backends.scripted import Scripted
from tests.llm.backends.asking import complete
from tests.models import answer_task


def request(prompt: str) -> Request:
    return Request((Message("user", prompt),), answer_task(prompt, ""))


def ask(model: Model, of: Request) -> str:
    return complete(model, of).text


def rules(folder: Path, *pairs: tuple[str, str]) -> Model:
    file = folder / "rules.json"
    file.write_text(json.dumps([{"match": match, "reply": reply} for match, reply in pairs]))
    return create_model(f"scripted:{file}")


def test_a_blank_reply_is_an_error() -> None:
    with pytest.raises(ModelError) as caught:
        ask(Scripted(lambda request: " \n"), request("?"))
    assert caught.value.kind == "empty"


def test_the_first_rule_that_matches_replies_as_often_as_asked(tmp_path: Path) -> None:
    model = rules(tmp_path, ("Who.*cat", "first"), ("cat", "second"), ("", "else"))
    assert [ask(model, request(p)) for p in ("Who\nis the cat?", "a cat", "a cat", "dog")] == [
        "first", "second", "second", "else",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (r"It was \1.", "It was Ada."),
        (r"It was \g<name>.", "It was Ada."),
        ("two\nlines", "two\nlines"),
        (r"\alpha + \2", r"\alpha + \2"),
        (r"C:\Users", r"C:\Users"),
    ],
)
def test_a_reply_may_refer_to_groups(tmp_path: Path, reply: str, text: str) -> None:
    model = rules(tmp_path, (r"name is (?P<name>\w+)", reply))
    assert ask(model, request("The name is Ada")) == text


def test_a_prompt_without_a_rule_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"no rule of .*rules\.json matches[^\0]*'a cat'"
    ) as caught:
        ask(rules(tmp_path, ("dog", "x")), request("a cat"))
    assert caught.value.kind == "bad_request"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "truncated"),
        (b"not JSON", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"{}", "Expected array"),
        (b'[{"match": "x"}]', "0.reply: is missing"),
        (b'[{"match": "x", "reply": 5}]', "0.reply"),
        (b'[{"match": "x", "reply": "y", "when": 1}]', "0.when: is unknown"),
        (b'[{"match": "(", "reply": "y"}]', "0.match"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "rules.json"
    file.write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        create_model(f"scripted:{file}")
    assert str(caught.value).startswith(f"{file}: ")
    assert len(str(caught.value).splitlines()) <= 3


def test_a_file_must_be_named_and_readable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="for example scripted:"):
        create_model("scripted:")
    for path in (tmp_path, tmp_path / "nowhere.json"):
        with pytest.raises(DataError, match="cannot be read"):
            create_model(f"scripted:{path}")
