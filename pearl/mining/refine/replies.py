"""A model's reply about numbered drafts → merges and drops."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pearl.actions.library import read_actions
from pearl.dsl.signatures import Action

_LEAD = re.compile(r"\s*(?:[-*•>]\s+|\d{1,4}[.)]\s+)*")
_NUMBERS = re.compile(r"\s*\[\s*(\d{1,6}(?:\s*[,;–-]\s*\d{1,6})*)\s*\]\s*[.`*]*\s*\Z")
_DROP = re.compile(r"drop\s*:?\s*\[([\d\s,;–-]*)\]\s*(?::\s*)?(.*)\Z", re.I)
_LOOKS_LIKE_ACTION = re.compile(r"\w+\s*\([^()]*\)\s*[:#]")
_REASON = "the model gave no reason"


@dataclass(frozen=True, slots=True)
class MergeReply:
    """A parsed reply; numbers are from 1, each in at most one place."""

    merges: tuple[tuple[Action, tuple[int, ...]], ...] = ()
    drops: tuple[tuple[int, str], ...] = ()
    problems: tuple[str, ...] = ()
    is_usable: bool = True


def read_reply(text: str, drafts: Sequence[Action]) -> MergeReply:
    """Parse a reply, where draft 1 is the first, with bullets, fences and prose around.

    Example:
        >>> draft, = read_actions("FIND_X(CTX) : Find X")[0]
        >>> reply = read_reply("- `FIND(CTX, X) : Find X [1, 2]`", [draft, draft])
        >>> reply.merges[0][0].signature, reply.merges[0][1]
        ('FIND(CTX, X)', (1, 2))
    """
    merges: list[tuple[Action, tuple[int, ...]]] = []
    drops: list[tuple[int, str]] = []
    problems: list[str] = []
    taken: set[int] = set()
    invented: set[int] = set()

    def free(numbers: Sequence[int]) -> tuple[int, ...]:
        """Claim the numbers that are still free; returns none if any number is unknown."""
        if unknown := [number for number in numbers if not 1 <= number <= len(drafts)]:
            invented.update(unknown)  # the line is ambiguous
            return ()
        if twice := [number for number in numbers if number in taken]:
            problems.append(f"draft {_listed(twice)} is named twice; the first place counts")
        own = tuple(sorted(set(numbers) - taken))
        taken.update(own)
        return own

    for line in map(_bare, text.splitlines()):
        if found := _DROP.match(line):
            drops += ((number, found[2].strip() or _REASON) for number in free(_read(found[1])))
        elif _LOOKS_LIKE_ACTION.match(line):
            numbers = _NUMBERS.search(line)
            action, problem = _action(line[: numbers.start()] if numbers else line)
            if action is None:
                problems.append(f"{problem}: {line[:120]}")
            elif own := free(_read(numbers[1]) if numbers else _named(action, drafts)):
                merges.append((action, own))
            elif not numbers:
                problems.append(f"{action.name} names no draft")
    if invented:
        problems.append(f"there is no draft {_listed(sorted(invented))}")
    if not taken:
        nothing = [] if invented else ["the reply names no draft"]
        return MergeReply(problems=(*problems, *nothing), is_usable=False)
    return MergeReply(tuple(merges), tuple(drops), tuple(problems))


def _bare(line: str) -> str:
    """A line without bullet, number, emphasis and code marks."""
    line = _LEAD.sub("", line, count=1).strip()
    return line.replace("`", "").replace("**", "").strip()


def _read(numbers: str) -> list[int]:
    """`1, 4-6` → 1, 4, 5, 6."""
    found: list[int] = []
    for part in re.findall(r"\d+(?:\s*[–-]\s*\d+)?", numbers):
        first, _, last = part.replace("–", "-").partition("-")
        start, end = int(first), int(last or first)
        found += range(start, min(end, start + 10_000) + 1) if last else (start,)
    return found


def _named(action: Action, drafts: Sequence[Action]) -> list[int]:
    """The only draft of a name: a line without numbers keeps it."""
    same = [i for i, draft in enumerate(drafts, start=1) if draft.name == action.name]
    return same if len(same) == 1 else []


def _action(line: str) -> tuple[Action | None, str]:
    actions, found = read_actions(line)
    if found or not actions:
        return None, f"{found[0].message} [{found[0].code}]" if found else "is no action"
    if actions[0].name != actions[0].name.upper():
        return None, "the name is not in capitals"
    return actions[0], ""


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown if len(numbers) <= 10 else f"{shown} and {len(numbers) - 10} more"
