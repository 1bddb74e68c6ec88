"""The collector receives spans; a failing one affects neither answers nor time."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pearl.cli import run
from pearl.contrib.telemetry import collector
from pearl.errors import UsageError
from tests.contrib.telemetry.collectors import collecting, dead_address, never_answering

ASK = ("ask", "Why did Ada sell the boat?", "story.txt", "--store", "store")

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture(autouse=True)
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("story.txt").write_text("It rained. Ada sold the boat because it leaked. She slept.")
    before = {*threading.enumerate()}
    yield
    for thread in {
        *threading.enumerate()
    } - before:  # Retries draw random waits; generated tests may not
        thread.join(30)


def test_the_command_line_sends_spans(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with collecting() as there:
        monkeypatch.setenv(ENDPOINT, there.url)
        assert run([*ASK, "--telemetry"]) == 0
    assert "because it leaked" in capsys.readouterr().out
    assert there.paths == ["/v1/traces"] * len(there.paths)
    assert there.names.count("invoke_workflow pearl") == 1
    assert "plan pearl" in there.names
    assert sum(name.startswith("execute_tool ") for name in there.names) >= 1
    assert there.resource["service.name"] == "pearl"
    assert not any(b"boat" in each.SerializeToString() for each in there.requests)
    assert not any(b"story" in each.SerializeToString() for each in there.requests)


def test_no_spans_without_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as there:
        monkeypatch.setenv(ENDPOINT, there.url)
        assert run(ASK) == 0
        assert run([*ASK, "--telemetry", "--dry-run"]) == 0
    assert there.requests == []


def test_variables_turn_telemetry_on_and_name_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as there:
        monkeypatch.setenv(ENDPOINT, there.url)
        monkeypatch.setenv("PEARL_TELEMETRY", "1")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        assert run(ASK) == 0
    assert there.resource["service.name"] == "mine"


def test_resumed_run_has_spans_of_stored_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"id": "1", "document": "Ada sold it because it leaked.", "question": "Why?"}
    Path("tasks.jsonl").write_text(json.dumps(row) + "\n")
    assert run(["execute", "--tasks", "tasks.jsonl", "-o", "out.jsonl", "--store", "store"]) == 0
    (id,) = set(re.findall(r"run (\d{8}-\w+)", capsys.readouterr().err))
    with collecting() as there:
        monkeypatch.setenv(ENDPOINT, there.url)
        monkeypatch.setenv("PEARL_TELEMETRY", "1")
        assert run(["runs", "resume", id, "--store", "store", "--yes"]) == 0
    assert there.names == ["invoke_workflow pearl"]
    assert b"pearl.cache" in there.requests[0].SerializeToString()


def test_the_sdk_can_be_disabled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with collecting() as there:
        monkeypatch.setenv(ENDPOINT, there.url)
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
        assert run([*ASK, "--telemetry"]) == 0
    assert there.requests == []
    assert "spans" not in capsys.readouterr().err


@pytest.mark.parametrize("manner", ["dead", "silent", "refusing", "full", "nonsense"])
def test_failing_collector_gives_one_notice_and_the_same_answer(
    manner: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(collector, "CLOSE_S", 0.3)
    assert run([*ASK, "--json"]) == 0
    answer = capsys.readouterr().out
    with collecting() as there, never_answering() as silent:
        there.status = 400
        there.n_accepted = n_delivered = int(manner == "full")
        monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        urls = {"dead": dead_address(), "silent": silent, "nonsense": "::"}
        url = urls.get(manner, there.url).replace("http://", "http://me:secret@")
        monkeypatch.setenv(ENDPOINT, url)
        before = set(threading.enumerate())
        assert run([*ASK, "--json", "--telemetry"]) == 0
        left = set(threading.enumerate()) - before
        assert all(thread.daemon for thread in left)
        assert left or manner != "silent"  # which is not waited for to its end
    told = capsys.readouterr()
    assert answer.partition('"steps"')[0] == told.out.partition('"steps"')[0]
    (line,) = (line for line in told.err.splitlines() if "span" in line)
    (missing, sent) = re.findall(r" (\d+) of (\d+) spans did not reach the collector", line)[0]
    assert int(missing) == int(sent) - n_delivered > 0
    assert "Traceback" not in told.err
    assert "secret" not in told.err


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OTEL_TRACES_EXPORTER", "zipkin"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
)
def test_unsupported_exporter_is_refused(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    assert run([*ASK, "--telemetry"]) == UsageError.exit_code
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert value in told[0]
