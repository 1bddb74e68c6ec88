"""`pearl mcp`, asked by the client of the official package."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pearl.cli import run
from tests.server import Server
from tests.skips import NO_LARGE

PLAN = 'New actions:\n- None\n\n1. ans = FIND(CTX, "the reason") : Find it'
LETTER = "The lamp failed. Ines lit a fire because the lamp failed."

pytestmark = [pytest.mark.slow]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("mcp", reason=NO_LARGE)
    letters = tmp_path / "letters"
    letters.mkdir()
    (letters / "a.txt").write_text(LETTER, encoding="utf-8")
    (letters / "b.txt").write_text("Nothing burned.", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("CANARY", encoding="utf-8")
    (letters / "link.txt").symlink_to(tmp_path / "secret.txt")
    return letters


Call = Callable[..., Awaitable[Any]]


def with_client(folder: Path, *options: str, then: Callable[[Any], Awaitable[None]]) -> None:
    """Start the server as an agent does, and let `then` use its client."""
    from mcp import StdioServerParameters
    from mcp.client import Client
    from mcp.client.stdio import stdio_client

    async def connected() -> None:
        arguments = [
            "-m",
            "pearl",
            "mcp",
            str(folder),
            "--store",
            str(folder.parent / "store"),
            *options,
        ]
        parameters = StdioServerParameters(
            command=sys.executable, args=arguments, env=dict(os.environ)
        )
        async with Client(stdio_client(parameters)) as client:
            await then(client)

    asyncio.run(connected())


def data(result: Any) -> Any:
    """The data of a result that is no error."""
    assert not result.is_error, result.content[0].text
    return json.loads(result.content[0].text)


def message(result: Any) -> str:
    """The text of an error."""
    assert result.is_error
    text = result.content[0].text
    assert isinstance(text, str)
    return text


def test_an_agent_plans_forecasts_executes_and_checks(folder: Path, openai_server: Server) -> None:
    openai_server.on(LETTER, "Because the lamp failed.\n> Ines lit a fire")
    openai_server.on("Question", PLAN)

    async def then(client: Any) -> None:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {"plan", "forecast", "execute", "evidence", "search"}
        plan = data(await client.call_tool("plan", {"question": "Why did Ines light a fire?"}))[
            "plan"
        ]
        asked = {"plan": plan, "documents": ["a.txt"]}
        assert data(await client.call_tool("forecast", asked))["total"]["calls"] == {
            "least": 1,
            "most": 1,
        }
        (answer,) = data(await client.call_tool("execute", asked))["answers"]
        assert answer["status"] == "answered"
        assert answer["evidence"][0]["text"] == "Ines lit a fire"
        quotes = data(
            await client.call_tool(
                "evidence", {"document": "a.txt", "quotes": ["Ines lit a fire", "Ines slept"]}
            )
        )
        assert [quote["match"] for quote in quotes["quotes"]] == ["exact", "missing"]
        passages = data(await client.call_tool("search", {"query": "fire", "documents": ["."]}))[
            "passages"
        ]
        assert passages[0]["text"] == LETTER

    with_client(folder, "--model", "openai:m", "--base-url", openai_server.url, then=then)


def test_documents_outside_of_the_folders_are_not_read(folder: Path) -> None:
    async def then(client: Any) -> None:
        for name in (
            "../secret.txt",
            str(folder.parent / "secret.txt"),
            "link.txt",
            "none.txt",
            "*.txt",
        ):
            for tool in ("execute", "search", "forecast", "evidence"):
                asked = {
                    "plan": PLAN,
                    "query": "x",
                    "documents": [name],
                    "document": name,
                    "quotes": ["CANARY"],
                }
                result = await client.call_tool(tool, asked)
                assert "is not a document of this server" in message(result)
        assert "a.txt" in str(
            await client.call_tool("execute", {"plan": PLAN, "documents": ["a.txt"]})
        )

    with_client(folder, then=then)


def test_the_limit_holds_for_all_calls_together(folder: Path, openai_server: Server) -> None:
    async def then(client: Any) -> None:
        asked = {"plan": PLAN, "documents": ["a.txt", "b.txt"]}
        first, second = data(await client.call_tool("execute", asked))["answers"]
        assert {first["status"], second["status"]} == {"answered", "unfinished"}
        assert "calls" in message(await client.call_tool("plan", {"question": "Why?"}))
        assert len(openai_server.requests) == 1

    with_client(
        folder,
        "--model",
        "openai:m",
        "--base-url",
        openai_server.url,
        "--max-calls",
        "1",
        then=then,
    )


def test_a_plan_with_an_error_is_told_once(folder: Path) -> None:
    async def then(client: Any) -> None:
        asked = {"plan": "1. ans = FLY(CTX) : Fly", "documents": ["."]}
        assert message(await client.call_tool("execute", asked)).count("FLY") <= 3

    (folder / "link.txt").unlink()
    with_client(folder, then=then)


@pytest.mark.parametrize(("folders", "code"), [([], 2), (["nowhere"], 3)])
def test_a_folder_is_needed(folder: Path, folders: list[str], code: int) -> None:
    assert run(["mcp", *folders]) == code
