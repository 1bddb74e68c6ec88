"""Parse a `Plan` strictly by `grammars/plan.lark`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pearl.dsl import lalr, nodes
from pearl.dsl.literals import GLUED, MAX_NAME, NAME_TOO_LONG, canonical_name, terminal, unescape
from pearl.dsl.signatures import ROWS, Action, Parameter, ValueType
from pearl.errors import Diagnostic, PlanSyntaxError, Span
from pearl.errors.patterns import lazy_pattern
from pearl.plugins.files import read_data

if TYPE_CHECKING:
    from pearl.dsl.scanner import NamedCall

NO_STEP = "this text has no step"

Start = Literal["file", "step", "action", "library_action", "declared"]

_BLANKS = " \u00a0"  # Blanks at which a text cannot begin, and which are dropped at its end


_BEGIN: ContextVar[int] = ContextVar("_BEGIN", default=0)
"""The position of the parsed range in the whole text."""


def _span(token: lalr.Token) -> Span:
    start = _BEGIN.get() + (token.start_pos or 0)
    return Span(start, start + len(token))


_NEVER = lazy_pattern("[\ud800-\udfff\ufffe\uffff]")
"""Characters that no part of a plan may contain."""


class _NameError(Exception):
    """A token is not a valid name. The argument is the diagnostic."""


# The tables know cheaper character classes than the grammar: the class of names takes a dozen milliseconds to compile.
# So the parser takes any character beyond ASCII for a part of a name, checks names one by one, and looks for the few
# forbidden characters in the whole text (`_node`). The language is the same: only ASCII can follow a name.


def _name(token: lalr.Token) -> str:
    if not token.isascii():
        exact = terminal("NAME").match(token)
        end = exact.end() if exact else 0
        if end < len(token):
            raise _NameError(_no_grammar(_span(token).start + end))
    name = canonical_name(str(token))  # a `str`: an unchanged token would be returned as a `Token`
    if len(name) > MAX_NAME:
        raise _NameError(Diagnostic("syntax", NAME_TOO_LONG, _span(token)))
    return name


_Children = list[Any]


class _Head(NamedTuple):
    """The declared part of an action, before its definition."""

    name: str
    span: Span
    parameters: tuple[Parameter, ...]
    is_variadic: bool


class _Builder:
    """Callbacks of the LALR parser, one per rule; each makes a node of the children."""

    def file(self, children: _Children) -> nodes.Plan:
        *head, plan = children
        blocks: dict[str, Any] = dict(each for each in head if isinstance(each, tuple))
        question = str(head[0]).rstrip(_BLANKS) if len(head) > len(blocks) else None
        return nodes.Plan(plan.steps, plan.new_actions, question, **blocks)

    def parameters(self, children: _Children) -> tuple[str, tuple[nodes.Declared, ...]]:
        return "parameters", tuple(children)

    def sources(self, children: _Children) -> tuple[str, tuple[nodes.Declared, ...]]:
        return "sources", tuple(children)

    def declared(self, children: _Children) -> nodes.Declared:
        name, *about = children
        return nodes.Declared(_name(name), "".join(about).rstrip(_BLANKS), _span(name))

    def plan(self, children: _Children) -> nodes.Plan:
        new_actions = children[0] if isinstance(children[0], tuple) else ()
        return nodes.Plan(
            tuple(children[1:] if isinstance(children[0], tuple) else children), new_actions
        )

    def new_actions(self, children: _Children) -> tuple[Action, ...]:
        return tuple(children)

    def signature(self, children: _Children) -> _Head:
        name, *parameters = children
        is_variadic = bool(parameters) and parameters[-1].type == "ELLIPSIS"
        return _Head(
            _name(name),
            _span(name),
            tuple(
                Parameter.named(_name(p)) for p in (parameters[:-1] if is_variadic else parameters)
            ),
            is_variadic,
        )

    def action(self, children: _Children) -> Action:
        head, *rest = children
        returns = ValueType.TEXT
        if rest and rest[0].type == "GIVES":
            returns = ValueType(rest.pop(0).strip(" ->"))
        if head.parameters and head.parameters[0].name == ROWS:
            returns = ValueType.LIST
        return Action(
            head.name,
            head.parameters,
            str(rest[0]).rstrip(_BLANKS) if rest else "",
            head.is_variadic,
            returns,
            span=head.span,
        )

    library_action = action

    def step(self, children: _Children) -> nodes.Step:
        output, action, *arguments, explanation = children
        return nodes.Step(
            _name(output),
            _name(action),
            tuple(arguments),
            str(explanation).rstrip(_BLANKS),
            output_span=_span(output),
            action_span=_span(action),
        )

    def list(self, children: _Children) -> nodes.ListLiteral:
        opening, *items, closing = children
        return nodes.ListLiteral(tuple(items), Span(_span(opening).start, _span(closing).end))

    def reference(self, children: _Children) -> nodes.Reference:
        return nodes.Reference(_name(children[0]), _span(children[0]))

    def string(self, children: _Children) -> nodes.String:
        return nodes.String(unescape(children[0]), _span(children[0]))

    def number(self, children: _Children) -> nodes.Number:
        value = float(children[0]) if "." in children[0] else int(children[0])
        # One value, one node: 2.0 is 2 and -0.0 is 0, so that printing is a fixed point.
        return nodes.Number(int(value) if value == int(value) else value, _span(children[0]))


TABLES = "plan.tables.json"
"""The tables of the parser, which lark makes of the grammar: importing it takes a quarter of `pearl check`."""


@cache
def _parser() -> lalr.Parser:
    tables = msgspec.json.decode(read_data("grammars", TABLES), type=lalr.Tables)
    return lalr.Parser(tables, _Builder())


def _node(text: str, start: Start, span: Span) -> Any:
    """Parse a range of the text by one rule of the grammar: the node, or the diagnostic."""
    if never := _NEVER.search(text, span.start, span.end):
        return _no_grammar(never.start())
    begin = _BEGIN.set(span.start)
    try:
        return _parser().parse(text[span.start : span.end], start)
    except _NameError as error:
        return error.args[0]
    except lalr.UnexpectedTextError as error:
        return _no_grammar(span.start + error.at)
    finally:
        _BEGIN.reset(begin)


def _no_grammar(at: int) -> Diagnostic:
    from pearl.dsl.scanner import STEP_HELP

    return Diagnostic("syntax", "this does not follow the grammar", Span(at, at), help=STEP_HELP)


def parse(text: str) -> nodes.Plan:
    """Parse a plan strictly; a leading question is allowed."""
    reading = read(text)
    if reading.plan is None or reading.errors:
        raise PlanSyntaxError(reading.text, reading.errors)
    return reading.plan


def parse_action(text: str, span: Span | None = None) -> Action | Diagnostic:
    """Read one line of an action library: `NAME(CTX, X) -> List : definition`."""
    span = span or Span(0, len(text))
    node: Action | Diagnostic = _node(text, "library_action", span)
    if isinstance(node, Action):
        return node
    from pearl.dsl.scanner import scan_action

    return next(iter(scan_action(text, span, in_library=True).found), node)


class Reading(Struct, frozen=True):
    """The result of `read`."""

    text: str
    plan: nodes.Plan | None
    errors: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    original: str = ""
    lost: frozenset[str] = frozenset()
    actions: tuple[Action, ...] = ()
    calls: tuple[NamedCall, ...] = ()


def read(text: str, *, tolerant: bool = False) -> Reading:
    """Parse a plan and report every broken line at once. Never raises."""
    text = original = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    plan = _whole(text)
    notes: Sequence[Diagnostic] = ()
    if plan is None and tolerant:
        from pearl.dsl import tolerance

        text, notes = tolerance.mend(text)
        plan = _whole(text)
    if plan is not None:
        return Reading(text, plan, notes=tuple(notes), original=original, actions=plan.new_actions)
    reading = _by_line(text, with_comments=not tolerant)
    return replace(reading, notes=tuple(notes), original=original)


def formatted(reading: Reading) -> str:
    """The canonical text of a plan without errors, each comment above the line that followed it."""
    from pearl.dsl import tolerance

    assert reading.plan is not None
    above: dict[tuple[str, int], list[str]] = {}
    comments: list[str] = []
    n_lines: Counter[str] = Counter()
    for line in tolerance.lines(reading.text, with_comments=True):
        if line.role == "comment":
            comments.append(reading.text[line.span.start : line.span.end].strip())
        elif line.role not in ("blank", "surplus"):
            above[line.role, n_lines[line.role]] = comments
            n_lines[line.role] += 1
            comments = []
    printed: list[str] = []
    text = nodes.print_plan(reading.plan)
    n_lines.clear()
    for line in tolerance.lines(text):
        printed += above.get((line.role, n_lines[line.role]), [])
        printed.append(text[line.span.start : line.span.end])
        n_lines[line.role] += 1
    return "\n".join([*printed, *comments, ""])


def _whole(text: str) -> nodes.Plan | None:
    node = _node(text, "file", Span(0, len(text)))
    if not isinstance(node, nodes.Plan):
        return None
    # The grammar takes it for a part of the explanation.
    return None if any(GLUED.search(step.explanation) for step in node.steps) else node


def _by_line(text: str, *, with_comments: bool) -> Reading:
    """Parse every line on its own and diagnose the broken ones."""
    from pearl.dsl import tolerance

    lines = tolerance.lines(text, with_comments=with_comments)
    errors = [found for line in lines for found in line.found]
    actions: list[Action] = []
    steps: list[nodes.Step] = []
    lost: set[str] = set()
    question: str | None = None
    blocks: dict[str, list[nodes.Declared]] = {"Parameters:": [], "Sources:": []}
    for line in lines:
        if not line.is_readable:
            lost.update(line.names)
        elif line.role == "question":
            question = text[line.span.start : line.span.end].removeprefix("Question: ")
        elif line.role == "step":
            node = _node(text, "step", line.body)
            (steps if isinstance(node, nodes.Step) else errors).append(node)
        elif line.role == "action":
            node = _node(text, "action", line.body)
            (actions if isinstance(node, Action) else errors).append(node)
        elif line.role == "block":
            block = blocks[text[line.span.start : line.span.end]]
        elif line.role == "declared":
            node = _node(text, "declared", line.body)
            (block if isinstance(node, nodes.Declared) else errors).append(node)
    if not any(line.role == "step" for line in lines):
        from pearl.dsl.scanner import STEP_HELP

        # One diagnostic for the text instead of one per line
        is_plan = any(line.role not in ("blank", "comment", "surplus") for line in lines)
        at = len(text.rstrip()) if is_plan else 0
        errors = [found for line in lines for found in line.found if found.fix is None]
        errors.append(Diagnostic("syntax", NO_STEP, Span(at, at), help=STEP_HELP))
    elif not errors and not any(line.role == "comment" for line in lines):
        node = _node(text, "file", Span(0, len(text)))
        errors = [node] if isinstance(node, Diagnostic) else []
    errors.sort(key=lambda diagnostic: diagnostic.span)
    parameters, sources = map(tuple, blocks.values())
    plan = (
        nodes.Plan(tuple(steps), tuple(actions), question, sources, parameters) if steps else None
    )
    calls = tuple(call for line in lines for call in line.calls)
    return Reading(text, plan, tuple(errors), (), text, frozenset(lost), tuple(actions), calls)
