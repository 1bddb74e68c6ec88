"""Fields of a text by rule: the value of a line `Label: value` whose label is the name of the field."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

from pearl.dsl.fields import Field
from pearl.errors.patterns import lazy_pattern
from pearl.llm import ActionTask
from pearl.replies.extracted import UNREAD, name_key, wanted_fields

_LINE = lazy_pattern(
    r"^[ \t>*•|-]*(?P<label>[^\n:|]{1,60}?)[ \t*]*[:|][ \t*]*(?P<value>[^\n|]*[^\s|])", re.M
)

_RUNS_ON = lazy_pattern(r"[.:;!?]\s|\s{3}|\t")
"""The end of a value within its line: a sentence or another label follows."""
_MAX_WORDS = 8

_UNREAD = "the embedded model reads only 'label: value' lines; name a language model with --model"


def read_lines(task: ActionTask) -> str:
    """The reply to an extraction: values of lines, everything else undecided."""
    text = dict(task.arguments)["FIELDS"]
    lines: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for match in _LINE.finditer(task.document or ""):
        lines[name_key(match["label"])].append((match["value"], match[0].strip()))
    fields = wanted_fields(text, is_all=task.action.extracts_all)
    return json.dumps({field.name: _value(field, lines) for field in fields}, ensure_ascii=False)


def _value(field: Field, lines: dict[str, list[tuple[str, str]]]) -> Any:
    same = lines.get(name_key(field.name), [])
    if field.is_list or len(same) != 1:
        return [{UNREAD: _UNREAD}] if field.is_list else {UNREAD: _UNREAD}
    ((value, line),) = same
    if _RUNS_ON.search(value) or len(value.split()) > _MAX_WORDS:
        return {"undecided": _UNREAD}
    return {"value": value, "quote": line}
