"""Actions → comparison keys: by signature, and by what they do."""

from __future__ import annotations

import re

from pearl.dsl.signatures import Action


def shape(action: Action) -> tuple[object, ...]:
    """The signature without names: parameter types and whether the action is variadic."""
    return tuple(parameter.type for parameter in action.parameters), action.is_variadic


def meaning(action: Action) -> tuple[object, ...]:
    """Comparison key of what an action does: its shape and definition, whatever names and case.

    Example:
        >>> from pearl.dsl.signatures import Parameter
        >>> one = Action("FIND", (Parameter("X"),), "Look for X.")
        >>> meaning(one) == meaning(Action("SEEK", (Parameter("Y"),), "look for Y"))
        True
    """
    definition = action.definition
    for i, parameter in enumerate(action.parameters):
        definition = re.sub(rf"\b{re.escape(parameter.name)}\b", f"\0{i}", definition)
    return shape(action), " ".join(definition.casefold().rstrip(".").split())
