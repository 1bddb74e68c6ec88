"""Words of a question + actions → the constraint for the plans of small models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pearl.dsl.decoding.constraint import Constraint, JsonForm, closed_object, literal_rule, require
from pearl.dsl.decoding.grammar import nothing_to_call
from pearl.dsl.nodes import String, print_argument
from pearl.dsl.signatures import CTX, Action, ActionLibrary, ValueType

MAX_SPAN_WORDS = 12
"""Words of a string that is copied from a question."""

MAX_STARTS = 40
"""Maximum words at which a string may begin; the last words, because the question follows its introduction."""

MAX_TEXTS = 2
"""Maximum strings of a call."""

MAX_WHOLE = 400
"""Maximum characters of a question that may be a string as a whole."""


class Word(NamedTuple):
    """A word of a question."""

    text: str
    is_content: bool
    is_opening: bool = False
    is_last: bool = False


def n_texts(action: Action) -> int | None:
    """The number of strings of a call besides the document; None if it needs other arguments."""
    first, *rest = action.parameters or (None,)
    if action.is_native or action.is_variadic or first is None or first.reads == "passages":
        return None
    is_of_texts = all(p.type is ValueType.TEXT and not (p.choices or p.reads) for p in rest)
    reads = first.type is ValueType.CONTEXT
    return len(rest) if reads and is_of_texts and len(rest) <= MAX_TEXTS else None


def weak_plan_constraint(
    words: Sequence[Word], question: str, library: ActionLibrary, *, max_steps: int
) -> Constraint:
    """The steps of a plan that reads the document for words of a question."""
    names: dict[int, list[str]] = {}
    for action in library.values():
        if (n := n_texts(action)) is not None:
            names.setdefault(n, []).append(action.name)
    if 1 not in names:
        raise nothing_to_call(library)
    grammar = "\n".join(_rules(words, question, names, max_steps)) + "\n"
    return Constraint("weak-plan", grammar, _json_form(names, max_steps))


def _rules(
    words: Sequence[Word], question: str, names: Mapping[int, Sequence[str]], max_steps: int
) -> Iterator[str]:
    """The grammar: `s2_5` is step 2, whose first string begins with start 5 or a later one."""
    starts = _starts(words)
    n = len(starts)
    is_whole = not starts or len(question) <= MAX_WHOLE

    def after(k: int, i: int) -> str:
        """The possible continuations of step k, from start i on."""
        return f' ["\\n" s{k + 1}_{i}]' if k < max_steps and i < n else ""

    whole = [*(["A0"] if 0 in names else []), *(["A1 WHOLE CLOSE"] if is_whole else [])]
    ways = [f'"1. v1 = " ({" | ".join(whole)}){after(1, 0)}'] if whole else []
    yield f"start: {' | '.join([*ways, *(['s1_0'] if starts else [])])}"
    for k in range(1, max_steps + 1):
        for i in range(0 if k < 3 else k - 2, n):
            later = f" | s{k}_{i + 1}" if i + 1 < n else ""
            yield f's{k}_{i}: "{k}. v{k} = " c{i}{after(k, i + 1)}{later}'
    for i in range(n):
        is_two = 2 in names and i + 1 < n
        yield f"c{i}: A1 T{i} CLOSE" + (f" | A2 T{i} NEXT q{i + 1}" if is_two else "")
        if 2 in names and i:
            yield f"q{i}: T{i} CLOSE" + (f" | q{i + 1}" if i + 1 < n else "")
        yield f"T{i}: /{_spans(words, starts[i])}/"
    if is_whole:
        yield f"WHOLE: {literal_rule(print_argument(String(question))[1:-1])}"
    if 0 in names:
        yield f"A0: {_either(f'{name}({CTX})' for name in names[0])}"
    for n_given in (1, 2):
        if n_given in names and (n_given == 1 or n > 1):
            yield f"A{n_given}: {_either(f'{name}({CTX}, {_QUOTE}' for name in names[n_given])}"
    yield f"CLOSE: {literal_rule(f'{_QUOTE})')}"
    if 2 in names and n > 1:
        yield f"NEXT: {literal_rule(f'{_QUOTE}, {_QUOTE}')}"


def _starts(words: Sequence[Word]) -> list[int]:
    """The words at which strings may begin: each word once, so that no two strings are equal."""
    first: dict[str, int] = {}
    for i, word in enumerate(words):
        if word.is_content:
            first.setdefault(word.text.casefold(), i)
    return list(first.values())[-MAX_STARTS:]


_QUOTE = '"'


def _either(texts: Iterable[str]) -> str:
    return " | ".join(map(literal_rule, texts))


def _spans(words: Sequence[Word], start: int) -> str:
    """The expression of the spans that begin with a word."""
    ends: list[int] = []
    for i in range(start, min(start + MAX_SPAN_WORDS, len(words))):
        if words[i].is_content:
            ends.append(i)
        if words[i].is_last:
            break
    expression = ""
    for begin, end in reversed(list(pairwise([start, *(end + 1 for end in ends)]))):
        blank = " " if begin > start else ""
        text = blank + " ".join(_escaped(word.text) for word in words[begin:end])
        expression = f"(?:{text}{expression})?" if blank else f"{text}{expression}"
    before = words[start - 1] if start else None
    if before is None or before.is_last or not before.is_opening:
        return expression
    return f"(?:{_escaped(before.text)} )?{expression}"


def _escaped(word: str) -> str:
    """A word as it is escaped in a string of a plan and in an expression."""
    return re.sub(r"[\\/\[\](){}|?*+.^$]", r"\\\g<0>", print_argument(String(word))[1:-1])


_HINT = 'An object with "steps", each {"action": NAME, "texts": [...]}: what stands after CTX in the call.'


def _json_form(names: Mapping[int, Sequence[str]], max_steps: int) -> JsonForm:
    text = {"type": "string", "pattern": r"^[^\u0000-\u001f\u007f]{1,300}$"}
    steps = [
        closed_object({
            "action": {"enum": list(names[n])},
            "texts": {"type": "array", "items": text, "minItems": n, "maxItems": n},
        })
        for n in sorted(names)
    ]  # fmt: skip
    several = {"type": "array", "items": {"anyOf": steps}, "minItems": 1, "maxItems": max_steps}
    schema = closed_object({"steps": several})

    def text_of(value: Any) -> str:
        require(value, schema)
        lines = []
        for k, step in enumerate(value["steps"], start=1):
            given = ", ".join([CTX, *(print_argument(String(each)) for each in step["texts"])])
            lines.append(f"{k}. v{k} = {step['action']}({given})")
        return "\n".join(lines)

    return JsonForm(schema, text_of, _HINT)
