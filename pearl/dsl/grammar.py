"""`ActionLibrary` → the grammar of the plans that call its actions, as Lark text for decoders.

A specialisation of `grammars/plan.lark`, never a second language: the terminals are read from that
file, and whatever a grammar of this module admits, the strict reader accepts. How much of the
checker's work a grammar does depends on what is known when it is made:

    static    known actions with the right number and kind of arguments, new ones declared first
    indexed   the same without new actions, outputs named v1, v2, ...: every sentence is valid
    header    the new actions alone: what comes before an indexed grammar of all actions
    line      the next line after those written so far: every plan written so is valid

In the indexed grammar, outputs that may not stand wherever a text may (a number is no document)
count apart, as n1, n2, ...; the grammar knows how many of each kind there are at every step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from pearl import resources
from pearl.dsl.nodes import CTX
from pearl.dsl.parser import read
from pearl.dsl.signatures import Action, ActionLibrary, ValueType, outputs_for
from pearl.errors import LibraryError

__all__ = [
    "MAX_WRITTEN_STEPS",
    "NEW_PARAMETERS",
    "header_grammar",
    "indexed_grammar",
    "line_grammar",
    "names_except",
    "static_grammar",
]

MAX_WRITTEN_STEPS = 15
"""Steps of a plan that is written under a grammar; the longest published plan has as many."""

MAX_COUNTED = 4
"""Outputs of one kind that is not text, in the indexed grammar: each more makes it longer."""

MAX_NEW_ACTIONS = 5
"""Actions that one plan may declare under these grammars."""

MAX_NEW_NAME = 40
"""Characters of a new action's name."""

NEW_PARAMETERS = ("X", "Y", "Z")
"""What a new action may take besides the document, where declarations have to be valid."""

_LETTERS: Mapping[ValueType, str] = {
    ValueType.TEXT: "v",
    ValueType.NUMBER: "n",
    ValueType.BOOL: "b",
    ValueType.LIST: "l",
    ValueType.TABLE: "t",
    ValueType.PASSAGES: "p",
}
"""What outputs are called in the indexed grammar, by their type."""


@cache
def _terminals(max_text: int | None) -> Mapping[str, str]:
    """The open terminals of the plan language, their texts bounded to so many characters."""
    source = resources.read("grammars", "plan.lark")
    found = dict(re.findall(r"^(NAME|NUMBER|STRING|TEXT): /(.*)/$", source, re.MULTILINE))
    if max_text is not None:
        found["STRING"] = re.sub(r'\*"$', f'{{0,{max_text}}}"', found["STRING"])
        found["TEXT"] = re.sub(r"\*$", f"{{0,{max_text - 1}}}", found["TEXT"])
    return found


def _defined(names: Iterable[str], max_text: int | None) -> Iterator[str]:
    terminals = _terminals(max_text)
    for name in names:
        yield f"{name}: /{terminals[name]}/"


# ---------------------------------------------------------------------------------------------
# Names that are not taken


def names_except(
    taken: Collection[str],
    *,
    first: str = "A-Za-z_",
    rest: str = "0-9A-Za-z_",
    most: int = MAX_NEW_NAME,
) -> str:
    """A regular expression of every name but those taken, without looking ahead.

    Args:
        taken: Names; those that the classes cannot spell play no part.
        first: Characters that a name may begin with, as ranges of ASCII.
        rest: Characters it may go on with.
        most: Characters of a name at most.

    Example:
        >>> names_except(["ab"], first="a-c", rest="a-c", most=3)
        '[b-c][a-c]{0,2}|a(?:[ac][a-c]{0,1}|b[a-c]{1,1})?'
    """
    root: dict[str, Any] = {}
    for name in taken:
        node = root
        for character in name:
            node = node.setdefault(character, {})
        node[""] = {}
    return _besides(root, 0, _characters(first), _characters(rest), most)


def _besides(node: Mapping[str, Any], depth: int, here: str, rest: str, most: int) -> str:
    """What may follow a prefix that taken names share: anything but the rest of one of them."""
    children = {c: child for c, child in node.items() if c and c in here}
    others = "".join(c for c in here if c not in children)
    left = most - depth - 1
    branches = [f"{_ranges(others)}{_ranges(rest)}{{0,{left}}}"] if others else []
    for character, child in children.items():
        inner = _besides(child, depth + 1, rest, rest, most) if left > 0 else ""
        is_name = "" in child
        if left <= 0:
            branches += [] if is_name else [character]
        elif set(child) == {""}:
            branches.append(f"{character}{_ranges(rest)}{{1,{left}}}")
        else:
            branches.append(f"{character}(?:{inner}){'' if is_name else '?'}")
    return "|".join(branches)


@cache
def _characters(ranges: str) -> str:
    found = re.findall(r"(.)-(.)|(.)", ranges)
    return "".join(
        single or "".join(map(chr, range(ord(low), ord(high) + 1))) for low, high, single in found
    )


@cache
def _ranges(characters: str) -> str:
    """A class of characters, runs of three or more as ranges."""
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


# ---------------------------------------------------------------------------------------------
# Calls and their arguments


class _Calls:
    """The actions of a library by what they take, each such group one terminal.

    Args:
        actions: Those that may be called.
        kind: What to tell the groups apart by besides, for an action.

    Attributes:
        lines: The terminals, `A0: "FIND(" | "EXTRACT("`.
    """

    def __init__(
        self, actions: Iterable[Action], kind: Callable[[Action], str] = lambda action: ""
    ) -> None:
        groups: dict[tuple[tuple[ValueType, ...], int, bool, str], list[str]] = {}
        for action in actions:
            types = tuple(parameter.type for parameter in action.parameters)
            shape = types, action.min_arity, action.is_variadic, kind(action)
            groups.setdefault(shape, []).append(f'"{action.name}("')
        self._shapes = list(groups)
        self.lines = [f"A{i}: {' | '.join(names)}" for i, names in enumerate(groups.values())]

    def rules(self, argument: Callable[[ValueType], str | None], kind: str = "") -> list[str]:
        """The calls of one kind that can be written, each the right side of a rule.

        Args:
            argument: The rule for an argument of a type; None where there is nothing to pass.
            kind: As said by the function given before.
        """
        found = []
        for i, (types, n_needed, is_variadic, its_kind) in enumerate(self._shapes):
            if its_kind != kind:
                continue
            passed = [rule for rule in map(argument, types[:n_needed]) if rule is not None]
            if len(passed) < n_needed:
                continue
            parts = ' ", " '.join(passed)
            if is_variadic and (last := argument(types[-1])):
                parts += f' (", " {last})*'
            found.append(f'A{i} {parts} ")"' if parts else f'A{i} ")"')
        return found


_LIST = '"[" [{item} (", " {item})*] "]"'


def _ways(type: ValueType, outputs: Sequence[str], context: Sequence[str], items: str) -> list[str]:
    """What may stand for a parameter of a type.

    Args:
        type: Of the parameter.
        outputs: Terminals of those earlier outputs that fit.
        context: The terminal of the document, if it is not among the outputs.
        items: The rule of a list.
    """
    match type:
        case ValueType.CONTEXT:
            return [*context, *outputs]
        case ValueType.TEXT:
            return [*context, *outputs, "STRING", "NUMBER", items]
        case ValueType.NUMBER:
            return ["NUMBER", *outputs]
        case ValueType.LIST:
            return [items, *outputs]
        case _:
            return [*outputs]


_CONTEXT = f'"{CTX}"'

_END = '" : " TEXT'


# ---------------------------------------------------------------------------------------------
# The grammars


def static_grammar(
    library: ActionLibrary,
    *,
    new_actions: Literal["none", "allowed", "required"] = "allowed",
    max_steps: int = MAX_WRITTEN_STEPS,
    max_text: int | None = None,
) -> str:
    """Plans that call the library's actions as declared, with free names for their outputs.

    Args:
        library: The known actions.
        new_actions: Whether a plan may declare others first, or has to say that it needs none;
            their names are none of the library's.
        max_steps: Steps of a plan at most.
        max_text: Characters of a string or an explanation at most.

    Raises:
        LibraryError: There is nothing that a plan could call.
    """
    calls = _Calls(library.values())
    rules: dict[str, str] = {}

    def argument(type: ValueType) -> str:
        name = f"for_{type.lower()}"
        rules[name] = " | ".join(_ways(type, ["NAME"], [], "list"))
        return name

    ways = calls.rules(argument)
    if new_actions != "none":
        text = argument(ValueType.TEXT)
        ways.append(f'NEW [{text} (", " {text})*] ")"')
    if not ways:
        raise _nothing(library)
    first = {"none": "s1", "allowed": "[new] s1", "required": "new s1"}
    lines = [f"start: {first[new_actions]}"]
    if new_actions != "none":
        lines += [
            'new: "New actions:\\n" ("- None\\n" | action action*) "\\n"',
            f'action: "- " NEW [NAME (", " NAME)* [", ..."]] ")" {_END} "\\n"',
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
    return _joined(lines)


def indexed_grammar(
    library: ActionLibrary,
    *,
    max_steps: int = MAX_WRITTEN_STEPS,
    max_text: int | None = None,
) -> str:
    """Valid plans: every sentence passes the checker with this library.

    Args:
        library: All the actions there are.
        max_steps: Steps of a plan at most.
        max_text: Characters of a string or an explanation at most.

    Raises:
        LibraryError: There is nothing that a plan could call.
    """
    rules = _Indexed(library, max_steps)
    if not rules.chain():
        raise _nothing(library)
    lines = [
        f"start: {rules.first}",
        *rules.lines,
        *rules.calls.lines,
        f"end: {_END}",
        *_defined(("NUMBER", "STRING", "TEXT"), max_text),
    ]
    return _joined(lines)


def header_grammar(
    library: ActionLibrary, *, max_actions: int = MAX_NEW_ACTIONS, max_text: int | None = None
) -> str:
    """The new actions of a plan, or that there are none, up to the blank line before its steps.

    The names are none of the library's; one may be declared twice.

    Args:
        library: The known actions.
        max_actions: Declarations at most.
        max_text: Characters of a definition at most.
    """
    # A plan that declares nothing has to have something else to call.
    none = '"- None\\n" | ' if library else ""
    lines = [
        f'start: "New actions:\\n" ({none}a1) "\\n"',
        *(
            f"a{i}: action" + (f" [a{i + 1}]" if i < max_actions else "")
            for i in range(1, max_actions + 1)
        ),
        *_declaration(library),
        *_defined(("TEXT",), max_text),
    ]
    return _joined(lines)


def line_grammar(
    written: str,
    library: ActionLibrary,
    *,
    new_actions: bool = True,
    max_steps: int = MAX_WRITTEN_STEPS,
    max_text: int | None = None,
) -> str:
    """The next line of a plan; its line break may be left out where the plan may end with it.

    Args:
        written: The lines so far, each with its line break, as these grammars admitted them.
        library: The known actions.
        new_actions: Whether the plan may declare others first.
        max_steps: Steps of a plan at most.
        max_text: Characters of a string or an explanation at most.

    Raises:
        LibraryError: There is nothing that a plan could call.
    """
    in_header = written.startswith("New actions:\n") and "\n\n" not in written
    reading = read(written.rstrip("\n"))
    known = library.extended(reading.actions)
    if new_actions and not written:
        return 'start: "New actions:\\n"\n'
    if in_header and written.endswith("- None\n"):
        return 'start: "\\n"\n'
    if in_header:
        ways = ['"\\n"'] if reading.actions else ['"- None\\n"'] if library else []
        ways += ["action"] if len(reading.actions) < MAX_NEW_ACTIONS else []
        rules = [*_declaration(known), *_defined(("TEXT",), max_text)]
        return _joined([f"start: {' | '.join(ways)}", *rules])
    steps = reading.plan.steps if reading.plan else ()
    outputs = {step.output: known[step.action].returns for step in steps}
    rules = _line_rules(known, outputs)
    if not rules:
        raise _nothing(library)
    more = ' ["\\n"]' if len(steps) + 1 < max_steps else ""
    return _joined(
        [
            f'start: "{len(steps) + 1}. " OUTPUT " = " call {_END}{more}',
            f"OUTPUT: /{names_except([*outputs, CTX])}/",
            *rules,
            *_defined(("NUMBER", "STRING", "TEXT"), max_text),
        ]
    )


def _line_rules(library: ActionLibrary, outputs: Mapping[str, ValueType]) -> list[str]:
    """The calls that can be written where these outputs are there; none if nothing can."""
    rules: dict[str, str] = {}

    def terminal(name: str, types: Collection[ValueType]) -> list[str]:
        names = [f'"{output}"' for output, type in outputs.items() if type in types]
        if names:
            rules[name] = " | ".join(names)
        return [name] if names else []

    def argument(type: ValueType) -> str | None:
        fitting = terminal(f"FOR_{type.upper()}", outputs_for(type))
        ways = _ways(type, fitting, [_CONTEXT], "list")
        name = f"for_{type.lower()}"
        if ways:
            rules[name] = " | ".join(ways)
        return name if ways else None

    calls = _Calls(library.values())
    ways = calls.rules(argument)
    if not ways:
        return []
    items = [_CONTEXT, *terminal("EARLIER", list(ValueType)), "STRING", "NUMBER"]
    rules["item"] = " | ".join(items)
    rules["list"] = _LIST.format(item="item")
    return [
        f"call: {' | '.join(ways)}",
        *(f"{name}: {rule}" for name, rule in rules.items()),
        *calls.lines,
    ]


def _declaration(library: ActionLibrary) -> list[str]:
    """The rules of a declaration whose parameters are all different."""
    more = " ".join(f'[", {name}"' for name in NEW_PARAMETERS) + "]" * len(NEW_PARAMETERS)
    own = '"X" [", ..." | ", Y" [", ..." | ", Z" [", ..."]]]'
    return [
        f'action: "- " NEW ("CTX" {more} | {own}) ")" {_END} "\\n"',
        _new_name(library),
    ]


def _new_name(library: ActionLibrary) -> str:
    # The bracket belongs to the terminal: without it, the beginning of a known name is a new name.
    return f"NEW: /(?:{names_except(library)})\\(/"


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _nothing(library: ActionLibrary) -> LibraryError:
    return LibraryError(
        "there is no action that a plan could begin with",
        path=library.name,
        help="the library is empty, or its actions all take what only others return",
    )


class _Indexed:
    """The rules of the indexed grammar, each made once.

    A state is how many outputs of each kind there are; the number of the next step is one more
    than all of them together.

    Attributes:
        calls: The groups of actions.
        lines: What was made so far.
        first: The rule of a plan.
    """

    def __init__(self, library: ActionLibrary, max_steps: int) -> None:
        self._kinds = _kinds(library.values())
        self._letters = tuple(dict.fromkeys(["v", *self._kinds.values()]))
        self.calls = _Calls(library.values(), lambda action: self._kinds[action.returns])
        self._max_steps = max_steps
        self._made: dict[str, bool] = {}
        self.lines: list[str] = []
        start = (0,) * len(self._letters)
        self.first = self._name("s", start)
        self._start = start

    def chain(self) -> bool:
        """Make the rules of every step that can be reached; False where there is no first one."""
        return self._step(self._start)

    def _step(self, counts: tuple[int, ...]) -> bool:
        name = self._name("s", counts)
        if name in self._made:
            return self._made[name]
        number = sum(counts) + 1
        if number > self._max_steps:
            return False
        ways = []
        for i, letter in enumerate(self._letters):
            call = self._call(counts, letter)
            if call is None or (i > 0 and counts[i] == MAX_COUNTED):
                continue
            after = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            more = f' ["\\n" {self._name("s", after)}]' if self._step(after) else ""
            ways.append(f'"{number}. {letter}{counts[i] + 1} = " {call} end{more}')
        return self._rule(name, ways) is not None

    def _call(self, counts: tuple[int, ...], letter: str) -> str | None:
        name = self._name(f"c{letter}", counts)
        if name not in self._made:
            self._rule(name, self.calls.rules(lambda type: self._argument(counts, type), letter))
        return name if self._made[name] else None

    def _argument(self, counts: tuple[int, ...], type: ValueType) -> str | None:
        name = self._name(type.lower(), counts)
        if name not in self._made:
            accepted = {self._kinds[given] for given in outputs_for(type) if given in self._kinds}
            outputs = self._outputs(counts, accepted)
            items = self._name("list", counts)
            self._rule(name, _ways(type, outputs, [_CONTEXT], items))
            self._list(counts, items)
        return name if self._made[name] else None

    def _list(self, counts: tuple[int, ...], name: str) -> None:
        if name not in self._made:
            item = self._name("item", counts)
            outputs = self._outputs(counts, self._letters)
            self._rule(item, [_CONTEXT, *outputs, "STRING", "NUMBER"])
            self._rule(name, [_LIST.format(item=item)])

    def _outputs(self, counts: tuple[int, ...], letters: Collection[str]) -> list[str]:
        """The terminals of the outputs there are, one for each kind."""
        names = []
        for letter, count in zip(self._letters, counts, strict=True):
            if letter in letters and count:
                name = f"{letter.upper()}{count}"
                names.append(name)
                if name not in self._made:
                    self._rule(name, [f'"{letter}{i}"' for i in range(1, count + 1)])
        return names

    def _rule(self, name: str, ways: Sequence[str]) -> str | None:
        self._made[name] = bool(ways)
        if ways:
            self.lines.append(f"{name}: {' | '.join(ways)}")
        return name if ways else None

    @staticmethod
    def _name(prefix: str, counts: Iterable[int]) -> str:
        return f"{prefix}_{'_'.join(map(str, counts))}"


def _kinds(actions: Iterable[Action]) -> dict[ValueType, str]:
    """The letter of every type that is returned: one letter for those that go the same places."""
    actions = list(actions)
    wanted = {parameter.type for action in actions for parameter in action.parameters}
    letters: dict[frozenset[ValueType], str] = {}
    kinds: dict[ValueType, str] = {}
    for type in (ValueType.TEXT, *(action.returns for action in actions)):
        goes = frozenset(w for w in wanted if type in outputs_for(w))
        kinds[type] = letters.setdefault(goes, _LETTERS[type])
    return kinds
