"""What every kind of server in `pearl.llm.backends.openai.servers` has to be, tomorrow's included."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from pearl.dsl.decoding.constraint import FORMS, Constraint, JsonForm
from pearl.errors import ModelError
from pearl.llm.backends.openai import servers
from pearl.llm.backends.openai.api import Accepted
from pearl.llm.backends.openai.chat import Listed
from pearl.llm.backends.openai.endpoint import Endpoint
from tests.llm.backends.asking import REQUEST

KINDS = servers.names()

CONSTRAINT = Constraint("odd", 'start: "odd"\n', JsonForm({"type": "object"}, str, ""))

ENDPOINT = Endpoint("http://localhost/v1", "m", "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_describes_itself(kind: str) -> None:
    server = servers.load(kind)
    assert isinstance(server, servers.Server)
    for line in (server.title, server.help):
        assert line.strip()
        assert "\n" not in line
    assert server.api.path.startswith("/")
    assert set(server.renderings) <= set(FORMS) - {"json-schema"}
    assert len(set(server.renderings)) == len(server.renderings)
    assert "json" in server.by
    assert ("grammar" in server.by) == bool(server.renderings) == bool(server.with_grammar)


def test_no_two_kinds_are_recognised_by_the_same() -> None:
    owners = [server.owner for server in map(servers.load, KINDS) if server.owner]
    assert len(set(owners)) == len(owners)
    assert servers.by_address(ENDPOINT) is None
    openai = Endpoint("https://eu.api.openai.com/v1", "m", "")
    assert [kind for kind in KINDS if servers.load(kind).is_at(openai)] == ["openai"]
    listed = [Listed(id=owner, owned_by=owner) for owner in ("", *owners)]
    for server in map(servers.load, KINDS):
        if server.owner:
            assert servers.by_listing(listed, server.owner) is server
    assert servers.by_listing([], "m") is servers.by_listing(listed, "") is None
    assert servers.by_listing(listed, "m") is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_holds_the_constraint_once_and_the_request(kind: str) -> None:
    server, accepted = servers.load(kind), Accepted(ENDPOINT)
    request = replace(REQUEST, seed=1, top_p=0.5, max_output_tokens=9, constraint=CONSTRAINT)
    plain = server.body(request, "m", accepted)
    for by in server.by:
        for form in server.forms(by):
            body = server.body(request, "m", accepted, form)
            text = json.dumps(body)
            wanted: Any = {"type": "object"} if by == "json" else CONSTRAINT.rendered(form)
            # A server of an unknown kind looks for the grammar in one of three fields.
            is_known = kind != servers.UNKNOWN or by == "json"
            in_grammar = json.dumps(json.dumps(wanted)[1:-1])[1:-1]  # a schema in a grammar
            n = text.count(json.dumps(wanted)) + text.count(in_grammar) * (by == "json")
            assert n == (1 if is_known else 3)
            assert "extra_body" not in text
            assert body.items() >= plain.items()
            assert (body["model"], body["top_p"], body["temperature"]) == ("m", 0.5, 0.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"null", b'{"error": "no"}', b"<html>"])
def test_reading_ends_in_a_model_error(kind: str, body: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        servers.load(kind).api.read(body, ENDPOINT)
    assert len(str(caught.value).splitlines()) <= 3
