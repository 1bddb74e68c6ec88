"""Answers of earlier turns, which are text of the document: placeholders until the plan is written.

The models that rewrite and plan a question are shown `ANSWER_1`. The answer takes its place in the
strings of the written plan, and in what a reading model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pearl.data.samples import Turn
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.literals import UNTYPED
from pearl.dsl.nodes import Argument, ListLiteral, Number, Plan, Reference, Step, String
from pearl.dsl.signatures import Action

PLACEHOLDER = re.compile(r"\bANSWER_[1-9]\d{0,4}\b")

Item = Reference | String | Number

MAX_ANSWER = 300
"""Characters of an answer that are put in."""


def earlier_answers(question: str, history: Sequence[Turn]) -> dict[str, str]:
    """Placeholder → answer, on one line and shortened."""
    if any(PLACEHOLDER.search(text) for text in (question, *(turn.question for turn in history))):
        return {}
    return {
        f"ANSWER_{number}": _short(turn.answer)
        for number, turn in enumerate(history, start=1)
        if turn.answer.strip()
    }


def filled(text: str, answers: Mapping[str, str]) -> str:
    """A text with the answers in quotation marks; a placeholder alone becomes the answer itself.

    Example:
        >>> filled("why ANSWER_1 left", {"ANSWER_1": "Ada, the owner"})
        'why "Ada, the owner" left'
        >>> filled("ANSWER_1", {"ANSWER_1": "Ada"})
        'Ada'
    """
    if text in answers:
        return answers[text]

    def quoted(match: re.Match[str]) -> str:
        answer = answers.get(match[0])
        return match[0] if answer is None else '"{}"'.format(answer.replace('"', "'"))

    return PLACEHOLDER.sub(quoted, text)


def filled_plan(checked: CheckedPlan, answers: Mapping[str, str], question: str) -> CheckedPlan:
    """A plan with the answers in its strings, as that of a question with the answers."""
    if not answers:
        return checked

    def item(given: Item) -> Item:
        return String(filled(given.value, answers)) if isinstance(given, String) else given

    def argument(given: Argument) -> Argument:
        if isinstance(given, ListLiteral):
            return replace(given, items=tuple(map(item, given.items)))
        return item(given)

    def step(given: Step) -> Step:
        arguments = tuple(map(argument, given.arguments))
        return replace(given, arguments=arguments, explanation=filled(given.explanation, answers))

    def action(given: Action) -> Action:
        return replace(given, definition=filled(given.definition, answers))

    plan = checked.plan
    new = tuple(map(action, plan.new_actions))
    own = {given.name for given in plan.new_actions}
    actions = checked.actions.extended(
        action(given)
        for given in checked.actions.values()
        if given.name.removeprefix("EACH_") in own
    )
    return replace(checked, plan=Plan(tuple(map(step, plan.steps)), new, question), actions=actions)


def _short(text: str) -> str:
    line = UNTYPED.sub("", " ".join(text.split()))
    return line if len(line) <= MAX_ANSWER else f"{line[: MAX_ANSWER - 4].rstrip()} ..."
