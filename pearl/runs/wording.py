"""Which wording of the prompts this is: a digest of what they say of one fixed task of each kind."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.interpreter.choosing_prompt import choose_messages
from pearl.interpreter.prompt import FORMS, action_messages, again_messages, combine_messages
from pearl.llm import ActionTask, ChooseTask, messages_digest
from pearl.llm.messages import json_messages
from pearl.planner.prompt import plan_messages, repair_messages, steps_messages

__all__ = ["prompts_sha256"]


@cache
def prompts_sha256() -> str:
    """SHA-256 in hexadecimal; it changes with every word that a model is told.

    Example:
        >>> len(prompts_sha256())
        64
    """
    find = Action("FIND", (Parameter("CTX", ValueType.CONTEXT), Parameter("X")), "Find X")
    task = ActionTask("a", find, (("X", "x"), ("Y", "y")), "text", "why", "what?", frozenset({"Y"}))
    plan = plan_messages("what?", ActionLibrary("one", [find]))
    prompts = (
        plan,
        repair_messages(plan, "1. a = FIND(CTX)", ()),
        steps_messages(plan, "New actions:\n- None"),
        json_messages(plan, "an object"),
        action_messages(task),
        *(action_messages(replace(task, gives=form)) for form in FORMS),
        *(again_messages(action_messages(task), "one", form) for form in FORMS),
        combine_messages(task, ("one", "two")),
        *(
            choose_messages(ChooseTask("what?", ("a", "b"), document, answer, is_reasoned))
            for document, answer in (("text", None), (None, "x"))
            for is_reasoned in (False, True)
        ),
    )
    return messages_digest(message for messages in prompts for message in messages)
