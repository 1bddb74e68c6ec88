"""The language server in a process of its own, as an editor starts it and speaks to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from tests.root import ROOT

COMMAND = (sys.executable, "-m", "pearl", "lsp")
PLAN = '1. clé = FIND_EVNT(CTX, ["🔑🔑", 3]) : find\n2. b = COUNT(clé) : count\n'


class Editor:
    """A client with a folder."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client = client
        self._folder = folder
        self._told: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(told: lsp.PublishDiagnosticsParams) -> None:
            self._told.put_nowait(told)

    def uri(self, name: str) -> str:
        return (self._folder / name).as_uri()

    def id(self, name: str = "a.plan") -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri(name))

    async def open(self, text: str, name: str = "a.plan") -> list[lsp.Diagnostic]:
        """Open a file, and wait for what is told about it."""
        item = lsp.TextDocumentItem(self.uri(name), "pearl", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return (await self.told()).diagnostics

    async def change(self, text: str, version: int, name: str = "a.plan") -> None:
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(version, self.uri(name)),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def told(self) -> lsp.PublishDiagnosticsParams:
        return await self._told.get()

    async def hover(self, line: int, column: int) -> tuple[lsp.MarkupContent, lsp.Range | None]:
        said = await self.client.text_document_hover_async(
            lsp.HoverParams(self.id(), at(line, column))
        )
        assert said is not None
        assert isinstance(said.contents, lsp.MarkupContent)
        return said.contents, said.range

    async def complete(self, line: int, column: int) -> list[lsp.CompletionItem]:
        found = await self.client.text_document_completion_async(
            lsp.CompletionParams(self.id(), at(line, column))
        )
        assert isinstance(found, lsp.CompletionList)
        return list(found.items)

    async def formatted(self, name: str = "a.plan") -> Sequence[lsp.TextEdit] | None:
        options = lsp.FormattingOptions(2, True)
        return await self.client.text_document_formatting_async(
            lsp.DocumentFormattingParams(self.id(name), options)
        )

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self.client._server is not None
        return self.client._server


@contextlib.asynccontextmanager
async def editor(folder: Path, *args: str, options: Any = None) -> AsyncIterator[Editor]:
    """A server that is started, initialized and, at the end, asked to end."""
    client = LanguageClient("tests", "1")
    found = Editor(client, folder)
    await client.start_io(*COMMAND, *args, cwd=str(ROOT))
    await client.initialize_async(
        lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(),
            root_uri=folder.as_uri(),
            workspace_folders=[lsp.WorkspaceFolder(folder.as_uri(), "project")],
            initialization_options=options,
        )
    )
    client.initialized(lsp.InitializedParams())
    try:
        yield found
        if found.process.returncode is None:
            await client.shutdown_async(None)
            client.exit(None)
        await found.process.wait()
        assert found.process.stderr is not None
        assert "Traceback" not in (await found.process.stderr.read()).decode()
    finally:
        if found.process.returncode is None:
            found.process.kill()
        await client.stop()


def in_editor(
    work: Callable[[Editor], Awaitable[None]], folder: Path, *args: str, **options: Any
) -> None:
    async def run() -> None:
        async with editor(folder, *args, **options) as found:
            await work(found)

    asyncio.run(run())


def at(line: int, column: int) -> lsp.Position:
    return lsp.Position(line, column)


def test_findings_follow_the_text_and_go_when_it_is_closed(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        unknown, undefined = await editor.open(PLAN.replace("3])", "nope])"))
        assert (unknown.code, undefined.code) == ("unknown-action", "undefined-name")
        assert unknown.source == "pearl"
        assert unknown.severity is lsp.DiagnosticSeverity.Error
        assert unknown.message.endswith("help: did you mean 'FIND_EVENT'?")
        assert unknown.range == lsp.Range(at(0, 9), at(0, 18))
        assert undefined.range == lsp.Range(at(0, 33), at(0, 37))  # two keys are four units
        for version in range(2, 12):  # typed faster than it is checked
            await editor.change(f"{PLAN}{version}. c = ", version)
        await editor.change(PLAN.replace("EVNT", "EVENT"), 12)
        while (told := await editor.told()).version != 12:
            assert told.diagnostics  # of a text that was there for a while
        assert told.diagnostics == ()
        await editor.change(PLAN, 13)
        assert len((await editor.told()).diagnostics) == 1
        editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(editor.id()))
        assert (await editor.told()).diagnostics == ()

    in_editor(work, tmp_path)


def test_completion_hover_and_definition(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        client, doc = editor.client, editor.id()
        await editor.open(f"{PLAN}3. c = FIND_MOR")
        (item,) = await editor.complete(2, 15)
        assert item.text_edit == lsp.TextEdit(lsp.Range(at(2, 7), at(2, 15)), "FIND_MORAL")
        said, place = await editor.hover(1, 14)
        assert said.value.startswith('1. clé = FIND_EVNT(CTX, ["🔑🔑", 3]) : find\n')
        assert place == lsp.Range(at(1, 13), at(1, 16))
        here = await client.text_document_definition_async(lsp.DefinitionParams(doc, at(1, 14)))
        assert here == lsp.Location(doc.uri, lsp.Range(at(0, 3), at(0, 6)))
        there = await client.text_document_definition_async(lsp.DefinitionParams(doc, at(1, 8)))
        assert isinstance(there, lsp.Location)
        assert there.uri == (ROOT / "actions/seed.actions").as_uri()
        library = (ROOT / "actions/seed.actions").read_text(encoding="utf-8").split("\n")
        assert library[there.range.start.line].startswith("COUNT(")

    in_editor(work, tmp_path)


@pytest.mark.slow
def test_hostile_words_are_shown_as_words(tmp_path: Path) -> None:
    words = "![x](http://a.example/x.png) <img src=x> [y](command:z) ``` "
    (tmp_path / "evil.actions").write_text(f"EVIL(CTX) : {words}\n", encoding="utf-8")

    async def work(editor: Editor) -> None:
        await editor.open(f"1. a = EVIL(CTX) : {words}\n2. b = EVIL(a) : {words}\n")
        for line, column in ((0, 9), (1, 12)):
            said, _ = await editor.hover(line, column)
            assert said.kind is lsp.MarkupKind.PlainText
            assert words.strip() in said.value

    in_editor(work, tmp_path, options={"library": "evil.actions"})


@pytest.mark.slow
def test_invalid_messages_are_reported_and_the_server_continues(tmp_path: Path) -> None:
    def framed(body: bytes) -> bytes:
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    def message(method: str, id: int | None = None, **params: Any) -> bytes:
        data: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        return framed(json.dumps(data if id is None else {**data, "id": id}).encode())

    sent = [
        message("initialize", 1, processId=None, rootUri=None, capabilities={}),
        framed(b'{"jsonrpc": "2.0", "method":'),
        framed(b"[1, 2, 3]"),
        framed(b"\xff\xfe"),
        b"Content-Length: many\r\n\r\nnonsense\r\n",
        message("textDocument/hover", 2, textDocument={"uri": 3}),
        message("textDocument/hover", 3, textDocument={"uri": "file:///no"}, position={"line": 0, "character": 0}),
        message("no/suchMethod", 4),
        message("shutdown", 5),
        message("exit"),
    ]  # fmt: skip
    done = subprocess.run(COMMAND, input=b"".join(sent), capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 0
    answers = {}
    rest = done.stdout
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
        answer, rest = json.loads(rest[:length]), rest[length:]
        answers[answer.get("id")] = answer
    assert answers[1]["result"]["serverInfo"]["name"] == "pearl"
    assert answers[None]["method"] == "window/showMessage"
    assert answers[3]["result"] is None
    assert answers[4]["error"]["code"] == -32601
    assert answers[5]["result"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["untitled:Untitled-1", "file:///a%00b.plan", "file:///" + 300 * "a"]
)
def test_a_file_without_a_valid_path_is_checked(tmp_path: Path, name: str) -> None:
    async def work(editor: Editor) -> None:
        item = lsp.TextDocumentItem(name, "pearl", 1, "1. a = NOPE(CTX) : f\n2. b =")
        editor.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        told = await editor.told()
        assert told.uri == name
        assert "syntax" in [each.code for each in told.diagnostics]
        assert {each.code for each in told.diagnostics} & {"unknown-action", "unknown-library"}
        doc = lsp.TextDocumentIdentifier(name)
        found = await editor.client.text_document_completion_async(
            lsp.CompletionParams(doc, at(1, 6))
        )
        assert isinstance(found, lsp.CompletionList)

    in_editor(work, tmp_path)


@pytest.mark.parametrize("way", ["stdin is closed", "killed"])
def test_an_editor_that_is_gone_leaves_no_server(tmp_path: Path, way: str) -> None:
    process = subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    with process:
        assert process.stdin is not None
        process.stdin.write(b"Content-Length: 100\r\n\r\n{")
        process.stdin.flush()
        if way == "killed":
            process.terminate()
        _, told = process.communicate()
    assert b"Traceback" not in told or way == "stdin is closed"


@pytest.mark.slow
def test_in_an_untrusted_project_only_the_syntax_is_checked(tmp_path: Path) -> None:
    (tmp_path / "pearl.toml").write_text('library = "/etc/hostname"\n', encoding="utf-8")

    async def work(editor: Editor) -> None:
        text = "1. a = NOPE(CTX) : f\n2. b = FIND(\n"
        untrusted, broken = await editor.open(text)
        assert (untrusted.code, untrusted.range.start) == ("unknown-library", at(0, 0))
        assert "pearl config trust" in untrusted.message
        assert (broken.code, broken.range.start.line) == ("syntax", 1)
        assert [each.label for each in await editor.complete(1, 12)] == ["a", "CTX"]

    in_editor(work, tmp_path)


@pytest.mark.slow
def test_a_library_that_changes_is_read_again(tmp_path: Path) -> None:
    library = tmp_path / "mine.actions"
    library.write_text("MINE(CTX) : Mine\n", encoding="utf-8")

    async def work(editor: Editor) -> None:
        assert [each.code for each in await editor.open("1. a = YOURS(CTX) : f")] == [
            "unknown-action"
        ]
        library.write_text("YOURS(CTX) : Yours\n", encoding="utf-8")
        editor.client.text_document_did_save(lsp.DidSaveTextDocumentParams(editor.id()))
        assert (await editor.told()).diagnostics == ()
        library.write_text("YOURS(CTX : Yours\n", encoding="utf-8")
        editor.client.workspace_did_change_watched_files(
            lsp.DidChangeWatchedFilesParams(
                [lsp.FileEvent(library.as_uri(), lsp.FileChangeType.Changed)]
            )
        )
        (told,) = (await editor.told()).diagnostics
        assert told.code == "unknown-library"
        assert "mine.actions:1" in told.message

    in_editor(work, tmp_path, options={"library": "mine.actions", "domain": 3})
