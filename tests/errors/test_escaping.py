"""JSON for programs, escaped formulas, and secrets in addresses, which are never shown or stored."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from pearl.errors import DataError, ModelError
from pearl.errors.escaping import LEFT_OUT, inert, json_bytes, redacted
from pearl.trace import StepFailed, Trace


def test_model_with_a_lone_surrogate_is_written() -> None:
    event = StepFailed(step="a\ud800", error="é")
    assert json_bytes(event) == json_bytes(asdict(event))
    assert json.loads(json_bytes(event))["step"] == "a\ud800"


def test_event_with_a_lone_surrogate_is_read_back() -> None:
    trace = Trace("q\ud800")
    trace.append(StepFailed(step="a", error="x\udfff"))
    (again,) = Trace.from_jsonl(trace.id, trace.to_jsonl())
    assert again == next(iter(trace))


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("x;=1+1", "x;'=1+1"),
        ('x\n"=1+1', "x\n'\"=1+1"),
        ("x\t @SUM(A1)", "x\t' @SUM(A1)"),
        ("=1;=2", "'=1;'=2"),
        *((cell, f"'{cell}") for cell in ("+1+1", "-1+cmd", "@SUM(1)", "\tx", "\rx", "＝1", "＋1", "－1", "＠x")),
        *((cell, cell) for cell in ("-5", "plain", "1e5")),
        ("'=1", "''=1"),
        ("a|-cmd", "a|'-cmd"),
        ("5; -3;+2.5", "5; -3;+2.5"),
        ("a; b=c, -d", "a; b=c, -d"),
    ],
)  # fmt: skip
def test_formula_is_escaped_at_the_start_and_after_any_separator(cell: str, written: str) -> None:
    assert inert(cell) == written


def test_value_that_is_not_json_is_refused() -> None:
    with pytest.raises(TypeError, match="of type object"):
        json_bytes({"a": object()})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("http://me:secret@host/v1", "http://host/v1"),
        ("http://token@host/v1", "http://host/v1"),
        ("HTTPS://me:sec/ret@host", "HTTPS://host"),
        ("http://me:se@cret@host", "http://host"),
        ("https://host/v1?api-key=secret", "https://host/v1"),
        ("https://host/v1#secret", "https://host/v1"),
        ("http://[::1]:80/v1?key=secret", "http://[::1]:80/v1"),
        ("proxy socks5://u:secret@h:1 is 'http://u:secret@h/?k=secret'.",
         "proxy socks5://h:1 is 'http://h/'."),
        ("see http://host/v1, or mail me@home", "see http://host/v1, or mail me@home"),
        ("no address: secret@home?x", "no address: secret@home?x"),
    ],
)  # fmt: skip
def test_secrets_are_removed_from_addresses(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert redacted(shown) == shown


@given(
    st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="\"'<>"), min_size=1),
    st.sampled_from(["http://u:{}@host/v1", "https://{}@host", "http://host/v1?key={}&v=1"]),
)
def test_no_password_and_no_query_is_left(secret: str, address: str) -> None:
    assert redacted(address.format(secret), LEFT_OUT) == address.replace("u:{}", "***").replace(
        "{}", "***"
    ).replace("key=***&v=1", "***")


def test_errors_are_redacted() -> None:
    url = "http://me:secret@host/v1?key=secret"
    for error in (DataError(f"no {url}", path=url, help=url), ModelError(url, kind="auth")):
        assert "secret" not in str(error) + repr(error) + error.message + (error.help or "")
