"""`pearl doctor`: what is there, what is not, and that no key is shown or sent to strangers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pearl.plugins.version import __version__
from tests.cli.terminal import Terminal
from tests.server import Server


def examined(pearl: Terminal, *args: str, code: int = 0) -> dict[str, dict[str, Any]]:
    return {
        check["name"]: check for check in json.loads(pearl("doctor", "--json", *args, code=code))
    }


def test_the_embedded_model_works_everywhere(pearl: Terminal, tmp_path: Path) -> None:
    found = examined(pearl, "--store", str(tmp_path / "store"))
    assert found["pearl"]["about"].startswith(__version__)
    assert found["model"]["status"] == "ok"
    assert found["store"]["about"] == f"{tmp_path / 'store'}, which the first run creates"
    assert not (tmp_path / "store").exists()


def test_a_server_is_asked_for_its_models_and_nothing_else(
    pearl: Terminal, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_API_KEY", "sk-0123456789abcdefgh")
    of_it = ("--base-url", openai_server.url)
    found = examined(pearl, "--model", "openai:test-model", *of_it)
    assert "it answers and lists test-model" in found["model"]["about"]
    assert found["keys"]["about"] == "PEARL_API_KEY"
    assert "0123456789" not in json.dumps(found)
    found = examined(pearl, "--model", "openai:another", *of_it, code=1)
    assert found["model"]["status"] == "failed"
    assert "the server has no another" in found["model"]["about"]
    assert "test-model" in found["model"]["help"]
    openai_server.models = None
    found = examined(pearl, "--model", "openai:another", *of_it)
    assert "it answers, without model names" in found["model"]["about"]
    assert not openai_server.requests


def test_what_does_not_work_is_told_with_what_to_do(pearl: Terminal) -> None:
    found = examined(pearl, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", code=1)
    assert found["model"]["about"] == "no server at http://127.0.0.1:9/v1"
    assert found["model"]["help"]
    Path("file").write_text("")
    found = examined(pearl, "--store", "file/store", code=1)
    assert found["store"]["status"] == "failed"


def test_a_file_of_a_stranger_is_named(pearl: Terminal) -> None:
    Path("pearl.toml").write_text('context = "full"\nmodel = "openai:x"\n', "utf-8")
    said = pearl("doctor", "--model", "extractive")
    assert "pearl.toml is not trusted" in said
    assert "pearl config trust" in said


def test_each_setting_that_is_not_the_default_is_told_with_where_it_is_from(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("own.toml").write_text('context = "full"\n', "utf-8")
    monkeypatch.setenv("PEARL_CONFIG", "own.toml")
    monkeypatch.setenv("PEARL_BASE_URL", "http://me:secret@127.0.0.1:9/v1?k=hidden")
    found = examined(pearl, "--model", "extractive")
    assert found["setting context"]["about"] == "full, from own.toml"
    assert found["setting base_url"]["about"] == "http://127.0.0.1:9/v1, from $PEARL_BASE_URL"
    assert not {"secret", "hidden"} & set(re.findall(r"\w+", json.dumps(found)))
