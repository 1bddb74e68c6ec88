"""Read and write action files, which have `NAME(CTX, X) : definition` (or `# definition`) on each line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path

from pearl.actions import native
from pearl.documents.digest import text_sha256
from pearl.dsl.nodes import print_action
from pearl.dsl.parser import parse_action
from pearl.dsl.signatures import Action, ActionLibrary
from pearl.errors import DataError, Diagnostic, LibraryError, Span, suggest
from pearl.plugins.files import all_data, find_data, read_data

MAX_ACTIONS = 5_000  # maximum actions of a file; the largest published library has 143

_TOO_MANY = f"the file has more than {MAX_ACTIONS:,} actions"


def library_names() -> tuple[str, ...]:
    """Names of the installed libraries."""
    paths = (path for folder in all_data("actions") for path in folder.glob("*.actions"))
    return tuple(sorted({path.stem for path in paths}))


def load_library(name_or_path: str | Path | ActionLibrary) -> ActionLibrary:
    """Load an installed library by name (`seed`, `quality`, ...) or an action file by path; return a library unchanged.

    Raises:
        DataError: The library or file does not exist, or is not text.
        LibraryError: The file has invalid lines or duplicate names.
    """
    if isinstance(name_or_path, ActionLibrary):
        return name_or_path
    name = str(name_or_path)
    if Path(name).name == name and find_data("actions", f"{name}.actions"):
        return read_library(read_data("actions", f"{name}.actions"), name)
    path = Path(name)
    if not path.is_file():
        hint = suggest(name, library_names(), "libraries")
        raise DataError(f"no action library or file '{name}'", help=f"{hint} (or name a file)")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read as an action library: {error}", path=path) from error
    return read_library(text, path.stem, path=path)


def read_library(text: str, name: str, *, path: Path | None = None) -> ActionLibrary:
    """Parse the text of an action file."""
    actions, found = read_actions(text)
    errors = [diagnostic for diagnostic in found if diagnostic.severity == "error"]
    if errors:
        line, _ = errors[0].span.position(text)
        raise LibraryError(
            f"{errors[0].message} [{errors[0].code}]"
            + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""),
            path=path or name,
            line=line,
            help="`pearl check` lists every line that is wrong",
            diagnostics=errors,
        )
    if not actions:
        raise LibraryError(
            "the file defines no action",
            path=path or name,
            help="one a line: NAME(CTX, X) : definition",
        )
    return ActionLibrary(name, actions, _stand_ins(text))


_STANDS_FOR = "# stands for:"


def _stand_ins(text: str) -> dict[str, str]:
    """Map names of drafts to the action that replaced them, read from comments of `pearl refine actions`."""
    found: dict[str, str] = {}
    drafts = ""
    for line in text.splitlines() if _STANDS_FOR in text else ():
        row = line.strip()
        if row.startswith(_STANDS_FOR):
            drafts = row.removeprefix(_STANDS_FOR)
        elif drafts and row.startswith("#"):
            drafts += row.removeprefix("#")
        elif drafts:
            names = (each.split() for each in drafts.split(","))
            found |= dict.fromkeys((name for name, *_ in names), row.partition("(")[0])
            drafts = ""
    return found


def library_text(library: ActionLibrary) -> str:
    """The action file of a library."""
    return "".join(f"{print_action(action)}\n" for action in library.values())


def library_digest(library: ActionLibrary) -> str:
    """SHA-256 of a library's text in hexadecimal, independent of its name."""
    return text_sha256(library_text(library))


def read_actions(text: str) -> tuple[list[Action], list[Diagnostic]]:
    """Parse every action of a file, binding native ones, and collect all diagnostics."""
    actions, found = _read(text)
    return list(actions), list(found)


@lru_cache(maxsize=16)
def _read(text: str) -> tuple[tuple[Action, ...], tuple[Diagnostic, ...]]:
    """`read_actions`, cached: every `Pearl` loads a library, and libraries seldom change."""
    actions: list[Action] = []
    found: list[Diagnostic] = []
    seen: set[str] = set()
    for number, span in enumerate(_lines(text)):
        if number == MAX_ACTIONS:
            found.append(Diagnostic("syntax", _TOO_MANY, span, help="split the file"))
            break
        action = _action(text, span)
        if isinstance(action, Diagnostic):
            from pearl.dsl.scanner import scan_action  # imported on use: needed for errors only

            found += scan_action(text, span, in_library=True).found or [action]
            continue
        found += _flaws(action, seen)
        seen.add(action.name)
        actions.append(native.bind(action))
    return tuple(actions), tuple(found)


def _lines(text: str) -> Iterator[Span]:
    """Spans of the lines that are neither blank nor comments, without surrounding blanks."""
    at = 0
    for row in text.split("\n"):
        source = row.strip()
        if source and not source.startswith("#"):
            begin = at + len(row) - len(row.lstrip())
            yield Span(begin, begin + len(source))
        at += len(row) + 1


def _action(text: str, span: Span) -> Action | Diagnostic:
    """Parse the action of a line; a draft may lack a definition."""
    end = span.end - 1
    if text[end] == ":":
        draft = parse_action(text, Span(span.start, end - (text[end - 1] == " ")))
        if isinstance(draft, Action) and not draft.definition:
            return draft
    return parse_action(text, span)


def _flaws(action: Action, seen: Collection[str]) -> Iterator[Diagnostic]:
    """Diagnostics of a parsed action."""
    if not action.definition:
        message = f"action '{action.name}' has no definition"
        advice = "say after ' : ' what it does and returns"
        yield Diagnostic("empty-definition", message, action.span, help=advice)
    if action.name in seen:
        message = f"action '{action.name}' is defined twice"
        advice = "remove one of the two, or rename it"
        yield Diagnostic("duplicate-name", message, action.span, help=advice)
    if name := action.repeated_parameter:
        message = f"action '{action.name}' has two parameters '{name}'"
        advice = "give each parameter a name of its own"
        yield Diagnostic("duplicate-name", message, action.span, help=advice)


def format_library(text: str) -> str:
    """The canonical text of an action file: comments and blank lines are kept, spacing normalised."""
    spans = list(_lines(text))
    if len(spans) > MAX_ACTIONS:
        raise LibraryError(_TOO_MANY, path="library", help="split the file")
    pieces: list[str] = []
    broken: list[Diagnostic] = []
    at = 0
    for span in spans:
        action = _action(text, span)
        if isinstance(action, Diagnostic):
            broken.append(action)
            continue
        pieces += text[at : span.start], print_action(action)
        at = span.end
    if broken:
        line, _ = broken[0].span.position(text)
        raise LibraryError(broken[0].message, line=line, path="library", diagnostics=broken)
    lines = "".join([*pieces, text[at:]]).split("\n")
    return "\n".join(line.strip() for line in lines).strip("\n") + "\n"


def shape(action: Action) -> tuple[object, ...]:
    """The signature without names: parameter types and whether the action is variadic."""
    return tuple(parameter.type for parameter in action.parameters), action.is_variadic


def meaning(action: Action) -> tuple[object, ...]:
    """Comparison key of what an action does: its shape and definition, regardless of names and case."""
    definition = action.definition
    for i, parameter in enumerate(action.parameters):
        definition = re.sub(rf"\b{re.escape(parameter.name)}\b", f"\0{i}", definition)
    return shape(action), " ".join(definition.casefold().rstrip(".").split())
