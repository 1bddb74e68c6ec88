"""The language server: a session with one editor over standard input and output, and the handlers of its requests.

Requests are answered from the current text. Findings are computed in a separate thread after a pause in typing,
and are published only if the text has not changed since. Nothing is sent as Markdown: editors load its pictures and
follow its links, and a plan or an action file may come from an untrusted author.
"""

from __future__ import annotations

import asyncio
import logging
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from lsprotocol import types as lsp
from msgspec import Struct
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import PositionCodec

from pearl.contrib.editor import features
from pearl.contrib.editor.features import Kind
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import DataError, Diagnostic, PearlError, Span
from pearl.plugins.version import __version__


class LineIndex:
    r"""The lines of a text in an editor."""

    def __init__(self, source: str, codec: PositionCodec | None = None) -> None:
        unified = source.replace("\r\n", "\n").replace("\r", "\n")
        self.text = unified.removeprefix("\ufeff")
        self._n_units = (codec or PositionCodec()).client_num_units
        # For the editor a byte order mark is a character of the first line.
        self._lead = self._n_units(unified[: len(unified) - len(self.text)])
        self._starts = [0, *(found.end() for found in re.finditer("\n", self.text))]

    def position(self, offset: int) -> lsp.Position:
        """The position of an offset."""
        line = bisect_right(self._starts, offset) - 1
        column = self._n_units(self.text[self._starts[line] : offset])
        return lsp.Position(line, column + (self._lead if line == 0 else 0))

    def offset(self, position: lsp.Position) -> int:
        """The offset of a position; a position past the end of a line or of the text gives that end."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[position.line]
        line = self.text[start:].partition("\n")[0]
        column = max(0, position.character - (self._lead if position.line == 0 else 0))
        if line.isascii():
            return start + min(column, len(line))
        places = range(len(line) + 1)
        n_before = bisect_right(places, column, key=lambda at: self._n_units(line[:at]))
        return start + n_before - 1


logger = logging.getLogger(__name__)

ActionsFor = Callable[[Path, Mapping[str, str]], features.KnownActions]
"""Folder of a project and options of the editor → the actions that its plans may call.

Raises `PearlError` if they cannot be loaded.
"""

PAUSE_S = 0.2  # Pause in typing before a text is checked

MAX_FINDINGS = 1_000  # Maximum number of findings sent for a file

_NOTHING = features.KnownActions(ActionLibrary("", ()))


class OpenFile(Struct, frozen=True):
    """An open file at one moment."""

    uri: str
    version: int | None
    kind: Kind
    folder: Path
    index: LineIndex

    @property
    def text(self) -> str:
        """The text that offsets refer to."""
        return self.index.text

    def range(self, span: Span) -> lsp.Range:
        """A range of the text."""
        return lsp.Range(self.index.position(span.start), self.index.position(span.end))

    def replaced(self, text: str) -> list[lsp.TextEdit]:
        """The edits that turn the text into another one; empty if it is the same."""
        whole = lsp.Range(lsp.Position(0, 0), self.index.position(len(self.text)))
        return [lsp.TextEdit(whole, text)] if text != self.text else []


class EditorSession(LanguageServer):
    """The state of a session: the open files and the running checks."""

    def __init__(self, actions_for: ActionsFor) -> None:
        # Full texts: for partial ones pygls splits lines as Python does, at U+2028 among others; editors do not.
        kind = lsp.TextDocumentSyncKind.Full
        super().__init__("pearl", __version__, text_document_sync_kind=kind)
        self.options: dict[str, str] = {}
        self._actions_for = actions_for
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="check")

    def file(self, uri: str) -> OpenFile | None:
        """An open file in its current state; None for a file that is not open, which is never read."""
        document = self.workspace.text_documents.get(unquote(uri))
        if document is None:
            return None
        is_library = document.path.endswith(".actions") or document.language_id == "pearl-actions"
        path = to_fs_path(document.uri)
        roots = [to_fs_path(each) for each in self.workspace.folders]
        folders = [Path(root) for root in (*roots, self.workspace.root_path) if root]
        if path is None:
            folder = folders[0] if folders else Path.cwd()
        else:  # the innermost folder that contains it, else its own
            around = [each for each in folders if Path(path).is_relative_to(each)]
            folder = max(around, key=lambda each: len(each.parts), default=Path(path).parent)
        index = LineIndex(document.source, self.workspace.position_codec)
        kind: Kind = "actions" if is_library else "plan"
        return OpenFile(document.uri, document.version, kind, folder, index)

    def known(self, file: OpenFile) -> features.KnownActions:
        """The actions of a file's project."""
        try:
            return self._actions_for(file.folder, self.options)
        except PearlError:
            raise
        except (OSError, ValueError) as error:  # the library is no valid path, or cannot be read
            raise DataError(f"cannot be read: {error}", path=file.folder) from None

    def known_or_none(self, file: OpenFile) -> features.KnownActions:
        """The actions of a project; none if they cannot be loaded, which `examined` reports."""
        try:
            return self.known(file)
        except PearlError:
            return _NOTHING

    async def examined(self, file: OpenFile) -> tuple[Sequence[Diagnostic], str]:
        """The findings of a file, and why its actions cannot be loaded ("" if they can)."""

        def examine() -> tuple[Sequence[Diagnostic], str]:
            library, why = None, ""
            if file.kind == "plan":
                try:
                    library = self.known(file).library
                except PearlError as error:
                    why = str(error)
            return features.findings(file.text, file.kind, library), why

        return await asyncio.get_running_loop().run_in_executor(self._worker, examine)

    def check_soon(self, uri: str) -> None:
        """Check a file after a pause, instead of a check that still runs."""
        if (before := self._checks.pop(uri, None)) is not None:
            before.cancel()
        check = asyncio.get_running_loop().create_task(self._check(uri))
        check.add_done_callback(self._ended)
        self._checks[uri] = check

    def _ended(self, check: asyncio.Task[None]) -> None:
        """Report a failed check: no other code awaits it."""
        if not check.cancelled() and (error := check.exception()) is not None:
            logger.error("a check failed", exc_info=error)
            self.window_show_message(
                lsp.ShowMessageParams(lsp.MessageType.Error, f"pearl lsp: a check failed: {error}")
            )

    async def _check(self, uri: str) -> None:
        await asyncio.sleep(PAUSE_S)
        file = self.file(uri)
        if file is None:
            return
        found, why = await self.examined(file)
        now = self.file(uri)
        if now is not None and now.version == file.version:
            self.text_document_publish_diagnostics(
                lsp.PublishDiagnosticsParams(
                    file.uri, _format_diagnostics(file, found, why), file.version
                )
            )

    def forget(self, uri: str) -> None:
        """Clear the findings of a closed file."""
        if (check := self._checks.pop(uri, None)) is not None:
            check.cancel()
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def shutdown(self) -> None:
        """End the session; waiting checks are dropped."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        super().shutdown()  # type: ignore[no-untyped-call]  # of pygls


def _format_diagnostics(
    file: OpenFile, found: Sequence[Diagnostic], why: str
) -> list[lsp.Diagnostic]:
    """Findings as diagnostics of the protocol."""
    told = []
    for each in found[:MAX_FINDINGS]:
        is_error = each.severity == "error"
        severity = lsp.DiagnosticSeverity.Error if is_error else lsp.DiagnosticSeverity.Information
        message = f"{each.message}\nhelp: {each.help}" if each.help else each.message
        told.append(
            lsp.Diagnostic(file.range(each.span), message, severity, each.code, source="pearl")
        )
    if why:
        begin = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
        severity = lsp.DiagnosticSeverity.Error
        message = f"action calls are not checked: {why}"
        told.insert(0, lsp.Diagnostic(begin, message, severity, "unknown-library", source="pearl"))
    if len(found) > MAX_FINDINGS:
        message = f"{len(found) - MAX_FINDINGS:,} findings below are not shown"
        severity = lsp.DiagnosticSeverity.Warning
        told.append(lsp.Diagnostic(told[-1].range, message, severity, source="pearl"))
    return told


OPTIONS = ("library", "domain")  # The keys of `initializationOptions` that the server uses

MAX_SUGGESTIONS = 200  # maximum completions of an answer; typing narrows them

_FIX_ALL = lsp.CodeActionKind.SourceFixAll

_SUGGESTIONS = {
    "action": lsp.CompletionItemKind.Function,
    "variable": lsp.CompletionItemKind.Variable,
    "document": lsp.CompletionItemKind.Constant,
    "literal": lsp.CompletionItemKind.Value,
}


def _initialize(ls: EditorSession, params: lsp.InitializeParams) -> None:
    said = params.initialization_options
    if isinstance(said, dict):
        ls.options = {name: said[name] for name in OPTIONS if isinstance(said.get(name), str)}


def _did_change(
    ls: EditorSession, params: lsp.DidOpenTextDocumentParams | lsp.DidChangeTextDocumentParams
) -> None:
    ls.check_soon(params.text_document.uri)


def _did_close(ls: EditorSession, params: lsp.DidCloseTextDocumentParams) -> None:
    ls.forget(params.text_document.uri)


def _did_change_elsewhere(ls: EditorSession, params: object) -> None:
    """A file was saved, or settings changed: libraries are read again."""
    for document in ls.workspace.text_documents.values():
        ls.check_soon(document.uri)


def _on_file(
    handler: Callable[[EditorSession, OpenFile, Any], Any], *, plans_only: bool = False
) -> Callable[[EditorSession, Any], Any]:
    """Limit a handler to open files; for other files, which are never read, it returns None."""

    def answer(ls: EditorSession, params: Any) -> Any:
        file = ls.file(params.text_document.uri)
        if file is None or (plans_only and file.kind == "actions"):
            return None
        return handler(ls, file, params)

    return answer


def _completion(
    ls: EditorSession, file: OpenFile, params: lsp.CompletionParams
) -> lsp.CompletionList:
    found = features.complete(file.text, file.index.offset(params.position), ls.known_or_none(file))
    items = [
        lsp.CompletionItem(
            each.label,
            kind=_SUGGESTIONS[each.kind],
            detail=each.detail,
            documentation=each.definition or None,
            sort_text=f"{order:05}",
            text_edit=lsp.TextEdit(file.range(each.span), each.label),
        )
        for order, each in enumerate(found[:MAX_SUGGESTIONS])
    ]
    return lsp.CompletionList(is_incomplete=len(found) > MAX_SUGGESTIONS, items=items)


def _hover(ls: EditorSession, file: OpenFile, params: lsp.HoverParams) -> lsp.Hover | None:
    known = ls.known_or_none(file)
    found = features.hover(file.text, file.index.offset(params.position), file.kind, known)
    if found is None:
        return None
    text = "\n\n".join(filter(None, (found.code, found.text)))
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.PlainText, text), file.range(found.span))


def _definition(
    ls: EditorSession, file: OpenFile, params: lsp.DefinitionParams
) -> lsp.Location | None:
    known = ls.known_or_none(file)
    place = features.definition(file.text, file.index.offset(params.position), file.kind, known)
    if place is None or place.path is None:
        return lsp.Location(file.uri, file.range(place.span)) if place else None
    try:
        text = place.path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):  # it was there a moment ago, when the library was read
        return None
    uri = str(from_fs_path(str(place.path)))
    index = LineIndex(text, ls.workspace.position_codec)
    there = OpenFile(uri, None, "actions", place.path.parent, index)
    return lsp.Location(uri, there.range(place.span))


async def _code_action(
    ls: EditorSession, params: lsp.CodeActionParams
) -> list[lsp.CodeAction] | None:
    file = ls.file(params.text_document.uri)
    if file is None:
        return None
    found = [each for each in (await ls.examined(file))[0] if each.fix]
    first, last = file.index.offset(params.range.start), file.index.offset(params.range.end)
    actions = [
        lsp.CodeAction(
            features.fix_title(file.text, each, each.fix),
            lsp.CodeActionKind.QuickFix,
            is_preferred=True,
            edit=lsp.WorkspaceEdit(
                changes={file.uri: [lsp.TextEdit(file.range(each.fix.span), each.fix.replacement)]}
            ),
        )
        for each in found
        if each.fix and each.span.start <= last and first <= each.span.end
    ]
    wanted = params.context.only
    if found and (wanted is None or any(_FIX_ALL.value.startswith(each) for each in wanted)):
        mended = features.fixed(file.text, file.kind, ls.known_or_none(file).library)
        edit = lsp.WorkspaceEdit(changes={file.uri: file.replaced(mended)})
        actions.append(
            lsp.CodeAction("Fix all errors that have one obvious fix", _FIX_ALL, edit=edit)
        )
    return actions


def _formatting(
    ls: EditorSession, file: OpenFile, params: lsp.DocumentFormattingParams
) -> list[lsp.TextEdit] | None:
    text = features.formatted(file.text, file.kind)
    return None if text is None else file.replaced(text)


FEATURES: Mapping[str, tuple[Callable[..., Any], Any]] = {
    lsp.INITIALIZE: (_initialize, None),
    lsp.TEXT_DOCUMENT_DID_OPEN: (_did_change, None),
    lsp.TEXT_DOCUMENT_DID_CHANGE: (_did_change, None),
    lsp.TEXT_DOCUMENT_DID_CLOSE: (_did_close, None),
    lsp.TEXT_DOCUMENT_DID_SAVE: (_did_change_elsewhere, None),
    lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: (_did_change_elsewhere, None),
    lsp.WORKSPACE_DID_CHANGE_CONFIGURATION: (_did_change_elsewhere, None),
    lsp.TEXT_DOCUMENT_COMPLETION: (
        _on_file(_completion, plans_only=True),
        lsp.CompletionOptions(trigger_characters=["=", " ", "(", ",", "[", '"']),
    ),
    lsp.TEXT_DOCUMENT_HOVER: (_on_file(_hover), None),
    lsp.TEXT_DOCUMENT_DEFINITION: (_on_file(_definition), None),
    lsp.TEXT_DOCUMENT_CODE_ACTION: (
        _code_action,
        lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]),
    ),
    lsp.TEXT_DOCUMENT_FORMATTING: (_on_file(_formatting), None),
}
"""Method → its handler, and its options in the reply to `initialize`."""


def serve(actions_for: ActionsFor, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answer a client until it ends the session or disconnects."""
    session = EditorSession(actions_for)
    for method, (handler, options) in FEATURES.items():
        session.feature(method, options)(handler)
    session.start_io(stdin, stdout)
