"""The service of docs/service.md, run by uvicorn, with a model server on this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.docs.blocks import all_blocks
from tests.root import ROOT
from tests.server import Server
from tests.skips import needs_fastapi

pytestmark = [pytest.mark.slow, needs_fastapi]

ASKED = {"question": "Why did Ada sell the boat?", "text": "Ada sold the boat because it leaked."}
PLAN = """1. reason = FIND_REASON(CTX, "Ada selling the boat") : Find out why
2. mood = FIND_EMOTION(CTX, "Ada", reason) : Find out how she felt
3. ans = CONCAT(reason, mood) : Both"""

Serve = Callable[..., HTTPConnection]


@pytest.fixture
def serve(openai_server: Server, tmp_path: Path) -> Iterator[Serve]:
    """Starts the service, with other values of its constants, and connects to it."""
    openai_server.on("(?i)write (the plan|plans)", PLAN)
    openai_server.on("FIND_REASON|reason", "It leaked.\n> because it leaked")
    (block,) = all_blocks("python service")
    with ExitStack() as stack:

        def start(**constants: object) -> HTTPConnection:
            text = block.text
            for name, value in constants.items():
                text, n = re.subn(rf"(\b{name} ?= ?)[\d_.]+", rf"\g<1>{value}", text)
                assert n == 1, name
            (tmp_path / "service.py").write_text(text, encoding="utf-8")
            port = stack.enter_context(_running(tmp_path, openai_server.url))
            return stack.enter_context(closing(HTTPConnection("127.0.0.1", port)))

        yield start


@contextmanager
def _running(folder: Path, url: str) -> Iterator[int]:
    environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "x", "PYTHONPATH": str(ROOT)}  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "service:app", "--port", "0"],
        cwd=folder, env=environment, stderr=subprocess.PIPE, text=True,
    ) as service:  # fmt: skip
        try:
            assert service.stderr
            log = ""
            while not (ready := re.search(r"http://127\.0\.0\.1:(\d+)", log)):
                line = service.stderr.readline()
                assert line, log
                log += line
            yield int(ready[1])
        finally:
            service.kill()


def _post(connection: HTTPConnection, asked: object, path: str = "/answers") -> tuple[int, str]:
    connection.request("POST", path, json.dumps(asked), {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read().decode()


def test_answers_come_with_their_evidence_and_streams_with_plan_and_steps(serve: Serve) -> None:
    connection = serve()
    status, body = _post(connection, ASKED)
    answer = json.loads(body)
    assert (status, answer["evidence"][0]["text"]) == (200, "because it leaked")
    _, body = _post(connection, ASKED, "/answers/stream")
    events = re.findall(r"event: (\w+)\r?\ndata: (.*)|data: (.*)\r?\nevent: (\w+)", body)
    sent = [(first or fourth, json.loads(second or third)) for first, second, third, fourth in events]  # fmt: skip
    assert [name for name, _ in sent] == ["plan", "step", "step", "step", "answer"]
    assert "FIND_EMOTION" in sent[0][1]
    assert "It leaked." in sent[-1][1]["answer"]


@pytest.mark.parametrize(
    ("asked", "fault", "constants", "status"),
    [
        ({**ASKED, "question": ""}, None, {}, 422),
        ({**ASKED, "question": " "}, None, {}, 422),
        (ASKED, "401", {}, 502),
        (ASKED, "quota", {}, 503),
        (ASKED, None, {"max_tokens": 10}, 503),
        (ASKED, "hang", {"ANSWER_S": 0.5}, 504),
    ],
)
def test_errors_have_their_status(
    serve: Serve, openai_server: Server, asked: object, fault: str | None, constants: dict[str, object],
    status: int,
) -> None:  # fmt: skip
    openai_server.next(*[fault] if fault else [])
    got, body = _post(serve(**constants), asked)
    assert got == status, body
    assert "127.0.0.1" not in body, "callers need not know the address of the model server"


def test_a_caller_that_leaves_frees_its_place(serve: Serve, openai_server: Server) -> None:
    openai_server.hold_after = (
        2  # the plan comes, asked again as this server ignores its form; the first step does not
    )
    first = serve(N_ANSWERS=1)
    first.request("POST", "/answers/stream", json.dumps(ASKED), {"Content-Type": "application/json"})  # fmt: skip
    reply = first.getresponse()
    while (line := reply.readline()) != b"event: plan\n":
        assert line
    with closing(HTTPConnection("127.0.0.1", first.port)) as second:
        assert _post(second, ASKED)[0] == 503
        reply.close()
        first.close()
        while (status := _post(second, {**ASKED, "question": " "})[0]) == 503:
            pass
        assert status == 422
    openai_server.hold_after = None
