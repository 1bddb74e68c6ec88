"""Requests of the Language Server Protocol → the functions of this package, and back.

Offsets of a text are lines and columns here, in the units that client and server agreed on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.uris import from_fs_path

from pearl.dsl.literals import MAX_NAME, terminal
from pearl.dsl.signatures import CTX
from pearl.editor import checking, navigation
from pearl.editor.completion import SignatureHelp, Suggestion, complete, signature_help
from pearl.editor.hover import hover
from pearl.editor.markup import fenced, plain
from pearl.editor.navigation import NamePlace
from pearl.editor.outline import outline, word_at
from pearl.editor.positions import LineIndex, n_units
from pearl.editor.session import EditorSession, OpenFile
from pearl.errors import Span

OPTIONS = ("library", "domain")
"""What an editor may say at the beginning, in its `initializationOptions`."""

MAX_SUGGESTIONS = 200

_FIX_ALL = lsp.CodeActionKind.SourceFixAll

_SUGGESTIONS = {
    "action": lsp.CompletionItemKind.Function,
    "variable": lsp.CompletionItemKind.Variable,
    "document": lsp.CompletionItemKind.Constant,
    "literal": lsp.CompletionItemKind.Value,
    "line": lsp.CompletionItemKind.Snippet,
}
_SYMBOLS = {"action": lsp.SymbolKind.Function, "variable": lsp.SymbolKind.Variable}


def _initialize(ls: EditorSession, params: lsp.InitializeParams) -> None:
    said = params.initialization_options
    if isinstance(said, dict):
        ls.options = {name: said[name] for name in OPTIONS if isinstance(said.get(name), str)}


def _did_open(ls: EditorSession, params: lsp.DidOpenTextDocumentParams) -> None:
    ls.check_soon(params.text_document.uri)


def _did_change(ls: EditorSession, params: lsp.DidChangeTextDocumentParams) -> None:
    ls.check_soon(params.text_document.uri)


def _did_close(ls: EditorSession, params: lsp.DidCloseTextDocumentParams) -> None:
    ls.forget(params.text_document.uri)


def _did_change_elsewhere(ls: EditorSession, params: object) -> None:
    """A file was saved, or settings changed: libraries are read anew."""
    ls.check_all()


def _completion(ls: EditorSession, params: lsp.CompletionParams) -> lsp.CompletionList | None:
    file = ls.file(params.text_document.uri)
    if file is None or file.kind == "actions":
        return None
    found = complete(file.text, file.offset(params.position), ls.known_or_none(file))
    takes = _item_capabilities(ls)
    items = [_item(file, each, order, takes) for order, each in enumerate(found[:MAX_SUGGESTIONS])]
    return lsp.CompletionList(is_incomplete=len(found) > MAX_SUGGESTIONS, items=items)


def _item(
    file: OpenFile, found: Suggestion, order: int, takes: lsp.ClientCompletionItemOptions
) -> lsp.CompletionItem:
    is_snippet = bool(found.snippet and takes.snippet_support)
    return lsp.CompletionItem(
        found.label,
        kind=_SUGGESTIONS[found.kind],
        detail=found.detail,
        documentation=_shown(found.definition, takes.documentation_format)
        if found.definition
        else None,
        sort_text=f"{order:05}",
        insert_text_format=lsp.InsertTextFormat.Snippet
        if is_snippet
        else lsp.InsertTextFormat.PlainText,
        text_edit=lsp.TextEdit(file.range(found.span), found.snippet if is_snippet else found.text),
    )


def _item_capabilities(ls: EditorSession) -> lsp.ClientCompletionItemOptions:
    about = ls.client_capabilities.text_document
    completion = about and about.completion
    return (completion and completion.completion_item) or lsp.ClientCompletionItemOptions()


def _shown(text: str, formats: Any, code: str = "") -> lsp.MarkupContent:
    """Words, below a piece of plan, in a form that the client can show."""
    if formats and lsp.MarkupKind.Markdown in formats:
        parts = [fenced(code, "pearl")] if code else []
        return lsp.MarkupContent(lsp.MarkupKind.Markdown, "\n\n".join([*parts, plain(text)]))
    return lsp.MarkupContent(lsp.MarkupKind.PlainText, "\n\n".join(filter(None, (code, text))))


def _hover(ls: EditorSession, params: lsp.HoverParams) -> lsp.Hover | None:
    file = ls.file(params.text_document.uri)
    if file is None:
        return None
    known = ls.known_or_none(file)
    found = hover(file.text, file.offset(params.position), file.kind, known)
    if found is None:
        return None
    about = ls.client_capabilities.text_document
    formats = about and about.hover and about.hover.content_format
    return lsp.Hover(_shown(found.text, formats, found.code), file.range(found.span))


def _signature_help(ls: EditorSession, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
    file = ls.file(params.text_document.uri)
    if file is None or file.kind == "actions":
        return None
    found = signature_help(file.text, file.offset(params.position), ls.known_or_none(file))
    if found is None:
        return None
    parameters = [lsp.ParameterInformation(_label(ls, found, each)) for each in found.parameters]
    about = ls.client_capabilities.text_document
    takes = about and about.signature_help and about.signature_help.signature_information
    formats = takes.documentation_format if takes else None
    shown = _shown(found.definition, formats) if found.definition else None
    # An index past the last parameter lights none of them.
    active = len(parameters) if found.active is None else found.active
    signature = lsp.SignatureInformation(found.signature, shown, parameters, active)
    return lsp.SignatureHelp([signature], active_signature=0, active_parameter=active)


def _label(ls: EditorSession, found: SignatureHelp, span: Span) -> str | tuple[int, int]:
    about = ls.client_capabilities.text_document
    takes = about and about.signature_help and about.signature_help.signature_information
    if not (
        takes and takes.parameter_information and takes.parameter_information.label_offset_support
    ):
        return found.signature[span.start : span.end]
    start, end = (n_units(found.signature[:at], ls.encoding) for at in (span.start, span.end))
    return start, end


def _definition(ls: EditorSession, params: lsp.DefinitionParams) -> lsp.Location | None:
    file = ls.file(params.text_document.uri)
    if file is None:
        return None
    known = ls.known_or_none(file)
    place = navigation.definition(file.text, file.offset(params.position), file.kind, known)
    return _location(ls, file, place) if place else None


def _location(ls: EditorSession, file: OpenFile, place: NamePlace) -> lsp.Location | None:
    if place.path is None:
        return lsp.Location(file.uri, file.range(place.span))
    uri = from_fs_path(str(place.path))
    try:
        text = place.path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):  # it was there a moment ago, when the library was read
        return None
    there = OpenFile(str(uri), None, "actions", place.path.parent, LineIndex(text, ls.encoding))
    return lsp.Location(there.uri, there.range(place.span))


def _references(ls: EditorSession, params: lsp.ReferenceParams) -> list[lsp.Location] | None:
    file = ls.file(params.text_document.uri)
    if file is None or file.kind == "actions":
        return None
    found = navigation.occurrences(file.text, file.offset(params.position))
    return [
        lsp.Location(file.uri, file.range(span))
        for span, is_defined in found
        if params.context.include_declaration or not is_defined
    ]


def _highlight(
    ls: EditorSession, params: lsp.DocumentHighlightParams
) -> list[lsp.DocumentHighlight] | None:
    file = ls.file(params.text_document.uri)
    if file is None or file.kind == "actions":
        return None
    read, write = lsp.DocumentHighlightKind.Read, lsp.DocumentHighlightKind.Write
    found = navigation.occurrences(file.text, file.offset(params.position))
    return [
        lsp.DocumentHighlight(file.range(span), write if is_defined else read)
        for span, is_defined in found
    ]


def _rename(ls: EditorSession, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
    """Rename what the plan itself names: a step's output, or one of its own actions."""
    file = ls.file(params.text_document.uri)
    if file is None or file.kind == "actions":
        return None
    at = file.offset(params.position)
    found = navigation.occurrences(file.text, at)
    if not any(is_defined for _, is_defined in found):
        raise _refused("only outputs of steps and new actions of the plan can be renamed here")
    name, plan = params.new_name, outline(file.text)
    if not terminal("NAME").fullmatch(name) or len(name) > MAX_NAME:
        raise _refused(f"'{name}' is no name: letters, digits and _, at most {MAX_NAME}")
    word = word_at(file.text, at)
    is_action = word is not None and word.role in ("action", "declaration")
    taken = plan.declaration_of(name) if is_action else plan.step_of(name, 0)
    if name == CTX or (taken and word and name != word.name):
        raise _refused(f"'{name}' is taken")
    edits = [lsp.TextEdit(file.range(span), name) for span, _ in found]
    return lsp.WorkspaceEdit(changes={file.uri: edits})


def _refused(why: str) -> JsonRpcInvalidParams:
    return JsonRpcInvalidParams(message=why)


def _symbols(
    ls: EditorSession, params: lsp.DocumentSymbolParams
) -> list[lsp.DocumentSymbol] | None:
    file = ls.file(params.text_document.uri)
    if file is None:
        return None
    return [
        lsp.DocumentSymbol(
            each.name, _SYMBOLS[each.kind], file.range(each.span), file.range(each.name_span), each.detail
        )
        for each in navigation.symbols(file.text, file.kind)
    ]  # fmt: skip


async def _code_action(
    ls: EditorSession, params: lsp.CodeActionParams
) -> list[lsp.CodeAction] | None:
    file = ls.file(params.text_document.uri)
    if file is None:
        return None
    found = [each for each in (await ls.examined(file))[0] if each.fix]
    first, last = file.offset(params.range.start), file.offset(params.range.end)
    actions = [
        lsp.CodeAction(
            checking.fix_title(file.text, each, each.fix),
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
        mended = checking.fixed(file.text, file.kind, ls.known_or_none(file).library)
        edit = lsp.WorkspaceEdit(changes={file.uri: file.replaced(mended)})
        actions.append(lsp.CodeAction("Fix all that has one obvious fix", _FIX_ALL, edit=edit))
    return actions


def _formatting(
    ls: EditorSession, params: lsp.DocumentFormattingParams
) -> list[lsp.TextEdit] | None:
    file = ls.file(params.text_document.uri)
    if file is None:
        return None
    text = checking.formatted(file.text, file.kind)
    return None if text is None else file.replaced(text)


FEATURES: Mapping[str, tuple[Callable[..., Any], Any]] = {
    lsp.INITIALIZE: (_initialize, None),
    lsp.TEXT_DOCUMENT_DID_OPEN: (_did_open, None),
    lsp.TEXT_DOCUMENT_DID_CHANGE: (_did_change, None),
    lsp.TEXT_DOCUMENT_DID_CLOSE: (_did_close, None),
    lsp.TEXT_DOCUMENT_DID_SAVE: (_did_change_elsewhere, None),
    lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: (_did_change_elsewhere, None),
    lsp.WORKSPACE_DID_CHANGE_CONFIGURATION: (_did_change_elsewhere, None),
    lsp.TEXT_DOCUMENT_COMPLETION: (
        _completion,
        lsp.CompletionOptions(trigger_characters=["=", " ", "(", ",", "[", '"']),
    ),
    lsp.TEXT_DOCUMENT_HOVER: (_hover, None),
    lsp.TEXT_DOCUMENT_SIGNATURE_HELP: (
        _signature_help,
        lsp.SignatureHelpOptions(trigger_characters=["(", ","]),
    ),
    lsp.TEXT_DOCUMENT_DEFINITION: (_definition, None),
    lsp.TEXT_DOCUMENT_REFERENCES: (_references, None),
    lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: (_highlight, None),
    lsp.TEXT_DOCUMENT_RENAME: (_rename, None),
    lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (_symbols, None),
    lsp.TEXT_DOCUMENT_CODE_ACTION: (
        _code_action,
        lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]),
    ),
    lsp.TEXT_DOCUMENT_FORMATTING: (_formatting, None),
}
"""Method → what answers it, and what is said of it at the beginning."""
