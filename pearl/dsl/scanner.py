"""One line of a plan → all of its errors, with fixes where they are unambiguous."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pearl.dsl.literals import (
    MAX_NAME,
    SPECIAL,
    UNTYPED,
    canonical_name,
    flaw,
    requote,
    short,
    terminal,
)
from pearl.errors import Diagnostic, Fix, Span
from pearl.errors.patterns import lazy_pattern

HEAD = lazy_pattern(
    r"[\s>#`*]*+(?:[-+•–][\s`*]++)?+"
    r"(?P<number>(?:step\s*+)?+[(\[]?+(?P<digits>\d++)"
    r"(?:[`*]*+\s*+[.):\]]++(?!\d)|(?=\s++[^\W\d]\w*+\s*+=))[\s`*]*+)?+",
    re.I,
)
"""The optional number, bullet and marks before the name of a step or an action."""

ASSIGNS = lazy_pattern(r"[\s`*]*+=(?!=)[\s`*]*+")
OPENS = lazy_pattern(r"[\s`*]*+\(")
_NUMBER_DOT = lazy_pattern(r"[1-9][0-9]{0,5}\. ")
_BLANKS = lazy_pattern(r"\s*+")
_COMMA = lazy_pattern(r"\s*+,\s*+")
_COLON = lazy_pattern(r" ?: ")
_BARE_COLON = lazy_pattern(r"\s*+:")
_HASH = lazy_pattern(r" ?# ?")
_AFTER_TYPE = lazy_pattern(r"\s*+(?:[:#]|\Z)")
_UNKNOWN_TYPE = lazy_pattern(r"\s*+->\s*+(\w++)\s*+(?:[:#]|\Z)")
_ELLIPSIS = lazy_pattern(r"\.\.\.|…")
_NUMBERISH = lazy_pattern(r"[-+]?\.?[0-9][\w.]*+")
_QUOTED = lazy_pattern(r'"(?:[^"\\]++|\\.)*+"')
_QUOTING = lazy_pattern(  # a string with quotes in it, each pair around something
    r'"(?:[^"\\]|\\.|(?<=[ (])"[^"\\\s](?:[^"\\]*[^"\\\s])?"(?=[\s.,;:!?)]))*"(?=\s*[,)\]])'
)
_AFTER_VALUE = lazy_pattern(r"\s*+(?:[,)\]:]|\Z)")
_JUNK = UNTYPED.pattern[1:-1]
_CLOSING_MARKS = lazy_pattern(r"[`*][`*\s]*+\Z")
_SEPARATOR = lazy_pattern(rf"[\s`*{_JUNK}]*+(?:[:#→—–]|//|--?>?|=>)[\s`*:{_JUNK}]*+")
_LEAD = lazy_pattern(rf"[ \xa0{_JUNK}]*+")
_NO_TEXT = lazy_pattern(rf"[\s`*.;,:#{_JUNK}]*+\Z")
_IN_PARENTHESES = lazy_pattern(r"[\s`*]*+\((?=.*\w)(.*)\)[\s.]*\Z")
_SURPLUS = lazy_pattern(r"\s*+\)")

_CLOSERS = {"“": '”“"', "”": '”"', "„": '“”"', "«": "»", "‘": "’'", "’": "’'", "'": "'’", "‚": "‘’"}

STEP_HELP = 'a step reads: 1. name = ACTION(CTX, "text") : what it is for'
_ACTION_HELP = "an action reads: NAME(CTX, X) : what it does with X"
_TYPES_HELP = "what an action gives is Text, List, Number or Bool"
_CLOSE_HELP = """a string ends with '"' right before a comma or a bracket"""
_QUOTE_HELP = r"a quote inside a string reads \""
_ESCAPES_HELP = r"escapes are \" \\ \n \t and \uXXXX"


@dataclass(slots=True)
class Scan:
    """The errors of a line, and the names it defines."""

    found: list[Diagnostic] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def should_read(text: str, span: Span, wanted: str, why: str) -> Diagnostic:
    """The error that a range should read `wanted`, starting at the first difference."""
    source, same = text[span.start : span.end], 0
    while same < min(len(source), len(wanted)) and source[same] == wanted[same]:
        same += 1
    return Diagnostic("syntax", why, Span(span.start + same, span.end), fix=Fix(span, wanted))


class BrokenError(Exception):
    """The rest of the line cannot be scanned; the error has been reported."""


def scan_step(text: str, span: Span, number: int) -> Scan:
    """Scan a step."""
    return _Line(text, span).scan(lambda line: line.step(number))


def scan_action(text: str, span: Span, *, in_library: bool = False) -> Scan:
    """Scan a declaration of an action: `- NAME(CTX, X) : definition`."""
    return _Line(text, span).scan(lambda line: line.action(in_library))


class _Line:
    """Recursive-descent scanner of a line. A method named after a grammar rule consumes that rule."""

    def __init__(self, text: str, span: Span) -> None:
        self.text, self.start, self.at, self.end = text, span.start, span.start, span.end
        self.result = Scan()
        self.is_signature = False

    def scan(self, part: Callable[[_Line], None]) -> Scan:
        with suppress(BrokenError):
            part(self)
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
        """Report what is wrong with `text[start:end]`, one character if no end is given."""
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

    def after_blanks(self) -> int:
        """Offset of the next non-blank character."""
        blanks = self.match(_BLANKS)
        return blanks.end() if blanks else self.at

    def end_of_words(self) -> int:
        """Offset of the trailing blanks and marks of the line, in linear time."""
        at = self.end
        while at > self.at and (self.text[at - 1] in "`*" or self.text[at - 1].isspace()):
            at -= 1
        return at

    def no_blanks(self) -> None:
        """Skip blanks and report them as errors."""
        end = self.after_blanks()
        if end > self.at:
            self.mend("unexpected blank", self.at, end, "")
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
        head = self.match(HEAD)
        assert head
        marked = any(mark in head[0] for mark in "`*")
        self.at = head.end()
        if self.at >= self.end:
            raise self.broken("the step is empty", self.at, advice=STEP_HELP)
        if not _NUMBER_DOT.fullmatch(head[0]):
            self.number(head, number)
        if marked and (marks := _CLOSING_MARKS.search(self.text, self.end_of_words(), self.end)):
            self.mend("marks around the step", marks.start(), self.end, "")
            self.end = marks.start()
        begin = self.at
        name = self.name("the name of the step's output", STEP_HELP)
        if self.match(OPENS):
            self.result.names.clear()
            if head["number"] is None:
                self.result.found.clear()  # report a missing part once
            raise self.broken("the step has no output", begin, self.at, advice=STEP_HELP)
        assigns = self.match(ASSIGNS)
        if not assigns:
            at = self.after_blanks()
            raise self.broken(
                f"{self.seen(at)} after '{short(name)}', expected ' = '", at, advice=STEP_HELP
            )
        if assigns[0] != " = ":
            self.mend("the equals sign needs a blank on each side", self.at, assigns.end(), " = ")
        self.at = assigns.end()
        action = self.call(self.argument, "the name of an action", STEP_HELP)
        self.tail("explanation", action)

    def number(self, head: re.Match[str], number: int) -> None:
        digits = head["digits"] or ""
        said = int(digits) if 0 < len(digits) <= 6 else 0
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
        self.at = head.end()
        self.is_signature = True
        wanted = "" if in_library else "- "
        if head[0] != wanted:
            what = (
                "an action stands at the beginning of its line"
                if in_library
                else "an action of a plan begins with '- '"
            )
            self.mend(what, self.start, self.at, wanted)
        action = self.call(self.parameter, "the name of an action", _ACTION_HELP)
        if (gives := self.match(terminal("GIVES"))) and self.match(_AFTER_TYPE, gives.end()):
            self.at = gives.end()
        elif in_library and (wrong := self.match(_UNKNOWN_TYPE)):
            raise self.broken(
                f"unknown type '{short(wrong[1])}'", *wrong.span(1), advice=_TYPES_HELP
            )
        if in_library and (self.at >= self.end or self.match(_HASH)):
            mark = self.match(_HASH)
            self.at = mark.end() if mark else self.end
            if (lead := self.match(_LEAD)) and lead[0]:
                self.mend("the definition begins after one blank", self.at, lead.end(), "")
                self.at = lead.end()
            self.free_text("definition")
        else:
            self.tail("definition", action)

    def name(self, what: str, advice: str | None = None) -> str:
        found = self.match(terminal("NAME"))
        if not found:
            raise self.broken(f"{self.seen(self.at)}, expected {what}", self.at, advice=advice)
        name, end = canonical_name(found[0]), found.end()
        is_cut = end < self.end and (
            self.text[end] in "0123456789" or self.match(terminal("NAME"), end)
        )
        if is_cut or len(name) > MAX_NAME:
            raise self.broken(f"a name has at most {MAX_NAME} characters", self.at, end)
        if not self.result.names:
            self.result.names.append(name)
        self.at = end
        return name

    def call(self, value: Callable[[bool], None], what: str, advice: str) -> str:
        name = self.name(what, advice)
        opens = self.match(OPENS)
        if not opens:
            raise self.broken(f"'(' is missing after '{short(name)}'", self.at, advice=advice)
        if opens[0] != "(":
            self.mend("unexpected blank", self.at, opens.end(), "(")
        self.at = opens.end()
        self.sequence(")", value)
        return name

    def sequence(self, closer: str, value: Callable[[bool], None]) -> None:
        """Values with commas between them, from after the opening mark to after the closing one."""
        self.no_blanks()
        is_first = True
        while not self.text.startswith(closer, self.at, self.end) or not is_first:
            if self.text.startswith(",", self.at, self.end):
                raise self.broken("a value is missing before the comma", self.at)
            if self.at >= self.end:
                raise self.broken(f"the line ends before '{closer}'", self.at)
            begin = self.at
            value(is_first)
            is_first = False
            after = self.after_blanks()
            comma = self.match(_COMMA)
            if comma and not self.text.startswith(closer, comma.end(), self.end):
                if comma[0] not in (",", ", "):
                    self.mend(
                        "a comma stands right after a value, with one blank after it",
                        self.at,
                        comma.end(),
                        ", ",
                    )
                self.at = comma.end()
            elif comma:
                self.mend("one comma too many", self.at, comma.end(), "")
                self.at = comma.end()
                break
            elif self.text.startswith(closer, after, self.end):
                self.no_blanks()
                break
            elif not self.carries_on(closer, begin, after):
                return
        self.at += 1

    def carries_on(self, closer: str, begin: int, after: int) -> bool:
        """Recover from a value that is followed by neither a comma nor the closing bracket."""
        here, rest = self.at, self.text[after : min(after + 1, self.end)]
        ended_by, began_by = self.text[here - 1], self.text[begin]
        if closer == ")" and self.match(_COLON) and self.text.find(")", here, self.end) < 0:
            self.mend("')' is missing", here, here, ")")
            return False
        is_over = not rest or (closer == "]" and (rest == ")" or self.match(_COLON)))
        if is_over or (rest == ":" and after > here):
            raise self.broken(f"'{closer}' is missing", here)
        if ended_by != '"' and rest and rest in '"[' and after > here:
            self.mend("',' is missing", here, after, ", ")
            self.at = after
            return True
        is_word = began_by not in '"[' and not began_by.isdigit() and began_by != "-"
        if is_word and not self.is_signature and (rest.isalnum() or rest in "_'’-"):
            word = self.match(terminal("NAME"), after)
            if closer == "]" and word and word[0] == "for":
                raise self.broken("a list cannot contain a loop", after, word.end(),
                          advice="loops do not exist: name every item, or pass a list from an earlier step")  # fmt: skip
            raise self.broken(
                "words must be in double quotes", begin, here, advice='write "..." around a text'
            )
        if ended_by == '"' and after == here and (rest.isalnum() or rest in "\"_'"):
            raise self.broken(
                f"the string ends before {self.text[here]!r}", here - 1, here, advice=_QUOTE_HELP
            )
        if after > here and (rest.isalnum() or rest in '"[_'):
            raise self.broken(
                "',' is missing", here, advice=_QUOTE_HELP if ended_by == '"' else None
            )
        raise self.broken(f"{self.seen(after)}, expected ',' or '{closer}'", after)

    def parameter(self, is_first: bool) -> None:
        dots = self.match(_ELLIPSIS)
        if not dots:
            self.name("the name of a parameter", _ACTION_HELP)
            return
        if is_first:
            raise self.broken("the dots need a parameter before them", self.at, dots.end())
        if dots[0] != "...":
            self.mend("the dots are written '...'", self.at, dots.end(), "...")
        begin, self.at = self.at, dots.end()
        comma = self.match(_COMMA)
        if comma and not self.text.startswith(")", comma.end(), self.end):
            raise self.broken("the dots must be the last parameter", begin, dots.end())

    def argument(self, is_first: bool) -> None:
        if self.text[self.at] == "[":
            self.at += 1
            self.sequence("]", self.item)
        else:
            self.item(is_first)

    def item(self, is_first: bool) -> None:
        character = self.text[self.at]
        if character == '"':
            self.string()
        elif character in _CLOSERS:
            self.foreign_string(character)
        elif character == "[":
            raise self.broken("a list is nested in a list", self.at, advice="lists do not nest")
        elif numberish := self.match(_NUMBERISH):
            if not terminal("NUMBER").fullmatch(numberish[0]):
                raise self.broken(
                    f"{short(numberish[0])} is not a number", self.at, numberish.end(),
                    advice="a number has at most 15 digits and optional decimals; quote anything else",
                )  # fmt: skip
            self.at = numberish.end()
        else:
            self.reference()

    def reference(self) -> None:
        begin = self.at
        self.name("CTX, an earlier output, a string, a number or a list")
        if self.match(OPENS):
            raise self.broken("a call is nested in a call", begin, self.at,
                      advice="move the inner call to its own step")  # fmt: skip
        if self.match(ASSIGNS):
            raise self.broken("arguments have no names", begin, self.at,
                      advice="write the value alone, in the order of the action's parameters")  # fmt: skip

    # Strings

    def string(self) -> None:
        quoted = self.match(_QUOTED)
        if not quoted:
            raise self.broken("the string is not closed", self.at, advice=_CLOSE_HELP)
        end = quoted.end()
        if not self.match(_AFTER_VALUE, end) and (quoting := self.match(_QUOTING)):
            end = quoting.end()
        for special in SPECIAL.finditer(self.text, self.at + 1, end - 1):
            wrong = flaw(special[0])
            if wrong is not None:
                message, replacement = wrong
                fix = None if replacement is None else Fix(Span(*special.span()), replacement)
                self.error(
                    message, special.start(), special.end(), None if fix else _ESCAPES_HELP, fix
                )
        self.at = end

    def foreign_string(self, quote: str) -> None:
        """A string in other quotes; it ends at a quote that can end an argument."""
        closer = re.compile(rf"[{_CLOSERS[quote]}](?=\s*+[,)\]])").search(
            self.text, self.at + 1, self.end
        )
        if not closer:
            raise self.broken("the string is not closed", self.at, advice=_CLOSE_HELP)
        literal = requote(self.text[self.at + 1 : closer.start()])
        kind = "single" if quote == "'" else "smart"
        self.error(f"{kind} quotes: strings need straight double quotes", self.at, closer.end(),
                   fix=Fix(Span(self.at, closer.end()), literal))  # fmt: skip
        self.at = closer.end()

    # What follows the call

    def tail(self, what: str, name: str) -> None:
        colon = self.match(_COLON)
        if colon and self.match(terminal("TEXT"), colon.end()):
            self.at = colon.end()
            self.free_text(what)
            return
        while surplus := self.match(_SURPLUS):
            self.error(
                "one ')' too many", surplus.end() - 1, fix=Fix(Span(self.at, surplus.end()), "")
            )
            self.at = surplus.end()
        separator = self.match(_SEPARATOR)
        if self.match(_NO_TEXT) or (separator and separator.end() >= self.end):
            words = name.replace("_", " ").strip().capitalize() or name
            colon = self.match(_BARE_COLON)
            at = colon.end() if colon else self.after_blanks()
            self.error(f"no {what}", at, fix=Fix(Span(self.at, self.end), f" : {words}"))
            return
        if aside := self.match(_IN_PARENTHESES):
            inside = UNTYPED.sub(" ", aside[1]).strip()
            self.mend(
                f"the {what} stands after a colon, not in parentheses",
                self.at,
                self.end,
                f" : {inside}",
            )
            return
        if not separator:
            at = self.after_blanks()
            raise self.broken(f"{self.seen(at)}, expected ' : ' and the {what}", at)
        wanted = ": " if separator[0].startswith(":") else " : "
        if separator[0] != wanted:
            self.mend(f"' : ' stands before the {what}", self.at, separator.end(), wanted)
        self.at = separator.end()
        self.free_text(what)

    def free_text(self, what: str) -> None:
        for found in UNTYPED.finditer(self.text, self.at, self.end):
            self.error(f"the character U+{ord(found[0]):04X} in the {what}", found.start(),
                       fix=Fix(Span(*found.span()), " "))  # fmt: skip
