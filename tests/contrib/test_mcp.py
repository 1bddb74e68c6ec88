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
    (letters / "more").symlink_to(tmp_path)
    (letters / ".env").write_text("CANARY", encoding="utf-8")
    os.mkfifo(letters / "pipe")
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
        with (folder.parent / "stderr.txt").open("w", encoding="utf-8") as stderr:
            async with Client(stdio_client(parameters, errlog=stderr)) as client:
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
        secret = folder.parent / "secret.txt"
        for name in (
            "../secret.txt", "a.txt/../../secret.txt", "..\\secret.txt", str(secret), secret.as_uri(),
            "link.txt", "more/secret.txt", "more", ".env", "pipe", "none.txt", "*.txt", "-", "/dev/stdin",
            "a.txt\0", "x" * 5_000, "s3://bucket/key",
        ):  # fmt: skip
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
        assert "is a folder" in message(
            await client.call_tool("evidence", {"document": ".", "quotes": ["CANARY"]})
        )
        everything = await client.call_tool("execute", {"plan": PLAN, "documents": ["."]})
        assert [Path(answer["id"]).name for answer in data(everything)["answers"]] == [
            "a.txt",
            "b.txt",
        ]

    with_client(folder, then=then)


def test_the_limit_holds_for_all_calls_together(folder: Path, openai_server: Server) -> None:
    for i in range(90):
        (folder / f"c{i}.txt").write_text(f"Letter {i}.", encoding="utf-8")

    async def then(client: Any) -> None:
        both = await asyncio.gather(
            *(
                client.call_tool(
                    "execute", {"plan": PLAN.replace("reason", reason), "documents": ["."]}
                )
                for reason in ("reason", "cause")
            )
        )
        results = [data(each) for each in both]
        statuses = [answer["status"] for result in results for answer in result["answers"]]
        assert statuses.count("answered") == 1
        for result in results:  # no document is missing without a word
            assert len(result["answers"]) + len(result["not_run"]) == 92
            assert "limit of 1 call" in result["why"]
        assert "calls" in message(await client.call_tool("plan", {"question": "Why?"}))
        assert len(openai_server.requests) == 1

    with_client(
        folder,
        "--constrain",
        "off",
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
    with_client(folder, "--max-time", "600", then=then)
    said = (folder.parent / "stderr.txt").read_text(encoding="utf-8")
    assert "at most 500 calls" in said, "a limit of time is none of cost"


def test_results_fit_the_window_of_an_agent(folder: Path) -> None:
    rows = "\n".join(f"{i},{'long ' * 20}" for i in range(5_000))
    (folder / "rows.csv").write_text(f"id,text\n{rows}\n", encoding="utf-8")
    plan = '1. rows = SPLIT(CTX, "record") : Split\n2. ans = COUNT(rows) : How many'

    async def then(client: Any) -> None:
        asked = {"plan": plan, "documents": ["rows.csv"]}
        result = await client.call_tool("execute", asked)
        (answer,) = data(result)["answers"]
        assert answer["answer"] == "5000"
        assert len(answer["evidence"]) == 51
        assert answer["evidence"][-1] == "... and 4,950 more"
        assert len(result.content[0].text) < 60_000
        table = {**asked, "plan": plan.splitlines()[0]}
        (answer,) = data(await client.call_tool("execute", table))["answers"]
        assert answer["answer"].endswith("more characters")

    with_client(folder, then=then)


def test_calls_end_when_the_agent_cancels(folder: Path, openai_server: Server) -> None:
    for i in range(40):
        (folder / f"c{i}.txt").write_text(f"Letter {i}.", encoding="utf-8")
    openai_server.hold_after = 2

    async def then(client: Any) -> None:
        asked = client.call_tool("execute", {"plan": PLAN, "documents": ["."]})
        running = asyncio.create_task(asked)
        while len(openai_server.requests) < 10:  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.wait([running])
        openai_server.hold_after = None
        assert len((await client.list_tools()).tools) == 5
        await asyncio.sleep(1)
        assert len(openai_server.requests) == 10

    with_client(folder, "--model", "openai:m", "--base-url", openai_server.url, then=then)


@pytest.mark.parametrize(("folders", "code"), [([], 2), (["nowhere"], 3)])
def test_a_folder_is_needed(folder: Path, folders: list[str], code: int) -> None:
    assert run(["mcp", *folders]) == code
