"""The plan that takes the fields of a schema from a document; no model writes it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pearl.actions.operators import EXTRACT
from pearl.dsl.checker import CheckedPlan, check
from pearl.dsl.fields import Field, print_fields
from pearl.dsl.nodes import Plan, Reference, Step, String
from pearl.dsl.signatures import CTX, ActionLibrary

QUESTION = "Which values does the document state for"
"""How the question of a schema alone begins; it says nothing that the fields do not say."""
_LEAF_TOKENS = 60  # Tokens of a value with its quote in a reply
_VALUE_TOKENS = 15  # Tokens of a value in an entry of a list, whose values share a quote
_NAME = 40  # Characters of a name that these tokens have room for
_N_ENTRIES, _N_INNER = 8, 2  # Entries that a list is expected to have, and a list in an entry
_N_NAMED = 6


def extraction_plan(fields: Sequence[Field], *, reply_tokens: int) -> CheckedPlan:
    """The plan of an extraction: one step, or several whose replies fit `reply_tokens` each."""
    groups = _groups(fields, reply_tokens)
    steps = [
        Step(
            "record" if len(groups) == 1 else f"record_{i}",
            EXTRACT.name,
            (Reference(CTX), String(print_fields(group))),
            f"Extract {_listed(group)}",
        )
        for i, group in enumerate(groups, start=1)
    ]
    question = f"{QUESTION} {_listed(fields)}?"
    library = ActionLibrary("extraction", [EXTRACT])
    return check(Plan(tuple(steps), (), question), library, max_steps=len(steps))


def _groups(fields: Sequence[Field], reply_tokens: int) -> list[list[Field]]:
    """Fields in their order, each group as large as its reply may be, objects whole where they fit; a single field always has a group."""
    groups: list[list[Field]] = []
    room = 0

    def pack(fields: Sequence[Field], depth: int) -> None:
        nonlocal room
        for _, same in groupby(fields, key=lambda field: field.name.split(".")[: depth + 1]):
            whole = list(same)
            need = sum(map(_tokens, whole))
            # an object is cut if it is too long, or if much room would be left
            if len(whole) > 1 and need > (room if room > reply_tokens // 4 else reply_tokens):
                pack(whole, depth + 1)
                continue
            if not groups or need > room:
                groups.append([])
                room = reply_tokens
            groups[-1] += whole
            room -= need

    pack(fields, 0)
    return groups


def _tokens(field: Field, in_entry: bool = False) -> int:
    """What a field is expected to take in a reply."""
    each = _VALUE_TOKENS if in_entry else _LEAF_TOKENS
    if field.fields:
        each = _LEAF_TOKENS - _VALUE_TOKENS + sum(_tokens(inner, True) for inner in field.fields)
    n = 1 if not field.is_list else _N_INNER if in_entry else _N_ENTRIES
    return each * n + max(0, len(field.name) - _NAME) // 3


def _listed(fields: Sequence[Field]) -> str:
    """The names of fields, the first ones of many."""
    names = [" ".join(field.name.split()) for field in fields]
    if len(names) > _N_NAMED:
        names[_N_NAMED - 1 :] = [f"{len(names) - _N_NAMED + 1} other fields"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
