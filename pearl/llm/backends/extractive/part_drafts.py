"""The parts of a question while rules put them together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pearl.actions.calculators import calculator_of


class NoRuleError(Exception):
    """No rule is sure."""


@dataclass(slots=True)
class PartDraft:
    """Parts so far, by their ids, in the form of a reply."""

    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def add(self, **fields: Any) -> str:
        """Add a part, and return its id."""
        id = f"p{len(self.parts) + 1}"
        self.parts[id] = {"id": id, **fields}
        return id

    def figure(self, metric: str, entity: str, period: str) -> str:
        """The id of a figure, which is one part however often it is needed."""
        key = (metric, entity, period)
        if key not in self.figures:
            self.figures[key] = self.add(kind="figure", metric=metric, entity=entity, period=period)
        return self.figures[key]

    def calculation(self, operation: str, *operands: str) -> str:
        """The id of a calculation; operands are ids, or numbers."""
        if len(set(operands)) < len(operands):
            raise NoRuleError
        return self.add(kind="calculation", operation=operation, operands=list(operands))

    def is_figure(self, id: str) -> bool:
        """Whether a part is looked up, not computed."""
        return "operation" not in self.parts[id]

    def operands(self, id: str, operation: str) -> list[str]:
        """What a part is computed from by an operation; none if it is not."""
        part = self.parts[id]
        return part["operands"] if part.get("operation") == operation else []

    def within(self, id: str) -> Iterator[str]:
        """The ids of a part and of all that it is computed from; of constants none."""
        yield id
        for operand in self.parts[id].get("operands", ()):
            if operand in self.parts:
                yield from self.within(operand)

    def subject(self, id: str) -> tuple[str, str] | None:
        """The metric and the entity of all figures of a part; None if they differ."""
        found = {
            (part["metric"], part["entity"])
            for each in self.within(id)
            if (part := self.parts[each])["kind"] == "figure"
        }
        return found.pop() if len(found) == 1 else None

    def only(self, ids: list[str]) -> list[dict[str, Any]]:
        """These parts and what they are computed from, numbered anew, in their order."""
        kept = {each for id in ids for each in self.within(id)}
        named = {old: f"p{n}" for n, old in enumerate((id for id in self.parts if id in kept), 1)}
        return [
            {**part, "id": named[id]}
            | (
                {"operands": [named.get(each, each) for each in part["operands"]]}
                if "operands" in part
                else {}
            )
            for id, part in self.parts.items()
            if id in kept
        ]


def level(parts: list[dict[str, Any]]) -> int:
    """The difficulty that goes with parts."""
    if any(part["kind"] == "other" for part in parts):
        return 5
    operations = [part["operation"] for part in parts if part["kind"] == "calculation"]
    operations += filter(None, (calculator_of(part.get("metric", "")) for part in parts))
    if not operations:
        return min(2, len(parts))
    return 3 if len(operations) == 1 and operations[0] not in ("sum", "greater") else 4
