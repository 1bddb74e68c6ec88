"""A question → its parts, told by a model; what is wrong goes back to it, a bounded number of times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pearl.actions.calculators import CALCULATORS, load_calculator
from pearl.dsl.decoding.constraint import Constraint, JsonForm
from pearl.dsl.decoding.json_rules import (
    either_rule,
    list_rule,
    literal_rule,
    object_rule,
    ordered_json,
)
from pearl.dsl.decoding.schema import closed_object, require
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import ModelError
from pearl.llm import Completion, DecomposeTask, Message, Model, Request, Usage
from pearl.llm.fallback import ConstraintFallback, ConstraintLevel, reply_fallback
from pearl.llm.messages import constrained
from pearl.llm.reply_limits import reply_limit
from pearl.planner.parts import (
    GIVES,
    MAX_PARTS,
    Decomposition,
    flaws,
    read_decomposition,
)
from pearl.trace import ConstraintRefused, Trace

MAX_REPAIRS = 2
"""Replies that are sent back at most."""

_UNUSABLE = frozenset({"truncated", "repetition", "filtered", "refused", "empty", "malformed"})
"""Kinds of errors of a single reply; after others the planner would be asked in vain, too."""

_MAX_FLAWS = 6

_HEAD = """\
You say what a question about reports and tables consists of. You do not see them, and you do not answer the question."""

_BODY = f"""\
Reply with one JSON object: {{"parts": [...], "level": N}}. Each part has an id, p1, p2, ... in order, and is one of
- {{"id": "p1", "kind": "figure", "metric": ..., "entity": ..., "period": ...}}: one figure of one period. Use the words \
of the question; "" for an entity or a period that it does not name. For two periods make two parts.
- {{"id": "p2", "kind": "calculation", "operation": ..., "operands": [...]}}: what is computed from earlier parts, by \
their ids, and from numbers of the question.
- {{"id": "p3", "kind": "other", "question": ..., "gives": {
    " or ".join(f'"{one}"' for one in GIVES)
}}}: anything else \
that is asked for, in words. Where you are not sure, use this.
Operations with their operands in order: {
    "; ".join(
        f"{name} ({', '.join(each.name for each in load_calculator(name).OPERANDS)})"
        for name in CALCULATORS
    )
}. A change from one year to a later one is the difference of the later and the earlier figure.
Operating margins and current ratios are figures here: what they are computed from is put in later.
Level: 1 for one figure, 2 for several, 3 for one operation, 4 for sums, comparisons and several operations, 5 for \
anything else. Every part that no other part uses belongs to the answer, in their order.

Examples:

Question: By how much did the freight revenue of Norfolk Lines change from 2011 to 2012, and what was its headcount in 2012?
{{"parts": [{{"id": "p1", "kind": "figure", "metric": "freight revenue", "entity": "Norfolk Lines", "period": "2012"}}, \
{{"id": "p2", "kind": "figure", "metric": "freight revenue", "entity": "Norfolk Lines", "period": "2011"}}, \
{{"id": "p3", "kind": "calculation", "operation": "difference", "operands": ["p1", "p2"]}}, \
{{"id": "p4", "kind": "figure", "metric": "headcount", "entity": "Norfolk Lines", "period": "2012"}}], "level": 3}}

Question: Why did the margin fall in 2009?
{{"parts": [{{"id": "p1", "kind": "other", "question": "Why did the margin fall in 2009?", "gives": "text"}}], "level": 5}}"""


@dataclass(frozen=True, slots=True)
class Decomposed:
    """What came of asking for the parts of a question."""

    decomposition: Decomposition | None
    usage: Usage
    flaw: str = ""
    n_calls: int = 1
    n_cached: int = 0


async def decompose(
    question: str,
    library: ActionLibrary,
    model: Model,
    *,
    max_output_tokens: int | None = None,
    fallback: ConstraintFallback | None = None,
    trace: Trace | None = None,
) -> Decomposed:
    """Ask for the parts of a question."""
    fallback = fallback or reply_fallback(model.constrains)
    constraint = decomposition_constraint()
    messages = first = decompose_messages(question)
    usage, flaw, n_cached = Usage(), "", 0

    for round in range(MAX_REPAIRS + 1):
        task = DecomposeTask(question, library, round)
        limit = reply_limit(task, model.window, max_output_tokens)
        request = Request(messages, task, limit)

        async def ask(level: ConstraintLevel, request: Request = request) -> Completion:
            return await model.complete(constrained(request, constraint, level.by))

        def refused(level: ConstraintLevel, error: ModelError) -> None:
            if trace is not None:
                trace.append(ConstraintRefused(constraint=level.name, reason=error.message))

        try:
            completion, _ = await fallback.ask(ask, refused, _flaw)
        except ModelError as error:
            if error.kind not in _UNUSABLE:
                raise
            usage += error.usage or Usage()
            return Decomposed(None, usage, error.message, round + 1, n_cached)
        usage += completion.usage
        n_cached += completion.is_remembered
        try:
            found = read_decomposition(completion.text)
            wrong = flaws(found, question)
        except ValueError as error:
            wrong = (str(error),)
        else:
            if not wrong:
                return Decomposed(found, usage, "", round + 1, n_cached)
        flaw = "; ".join(wrong[:_MAX_FLAWS])
        messages = repair_messages(first, completion.text, wrong[:_MAX_FLAWS])
    return Decomposed(None, usage, flaw, MAX_REPAIRS + 1, n_cached)


def _flaw(text: str) -> str | None:
    """Why a reply is not of the form, or None."""
    try:
        read_decomposition(text)
    except ValueError as error:
        return str(error)
    return None


def decompose_messages(question: str) -> tuple[Message, ...]:
    """Ask for the parts; the question comes last, after what all questions have in common."""
    return Message("system", _HEAD), Message("user", f"{_BODY}\n\nQuestion: {question}")


def repair_messages(
    messages: tuple[Message, ...], reply: str, wrong: tuple[str, ...]
) -> tuple[Message, ...]:
    """Ask again, after what is wrong with a reply."""
    listed = "\n".join(f"- {each}" for each in wrong)
    return (
        *messages,
        Message("assistant", reply),
        Message(
            "user",
            f"These parts cannot be used:\n{listed}\nReply with the corrected JSON object alone.",
        ),
    )


_TEXT = r"[^\u0000-\u001f\u007f]{0,300}"
_ORDER = ("parts", "level", "id", "kind", "metric", "entity", "period", "operation", "operands", "question", "gives")  # fmt: skip
_HINT = (
    'An object with "parts", each {"id", "kind": "figure", "metric", "entity", "period"}, {"id", "kind": '
    '"calculation", "operation", "operands"} or {"id", "kind": "other", "question", "gives"}, and "level".'
)


def decomposition_constraint() -> Constraint:
    """The form of a reply.

    Example:
        >>> parts = [{"kind": "figure", "id": "p1", "metric": "sales", "entity": "", "period": "2009"}]
        >>> decomposition_constraint().json_form.text_of({"level": 1, "parts": parts})
        '{"parts": [{"id": "p1", "kind": "figure", "metric": "sales", "entity": "", "period": "2009"}], "level": 1}'
    """
    schema = _schema()

    def text_of(value: Any) -> str:
        require(value, schema)
        return ordered_json(value, _ORDER)

    return Constraint("parts", _grammar(), JsonForm(schema, text_of, _HINT))


def _schema() -> dict[str, Any]:
    text = {"type": "string", "pattern": f"^{_TEXT}$"}
    id = {"type": "string", "pattern": "^p[1-9][0-9]?$"}
    operand = {"type": "string", "pattern": r"^(?:p[1-9][0-9]?|[0-9]{1,9}(?:\.[0-9]{1,9})?)$"}

    def closed(**properties: Any) -> dict[str, Any]:
        return closed_object(properties)

    parts = [
        closed(id=id, kind={"enum": ["figure"]}, metric=text, entity=text, period=text),
        closed(
            id=id,
            kind={"enum": ["calculation"]},
            operation={"enum": list(CALCULATORS)},
            operands={"type": "array", "items": operand, "minItems": 1, "maxItems": 4},
        ),
        closed(id=id, kind={"enum": ["other"]}, question=text, gives={"enum": list(GIVES)}),
    ]
    several = {
        "type": "array",
        "items": {"anyOf": parts},
        "minItems": 1,
        "maxItems": MAX_PARTS,
    }
    return closed(parts=several, level={"enum": [1, 2, 3, 4, 5]})


def _grammar() -> str:
    rules = {
        "start": object_rule(parts="parts", level="LEVEL"),
        "parts": list_rule("part", least=1),
        "part": "figure | calculation | other",
        "figure": object_rule(
            id="ID", kind=_kind("figure"), metric="TEXT", entity="TEXT", period="TEXT"
        ),
        "calculation": object_rule(
            id="ID", kind=_kind("calculation"), operation="OPERATION", operands="operands"
        ),
        "other": object_rule(id="ID", kind=_kind("other"), question="TEXT", gives="GIVES"),
        "operands": list_rule("OPERAND", least=1),
        "ID": '/"p[1-9][0-9]?"/',
        "OPERAND": r'/"(?:p[1-9][0-9]?|[0-9]{1,9}(?:\.[0-9]{1,9})?)"/',
        "OPERATION": either_rule(CALCULATORS),
        "GIVES": either_rule(GIVES),
        "LEVEL": " | ".join(literal_rule(str(n)) for n in range(1, 6)),
        "TEXT": r'/"(?:[^"\\\u0000-\u001f\u007f]|\\["\\]){0,300}"/',
    }
    return "".join(f"{name}: {body}\n" for name, body in rules.items())


def _kind(name: str) -> str:
    return either_rule([name])
