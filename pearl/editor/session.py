"""A session with an editor: the open files, whose actions they call, and what is told about them.

Requests are answered from a text as it is; findings are computed in a thread of their own, after a
pause in typing, and told only if the text is still the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from pearl.dsl.signatures import ActionLibrary
from pearl.editor import checking
from pearl.editor.known_actions import KnownActions
from pearl.editor.outline import Kind
from pearl.editor.positions import Encoding, LineIndex, Position
from pearl.errors import DataError, Diagnostic, PearlError, Span
from pearl.plugins.version import __version__

logger = logging.getLogger(__name__)

ActionsFor = Callable[[Path, Mapping[str, str]], KnownActions]
"""Folder of a project and options of the editor → the actions that its plans may call.

It raises `PearlError` where these cannot be known.
"""

PAUSE_S = 0.2
"""How long nothing is typed before a text is checked."""

MAX_FINDINGS = 1_000
"""Findings that are told about a file; editors show no more."""

_NOTHING = KnownActions(ActionLibrary("", ()))


@dataclass(frozen=True, slots=True)
class OpenFile:
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

    def offset(self, position: lsp.Position) -> int:
        """The offset of a position of the protocol."""
        return self.index.offset(Position(position.line, position.character))

    def range(self, span: Span) -> lsp.Range:
        """A range of the text as the protocol has it."""
        return lsp.Range(*map(_position, map(self.index.position, (span.start, span.end))))

    def replaced(self, text: str) -> list[lsp.TextEdit]:
        """The edits that make another text of it; none where it is the same."""
        whole = lsp.Range(lsp.Position(0, 0), _position(self.index.end()))
        return [lsp.TextEdit(whole, text)] if text != self.text else []


def _position(found: Position) -> lsp.Position:
    return lsp.Position(found.line, found.column)


class EditorSession(LanguageServer):
    """The state of a session: the open files, and the checks that are under way."""

    def __init__(self, actions_for: ActionsFor) -> None:
        # Whole texts: pygls cuts lines where Python does, at U+2028 among others, which no editor does.
        kind = lsp.TextDocumentSyncKind.Full
        super().__init__("pearl", __version__, text_document_sync_kind=kind)
        self.options: dict[str, str] = {}
        self._actions_for = actions_for
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="check")

    @property
    def encoding(self) -> Encoding:
        """What columns count in this session."""
        named = str(
            getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding)
        )
        return named if named in ("utf-8", "utf-32") else "utf-16"  # type: ignore[return-value]

    def file(self, uri: str) -> OpenFile | None:
        """An open file as it is now; None for others, which are not read for an editor."""
        document = self.workspace.text_documents.get(unquote(uri))
        if document is None:
            return None
        is_library = document.path.endswith(".actions") or document.language_id == "pearl-actions"
        return OpenFile(
            document.uri,
            document.version,
            "actions" if is_library else "plan",
            self._folder_of(document.uri),
            LineIndex(document.source, self.encoding),
        )

    def _folder_of(self, uri: str) -> Path:
        """The folder of the workspace that a file is in, the innermost; else the file's own."""
        path = to_fs_path(uri)
        roots = [to_fs_path(each) for each in self.workspace.folders]
        folders = [Path(root) for root in (*roots, self.workspace.root_path) if root]
        if path is None:
            return folders[0] if folders else Path.cwd()
        around = [folder for folder in folders if Path(path).is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=Path(path).parent)

    def known(self, file: OpenFile) -> KnownActions:
        """The actions of a file's project."""
        try:
            return self._actions_for(file.folder, self.options)
        except PearlError:
            raise
        except (OSError, ValueError) as error:  # what is named is no path, or may not be read
            raise DataError(f"cannot be looked into: {error}", path=file.folder) from None

    def known_or_none(self, file: OpenFile) -> KnownActions:
        """The same; no actions where they cannot be known, of which the findings tell."""
        try:
            return self.known(file)
        except PearlError:
            return _NOTHING

    async def examined(self, file: OpenFile) -> tuple[Sequence[Diagnostic], str]:
        """What is wrong with a file, and why its actions are not known; "" where they are."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._examine, file)

    def _examine(self, file: OpenFile) -> tuple[Sequence[Diagnostic], str]:
        library, why = None, ""
        if file.kind == "plan":
            try:
                library = self.known(file).library
            except PearlError as error:
                why = str(error)
        return checking.findings(file.text, file.kind, library), why

    def check_soon(self, uri: str) -> None:
        """Check a file after a pause, in place of a check that has not ended."""
        if (before := self._checks.pop(uri, None)) is not None:
            before.cancel()
        check = asyncio.get_running_loop().create_task(self._check(uri))
        check.add_done_callback(self._ended)
        self._checks[uri] = check

    def _ended(self, check: asyncio.Task[None]) -> None:
        """Tell of a check that failed, which nothing waits for."""
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
                lsp.PublishDiagnosticsParams(file.uri, _told(file, found, why), file.version)
            )

    def check_all(self) -> None:
        """Check every open file: what they are checked against has changed."""
        for document in self.workspace.text_documents.values():
            self.check_soon(document.uri)

    def forget(self, uri: str) -> None:
        """Take back what was told about a file that was closed."""
        if (check := self._checks.pop(uri, None)) is not None:
            check.cancel()
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def shutdown(self) -> None:
        """End; a check that has not begun never does."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        super().shutdown()  # type: ignore[no-untyped-call]  # of pygls


def _told(file: OpenFile, found: Sequence[Diagnostic], why: str) -> list[lsp.Diagnostic]:
    """Findings as the protocol has them."""
    told = [_diagnostic(file, each) for each in found[:MAX_FINDINGS]]
    if why:
        begin = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
        severity = lsp.DiagnosticSeverity.Error
        message = f"calls of actions are not checked: {why}"
        told.insert(0, lsp.Diagnostic(begin, message, severity, "unknown-library", source="pearl"))
    if len(found) > MAX_FINDINGS:
        message = f"{len(found) - MAX_FINDINGS:,} findings below are not shown"
        severity = lsp.DiagnosticSeverity.Warning
        told.append(lsp.Diagnostic(told[-1].range, message, severity, source="pearl"))
    return told


def _diagnostic(file: OpenFile, found: Diagnostic) -> lsp.Diagnostic:
    is_error = found.severity == "error"
    return lsp.Diagnostic(
        file.range(found.span),
        f"{found.message}\nhelp: {found.help}" if found.help else found.message,
        lsp.DiagnosticSeverity.Error if is_error else lsp.DiagnosticSeverity.Information,
        found.code,
        source="pearl",
    )
