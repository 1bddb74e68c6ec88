"""Find all errors of one line of a plan, with fixes where these are unambiguous."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from pearl.dsl import literals
from pearl.dsl.literals import MAX_NAME, short
from pearl.errors import Diagnostic, Fix, Span
from pearl.errors.patterns import lazy_pattern

_NAMED = r"[^\W\d]\w*+"
HEAD = lazy_pattern(
    # marks of Markdown and a bullet: "> ", "## ", "**", "- "
    r"[\s>#`*]*+(?:[-+*•–][\s`*]++)?+"
    # a number of a list before a step's own: "1. Step 1: "
    r"(?P<number>(?:\d++[.)]\s*+(?=step\s*+#?+\d++[.):]))?+"
    # "1. ", "1) ", "(1) ", "**1.** ", "Step 1: "; or "1 " before "name ="
    rf"(?:step\s*+#?+)?+[(\[]?+(?P<digits>\d++)(?:[`*]*+\s*+[.):\]]++(?!\d)|(?=\s++{_NAMED}\s*+=))[\s`*]*+"
    r")?+",
    re.I,
)
"""The optional number, bullet and marks before the name of a step or an action."""
ASSIGNS = lazy_pattern(r"[\s`*]*+=(?!=)[\s`*]*+")  # "` = **", but not "=="
CONTROL = lazy_pattern(
    r"\s*+(?:\d++[.)]\s*+)?+(?:for\s++\w++\s++in\b|(?:el)?if\b.|while\b.|else\b|try\b).*:\s*+\Z"
)
"""A loop or a condition of a programming language: "for x in items:", "if found:", "else:"."""
OPENS = lazy_pattern(r"[\s`*]*+\(")
_TYPE = lazy_pattern(r"\s*+->\s*+(\w++)\s*+(?=[:#]|\Z)")  # "-> int" before the definition
_NUMBERISH = lazy_pattern(r"[-+]?\.?[0-9][\w.]*+")  # -5, .5, 1e6, 10k
_KEY = lazy_pattern(rf"({_NAMED})\s*+=(?!=)\s*+(?=[^\s,)])")  # "X=" before a value
_QUOTED = lazy_pattern(r'"(?:[^"\\]++|\\.)*+"')
_JUNK = literals.UNTYPED.pattern[1:-1]  # what no plan may contain, for a class of characters
_SEPARATOR = lazy_pattern(
    # ":", "# ", "// ", "- ", "— ", as code, comments and lists have it; no arrow
    rf"[\s`*{_JUNK}]*+(?:[:#—–]|//|--?+(?!>))[\s`*:{_JUNK}]*+"
)
_LEAD = lazy_pattern(rf"[ \xa0{_JUNK}]*+")  # blanks before the definition in a library
_ANOTHER = lazy_pattern(rf"{_NAMED}\s*+=\s*+{_NAMED}\(")  # a second step where the purpose stands

_CLOSERS = {"“": '”“"', "”": '”"', "„": '“”"', "«": "»", "‘": "’'", "’": "’'", "'": "'’", "‚": "‘’"}
"""The quotes that end a string in smart or single quotes, by the one that begins it."""

STEP_HELP = 'a step reads: 1. name = ACTION(CTX, "text") : what it is for'
_ACTION_HELP = "an action reads: NAME(CTX, X) : what it does with X"
_TYPES_HELP = "what an action gives is Text, List, Number, Bool or Date"
_CLOSE_HELP = """a string ends with '"' right before a comma or a bracket"""
_QUOTING_HELP = 'write "..." around a text; an output is passed by its name alone'
_QUOTE_HELP = r"a quote inside a string reads \""
_ESCAPES_HELP = r"escapes are \" \\ \n \t and \uXXXX"
_NESTED_HELP = "move the inner call to its own step"
_MAX_DEPTH = 20  # calls in one another; deeper ones could exhaust the stack


def _in_words(name: str) -> str:
    return name.replace("_", " ").strip().capitalize() or name


class NamedCall(Struct, frozen=True):
    """A call with named arguments; only a library knows their order."""

    action: str
    arguments: tuple[tuple[str, Span], ...]
    inside: Span  # What is between its brackets
    error: Span


class Scan(Struct):
    """The errors of a line, and the names it defines."""

    found: list[Diagnostic] = []
    names: list[str] = []
    calls: list[NamedCall] = []


def should_read(text: str, span: Span, wanted: str, why: str) -> Diagnostic:
    """An error that says to write `wanted` in a range; it is placed at the first difference."""
    source, same = text[span.start : span.end], 0
    while same < min(len(source), len(wanted)) and source[same] == wanted[same]:
        same += 1
    return Diagnostic("syntax", why, Span(span.start + same, span.end), fix=Fix(span, wanted))


class BrokenError(Exception):
    """The rest of the line cannot be scanned; the error has been reported."""


def scan_step(text: str, span: Span, number: int, words: Collection[str] = ()) -> Scan:
    """Scan the step with this number; names that a fix makes differ from `words`, those of the plan."""
    return _Line(text, span, words).scan(lambda line: line.step(number), number)


def scan_action(text: str, span: Span, *, in_library: bool = False) -> Scan:
    """Scan a declaration of an action: `- NAME(CTX, X) : definition`."""
    return _Line(text, span).scan(lambda line: line.action(in_library))


class _Line:
    """Recursive-descent scanner of a line. A method named after a grammar rule consumes that rule."""

    def __init__(self, text: str, span: Span, words: Collection[str] = ()) -> None:
        self.text, self.start, self.at, self.end = text, span.start, span.start, span.end
        self.result = Scan()
        self.is_signature = False
        self.words = words
        self.arguments: list[tuple[str, Span]] = []
        self.nested: list[tuple[Span, str]] = []
        self.depth = 0

    def scan(self, part: Callable[[_Line], None], number: int = 0) -> Scan:
        with suppress(BrokenError):
            part(self)
        self.unnest(number)
        advice = _ACTION_HELP if self.is_signature else STEP_HELP
        self.result.found = sorted(
            (
                each if each.help or each.fix else replace(each, help=advice)
                for each in self.result.found
            ),
            key=lambda found: found.span,
        )
        return self.result

    def error(
        self,
        message: str,
        start: int,
        end: int | None = None,
        advice: str | None = None,
        fix: Fix | None = None,
    ) -> None:
        """Report an error at `text[start:end]`, or at one character without `end`."""
        end = min(start + 1, self.end) if end is None else end
        self.result.found.append(
            Diagnostic("syntax", message, Span(start, end), help=advice, fix=fix)
        )

    def broken(
        self, message: str, start: int, end: int | None = None, advice: str | None = None
    ) -> BrokenError:
        """Report an error that ends the scan of the line, and return the exception to raise."""
        self.error(message, start, end, advice)
        return BrokenError()

    def mend(self, message: str, start: int, end: int, replacement: str) -> None:
        """Report that `text[start:end]` should read `replacement`, from the first difference on."""
        self.result.found.append(should_read(self.text, Span(start, end), replacement, message))

    def match(self, pattern: re.Pattern[str], at: int | None = None) -> re.Match[str] | None:
        """Match here, or at another offset of the line, without advancing."""
        return pattern.match(self.text, self.at if at is None else at, self.end)

    def after_blanks(self, at: int | None = None) -> int:
        """Offset of the next character that is no blank, from here or from an offset."""
        at = self.at if at is None else at
        while at < self.end and self.text[at].isspace():
            at += 1
        return at

    def is_at(self, character: str, at: int) -> bool:
        """Whether a character of the line is at an offset."""
        return self.text.startswith(character, at, self.end)

    def no_blanks(self) -> None:
        """Skip blanks and report them as errors."""
        self.take("unexpected blank", self.after_blanks(), "")

    def take(self, message: str, end: int, wanted: str) -> None:
        """Read up to `end`, and report an error unless the text there is `wanted`."""
        if self.text[self.at : end] != wanted:
            self.mend(message, self.at, end, wanted)
        self.at = end

    def seen(self, at: int) -> str:
        """A description of the character at an offset."""
        if at >= self.end:
            return "the line ends"
        character = self.text[at]
        return (
            f"unexpected {character!r}"
            if character.isprintable()
            else f"unexpected character U+{ord(character):04X}"
        )

    def step(self, number: int) -> None:
        if self.match(CONTROL):
            advice = "a step is always carried out; to read every entry, pass the whole list"
            raise self.broken("a plan has no loops and no conditions", self.at, advice=advice)
        head = self.match(HEAD)
        assert head
        marked = any(mark in head[0] for mark in "`*")
        self.at = head.end()
        if self.at >= self.end:
            raise self.broken("the step is empty", self.at, advice=STEP_HELP)
        if not literals.terminal("_NUMBER_DOT").fullmatch(head[0]):
            self.number(head, number)
        if marked:  # "**" or "`" at the end of the line
            rest = self.text[self.at : self.end]
            if tail := rest[len(rest.rstrip("`* \t\xa0")) :].lstrip():
                self.mend("marks around the step", self.end - len(tail), self.end, "")
                self.end -= len(tail)
        begin = self.at
        name = self.name("the name of the step's output", STEP_HELP)
        assigns = self.match(ASSIGNS)
        if not assigns and self.match(OPENS):
            if head["number"] is None:
                self.result.found.clear()  # report a missing part once
            self.result.names.clear()
            raise self.broken("the step has no output", begin, self.at, advice=STEP_HELP)
        if not assigns:
            raise self.no_assignment(name, begin)
        self.take("the equals sign needs a blank on each side", assigns.end(), " = ")
        self.tail("explanation", self.call(self.argument, "the name of an action", STEP_HELP))

    def no_assignment(self, name: str, begin: int) -> BrokenError:
        at, advice = self.after_blanks(), STEP_HELP
        # "the key =", "the-key ="
        words, equals, _ = self.text[begin : self.end].partition("=")
        word = words.strip().replace(" ", "_").replace("-", "_")
        if equals and word != name and word.isidentifier():
            advice = f"write one word: {word} = ..."
        elif self.is_at(",", at):
            advice = "a step has one output: write a step for each"
        return self.broken(
            f"{self.seen(at)} after '{short(name)}', expected ' = '", at, advice=advice
        )

    def number(self, head: re.Match[str], number: int) -> None:
        digits = head["digits"] or ""
        said = int(digits) if 0 < len(digits) <= 6 else 0  # more digits are no count of steps
        wanted = f"{said or min(number, 999_999)}. "
        message = "a step begins with its number, a full stop and a blank: '1. '"
        if head["number"] is None:
            message = "no step number"
        if digits == str(said):
            self.mend(message, self.start, self.at, wanted)
        else:  # blame the number, not the marks around it
            self.error(message, self.start, self.at, fix=Fix(Span(self.start, self.at), wanted))

    def action(self, in_library: bool) -> None:
        head = self.match(HEAD)
        assert head
        self.is_signature = True
        if in_library:
            self.take("an action stands at the beginning of its line", head.end(), "")
        else:
            self.take("an action of a plan begins with '- '", head.end(), "- ")
        action = self.call(self.parameter, "the name of an action", _ACTION_HELP)
        if arrow := self.match(_TYPE):
            gives, exact = f" -> {arrow[1]}", self.match(literals.terminal("GIVES"))
            if not literals.terminal("GIVES").fullmatch(gives):
                why = f"unknown type '{short(arrow[1])}'"
                raise self.broken(why, *arrow.span(1), advice=_TYPES_HELP)
            if exact:
                self.at = exact.end()
            else:
                self.take("the arrow needs a blank on each side", arrow.end(1), gives)
        mark = self.match(literals.terminal("_HASH"))
        if in_library and (self.at >= self.end or mark):
            self.at = mark.end() if mark else self.end
            if blanks := self.match(_LEAD):
                self.take("the definition begins after one blank", blanks.end(), "")
            self.free_text("definition")
        else:
            self.tail("definition", action)

    def name(self, what: str, advice: str | None = None) -> str:
        found = self.match(literals.terminal("NAME"))
        if not found:
            raise self.broken(f"{self.seen(self.at)}, expected {what}", self.at, advice=advice)
        name, end = literals.canonical_name(found[0]), found.end()
        is_cut = end < self.end and (
            self.text[end] in "0123456789" or self.match(literals.terminal("NAME"), end)
        )
        if is_cut or len(name) > MAX_NAME:
            raise self.broken(literals.NAME_TOO_LONG, self.at, end)
        if not self.result.names:
            self.result.names.append(name)
        self.at = end
        return name

    def call(self, value: Callable[[bool], None], what: str, advice: str) -> str:
        name = self.name(what, advice)
        opens = self.match(OPENS)
        if not opens:
            raise self.broken(f"'(' is missing after '{short(name)}'", self.at, advice=advice)
        self.take("'(' stands right after the name", opens.end(), "(")
        begin = self.at
        outer, self.arguments, n_found = self.arguments, [], len(self.result.found)
        self.sequence(")", value)
        if first := next((each for each in self.arguments if each[0]), None):
            inside = Span(begin, self.at - 1)
            error = Span(self.text.rfind(first[0], begin, first[1].start), inside.end)
            if len(self.result.found) == n_found:
                self.result.calls.append(NamedCall(name, tuple(self.arguments), inside, error))
            self.error("arguments have no names", error.start, error.end,
                      advice="write the values alone, in the order of the action's parameters")  # fmt: skip
        self.arguments = outer
        return name

    def sequence(self, closer: str, value: Callable[[bool], None]) -> None:
        """Read values separated by commas, from after the opening mark to after the closing one."""
        self.no_blanks()
        is_first = True
        while not self.is_at(closer, self.at) or not is_first:
            if self.is_at(",", self.at):
                raise self.broken("a value is missing before the comma", self.at)
            if self.at >= self.end:
                raise self.broken(f"the line ends before '{closer}'", self.at)
            begin = self.at
            value(is_first)
            is_first = False
            after = self.after_blanks()
            if self.is_at(",", after):
                end = self.after_blanks(after + 1)
                if self.is_at(closer, end):
                    self.take("one comma too many", end, "")
                    break
                why = "a comma stands right after a value, with one blank after it"
                self.take(why, end, "," if end == self.at + 1 else ", ")
            elif self.is_at(closer, after):
                self.no_blanks()
                break
            elif not self.carries_on(closer, begin, after):
                return
        self.at += 1

    def carries_on(self, closer: str, begin: int, after: int) -> bool:
        """Recover from a value without a comma or the closing bracket after it; the cases go from certain to uncertain."""
        here, rest = self.at, self.text[after : min(after + 1, self.end)]
        ended_by, began_by = self.text[here - 1], self.text[begin]
        if (
            closer == ")"
            and self.match(literals.terminal("_COLON"))
            and self.text.find(")", here, self.end) < 0
        ):
            self.mend("')' is missing", here, here, ")")  # FIND(CTX, "x" : Find it
            return False
        is_over = not rest or (
            closer == "]" and (rest == ")" or self.match(literals.terminal("_COLON")))
        )
        if is_over or (rest == ":" and after > here):
            raise self.broken(f"'{closer}' is missing", here)  # COUNT([a, b)
        if ended_by != '"' and rest and rest in '"[' and after > here:
            self.take("',' is missing", after, ", ")  # FIND(CTX "x")
            return True
        is_word = began_by not in '"[' and not began_by.isdigit() and began_by != "-"
        if is_word and not self.is_signature and (rest.isalnum() or rest in "_'’-"):
            word = self.match(literals.terminal("NAME"), after)
            if closer == "]" and word and word[0] == "for":
                raise self.broken("a list cannot contain a loop", after, word.end(),
                          advice="loops do not exist: name every item, or pass a list from an earlier step")  # fmt: skip
            # FIND(CTX, the boat)
            raise self.broken("words must be in double quotes", begin, here, advice=_QUOTING_HELP)
        if ended_by == '"' and after == here and (rest.isalnum() or rest in "\"_'"):
            why = f"the string ends before {self.text[here]!r}"  # "the "boat"
            raise self.broken(why, here - 1, here, advice=_QUOTE_HELP)
        if after > here and (rest.isalnum() or rest in '"[_'):
            advice = _QUOTE_HELP if ended_by == '"' else None  # FIND(CTX, "x" "y")
            raise self.broken("',' is missing", here, advice=advice)
        name = self.text[begin:here]  # rows[0], rows.text
        advice = {"[": f"take an entry with a step of its own: one = FIRST({name})",
                  ".": f"pass the output itself: {name}"}.get(rest) if is_word else None  # fmt: skip
        raise self.broken(f"{self.seen(after)}, expected ',' or '{closer}'", after, advice=advice)

    def parameter(self, is_first: bool) -> None:
        dots = next((dots for dots in ("...", "…") if self.is_at(dots, self.at)), "")
        if not dots:
            self.name("the name of a parameter", _ACTION_HELP)
            colon = self.after_blanks()
            if self.is_at(":", colon) and self.text.find(")", colon, self.end) >= 0:  # "X: str"
                raise self.broken("parameters have no types", self.at, colon + 1)
            return
        end = self.at + len(dots)
        if is_first:
            raise self.broken("the dots need a parameter before them", self.at, end)
        begin = self.at
        self.take("the dots are written '...'", end, "...")
        comma = self.after_blanks()
        if self.is_at(",", comma) and not self.is_at(")", self.after_blanks(comma + 1)):
            raise self.broken("the dots must be the last parameter", begin, end)

    def argument(self, is_first: bool) -> None:
        key = self.match(_KEY)
        begin = self.at = key.end() if key else self.at
        if self.text[self.at] == "[":
            self.at += 1
            self.sequence("]", self.item)
        else:
            self.item(is_first)
        self.arguments.append((key[1] if key else "", Span(begin, self.at)))

    def item(self, is_first: bool) -> None:
        begin = self.at
        self.value()
        if self.is_at("+", plus := self.after_blanks()):
            advice = f"pass a list: [{self.text[begin : self.at]}, ...]"
            raise self.broken("values are not added with '+'", plus, advice=advice)

    def value(self) -> None:
        character = self.text[self.at]
        if character == '"':
            self.string()
        elif character in _CLOSERS:
            self.foreign_string(character)
        elif character == "[":
            raise self.broken("a list is nested in a list", self.at, advice="lists do not nest")
        elif numberish := self.match(_NUMBERISH):
            if not literals.terminal("NUMBER").fullmatch(numberish[0]):
                raise self.broken(
                    f"{short(numberish[0])} is not a number", self.at, numberish.end(),
                    advice="a number has at most 15 digits and optional decimals; quote anything else",
                )  # fmt: skip
            self.at = numberish.end()
        else:
            self.reference()

    def reference(self) -> None:
        begin = self.at
        name = self.name("CTX, an earlier output, a string, a number or a list", _QUOTING_HELP)
        if name in "fFrRuU" and self.text[self.at : self.at + 1] in ('"', "'"):
            raise self.broken("a string begins with its quote", begin, self.at)
        if self.match(OPENS):
            self.inner_call(begin)

    def inner_call(self, begin: int) -> None:
        if self.depth == _MAX_DEPTH:
            raise self.broken("a call is nested in a call", begin, self.at, advice=_NESTED_HELP)
        n_nested, self.at = len(self.nested), begin
        self.depth += 1
        action = self.call(self.argument, "the name of an action", STEP_HELP)
        self.depth -= 1
        if len(self.nested) == n_nested:
            self.nested.append((Span(begin, self.at), action))

    def unnest(self, number: int) -> None:
        """Report nested calls; if the line has no other error, a fix moves the first to a step of its own."""
        is_fixable = not self.result.found
        for where, action in self.nested:
            fix = None
            if is_fixable:
                names = (f"{self.result.names[0]}_{i}" for i in count(1))
                name = next(name for name in names if name not in self.words)
                call = self.text[where.start : where.end]
                step = f"{number}. {name} = {call} : {_in_words(action)}\n"
                above = self.text[self.start : where.start]
                fix = Fix(Span(self.start, where.end), f"{step}{above}{name}")
            is_fixable = False  # fixes of one line would overlap
            self.error("a call is nested in a call", where.start, where.end, _NESTED_HELP, fix)

    # Strings

    def string(self) -> None:
        quoted = self.match(_QUOTED)
        if not quoted:
            raise self.broken("the string is not closed", self.at, advice=_CLOSE_HELP)
        end = quoted.end()
        for special in literals.SPECIAL.finditer(self.text, self.at + 1, end - 1):
            wrong = literals.flaw(special[0])
            if wrong is not None:
                message, replacement = wrong
                fix = None if replacement is None else Fix(Span(*special.span()), replacement)
                self.error(
                    message, special.start(), special.end(), None if fix else _ESCAPES_HELP, fix
                )
        self.at = end

    def foreign_string(self, quote: str) -> None:
        """Read a string in other quotes; it ends at a quote that can end an argument."""
        ends = re.compile(rf"[{_CLOSERS[quote]}](?=\s*+[,)\]+])")
        closer = ends.search(self.text, self.at + 1, self.end)
        if not closer:
            raise self.broken("the string is not closed", self.at, advice=_CLOSE_HELP)
        literal = literals.requote(self.text[self.at + 1 : closer.start()])
        kind = "single" if quote == "'" else "smart"
        self.error(f"{kind} quotes: strings need straight double quotes", self.at, closer.end(),
                   fix=Fix(Span(self.at, closer.end()), literal))  # fmt: skip
        self.at = closer.end()

    # What follows the call

    def tail(self, what: str, name: str) -> None:
        colon = self.match(literals.terminal("_COLON"))
        if colon and self.match(literals.terminal("TEXT"), colon.end()):
            self.at = colon.end()
            self.free_text(what)
            return
        while self.is_at(")", at := self.after_blanks()):
            fix = Fix(Span(self.at, at + 1), "")
            self.error("one ')' too many", at, fix=fix)
            self.at = at + 1
        separator = self.match(_SEPARATOR)
        rest = self.text[self.at : self.end]
        if not rest.strip(" \t`*.;,:#") or (separator and separator.end() >= self.end):
            at = self.after_blanks()
            at += self.is_at(":", at)
            self.error(f"no {what}", at, fix=Fix(Span(self.at, self.end), f" : {_in_words(name)}"))
            return
        if not separator or self.match(_ANOTHER, separator.end()):
            at = self.after_blanks()
            advice = "a step has one call; write a step for each" if "(" in rest else None
            raise self.broken(f"{self.seen(at)}, expected ' : ' and the {what}", at, advice=advice)
        wanted = ": " if separator[0].startswith(":") else " : "
        self.take(f"' : ' stands before the {what}", separator.end(), wanted)
        self.free_text(what)

    def free_text(self, what: str) -> None:
        for found in literals.UNTYPED.finditer(self.text, self.at, self.end):
            self.error(f"the character U+{ord(found[0]):04X} in the {what}", found.start(),
                       fix=Fix(Span(*found.span()), " "))  # fmt: skip
