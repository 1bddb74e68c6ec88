"""`RowQuestion` → steps with the operators on rows."""

from __future__ import annotations

from pearl.actions.operators import operators
from pearl.dsl.nodes import Argument, ListLiteral, Number, Reference, String
from pearl.dsl.signatures import ActionLibrary
from pearl.llm.backends.extractive.adding import AddStep
from pearl.llm.backends.extractive.row_questions import LABEL, RowQuestion, Where

_USED = (
    "CLASSIFY", "COUNT", "COUNT_BY", "COUNT_OF", "FILTER", "GROUP", "HAVING", "LEAST", "MOST", "NTH", "RELATION",
    "SHARE_OF", "SPLIT", "WHERE",
)  # fmt: skip
_YES = "yes"


def plan_rows(asked: RowQuestion, library: ActionLibrary, add: AddStep) -> bool:
    """Add the steps that answer a question about rows."""
    known = operators()
    if any(
        name not in library or library[name].signature != known[name].signature for name in _USED
    ):
        return False
    _RowPlan(asked, library, add).write()
    return True


class _RowPlan:
    """The steps for one question."""

    def __init__(self, asked: RowQuestion, library: ActionLibrary, add: AddStep) -> None:
        self._asked = asked
        self._library = library
        self._add = add

    def write(self) -> None:
        """Add all steps."""
        asked = self._asked
        rows = self._step("rows", "SPLIT", f"One row for each {asked.unit}", String(asked.unit))
        for name, operator, value in asked.where:
            rows = self._where(rows, (name, operator, value))
        match asked.ask:
            case "compare":
                self._compare(rows)
            case "share":
                column, value = self._labelled(rows)
                self._share("share", column, value)
            case "shares":
                column, value = self._labelled(rows)
                shares = [
                    self._share(name, self._where(column, ("Date", name, asked.day)), value, name)
                    for name in ("before", "after")
                ]
                self._step("relation", "RELATION", "Compare the two shares", *shares)
            case "sizes":
                operator, n = asked.size
                groups = self._step(
                    "groups", "GROUP", "The rows of each", rows, String(asked.field)
                )
                fitting = self._step(
                    "fitting", "HAVING", "Those of that size", groups, String(operator), Number(n)
                )
                self._step("number", "COUNT", "How many they are", fitting)
            case "count":
                self._count(rows)
            case _:
                self._by_field(rows)

    def _step(self, output: str, action: str, explanation: str, *arguments: Argument) -> Reference:
        return self._add(output, self._library[action], explanation, *arguments)

    def _where(self, rows: Argument, where: Where) -> Reference:
        name, operator, value = where
        x = String(value) if isinstance(value, str) else ListLiteral(tuple(map(String, value)))
        goal = f"Those with {name} {operator} what is asked about"
        return self._step("chosen", "WHERE", goal, rows, String(name), String(operator), x)

    def _classified(self, rows: Argument) -> Reference:
        labels = ListLiteral(tuple(map(String, self._asked.labels)))
        return self._step(
            LABEL, "CLASSIFY", "Label each of them", rows, labels, String("its label")
        )

    def _kept(self, rows: Argument, condition: str) -> Reference:
        return self._step("kept", "FILTER", "Those of which it is true", rows, String(condition))

    def _labelled(self, rows: Argument) -> tuple[Reference, tuple[str, str]]:
        """Rows with a label, and the column and the label asked about."""
        if self._asked.labels:
            column = self._classified(rows)
            return column, (column.name, self._asked.about[0])
        verdicts = ListLiteral((String(_YES), String("no")))
        (condition,) = self._asked.about
        column = self._step(
            "verdict", "CLASSIFY", "Say of each whether it is so", rows, verdicts, String(condition)
        )
        return column, (column.name, _YES)

    def _share(
        self, output: str, rows: Argument, value: tuple[str, str], when: str = ""
    ) -> Reference:
        goal = f"Its share {when}".strip()
        return self._step(
            f"{output}_share" if when else output, "SHARE_OF", goal, rows, *map(String, value)
        )

    def _counts(self, rows: Argument, field: str) -> Reference:
        return self._step("counts", "COUNT_BY", "How many there are of each", rows, String(field))

    def _compare(self, rows: Argument) -> None:
        """Which of two there are more of."""
        if self._asked.labels:
            column = self._classified(rows)
            counts = self._counts(column, column.name)
            both = [
                self._step("number", "COUNT_OF", f"How many are {label}", counts, String(label))
                for label in self._asked.about
            ]
        else:
            both = [
                self._step("number", "COUNT", "How many they are", self._kept(rows, condition))
                for condition in self._asked.about
            ]
        self._step("relation", "RELATION", "Which of them there are more of", *both)

    def _count(self, rows: Reference) -> None:
        """How many rows, or how many values of a field they have."""
        asked = self._asked
        if asked.labels:
            column = self._classified(rows)
            counts = self._counts(column, column.name)
            (label,) = asked.about
            self._step("number", "COUNT_OF", f"How many are {label}", counts, String(label))
            return
        for condition in asked.about:
            rows = self._kept(rows, condition)
        if asked.field:
            rows = self._step("groups", "GROUP", "Each of them once", rows, String(asked.field))
        self._step("number", "COUNT", "How many they are", rows)

    def _by_field(self, rows: Reference) -> None:
        """How many of each, the most or the least of them."""
        asked = self._asked
        field = asked.field
        if field == LABEL:
            rows = self._classified(rows)
            field = rows.name
        elif asked.labels:
            column, (name, label) = self._labelled(rows)
            rows = self._where(column, (name, "is", label))
        else:
            for condition in asked.about:
                rows = self._kept(rows, condition)
        counts = self._counts(rows, field)
        match asked.ask:
            case "most":
                self._step("most", "MOST", "The one there are most of", counts)
            case "least":
                self._step("least", "LEAST", "The one there are fewest of", counts)
            case "second":
                self._step("second", "NTH", "The second most", counts, Number(2))
