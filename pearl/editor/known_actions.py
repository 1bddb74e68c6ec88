"""The actions that a file in an editor may call, and where each is defined."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pearl.actions.library import library_names, load_library
from pearl.actions.operators import with_operators
from pearl.dsl.checker import callable_actions
from pearl.dsl.nodes import Plan, Step
from pearl.dsl.signatures import EACH, Action, ActionLibrary
from pearl.editor.outline import Outline
from pearl.errors import Span
from pearl.plugins.files import find_data


@dataclass(frozen=True, slots=True)
class KnownActions:
    """A library with the operators that every plan has."""

    library: ActionLibrary
    path: Path | None = None
    own: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ActionSource:
    """An action, and where it is defined."""

    action: Action
    span: Span | None
    path: Path | None = None


def known_actions(name_or_path: str) -> KnownActions:
    """Load a library by name or by path, with operators."""
    own = load_library(name_or_path)
    if name_or_path in library_names():
        path = find_data("actions", f"{name_or_path}.actions")
    else:
        path = Path(name_or_path)
    return KnownActions(with_operators(own), path and path.resolve(), frozenset(own))


def find_action(name: str, plan: Outline, known: KnownActions) -> ActionSource | None:
    """The action that a name calls in a plan: one of its own first, then the library's; or None."""
    declared = [each.action for each in plan.declarations if each.action]
    step = Step("", name, (), "")
    action = callable_actions(Plan((step,), tuple(declared)), known.library).get(name)
    if action is None:
        return None
    base = name if name in known.library or plan.declaration_of(name) else name.removeprefix(EACH)
    if declaration := plan.declaration_of(base):
        return ActionSource(action, declaration.name_span)
    if base in known.own and known.path is not None:
        return ActionSource(action, known.library[base].span, known.path)
    return ActionSource(action, None)
