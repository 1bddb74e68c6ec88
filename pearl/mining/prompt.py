"""Question + seed actions + examples → messages that request the actions that the seed lacks."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.dsl.signatures import ActionLibrary
from pearl.llm import Message
from pearl.planner.examples import Example
from pearl.planner.prompt import material

_MINER = """\
You collect the actions that plans are made of. A plan answers a question about a long document, \
which in a plan is called CTX; each of its steps calls one action, and each action is carried out \
by a reader who sees the document and the arguments, nothing else. You see the question, not the \
document. You sketch a plan for the question and declare every action it needs that is not there yet."""

_RULES = """\
How to write it:
- Begin with a line "New actions:" and below it one line "- NAME(CTX, X) : definition" for every \
action that the sketch needs and the list lacks, or "- None" if it lacks nothing.
- An action is worth adding only if many other questions would use it: name what it does \
(FIND_MOTIVE, not FIND_MOTIVE_OF_THE_CAPTAIN), and make a parameter of whatever belongs to this one \
question. No negated twin of an action that is there.
- The definition is one sentence that uses every parameter by its name.
- Then a blank line, then the steps, numbered from 1: 1. output = ACTION(arguments) : what the step is for
- An argument is CTX, the output of an earlier step, a string in straight double quotes, a number, \
or a list of those in square brackets. A call never stands inside a call.
- Reply with the new actions and the steps alone."""


def mine_messages(
    question: str, library: ActionLibrary, examples: Sequence[Example] = ()
) -> tuple[Message, ...]:
    """Request new actions; everything before the question is a common prefix."""
    parts = [
        *material("Actions that are there", library, _RULES, examples),
        f"Sketch the plan for this question and declare its new actions.\n\nQuestion: {question}",
    ]
    return Message("system", _MINER), Message("user", "\n\n".join(parts))
