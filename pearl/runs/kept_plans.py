"""Plans with parameters, kept with the replies → the plan of a question that differs from theirs in the values only."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from pearl.actions.library import library_digest
from pearl.documents.digest import digest
from pearl.documents.document import DocumentKind
from pearl.dsl.binding import parameter_value
from pearl.dsl.checker import CheckedPlan
from pearl.errors import PlanError
from pearl.llm import Completion
from pearl.llm.middleware.caching import Replies
from pearl.pipeline import Pearl
from pearl.planner.understanding import MAX_NAME, MAX_NAME_WORDS

MAX_KEPT = 500
"""Maximum plans that are kept for one library; the oldest go first."""


class _Kept(NamedTuple):
    question: str
    parameters: tuple[str, ...]
    plan: str


_LIST = TypeAdapter(list[_Kept])


class KeptPlans:
    """Plans for one library, one kind of document, and one day that questions refer to."""

    def __init__(self, replies: Replies, pearl: Pearl, kind: DocumentKind) -> None:
        self._replies = replies
        self._pearl = pearl
        scope = (library_digest(pearl.actions), kind, pearl.planner.day)
        self._key = digest(("pearl plans", *scope))

    async def add(self, checked: CheckedPlan) -> None:
        """Keep a plan in place of an earlier one for the same question."""
        plan = checked.plan
        new = _Kept(plan.question or "", tuple(each.name for each in plan.parameters), str(plan))
        others = [each for each in await self._kept() if each.question != new.question]
        text = json.dumps([new, *others][:MAX_KEPT])
        await self._replies.keep(self._key, Completion(text, "plans"))

    async def find(self, question: str) -> tuple[CheckedPlan, dict[str, str]] | None:
        """The newest plan whose question is this one with a value of a few words in each place, and the values."""
        for kept in await self._kept():
            pattern = re.escape(kept.question)
            for name in kept.parameters:
                value, mark = rf"\w(?:.{{0,{MAX_NAME - 2}}}\w)?", re.escape(f"{{{name}}}")
                pattern = pattern.replace(mark, f"(?P<{name}>{value})", 1)
                pattern = pattern.replace(mark, f"(?P={name})")
            found = re.fullmatch(pattern, " ".join(question.split()))
            values = found.groupdict() if found else {}
            if values.keys() != {*kept.parameters}:
                continue
            if all(len(value.split()) <= MAX_NAME_WORDS for value in values.values()):
                try:
                    plan = self._pearl.compile(kept.plan)
                except PlanError:  # of another version
                    continue
                return plan, {name: parameter_value(name, v) for name, v in values.items()}
        return None

    async def _kept(self) -> list[_Kept]:
        reply = await self._replies.reply(self._key)
        try:
            return [] if reply is None else _LIST.validate_json(reply.text)
        except ValidationError:  # not what this program wrote
            return []
