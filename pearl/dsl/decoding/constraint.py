"""A constraint on replies, in every notation that decoders accept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, get_args

from msgspec import Struct

from pearl.errors import UsageError
from pearl.errors.patterns import lazy_pattern

Schema = Mapping[str, Any]

_SHOWN = 100  # Characters of each end of a long message, which has the value


def closed_object(properties: Schema) -> dict[str, Any]:
    """The schema of an object that has all of these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def require(value: Any, schema: Schema) -> None:
    """Check that a value conforms to a schema; `ValueError` says where it does not."""
    import jsonschema_rs  # late: most runs need no schema

    flaw: Any = next(jsonschema_rs.Draft202012Validator(dict(schema)).iter_errors(value), None)
    while flaw is not None and flaw.kind.name == "anyOf":
        # Report the alternative that matched furthest.
        flaw = max(
            (flaws[0] for flaws in flaw.kind.context if flaws),
            key=lambda each: (len(each.instance_path), each.kind.name not in ("enum", "type")),
        )
    if flaw is not None:
        place, why = ".".join(map(str, flaw.instance_path)) or "the value", flaw.message
        raise ValueError(
            f"{place}: {why if len(why) <= 2 * _SHOWN else f'{why[:_SHOWN]}…{why[-_SHOWN:]}'}"
        )


Form = Literal["lark", "llguidance", "gbnf", "json-schema"]  # Notations of a constraint

FORMS: tuple[Form, ...] = get_args(Form)


class JsonForm(Struct, frozen=True):
    """The language of a constraint in its JSON form."""

    schema: Mapping[str, Any]
    write: Callable[[Any], str] | None = None
    """Writes a JSON value as the text to parse; None leaves the text as JSON."""
    hint: str = ""  # Words on the form to add to the prompt; "" if the prompt already has them
    is_read_by_caller: bool = False
    """Whether a reply in a wrong form is returned unchanged, because the caller asks again with the reason."""

    def text_of(self, value: Any) -> str:
        """The reply text for a JSON value; `ValueError` says how the value violates the schema."""
        if self.write is not None:
            return self.write(value)
        require(value, self.schema)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Constraint(Struct, frozen=True, dict=True):
    """A formal language that a reply must belong to, as a JSON form, a grammar, or both."""

    name: str
    lark: str = ""
    json_form: JsonForm | None = None

    @cached_property
    def text(self) -> str:
        """The text that identifies the language: its grammar, else its schema."""
        return self.lark or self.json_schema

    @cached_property
    def llguidance(self) -> str:
        """The grammar with the header by which llama.cpp distinguishes it from GBNF."""
        return f"%llguidance {{}}\n{self.lark}"

    @cached_property
    def gbnf(self) -> str:
        """The grammar for llama.cpp without llguidance."""
        return to_gbnf(self.lark)

    @cached_property
    def json_schema(self) -> str:
        """The schema as JSON."""
        if self.json_form is None:
            raise UsageError(f"the constraint '{self.name}' has no JSON form")
        return json.dumps(self.json_form.schema, ensure_ascii=False, indent=2) + "\n"

    def rendered(self, form: Form) -> str:
        """The constraint as text in one of the forms."""
        return str(getattr(self, form.replace("-", "_")))


_TOKEN = lazy_pattern(
    r"""(?P<blank>[ \t]+|//[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<regex>/(?:[^/\\\n]|\\.)+/)
      | (?P<define>[A-Za-z_][A-Za-z0-9_]*[ ]*:)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<mark>[|()\[\]]|(?<=\S)[?*+])
      | (?P<end>\n)""",
    re.VERBOSE,
)
"""Tokens of the dialect; a definition begins a line."""

_Token = tuple[str, str]


def _tokens(grammar: str) -> Iterator[_Token]:
    at = 0
    while at < len(grammar):
        found = _TOKEN.match(grammar, at)
        if found is None:
            line = grammar.count("\n", 0, at) + 1
            rest = grammar[at : at + 20].partition("\n")[0]
            raise UsageError(f"line {line} of the grammar: {rest!r} is not of the shared dialect")
        at = found.end()
        if found.lastgroup != "blank":
            yield str(found.lastgroup), found[0]


def validate(grammar: str) -> None:
    """Check that decoders accept a grammar: it is in the dialect, and every name is defined."""
    tokens = list(_tokens(grammar))
    defined = [text.rstrip(": ") for kind, text in tokens if kind == "define"]
    missing = {text for kind, text in tokens if kind == "name"} - set(defined)
    if "start" not in defined:
        missing.add("start")
    if missing:
        names = ", ".join(sorted(missing))
        raise UsageError(f"the grammar uses undefined names: {names}")
    try:
        from llguidance import LLMatcher
    except ImportError:
        return
    is_error, messages = LLMatcher.validate_grammar_with_warnings(grammar)
    if is_error:
        raise UsageError(f"llguidance refuses the grammar: {messages[0].splitlines()[0]}")


def to_gbnf(grammar: str) -> str:
    """The grammar in the notation of llama.cpp, whose rules are read character by character."""
    names: dict[str, str] = {}
    parts: list[str] = []
    for kind, text in _tokens(grammar):
        match kind:
            case "define":
                # A line break does not end a rule: the next line may begin with "|".
                name = text.rstrip(": ")
                if names.setdefault(_rule(name), name) != name:
                    raise UsageError(f"{names[_rule(name)]} and {name} are the same name in GBNF")
                parts.append(f"\n{_rule(name)} ::=")
            case "name":
                parts.append(_rule(text))
            case "regex":
                pieces = _pieces(text[1:-1])
                parts.append(pieces[0] if len(pieces) == 1 else f"( {' '.join(pieces)} )")
            case "mark" if text in "?*+":
                parts[-1] += text
            case "mark":
                parts.append({"[": "(", "]": ")?"}.get(text, text))
            case "string":
                parts.append(text)
    return " ".join(parts).replace(" \n", "\n").strip("\n") + "\n"


def _rule(name: str) -> str:
    """GBNF rule names have no underscore, and case does not separate terminals from rules."""
    if name == "start":
        return "root"
    prefix = "t-" if name.strip("_")[:1].isupper() else ""
    return prefix + name.strip("_").lower().replace("_", "-")


_PIECE = lazy_pattern(
    r"""(?P<class>\[(?:[^\]\\]|\\.)+\])
      | (?P<open>\(\?:|\((?!\?))
      | (?P<mark>[|)])
      | (?P<repeat>[?*+]|\{\d+(?:,\d*)?\})
      | (?P<escape>\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.))
      | (?P<plain>[^\[\\()|?*+{}.^$])""",
    re.VERBOSE,
)


def _pieces(pattern: str) -> list[str]:
    """Convert a regular expression to a sequence of GBNF items."""
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        found = _PIECE.match(pattern, at)
        if found is None:
            raise UsageError(f"the expression /{pattern[:60]}/ is not of the shared dialect")
        at = found.end()
        text = found[0]
        match found.lastgroup:
            case "open":
                pieces.append("(")
            case "repeat":
                pieces[-1] += text
            case "escape":
                pieces.append(f'"{_escape(text, in_class=False)}"')
            case "plain":
                pieces.append('"\\""' if text == '"' else f'"{text}"')
            case "class":
                pieces.append(_ESCAPE.sub(lambda m: _escape(m[0], in_class=True), text))
            case _:
                pieces.append(text)
    return pieces


_ESCAPE = lazy_pattern(r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")


def _escape(text: str, *, in_class: bool) -> str:
    """Convert an escape to GBNF, which has fewer of them."""
    if text[1] in "uUnrt\\":
        return text
    if text[1].isalnum():
        raise UsageError(f"'{text}' in an expression is not of the shared dialect")
    if in_class:
        return f"\\x{ord(text[1]):02x}" if ord(text[1]) < 128 else text[1]
    return '\\"' if text[1] == '"' else text[1]
