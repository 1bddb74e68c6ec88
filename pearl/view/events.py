"""Lines of a trace → its events: those of another version, too, as far as this one knows them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pearl.trace import SCHEMA_VERSION, Event

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)

MAX_NAME = 60
"""Characters of a name that a problem quotes."""


def read_events(lines: Iterable[bytes]) -> tuple[dict[str, tuple[Event, ...]], list[str]]:
    r"""Read what can be read; the rest is told.

    Unlike `pearl.trace.read_trace`, which a run goes on from, nothing here refuses a file: fields
    that are not known are dropped, and so are events that are not.

    Example:
        >>> read_events([b'{"v":1,"id":"a","event":"went_home"}\n', b'{"v":1,"id":"a","ev'])[1]
        ['Events that cannot be read are left out: 1 (went_home).', 'The last event was cut off: the run was killed, or is still going on.']
    """
    events: dict[str, list[Event]] = {}
    versions: Counter[str] = Counter()
    fields: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    is_cut = False
    for line in lines:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            is_cut = not line.endswith(b"\n")
            if not is_cut and line.strip():
                left_out["no JSON"] += 1
            continue
        if not isinstance(data, dict) or not isinstance(data.get("id"), str):
            left_out["no event"] += 1
            continue
        version, id = data.pop("v", None), data.pop("id")
        if version != SCHEMA_VERSION:
            versions[_name(version)] += 1
        found = events.setdefault(id, [])
        event = _event(data, fields)
        if event is None:
            left_out[_name(data.get("event", "no event"))] += 1
        else:
            found.append(event)
    problems = []
    if versions:
        told = f"The trace is of version {', '.join(versions)}, this program's is {SCHEMA_VERSION}"
        problems.append(f"{told}: it shows what it knows of it.")
    if fields:
        problems.append(f"Fields of the trace that are not known are left out: {_list(fields)}.")
    if left_out:
        n = left_out.total()
        problems.append(f"Events that cannot be read are left out: {n:,} ({_list(left_out)}).")
    if is_cut:
        told = "The last event was cut off: the run was killed, or is still going on."
        problems.append(told)
    return {id: tuple(each) for id, each in events.items()}, problems


def _event(data: dict[str, Any], fields: Counter[str]) -> Event | None:
    """An event without what is not known of it; None if that is not enough."""
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
    # A discriminated union names the event first, then the field.
    unknown = {each["loc"][1] for each in wrong if _is_unknown_field(each)}
    if not unknown:
        return None
    try:
        event = _ADAPTER.validate_python({k: v for k, v in data.items() if k not in unknown})
    except ValidationError:
        return None
    fields.update(_name(each) for each in unknown)
    return event


def _is_unknown_field(error: Any) -> bool:
    return error["type"] == "extra_forbidden" and len(error["loc"]) == 2


def _name(value: Any) -> str:
    text = str(value)
    return text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}…"


def _list(names: Counter[str]) -> str:
    shown = [name for name, _ in names.most_common(5)]
    return ", ".join([*shown, *(["…"] if len(names) > 5 else [])])
