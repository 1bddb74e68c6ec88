"""Plans with parameters, stored with the replies; a question that differs only in the values finds its plan."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

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

MAX_NAME = 60  # Maximum characters of the value of a parameter

MAX_KEPT = 500  # Maximum plans that are kept for one library; the oldest go first

_LIST = TypeAdapter(list[tuple[str, dict[str, str], str]])
"""Questions with the names of their parameters in braces, the values that they had, and their plans."""


class KeptPlans:
    """Plans for one library, one kind of document, and one day that questions refer to."""

    def __init__(self, replies: Replies, pearl: Pearl, kind: DocumentKind) -> None:
        self._replies = replies
        self._pearl = pearl
        scope = (library_digest(pearl.actions), kind, pearl.planner.day)
        self._key = digest(("pearl plans", *scope))

    async def add(self, checked: CheckedPlan, values: Mapping[str, str]) -> None:
        """Keep a plan for these values in place of an earlier one for the same question."""
        question = checked.plan.question or ""
        others = [each for each in await self._kept() if each[0] != question]
        new = question, {**values}, str(checked)
        text = json.dumps([new, *others][:MAX_KEPT])
        await self._replies.keep(self._key, Completion(text, "plans"))

    async def find(self, question: str) -> tuple[CheckedPlan, dict[str, str]] | None:
        """Find the newest plan whose question matches, and the values of its parameters.

        A value may not have more words than the original one, and a number stands only for a number.
        """
        value = rf"\w(?:.{{0,{MAX_NAME - 2}}}\w)?"
        for asked, kept, plan in await self._kept():
            pattern = re.escape(asked)
            for name in kept:
                mark = re.escape(f"{{{name}}}")
                pattern = pattern.replace(mark, f"(?P<{name}>{value})", 1)
                pattern = pattern.replace(mark, f"(?P={name})")
            found = re.fullmatch(pattern, " ".join(question.split()))
            values = found.groupdict() if found else {}
            if found and all(
                len(values[name].split()) <= len(old.split())
                and _is_number(values[name]) >= _is_number(old)
                for name, old in kept.items()
            ):
                try:
                    checked = self._pearl.compile(plan)
                except PlanError:  # of another version
                    continue
                return checked, {name: parameter_value(name, v) for name, v in values.items()}
        return None

    async def _kept(self) -> list[tuple[str, dict[str, str], str]]:
        reply = await self._replies.reply(self._key)
        try:
            return [] if reply is None else _LIST.validate_json(reply.text)
        except ValidationError:  # not what this program wrote
            return []


def _is_number(value: str) -> bool:
    return any(map(str.isdecimal, value)) and not any(map(str.isalpha, value))
