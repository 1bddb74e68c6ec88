"""Actions that a model carries out for each row.

A plug-in has `ACTION`, an `Action` whose first parameter is `ROWS`; `KIND`, the form of the reply to
an item; `READING`, the same action for one text that is too long to be an item; and `collect`, which
turns the replies into rows. If the model judges pairs of rows instead of single rows, it also has the class
`Over`: an instance is made of the rows and the other arguments, its `pairs` are judged, and its `collect`
takes the replies. Any other action with `ROWS` as its first parameter is carried out as a `MAP` with its own
definition, and `EACH_NAME(ROWS, ...)` carries out `NAME(CTX, ...)` for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from pearl import plugins
from pearl.actions.columns import stem
from pearl.actions.resolving import VERDICTS, Resolution
from pearl.documents.rows import Row, Rows, Stated
from pearl.dsl.nodes import one_line
from pearl.dsl.signatures import CTX, EACH, Action, ActionLibrary, Parameter, Trait, ValueType

if TYPE_CHECKING:
    from pearl.replies.items import ItemKind


class ByRow(Protocol):
    """The interface of an action that a model carries out row by row."""

    ACTION: Action
    KIND: ItemKind
    READING: Action

    def collect(self, rows: Rows, replies: Sequence[str | None], column: str) -> Rows:
        """Build the result from the judged rows and a reply for each (None if undecided); `column` is the step's name."""
        ...


CONTRACT = ByRow


def known() -> dict[str, Action]:
    """Every action that a model carries out row by row, by name."""
    actions = [_module(name).ACTION for name in plugins.names(__name__)]
    return {action.name: action for action in actions}


def _module(name: str) -> Any:
    return plugins.load(__name__, name)


def by_row(action: Action) -> ByRow:
    """The implementation of an action on rows."""
    name = action.name.lower()
    if plugins.exists(__name__, name):
        module: ByRow = _module(name)
        if [p.name for p in module.ACTION.parameters] == [p.name for p in action.parameters]:
            return module
    mapping: ByRow = _module("map")
    return mapping


def each_of(action: Action, library: ActionLibrary) -> Action | None:
    """The library's action that `EACH_NAME` carries out for each row; None for other actions."""
    is_each = action.name.startswith(EACH)
    return library.get(action.name.removeprefix(EACH)) if is_each else None


def reading(action: Action, library: ActionLibrary) -> Action:
    """The action that reads one row as a document of its own."""
    if (each := each_of(action, library)) is not None:
        return each
    module = by_row(action)
    if action.name == module.ACTION.name:
        return module.READING
    first = Parameter(CTX, ValueType.CONTEXT)
    return replace(action, parameters=(first, *action.parameters[1:]), returns=ValueType.TEXT)


def with_column(rows: Rows, replies: Sequence[str | None], column: str) -> Rows:
    """Rows with the replies as one more column, which becomes their value."""
    answered = tuple(
        row.with_column(column, reply) for row, reply in zip(rows, replies, strict=True)
    )
    unasked = tuple(row.with_column(column, None) for row in rows.doubtful)
    return replace(
        rows, rows=answered, doubtful=unasked, column=column, is_answered=True,
        shows_possible=False, totals=(),
    )  # fmt: skip


def _collect_filter(rows: Rows, replies: Sequence[str | None], column: str) -> Rows:
    """Keep the rows with the reply "yes"; rows without a reply become doubtful."""
    from pearl.replies.items import NOT_STATED  # late: `pearl check` reads no reply

    pairs = list(zip(rows, replies, strict=True))
    n_unstated = replies.count(NOT_STATED)
    n_yes, n_no = replies.count("yes"), replies.count("no")
    if n_unstated:
        rows = rows.noting(f"{column}: {n_yes:,} yes, {n_no:,} no, {n_unstated:,} {NOT_STATED}")
    kept = rows.where(
        (row for row, reply in pairs if reply == "yes"),
        (row for row, reply in pairs if reply is None),
    )
    return replace(kept, stated=Stated(n_yes, n_yes + n_no, n_unstated))


def _collect_top(rows: Rows, replies: Sequence[str | None], column: str) -> Rows:
    """Order the rows by their rank, a number from 1; rows without a rank are left out."""
    placed = [(int(reply), row) for row, reply in zip(rows, replies, strict=True) if reply]
    doubtful = [row for row, reply in zip(rows, replies, strict=True) if reply is None]
    ordered = tuple(row for _, row in sorted(placed, key=lambda pair: pair[0]))
    return replace(rows.where(ordered, doubtful).reordered(), is_answered=False)


_LIST = ValueType.LIST
_ROWS, _CONTEXT, _X = Parameter.named("ROWS"), Parameter.named("CTX"), Parameter("X")
_K = Parameter("K", ValueType.TEXT, "number")


def _plugin(
    kind: ItemKind,
    collect: Callable[[Rows, Sequence[str | None], str], Rows],
    name: str,
    parameters: tuple[Parameter, ...],
    definition: str,
    reading: Action,
    *,
    traits: tuple[Trait, ...] = (),
    **more: Any,
) -> SimpleNamespace:
    action = Action(name, (_ROWS, *parameters), definition, returns=_LIST, traits=frozenset(traits))
    return SimpleNamespace(ACTION=action, KIND=kind, READING=reading, collect=collect, **more)


# fmt: off
PLUGINS: dict[str, Any] = {
    "classify": _plugin(
        "label", with_column, "CLASSIFY", (Parameter("LABELS", _LIST, "labels"), _X),
        "Label each of ROWS, on its own, with the one of LABELS that is X",
        Action("CHOOSE_LABEL", (_CONTEXT, Parameter("LABELS"), _X),
               "Say which one of LABELS is X in CTX, and nothing but that label"),
    ),
    "filter": _plugin(
        "yes_no", _collect_filter, "FILTER", (_X,),
        "Say of each of ROWS, on its own, whether X is true of it, and keep those of which it is",
        Action("IS_TRUE", (_CONTEXT, _X), "Say whether X is true of CTX, yes or no",
               returns=ValueType.BOOL),
    ),
    "map": _plugin(
        "line", with_column, "MAP", (_X,),
        "Return X of each of ROWS, on its own, as one short line",
        Action("READ", (_CONTEXT, _X), "Return X of CTX as one short line"),
    ),
    "reduce": _plugin(
        "line", with_column, "REDUCE", (_X,),
        "Return X of all of ROWS together, or of each group of them, in one text with the rows that bear it out",
        Action("REDUCE_TEXT", (_CONTEXT, _X),
               'Return X of all the rows in CTX together; a row that begins with "(3 times)" stands for three'),
        traits=("reduces", "sums_up"),
    ),
    "resolve": _plugin(
        "label", with_column, "RESOLVE", (Parameter("FIELD"),),
        "Return ROWS with one name for each thing whose name in the field FIELD is written in several ways",
        Action("SAME_THING", (_CONTEXT, Parameter("LABELS"), Parameter("FIELD")),
               "Say whether A and B in CTX are names of the same FIELD, as one of LABELS and nothing but that label"),
        traits=("by_field", "compares"), Over=Resolution, LABELS=VERDICTS,
        ITEM=Action("SAME_THING", (_ROWS, Parameter("FIELD")),
                    "Say of each of ROWS, on its own, whether A and B are names of the same FIELD, however they are "
                    "written; cannot tell, where the names alone do not decide it"),
    ),
    "top": _plugin(
        "pick", _collect_top, "TOP", (_X, _K),
        'Compare ROWS by "X" and return the first K of them, the first one first',
        Action("PLACE", (_CONTEXT, _X), 'Return the place of CTX by "X"', returns=ValueType.NUMBER),
        traits=("compares",),
    ),
}
# fmt: on

_MAX_OTHERS = 600  # maximum characters of a row with columns that the instruction does not name

_GENERIC = frozenset({
    "", "case", "client", "customer", "document", "entry", "item", "line", "nr", "no", "patient", "people", "person",
    "record", "report", "row", "user",
})  # fmt: skip
"""Column names that are also words for a row; in an instruction such a word does not mean the column."""


def shown_text(row: Row, instruction: str = "") -> str | None:
    r"""The text of a row for a model: its value, or `name: value` lines for a record whose text has no names."""
    if not row.value or row.value != row.text or not row.fields:
        return row.value
    cells = cells_of(row)
    if not cells:
        return row.value
    lines = {
        name: f"{one_line(name)}: {' '.join(one_line(cell).split())}"
        for name, cell in cells.items()
    }
    wanted = f" {stem(instruction)} "
    named = [name for name in lines if _is_named(name, wanted)]
    if named:
        room = _MAX_OTHERS - sum(len(lines[name]) for name in named)
        for name, line in lines.items():
            if name not in named and len(line) <= room:
                named.append(name)
                room -= len(line)
    return "\n".join(line for name, line in lines.items() if not named or name in named)


def _is_named(name: str, wanted: str) -> bool:
    """Whether an instruction contains the name of a column, or the end of the name."""
    words = stem(name).split()
    ends = (" ".join(words[i:]) for i in range(len(words)))
    return any(end not in _GENERIC and f" {end} " in wanted for end in ends)


def cells_of(row: Row) -> dict[str, str]:
    """The cells of a row whose text lists only their values, in order; {} if the text has their names."""
    text = row.text.replace('""', '"').replace(r"\|", "|")
    cells: dict[str, str] = {}
    at = 0
    for name, cell in row.fields.items():
        start = text.find(cell, at) if cell else -1
        if cell and start >= 0 and not _has_words(text, at, start):
            cells[name] = cell
            at = start + len(cell)
    return {} if _has_words(text, at, len(text)) else cells


def _has_words(text: str, start: int, end: int) -> bool:
    return any(text[i].isalnum() for i in range(start, end))
