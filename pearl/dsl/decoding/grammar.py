"""The grammar of the plans that call the actions of an `ActionLibrary`, as Lark text for decoders."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple
from zlib import crc32

from msgspec import Struct

from pearl.dsl.signatures import CTX, Action, ActionLibrary, ValueType, outputs_for
from pearl.errors import LibraryError
from pearl.plugins.files import read_data

MAX_NEW_NAME = 40  # Maximum length of a name that a decoder generates, in characters


# What a name that a decoder generates begins with, and what it goes on with
_FIRST = f"{string.ascii_letters}_"
_REST = f"{_FIRST}{string.digits}"


def names_except(taken: Collection[str]) -> str:
    """A regular expression that matches every name except those taken, without lookahead."""
    root: dict[str, Any] = {}
    for name in taken:
        node = root
        for character in name:
            node = node.setdefault(character, {})
        node[""] = {}
    return _besides(root, 0)


def _besides(node: Mapping[str, Any], depth: int) -> str:
    """A regular expression of the allowed continuations of a prefix that taken names share."""
    here, rest = _REST if depth else _FIRST, _ranges(_REST)
    children = {c: child for c, child in node.items() if c and c in here}
    others = "".join(c for c in here if c not in children)
    left = MAX_NEW_NAME - depth - 1
    branches = [f"{_ranges(others)}{rest}{{0,{left}}}"] if others else []
    for character, child in children.items():
        inner = _besides(child, depth + 1) if left > 0 else ""
        is_name = "" in child
        if not inner:
            branches += [] if is_name else [character]
        elif set(child) == {""}:
            branches.append(f"{character}{rest}{{1,{left}}}")
        else:
            branches.append(f"{character}(?:{inner}){'' if is_name else '?'}")
    return "|".join(branches)


@cache
def _ranges(characters: str) -> str:
    """A character class in which runs of three or more characters are ranges."""
    parts: list[str] = []
    codes = sorted(map(ord, characters))
    start = 0
    for i, code in enumerate(codes):
        if i + 1 < len(codes) and codes[i + 1] == code + 1:
            continue
        run = codes[start : i + 1]
        parts.append(f"{chr(run[0])}-{chr(run[-1])}" if len(run) > 1 else chr(run[0]))
        start = i + 1
    return f"[{''.join(parts)}]"


MAX_COUNTED = (3, 2)
"""Maximum outputs of each kind other than text, if a library has one such kind, and if it has two; with more kinds, 1.
Every kind multiplies the number of states, and with it the length of the grammar."""

Counts = tuple[int, ...]  # The number of outputs for each letter of the states

_LETTERS: Mapping[ValueType, str] = {
    ValueType.TEXT: "v",
    ValueType.NUMBER: "n",
    ValueType.BOOL: "b",
    ValueType.DATE: "d",
    ValueType.LIST: "l",
    ValueType.TABLE: "t",
    ValueType.PASSAGES: "p",
}
"""The letter of outputs, by their type."""

_WRITTEN = (ValueType.CONTEXT, ValueType.TEXT, ValueType.NUMBER, ValueType.LIST)
"""Types that always have an argument: the document or a literal."""


class Slot(NamedTuple):
    """The requirements on an argument."""

    type: ValueType
    choices: tuple[str, ...] = ()
    reads: str = ""  # a key of `_FORMED`, if the argument has a form of its own

    @property
    def name(self) -> str:
        """A unique part of rule names; short, because every state has a rule with this name."""
        if self.choices:
            return f"c{crc32(repr(self.choices).encode()) & 0xFFFFF:05x}"
        return f"{self.reads}_" if self.reads else self.type.lower()  # `number` is also a type


class Shape(Struct, frozen=True):
    """The common signature of several actions."""

    needed: tuple[Slot, ...]
    more: Slot | None
    kind: str = ""

    @property
    def can_begin(self) -> bool:
        """Whether the first step may call it: without a document, an action on lists needs an earlier step."""
        types = {slot.type for slot in self.needed}
        return ValueType.CONTEXT in types or ValueType.LIST not in types


def by_shape(
    actions: Iterable[Action], kind: Callable[[Action], str] = lambda action: ""
) -> dict[Shape, list[Action]]:
    """Actions in groups of one shape, in the order of the first; extractions are not for planners."""
    groups: dict[Shape, list[Action]] = {}
    for action in actions:
        if action.extracts:
            continue
        slots = []
        for each in action.parameters:
            # "rank" is a number that may be negative, to count from the end
            form = "rank" if each.reads == "number" and each.least is None else each.reads
            slots.append(Slot(each.type, each.choices, form if form in _FORMED else ""))
        more = slots[-1] if action.is_variadic else None
        shape = Shape(tuple(slots[: action.min_arity]), more, kind(action))
        groups.setdefault(shape, []).append(action)
    return groups


class NextStep(Struct, frozen=True):
    """One kind of step that can be written next."""

    letter: str
    output: str
    after: Counts | None


class States:
    """The outputs that may exist before each step; the step's number is their count plus one."""

    def __init__(self, actions: Iterable[Action], max_steps: int) -> None:
        actions = list(actions)
        self._kinds = _kinds(actions)
        self._letters = tuple(dict.fromkeys(["v", *self._kinds.values()]))
        self._max_steps = max_steps
        self._accepted = {
            wanted: {self._kinds[given] for given in outputs_for(wanted) if given in self._kinds}
            for wanted in ValueType
        }
        n_kinds = len(self._letters) - 1
        self.max_counted = MAX_COUNTED[n_kinds - 1] if 1 <= n_kinds <= len(MAX_COUNTED) else 1
        self._known: dict[Counts, list[int]] = {}
        # A plan without a step that composes its answer gets one afterwards; here it would lengthen each state.
        named = (action for action in actions if not action.composes)
        self.groups = by_shape(named, lambda action: self._kinds[action.returns])
        self._begins = any(shape.can_begin for shape in self.groups)
        self.start: Counts = (0,) * len(self._letters)

    def reachable(self) -> Iterator[Counts]:
        """Every state in which a step can be written, nearer ones first; empty if no step can be."""
        states = {self.start: None} if self._writable(self.start) else {}
        while states:
            yield from states
            states = {
                step.after: None for counts in states for step in self.steps(counts) if step.after
            }

    def steps(self, counts: Counts) -> list[NextStep]:
        """The kinds of the next step in a state, which has these counts of outputs."""
        found = []
        for i in self._writable(counts):
            after = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            letter = self._letters[i]
            is_last = not self._writable(after)
            found.append(NextStep(letter, f"{letter}{after[i]}", None if is_last else after))
        return found

    def shapes(self, counts: Counts, letter: str) -> list[Shape]:
        """The calls that return this kind and whose required arguments are available."""
        return [
            shape
            for shape in self.groups
            if shape.kind == letter
            and (shape.can_begin or any(counts) or not self._begins)
            and all(
                slot.type in _WRITTEN or self.fitting(counts, slot.type) for slot in shape.needed
            )
        ]

    def fitting(self, counts: Counts, wanted: ValueType) -> list[tuple[str, int]]:
        """The letters and counts of the outputs that a parameter of a type accepts."""
        accepted = self._accepted[wanted]
        return [(letter, count) for letter, count in self.present(counts) if letter in accepted]

    def present(self, counts: Counts) -> list[tuple[str, int]]:
        """The letters and counts of all outputs."""
        return [pair for pair in zip(self._letters, counts, strict=True) if pair[1]]

    def _writable(self, counts: Counts) -> list[int]:
        """The indexes of the letters that the next output may have."""
        if counts not in self._known:
            self._known[counts] = [
                i
                for i, letter in enumerate(self._letters)
                if (i == 0 or counts[i] < self.max_counted) and self.shapes(counts, letter)
            ]
        return self._known[counts] if sum(counts) < self._max_steps else []


def _kinds(actions: list[Action]) -> dict[ValueType, str]:
    """The letter of every returned type; types that fit the same parameters share a letter."""
    wanted = {parameter.type for action in actions for parameter in action.parameters}
    letters: dict[frozenset[ValueType], str] = {}
    kinds: dict[ValueType, str] = {}
    for given in (ValueType.TEXT, *(action.returns for action in actions)):
        goes = frozenset(w for w in wanted if given in outputs_for(w))
        kinds[given] = letters.setdefault(goes, _LETTERS[given])
    return kinds


MAX_WRITTEN_STEPS = 12
"""Maximum steps of a plan that is written under a grammar, whose size grows with the square of this number;
one published plan in 500 has more than eight steps."""

MAX_DIGITS = 9  # Digits of a number of rows
MAX_NEW_ACTIONS = 5  # Actions that one plan may declare under these grammars

WHOLE = f"[1-9][0-9]{{0,{MAX_DIGITS - 1}}}"
DAY = "[12][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"  # a day that each month has

NEW_PARAMETERS = ("X", "Y", "Z")
"""Parameters of a new action besides the document, if declarations have to be valid."""


@cache
def _terminals(max_text: int | None) -> Mapping[str, str]:
    """The open terminals of the plan language; `max_text` limits the characters of texts."""
    source = read_data("grammars", "plan.lark")
    found = dict(re.findall(r"^(NUMBER|STRING|TEXT): /(.*)/$", source, re.MULTILINE))
    found["NAME"] = names_except(())
    found["LABEL"] = (
        r'"[!#-\[\]-~\u00a1-\ud7ff\ue000-\ufffd][ !#-\[\]-~\u00a0-\ud7ff\ue000-\ufffd]*"'
    )
    found |= {"WHOLE": WHOLE, "RANK": f"-?{WHOLE}", "DAY": f'"{DAY}"'}
    if max_text is not None:
        for name in ("STRING", "LABEL"):
            found[name] = re.sub(r'\*"$', f'{{0,{max_text}}}"', found[name])
        found["TEXT"] = re.sub(r"\*$", f"{{0,{max_text - 1}}}", found["TEXT"])
    return found


def _defined(names: Iterable[str], max_text: int | None) -> Iterator[str]:
    terminals = _terminals(max_text)
    for name in names:
        yield f"{name}: /{terminals[name]}/"


# ---------------------------------------------------------------------------------------------
# Calls and their arguments


class _CallRules:
    """Actions grouped by signature, one terminal per group."""

    def __init__(self, groups: Mapping[Shape, Sequence[Action]]) -> None:
        self._shapes = list(groups)
        self.lines = ['c: ", "']  # its name is short, because each call of each state has it
        self.lines += [
            f"A{i}: " + " | ".join(f'"{action.name}("' for action in actions)
            for i, actions in enumerate(groups.values())
        ]

    def rules(
        self, argument: Callable[[Slot], str | None], shapes: Collection[Shape] | None = None
    ) -> list[str]:
        """The possible calls of some shapes, or of all, each the right side of a rule."""
        found = []
        for i, shape in enumerate(self._shapes):
            if shapes is not None and shape not in shapes:
                continue
            passed = [rule for rule in map(argument, shape.needed) if rule is not None]
            if len(passed) < len(shape.needed):
                continue
            parts = " c ".join(passed)
            if shape.more is not None and (last := argument(shape.more)):
                parts += f" (c {last})*"
            found.append(f"A{i} {parts}" if parts else f"A{i}")
        return found


_LIST = '"[" [{item} (", " {item})*] "]"'


def _ways(
    slot: Slot, outputs: Sequence[str], context: Sequence[str], item: str, items: str
) -> list[str]:
    """The alternatives for an argument."""
    if slot.choices:
        return [rf'"\"{choice}\""' for choice in slot.choices]
    if slot.reads:
        return [*_FORMED[slot.reads], *outputs]
    match slot.type:
        case ValueType.CONTEXT:
            return [*context, *outputs]
        case ValueType.TEXT:
            return [item, items]
        case ValueType.NUMBER:
            return ["NUMBER", *outputs]
        case ValueType.LIST:
            return [items, *outputs]
        case _:
            return [*outputs]


_FORMED: Mapping[str, Sequence[str]] = {
    "labels": ['"[" LABEL (", " LABEL)+ "]"'], "results": [], "number": ["WHOLE"], "rank": ["RANK"],
    "date": ["DAY"],
}  # fmt: skip
"""Grammar of arguments that the checker accepts in one form only."""

_END = '") : " TEXT'

# The first dash belongs to the heading: if it began both "- None" and a declaration, a lexer
# without backtracking would read every name that starts with N as None.
_HEADING = '"New actions:\\n- "'


# ---------------------------------------------------------------------------------------------
# The grammars


def static_grammar(
    library: ActionLibrary,
    *,
    requires_new: bool = False,
    max_steps: int = MAX_WRITTEN_STEPS,
    max_text: int | None = None,
) -> str:
    """Plans that call the library's actions as declared, with free names for their outputs."""
    calls = _CallRules(by_shape(library.values()))
    rules: dict[str, str] = {}

    def argument(slot: Slot) -> str:
        name = f"for_{slot.name}"
        rules[name] = " | ".join(_ways(slot, ["NAME"], [], "item", "list"))
        return name

    ways = calls.rules(argument)
    text = argument(Slot(ValueType.TEXT))
    ways.append(f'NEW [{text} (", " {text})*]')
    lines = [
        f"start: {'new' if requires_new else '[new]'} s1",
        f'new: {_HEADING} ("None\\n" | action ("- " action)*) "\\n"',
        f'action: NEW [NAME (", " NAME)* [", ..."]] {_END} "\\n"',
        _new_name(library),
    ]
    lines += [
        f's{i}: "{i}. " step' + (f' ["\\n" s{i + 1}]' if i < max_steps else "")
        for i in range(1, max_steps + 1)
    ]
    lines += [
        f'step: NAME " = " call {_END}',
        f"call: {' | '.join(ways)}",
        "item: NAME | STRING | NUMBER",
        f"list: {_LIST.format(item='item')}",
        *(f"{name}: {rule}" for name, rule in rules.items()),
        *calls.lines,
        *_defined(("NAME", "NUMBER", "STRING", "TEXT"), max_text),
    ]
    return _joined(lines, max_text)


def indexed_grammar(
    library: ActionLibrary,
    *,
    max_steps: int = MAX_WRITTEN_STEPS,
    max_text: int | None = None,
    parameters: Sequence[str] = (),
    contexts: Sequence[str] = (CTX,),
) -> str:
    """Valid plans: every sentence passes the checker with this library."""
    for name in (*parameters, *contexts):
        if name[:1] in _LETTERS.values() and name[1:].isdigit():
            raise LibraryError(
                f"'{name}' cannot be declared under a grammar, which gives such names to outputs",
                path=library.name,
            )
    rules = _Indexed(States(library.values(), max_steps), parameters, contexts)
    if not rules.lines:
        raise LibraryError(
            "no action of the library can begin a plan",
            path=library.name,
            help="the library is empty, or each action needs the output of another one",
        )
    lines = [
        f"start: {rules.first}",
        *rules.lines,
        f"end: {_END}",
        *_defined(("NUMBER", "STRING", "TEXT"), max_text),
    ]
    return _joined(lines, max_text)


def header_grammar(library: ActionLibrary, *, max_text: int | None = None) -> str:
    """The block of new actions of a plan up to the blank line before its steps."""
    # Without new actions, the library must have something to call.
    none = '"None\\n" | ' if library else ""
    more = " ".join(f'[", {name}"' for name in NEW_PARAMETERS) + "]" * len(NEW_PARAMETERS)
    own = '"X" [", ..." | ", Y" [", ..." | ", Z" [", ..."]]]'
    lines = [
        f'start: {_HEADING} ({none}a1) "\\n"',
        *(
            f"a{i}: action" + (f' ["- " a{i + 1}]' if i < MAX_NEW_ACTIONS else "")
            for i in range(1, MAX_NEW_ACTIONS + 1)
        ),
        # no parameter is declared twice
        f'action: NEW (("CTX" | "ROWS") {more} | {own}) {_END} "\\n"',
        _new_name(library),
        *_defined(("TEXT",), max_text),
    ]
    return _joined(lines)


def _new_name(library: ActionLibrary) -> str:
    # The terminal includes the bracket: otherwise a prefix of a known name would be a new name.
    return f"NEW: /(?:{names_except(library)})\\(/"


def _joined(lines: Iterable[str], max_text: int | None = None) -> str:
    """The lines of a grammar, with the terminals of `_FORMED` that they use."""
    lines = list(lines)
    words = set(re.findall(r"\w+", " ".join(lines)))
    lines += _defined(
        (name for name in ("LABEL", "WHOLE", "RANK", "DAY") if name in words), max_text
    )
    return "\n".join(lines) + "\n"


class _Indexed:
    """The rules of the indexed grammar, each generated once."""

    def __init__(self, states: States, parameters: Sequence[str], contexts: Sequence[str]) -> None:
        self._states = states
        self._parameters = [f'"{name}"' for name in parameters]
        self._contexts = [f'"{name}"' for name in contexts]
        self._calls = _CallRules(states.groups)
        self._made: dict[str, bool] = {}
        self._numbers: dict[Counts, int] = {}
        self._arguments: dict[tuple[Counts, Slot], str | None] = {}
        self.lines: list[str] = []
        self.first = self._name("s", states.start)
        for counts in states.reachable():
            ways = [self._step(counts, step) for step in states.steps(counts)]
            self._rule(self._name("s", counts), ways)
        if self.lines:
            self.lines += self._calls.lines

    def _step(self, counts: Counts, step: NextStep) -> str:
        call = self._name(f"c{step.letter}", counts)
        self._rule(
            call,
            self._calls.rules(
                lambda slot: self._argument(counts, slot), self._states.shapes(counts, step.letter)
            ),
        )
        more = f' ["\\n" {self._name("s", step.after)}]' if step.after else ""
        return f'"{sum(counts) + 1}. {step.output} = " {call} end{more}'

    def _argument(self, counts: Counts, slot: Slot) -> str | None:
        key = (counts, slot)
        if key not in self._arguments:
            self._arguments[key] = self._new_argument(counts, slot)
        return self._arguments[key]

    def _new_argument(self, counts: Counts, slot: Slot) -> str | None:
        if slot.reads not in ("", "labels", "results"):  # a rule for each state is longer
            results = slot._replace(reads="results") if slot.reads == "date" else None
            given = self._argument(counts, results) if results else None
            ways = [*_FORMED[slot.reads], *self._parameters, *([given] if given else [])]
            return f"({' | '.join(ways)})" if len(ways) > 1 else ways[0]
        outputs = self._outputs(self._states.fitting(counts, slot.type))
        is_open = not (slot.choices or slot.reads)
        has_items = is_open and slot.type in (ValueType.TEXT, ValueType.LIST)
        # The rule depends only on the fitting outputs; a rule for fixed choices does not even on these.
        used = [] if slot.choices else outputs
        is_short = has_items or slot.reads == "results"  # in every state
        name = (
            self._name(slot.name[0], counts) if is_short else "_".join([slot.name, *used]).lower()
        )
        if name not in self._made:
            item, items = self._name("i", counts), self._name("m", counts)
            self._rule(name, _ways(slot, outputs, self._contexts, item, items))
            if has_items and items not in self._made:
                present = self._outputs(self._states.present(counts))
                self._rule(item, [*self._contexts, *self._parameters, *present, "STRING", "NUMBER"])
                self._rule(items, [_LIST.format(item=item)])
        return name if self._made[name] else None

    def _outputs(self, present: Iterable[tuple[str, int]]) -> list[str]:
        """The terminals of the outputs present, one for each kind."""
        names = []
        for letter, count in present:
            name = f"{letter.upper()}{count}"
            names.append(name)
            if name not in self._made:
                self._rule(name, [f'"{letter}{i}"' for i in range(1, count + 1)])
        return names

    def _rule(self, name: str, ways: Sequence[str]) -> None:
        self._made[name] = bool(ways)
        if ways:
            self.lines.append(f"{name}: {' | '.join(ways)}")

    def _name(self, prefix: str, counts: Counts) -> str:
        # A number of the state, which is shorter than its counts: each call of each state has such names.
        return f"{prefix}{self._numbers.setdefault(counts, len(self._numbers))}"
