"""Models for the tests of programs that use PEARL: no network, no language model, the same reply each time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from pearl.dsl.decoding.constraint import Schema
from pearl.dsl.signatures import NOTHING, ValueType
from pearl.embedded import write_plan
from pearl.errors import ModelError, suggest
from pearl.interpreter.checking import Verdict
from pearl.llm import ActionTask, CheckTask, ChooseTask, Constrains, PlanTask, Request
from pearl.llm.backends.scripted import Scripted

__all__ = ["Fake"]


class Fake(Scripted):
    """A model that replies at once; `requests` lists the requests it was sent.

    Args:
        replies: The replies to steps by their outputs, as recorded; a function of the request; or None. What they
            do not reply to gets the least valid reply: the shortest plan, the beginning of the document as a quote
            for a text, null where the schema allows it, 0, the first label.

    Example:
        >>> import pearl
        >>> document = pearl.Document("Ada sold the boat because it leaked. Otto slept.")
        >>> answer = pearl.run(pearl.Pearl(Fake()).ask("Why did Ada sell the boat?", document))
        >>> answer.status, answer.evidence[0].text
        ('answered', 'Ada sold the boat because it leaked.')
    """

    constrains = Constrains(frozenset({"json"}))
    reads_prompts = True
    notice = ""

    def __init__(
        self, replies: Mapping[str, str] | Callable[[Request], str | None] | None = None
    ) -> None:
        super().__init__(self._said, name="fake")
        self._replies = replies

    def _said(self, request: Request) -> str:
        given, task = self._replies, request.task
        if callable(given):
            said = given(request)
            if said is not None:
                return said
        elif given is not None and isinstance(task, ActionTask):
            if task.output not in given:
                help = suggest(task.output, given, "steps")
                message = f"no reply was recorded for step '{task.output}'"
                raise ModelError(message, kind="bad_request", help=help)
            return given[task.output]
        return least(request)


def least(request: Request) -> str:
    """The smallest valid reply to a request."""
    task = request.task
    line = next(filter(str.strip, (request.document or "").splitlines()), "nothing")
    quote = line.partition(". ")[0] + "." * (". " in line)
    form = None if request.constraint is None else request.constraint.json_form
    match task:
        case CheckTask():
            yes = get_args(Verdict)[0]
            return json.dumps(
                {"verdicts": [{"id": i + 1, "verdict": yes} for i in range(len(task.claims))]}
            )
        case ChooseTask():
            return "A"
        case PlanTask() if form is None or set(form.schema["properties"]) != {"new_actions"}:
            return write_plan(task.question, task.library)
        case ActionTask() if form is None:
            least = {ValueType.BOOL: "no", ValueType.NUMBER: "0", ValueType.DATE: NOTHING}
            return least.get(task.gives, f"> {quote}")
    return quote if form is None else form.text_of(_least(form.schema, form.schema, quote))


def _least(schema: Schema, whole: Schema, text: str) -> Any:
    """The smallest valid value of a schema; `text` is used where any text is allowed."""
    if "$ref" in schema:
        return _least(whole["$defs"][schema["$ref"].removeprefix("#/$defs/")], whole, text)
    if "anyOf" in schema:
        ways = schema["anyOf"]
        fields = [(way, way.get("properties", {})) for way in ways]
        texts = (way for way, each in fields if "quote" in each and each["value"] == each["quote"])
        return _least(next(texts, ways[0]), whole, text)
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: _least(each, whole, text) for name, each in schema["properties"].items()}
        case "array":
            return [_least(schema["items"], whole, text)] * schema.get("minItems", 0)
        case "string":
            return "x" if "pattern" in schema else text[: schema.get("maxLength")]
    return {"null": None, "boolean": False}.get(schema["type"], max(0, schema.get("minimum", 0)))
