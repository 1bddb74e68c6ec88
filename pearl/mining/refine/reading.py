"""A file of mined drafts, or of plain actions → drafts; malformed ones carry an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from pearl.actions.library import read_actions
from pearl.data.journal import reason
from pearl.dsl.signatures import Action
from pearl.errors import DataError
from pearl.mining.drafts import DRAFTS_VERSION, MinedHeader, MinedRow
from pearl.mining.refine.entries import Draft

_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\Z")
_BEST_FIRST = ("mined", "unreadable", "failed")
_HELP = "`pearl mine` writes one; or one action a line: NAME(CTX, X) : definition"


@dataclass(frozen=True, slots=True)
class Drafts:
    """The contents of a file."""

    source: str
    drafts: tuple[Draft, ...]
    unread: tuple[str, ...] = ()


def read_drafts(text: str, source: str) -> Drafts:
    """Read `mined.jsonl` or an action file; duplicate names and missing definitions are allowed."""
    if text.lstrip().startswith("{"):
        found = _mined(text, source)
    else:
        lines = (line.strip() for line in text.split("\n"))
        drafts = _numbered((line, None, False) for line in lines if line and line[0] != "#")
        found = Drafts(source, drafts)
    if not any(draft.action for draft in found.drafts):
        raise DataError(_nothing(found), path=source, help=_HELP)
    return found


def _nothing(found: Drafts) -> str:
    if not found.drafts:
        return f"there is no draft in it{f': {found.unread[0]}' if found.unread else ''}"
    first = found.drafts[0]
    return f"none of {len(found.drafts)} drafts can be read; the first: {first.flaw}"


def _numbered(found: Iterable[tuple[str, str | None, bool]]) -> tuple[Draft, ...]:
    """Drafts from (text, question, is_seed)."""
    drafts: list[Draft] = []
    for number, (text, question, is_seed) in enumerate(found):
        action, flaw = _action(text)
        drafts.append(Draft(number, text, action, question, is_seed, flaw))
    return tuple(drafts)


def _action(text: str) -> tuple[Action | None, str | None]:
    """The action of one line, or its error."""
    if "\n" in text:
        return None, "goes over several lines"
    actions, found = read_actions(text)
    if found or not actions:
        return None, f"{found[0].message} [{found[0].code}]" if found else "is no action"
    if not _NAME.match(actions[0].name):
        return None, f"'{actions[0].name}' is no name of an action: A-Z, 0-9 and _ make one"
    return actions[0], None


def _mined(text: str, source: str) -> Drafts:
    header, *lines = text.strip().split("\n")
    seeds = _header(header, source).seed_actions
    rows: list[MinedRow] = []
    unread: list[str] = []
    for number, line in enumerate(lines, start=2):
        try:
            if line.strip():
                rows.append(MinedRow.model_validate_json(line))
        except ValidationError as error:
            cut = number == len(lines) + 1 and not line.rstrip().endswith("}")
            problem = "the line is cut" if cut else reason(error)
            unread.append(f"line {number}: {problem}")
    rows.sort(key=lambda row: (row.index, row.id, _BEST_FIRST.index(row.status), row.reply))
    drafts: list[tuple[str, str | None, bool]] = [(seed, None, True) for seed in seeds]
    seen: set[str] = set()
    for row in rows:
        if row.id in seen and row.status == "failed":
            continue  # a later attempt succeeded
        if row.id in seen:
            unread.append(f"question {row.id}: a second row of the same question, left out")
            continue
        seen.add(row.id)
        unread += (f"question {row.id}: {problem}" for problem in _problems(row))
        drafts += ((action, row.id, False) for action in row.actions)
    return Drafts(source, _numbered(drafts), tuple(unread))


def _problems(row: MinedRow) -> Iterator[str]:
    if row.status == "failed":
        yield f"no reply: {row.error or 'unknown'}"
    yield from (diagnostic.partition("\n")[0] for diagnostic in row.diagnostics)


def _header(line: str, source: str) -> MinedHeader:
    try:
        return MinedHeader.model_validate_json(line)
    except ValidationError as error:
        problem = reason(error)
    try:
        found = json.loads(line)
    except ValueError:
        found = {}
    if found.get("kind") == "pearl-mined" and found.get("v") != DRAFTS_VERSION:
        raise DataError(
            f"mined drafts of version {found.get('v')}; this pearl reads version {DRAFTS_VERSION}",
            path=source,
            help="mine again with this version",
        )
    if found.get("kind") != "pearl-mined":
        problem = "it does not begin with the header of mined drafts"
    raise DataError(problem, path=source, line=1, help=_HELP)
