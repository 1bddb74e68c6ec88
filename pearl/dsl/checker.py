"""Check a `Plan` against a library, which gives a `CheckedPlan`; report every problem at once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from pearl.dsl.fields import BAD_FIELDS, parse_fields
from pearl.dsl.literals import quote, short
from pearl.dsl.nodes import (
    Argument,
    Declared,
    ListLiteral,
    Number,
    Plan,
    Reference,
    Step,
    String,
    items_of,
    print_argument,
    print_plan,
)
from pearl.dsl.parser import Reading, parse, read
from pearl.dsl.signatures import (
    CTX,
    EACH,
    ROWS,
    Action,
    ActionLibrary,
    Parameter,
    ValueType,
    outputs_for,
)
from pearl.errors import (
    MAX_SUGGESTED_LENGTH,
    Diagnostic,
    Fix,
    PlanCheckError,
    PlanError,
    PlanSyntaxError,
    Span,
    apply_fixes,
    did_you_mean,
    suggest,
)
from pearl.errors.callers import ShownInNotebooks
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    from pearl.dsl.scanner import NamedCall

_ALIKE = {
    "A": "ΑА", "B": "ΒВꞴ", "C": "С", "E": "ΕЕ", "F": "ϜꞘ", "G": "Ԍ", "H": "ΗН", "J": "ͿЈꞲ",
    "K": "ΚК", "M": "ΜϺМ", "N": "Ν", "O": "ΟОՕ", "P": "ΡР", "R": "Ʀ", "S": "ЅՏ", "T": "ΤТ",
    "U": "Ս", "V": "Ѵ", "W": "Ԝ", "X": "ΧХꞳ", "Y": "ΥУҮ", "Z": "Ζ", "a": "ɑαа", "b": "ƄЬ",
    "c": "сᴄ", "d": "ԁ", "e": "еҽꬲ", "f": "քẝꞙꬵ", "g": "ƍɡցᶃ", "h": "һհ", "i": "ıɩɪιіӏꙇ",
    "j": "ϳј", "l": "IƖǀΙІӀ", "n": "ոռ", "o": "οσоօᴏᴑꬽ", "p": "ρр", "q": "ԛգզ", "r": "гᴦꭇꭈ",
    "s": "ƽѕꜱ", "u": "ʋυսᴜꞟꭎꭒ", "v": "νѵᴠ", "w": "ɯѡԝաᴡ", "x": "х", "y": "ɣʏγуүᶌỿꭚ", "z": "ᴢ",
    "2": "ƧꙄꝚ", "3": "ƷȜЗӠꝪꞫ", "5": "Ƽ", "6": "б", "8": "Ȣȣ", "9": "Ꝯ",
}  # fmt: skip
"""Letters that look like ASCII letters; from confusables.txt, Unicode 15.1, under the Unicode License."""

_PROTOTYPES = str.maketrans(
    {letter: shown for shown, letters in _ALIKE.items() for letter in letters}
    | {"I": "l", "1": "l", "0": "O"}
)


@lru_cache(maxsize=10_000)
def skeleton(name: str) -> str:
    """The skeleton of a name; names that look alike have equal skeletons."""
    return unicodedata.normalize("NFKD", name).translate(_PROTOTYPES)


COUNTS_BEST = "counts-best"  # The code of the note


def counts_of_best(plan: Plan, actions: Mapping[str, Action]) -> Iterator[Diagnostic]:
    """Notes on steps that count the best passages of a search, or the first rows, instead of all."""
    best: set[str] = set()
    first: set[str] = set()
    for step in plan.steps:
        action = actions.get(step.action)
        if action is None:
            continue
        read = {reference.name for reference in step.references()}
        is_of_best, is_of_first = not read.isdisjoint(best), not read.isdisjoint(first)
        if is_of_best and not action.traits.isdisjoint(("counts", "sums_up")):
            why = f"'{step.action}' is computed from the best passages of a search, not from all passages"
            advice = (
                'to count, begin with SPLIT(CTX, "document") or "paragraph", then WHERE or FILTER'
            )
            yield Diagnostic(COUNTS_BEST, why, step.action_span, "note", help=advice)
        if is_of_first and "counts" in action.traits:
            why = f"'{step.action}' counts only the first rows, not all rows"
            advice = "to count all rows, leave out LIMIT"
            yield Diagnostic(COUNTS_BEST, why, step.action_span, "note", help=advice)
        # Rows that the input of such an action lacks are missing in its output, too.
        gives_rows = action.reads_rows or (action.is_native and action.returns is ValueType.LIST)
        if action.searches or (is_of_best and gives_rows):
            best.add(step.output)
        if "first" in action.traits or (is_of_first and action.is_native and gives_rows):
            first.add(step.output)


def unread_outputs(plan: Plan, actions: Mapping[str, Action]) -> Iterator[Diagnostic]:
    """Notes on outputs that become parts of the answer because no step reads them; the last output and records need none."""
    read = plan.read_names
    for step in plan.steps[:-1]:
        if step.output not in read and not actions[step.action].extracts:
            yield Diagnostic(
                "joins-answer",
                f"no step reads '{step.output}': it becomes part of the answer",
                step.output_span,
                "note",
                help='to compose one answer, end the plan with ANSWER("the question", a, b); if it does not '
                "belong to the answer, pass it to a later step or remove the step",
            )


CODE = "reference-in-string"

_NAME = r"[^\W\d]\w{0,79}+"
_MARKED = lazy_pattern(
    # "{key}", "{{key}}", "${key}", "{ key }", "{key.name}", "{key:>3}"
    rf"\$?+(?P<braces>\{{++)\s{{0,8}}+(?P<braced>{_NAME})\s{{0,8}}+(?P<tail>[.:!|(\[][^{{}}]{{0,80}}+)?\}}++"
    # "$key", "<key>", "[key]", "`key`"
    rf"|\$(?P<dollar>{_NAME})|(?P<mark>[<\[`])(?P<marked>{_NAME})[>\]`]"
)
# "step 3", "Step #3", "step_3"; no "step 3 of the recipe"
_STEP = lazy_pattern(r"\bstep[ _]?#?(\d{1,2}+)\b(?! of\b)", re.I)
_PREVIOUS = "the previous step"


def string_references(
    step: Step,
    action: Action | None,
    fitting: Sequence[Sequence[str]],
    above: Sequence[str],
    question: str,
    n_given: int = 0,
) -> Iterator[Diagnostic]:
    """Diagnose the strings of a step; the last `n_given` of the names above are parameters."""
    if action and action.extracts:
        return  # its string names fields, in braces, too
    asked = "" if n_given else " ".join(question.split()).casefold()
    bare: set[str] = set()  # names of outputs that cannot be names of fields or labels
    if action and not (action.is_native or action.reads_rows or action.asks_table):
        bare = {name for name in above if "_" in name} - {each.name for each in step.references()}
    for index, (argument, names) in enumerate(zip(step.arguments, fitting, strict=False)):
        is_list = isinstance(argument, ListLiteral)
        # Other parameters take one text, a fixed choice, or as many entries as they are given.
        takes_list = bool(
            action and not action.is_native and action.accepts(len(step.arguments))
            and (parameter := action.parameter(index)).type is ValueType.TEXT
            and not parameter.reads and not parameter.choices
        )  # fmt: skip
        for item in items_of(argument):
            if not isinstance(item, String) or (n_given and item.value == question):
                continue  # the parameters of the question are filled in
            if (named := _reference(item.value, above, bare, asked, n_given)) is None:
                continue
            text, name = named
            takes = name in ((*above, CTX) if is_list else names)
            is_all = item.value.strip() == text and text.strip("${<[` >]}") == name
            fixed = name if is_all and takes else ""
            if not fixed and takes_list:
                beside = _beside(item.value, above, asked)
                fixed = beside if is_list or not beside else f"[{beside}]"
            if name:
                help = f'pass the output itself, beside the text: ["...", {name}]'
                if text[0] not in "{$<[`" and text != name:
                    help += '; a step of the document: "step 2 of the ..."'
            else:
                close = did_you_mean(text.strip("${ }"), above)
                help = f"did you mean {close}? " if close else ""
                help += 'pass an output beside the text: ["...", output]'
                help += "; braces of other words are doubled: {{" if "{" in text else ""
            yield Diagnostic(
                CODE,
                f"'{short(text)}' in a string is sent as plain text"
                + ("" if name else "; no earlier step has this output"),
                item.span,
                help=help,
                fix=Fix(item.span, fixed) if fixed else None,
            )


def _reference(
    value: str, above: Sequence[str], bare: Collection[str], asked: str, n_given: int = 0
) -> tuple[str, str] | None:
    """The reference in a string, and the name of its output; "" for an unknown output."""
    for match in _MARKED.finditer(value):
        name = match["braced"] or match["dollar"] or match["marked"]
        is_known = name in above or name == CTX
        is_placeholder = match["braces"] == "{" and not match["tail"]
        if (is_known or is_placeholder) and match[0].casefold() not in asked:
            return match[0], name if is_known else ""
    for word in re.findall(r"\w+", value) if bare else ():
        if word in bare and word.casefold() not in asked:
            return word, word
    above = above[: len(above) - n_given]
    for match in _STEP.finditer(value):
        number = int(match[1])
        if 0 < number <= len(above) and " ".join(match[0].split()).casefold() not in asked:
            return match[0], above[number - 1]
    if above and _PREVIOUS in value.casefold() and _PREVIOUS not in asked:
        return _PREVIOUS, above[-1]
    return None


def _beside(value: str, above: Sequence[str], asked: str) -> str:
    """The list items that replace a string: its text with plain names, then each output after its name; "" if it names none."""
    names: dict[str, None] = {}

    def plain(match: re.Match[str]) -> str:
        name = match["braced"] or match["dollar"] or match["marked"]
        if match["tail"] or name not in above or match[0].casefold() in asked:
            return match[0]
        names[name] = None
        before = value[: match.start()][-1:]
        return f" {name}" if before and (before.isalnum() or before in "_}>])`") else name

    text = _MARKED.sub(plain, value)
    if not names or _reference(text, above, (), asked):
        return ""
    outputs = (f'"{name}:", {name}' for name in names)
    return ", ".join([print_argument(String(text)), *outputs])


def argument_problems(
    step: Step, action: Action, assigned: Mapping[str, ValueType], given: Collection[str] = ()
) -> Iterator[Diagnostic]:
    """The errors in the arguments of a step; `given` are the names of parameters."""
    n = len(step.arguments)
    if not action.accepts(n):
        wanted = (
            f"at least {action.min_arity}" if action.is_variadic else str(len(action.parameters))
        )
        # A call with only a text lacks just the document.
        is_clear = (
            n + 1 == len(action.parameters) < 3 and not action.is_variadic
            and action.parameters[0].type is ValueType.CONTEXT and not any(step.references())
        )  # fmt: skip
        at = step.action_span.end + 1
        yield Diagnostic(
            "wrong-arity",
            f"'{action.name}' takes {wanted} argument{'' if wanted.endswith(' 1') or wanted == '1' else 's'}, {n} given",
            step.action_span,
            help=f"write {action.signature}",
            fix=Fix(Span(at, at), f"{CTX}, " if n else CTX) if is_clear else None,
        )
        return
    for index, argument in enumerate(step.arguments):
        parameter = action.parameter(index)
        is_given = isinstance(argument, Reference) and argument.name in given
        # the text of a plan's parameter is known only at the run
        is_open = parameter.reads in ("", "number", "value", "figure", "date")
        is_open &= not parameter.choices and parameter.type in (ValueType.TEXT, ValueType.NUMBER)
        if is_given and not is_open:
            why = f"'{action.name}' takes no parameter of the plan as {parameter.name}"
            advice = f"write {parameter.name} into the plan; a parameter stands for a text or a number, also in a list"
            yield Diagnostic("misplaced-parameter", why, argument.span, help=advice)
            continue
        yield from _literal(argument, parameter, action)
        given_type = _LITERALS.get(argument.__class__)
        if isinstance(argument, Reference):
            given_type = ValueType.CONTEXT if argument.is_context else assigned.get(argument.name)
        if given_type is not None and not _fits(argument, given_type, parameter):
            yield Diagnostic(
                "wrong-type",
                f"'{action.name}' takes {_WORDED[parameter.type]} as {parameter.name}, "
                f"not {_WORDED[given_type]} ({short(print_argument(argument))})",
                argument.span,
                help=_advice(given_type, parameter),
                fix=_meant(argument, parameter, assigned),
            )


def _meant(
    argument: Argument, parameter: Parameter, assigned: Mapping[str, ValueType]
) -> Fix | None:
    """A fix for the name of an output or document in quotes or alone in a list; None if it does not fit."""
    items = items_of(argument)
    named = items[0] if len(items) == 1 else None
    name = getattr(named, "value", getattr(named, "name", None))
    given = ValueType.CONTEXT if name == CTX else assigned.get(str(name))
    is_meant = given is not None and _fits(Reference(str(name)), given, parameter)
    return Fix(argument.span, str(name)) if is_meant else None


def fitting_names(
    step: Step, action: Action | None, assigned: Mapping[str, ValueType]
) -> list[list[str]]:
    """For every argument of a step, the names of outputs and documents that its parameter accepts."""
    if action is None or not action.accepts(len(step.arguments)):
        return [[] for _ in step.arguments]
    parameters = [action.parameter(index) for index in range(len(step.arguments))]
    return [
        [
            name
            for name, type_ in ((CTX, ValueType.CONTEXT), *assigned.items())
            if not parameter.choices
            and _fits(Reference(name, is_source=type_ is ValueType.CONTEXT), type_, parameter)
        ]
        for parameter in parameters
    ]


def _advice(given: ValueType, parameter: Parameter) -> str:
    if parameter.reads == "results":
        return "it takes results: pass outputs of earlier steps"
    if parameter.type is ValueType.CONTEXT:
        return "pass CTX or an earlier output"
    if given is ValueType.CONTEXT and parameter.reads == "rows":
        return 'make rows of it first: rows = SPLIT(CTX, "entry")'
    return f"pass an output of type {parameter.type}"


def _literal(argument: Argument, parameter: Parameter, action: Action) -> Iterator[Diagnostic]:
    """The errors in a literal of a parameter with fixed choices."""
    choices = parameter.choices
    if choices and isinstance(argument, String | Number) and str(argument.value) not in choices:
        yield Diagnostic(
            "unknown-unit" if parameter.name == "UNIT" else "unknown-operator",
            f"'{argument.value}' is not a valid {parameter.name} of '{action.name}'",
            argument.span,
            help=suggest(str(argument.value), choices, "choices"),
        )
    if parameter.reads == "labels" and isinstance(argument, ListLiteral):
        labels = [str(item.value) for item in argument.items if isinstance(item, String | Number)]
        keys = [" ".join(label.split()).casefold() for label in labels]
        if not argument.items or not all(keys):
            message = "a label is empty" if argument.items else "the list of labels is empty"
            advice = 'write two or more different labels: ["praise", "complaint"]'
            yield Diagnostic("bad-labels", message, argument.span, help=advice)
        elif twice := next((label for i, label in enumerate(labels) if keys[i] in keys[:i]), None):
            message = f"label '{twice}' is repeated; it is taken once"
            advice = "write each label once"
            yield Diagnostic("repeated-label", message, argument.span, "note", help=advice)
    if parameter.reads == "number" and isinstance(argument, Number):
        n, least = argument.value, parameter.least
        if n % 1 or (not n if least is None else n < least):
            what, advice = f"from {least}", f"write {least} or more"
            if least is None:
                what, advice = "other than 0", "write 1 for the first, -1 for the last"
            message = f"{parameter.name} has to be a whole number {what}, not {n:g}"
            yield Diagnostic("bad-number", message, argument.span, help=advice)
    if parameter.reads == "date" and not isinstance(argument, Reference):
        written = print_argument(argument)
        if isinstance(argument, ListLiteral) or not any(map(str.isdigit, written)):
            advice = 'write a date, "2021-03-12", or take the output of a step that finds it'
            yield Diagnostic("no-date", f"{short(written)} is no date", argument.span, help=advice)
    if parameter.reads in ("fields", "entry_fields"):
        yield from _fields_problems(argument, parameter, action)


def _fields_problems(
    argument: Argument, parameter: Parameter, action: Action
) -> Iterator[Diagnostic]:
    """The errors in the fields of an extraction, in their places in the plan."""
    if not isinstance(argument, String):
        message = f"'{action.name}' takes a string as {parameter.name}, not an output or a list"
        advice = 'write the fields into the plan: "patient: str, age: int?"'
        yield Diagnostic(BAD_FIELDS, message, argument.span, help=advice)
        return
    try:
        fields = parse_fields(argument.value)
    except PlanError as error:
        for diagnostic in error.diagnostics:
            fix = diagnostic.fix
            yield replace(
                diagnostic,
                span=_within(argument, diagnostic.span),
                fix=fix and Fix(_within(argument, fix.span), quote(fix.replacement)[1:-1]),
            )
        return
    inner = next((field for field in fields if field.is_list), None)
    if inner and parameter.reads == "entry_fields":
        message = f"'{action.name}' returns rows, and '{short(inner.name)}' is a list"
        advice = 'name the fields of one row: "name: str, dose: number"; lists are for EXTRACT'
        yield Diagnostic(BAD_FIELDS, message, argument.span, help=advice)


def _within(string: String, span: Span) -> Span:
    """The place of a part of a string's value in the plan; the whole string if its spelling is not canonical."""
    if len(quote(string.value)) != string.span.end - string.span.start:
        return string.span
    start, end = (len(quote(string.value[:at])) - 1 for at in (span.start, span.end))
    return Span(string.span.start + start, string.span.start + max(start + 1, end))


_LITERALS = {String: ValueType.TEXT, Number: ValueType.NUMBER, ListLiteral: ValueType.LIST}

_WORDED = {
    ValueType.CONTEXT: "the document", ValueType.TEXT: "a text", ValueType.NUMBER: "a number",
    ValueType.BOOL: "a truth value", ValueType.DATE: "a date", ValueType.LIST: "a list",
    ValueType.TABLE: "a table", ValueType.PASSAGES: "passages",
}  # fmt: skip
"""Types as a message names them."""


def _fits(argument: Argument, given: ValueType, parameter: Parameter) -> bool:
    """Whether a parameter accepts a value."""
    if parameter.reads == "results":
        return isinstance(argument, Reference) and not argument.is_context
    if isinstance(argument, Reference) and not argument.is_context:
        return given in outputs_for(parameter.type)
    return parameter.type in (given, ValueType.TEXT)


MAX_STEPS = 40
"""Plans longer than this are refused; the longest published one has 15 steps."""
MAX_EXTRACTIONS = 1_000
"""Maximum steps of a plan that only extracts: the fields of one schema, group by group."""

_MAX_MEND_ROUNDS = 10  # a fix may reveal the next error, but need not end

_OWN_NAME = "give each step an output name of its own"


class CheckedPlan(ShownInNotebooks, Struct, frozen=True, eq=False):
    """A plan that passed every check. Created by `check` and `compile_plan` only.

    Attributes:
        plan: The plan.
        actions: Every action it can call: the library's and the new ones that the plan declares.
        outputs: The outputs that form the answer: those that no step reads, in step order.
        notes: Diagnostics that are not errors.
        given: The values of its parameters, once they are set.
    """

    plan: Plan
    actions: ActionLibrary
    outputs: tuple[str, ...]
    notes: tuple[Diagnostic, ...] = ()
    given: Mapping[str, str] = {}

    @property
    def question(self) -> str:
        """The question, with the values of the parameters that it names in braces."""
        return filled(self.plan.question or "", self.given)

    def action(self, step: Step) -> Action:
        """The action that a step calls."""
        return self.actions[step.action]

    @property
    def n_model_steps(self) -> int:
        """Steps that a model carries out."""
        return sum(not self.action(step).is_native for step in self.plan.steps)

    def asking(self, question: str) -> CheckedPlan:
        """The same plan for another question."""
        return replace(self, plan=replace(self.plan, question=question))

    def __str__(self) -> str:
        return print_plan(self.plan)


def filled(text: str, given: Mapping[str, str]) -> str:
    """A text with values in place of names in braces."""
    names = "|".join(map(re.escape, given)) or "(?!)"
    return re.sub(rf"\{{({names})\}}", lambda match: given[match[1]], text)


def check(plan: Plan, library: ActionLibrary, *, max_steps: int = MAX_STEPS) -> CheckedPlan:
    """Check a plan against a library."""
    return _checked(plan, "", library, max_steps)


def _checked(plan: Plan, text: str, library: ActionLibrary, max_steps: int) -> CheckedPlan:
    found = sorted(_diagnose(plan, text, library, max_steps), key=lambda d: d.span)
    if any(diagnostic.severity == "error" for diagnostic in found):
        if not text:  # positions of diagnostics refer to a text
            text = print_plan(plan)
            found = sorted(_diagnose(parse(text), text, library, max_steps), key=lambda d: d.span)
        raise PlanCheckError(text, found)
    read = plan.read_names
    outputs = tuple(step.output for step in plan.steps if step.output not in read)
    return CheckedPlan(plan, callable_actions(plan, library), outputs, tuple(found))


def callable_actions(plan: Plan, library: ActionLibrary) -> ActionLibrary:
    """The actions of a plan: the library, its new actions, and the actions for each row."""
    known = library.extended(plan.new_actions)
    each = []
    for name in {step.action for step in plan.steps} - set(known):
        base = known.get(name.removeprefix(EACH)) if name.startswith(EACH) else None
        if base is not None and base.parameters and base.parameters[0].type is ValueType.CONTEXT:
            parameters = (Parameter.named(ROWS), *base.parameters[1:])
            own = replace(base, name=name, parameters=parameters, returns=ValueType.LIST)
            each.append(replace(own, traits=frozenset()))
    return known.extended(each) if each else known


def compile_plan(
    text: str,
    library: ActionLibrary,
    *,
    max_steps: int = MAX_STEPS,
    question: str | None = None,
    sources: Sequence[Declared] = (),
    parameters: Sequence[Declared] = (),
) -> CheckedPlan:
    """Parse and check a plan. It may read the given sources without declaring them; given parameters replace its own."""
    reading = _headed(read(text), question, sources, parameters)
    if reading.errors or reading.plan is None:
        raise PlanSyntaxError(reading.text, diagnose(reading, library, max_steps=max_steps))
    checked = _checked(reading.plan, reading.text, library, max_steps)
    if not sources:
        return checked
    plan = checked.plan
    taken = tuple(each for each in plan.sources if each.name in plan.read_names)
    notes = tuple(note for note in checked.notes if note.code != "unused-source")
    return replace(checked, plan=replace(plan, sources=taken), notes=notes)


def _headed(
    reading: Reading, question: str | None, sources: Iterable[Declared], parameters: Sequence[Declared]
) -> Reading:  # fmt: skip
    """Add the question, sources and parameters to the plan of a reading whose text lacks them."""
    if (plan := reading.plan) is None:
        return reading
    known = {each.name for each in plan.sources}
    own = (each for each in sources if each.name not in known)
    plan = replace(
        plan, question=plan.question or question, sources=(*plan.sources, *own),
        parameters=tuple(parameters) or plan.parameters,
    )  # fmt: skip
    return replace(reading, plan=plan)


def diagnose(
    reading: Reading, library: ActionLibrary, *, max_steps: int = MAX_STEPS
) -> list[Diagnostic]:
    """All syntax and semantic diagnostics of a text, sorted by position."""
    known = library.extended(reading.actions)
    calls = {call.error: call for call in reading.calls}
    found = [
        _in_order(each, calls[each.span], reading.text, known) if each.span in calls else each
        for each in reading.errors
    ]
    if reading.plan is not None:
        found += _diagnose(reading.plan, reading.text, library, max_steps, reading.lost)
        if not any(diagnostic.severity == "error" for diagnostic in found):
            found += unread_outputs(reading.plan, callable_actions(reading.plan, library))
    return sorted(found, key=lambda diagnostic: (diagnostic.span, diagnostic.code))


def _in_order(error: Diagnostic, call: NamedCall, text: str, known: ActionLibrary) -> Diagnostic:
    """The error of named arguments; if the order is clear, with a fix that writes the values in order."""
    action = known.get(call.action)
    if action is None:
        return error
    names = [parameter.name.casefold() for parameter in action.parameters]
    keys = [key.casefold() for key, _ in call.arguments]
    places = [names.index(key) if key in names else -1 for key in keys]
    n = keys.count("")
    places[:n] = range(n)
    left = {*range(len(names))}.difference(places)
    if len(left) == places.count(-1) == 1:  # any other name means the only parameter that is left
        places[places.index(-1)] = left.pop()
    is_clear = "" not in keys[n:] and sorted(places) == [*range(len(names))]
    spans = [span for _, (_, span) in sorted(zip(places, call.arguments, strict=True))]
    values = ", ".join(text[span.start : span.end] for span in spans)
    return replace(
        error,
        help=f"write the values alone, in the order of {action.signature}",
        fix=Fix(call.inside, values) if is_clear else None,
    )


def mend_plan(
    text: str, library: ActionLibrary, *, max_steps: int = MAX_STEPS, question: str | None = None,
    sources: Iterable[Declared] = (), parameters: Sequence[Declared] = (),
) -> tuple[str, list[Diagnostic]]:  # fmt: skip
    """Apply machine-applicable fixes until none is left; the other arguments are those of `compile_plan`."""
    applied: list[Diagnostic] = []
    for _ in range(_MAX_MEND_ROUNDS):
        reading = _headed(read(text), question, sources, parameters)
        text = reading.text
        fixable = [d for d in diagnose(reading, library, max_steps=max_steps) if d.fix]
        if not fixable:
            break
        applied += fixable
        text = apply_fixes(text, [d.fix for d in fixable if d.fix])
    return text, applied


def _diagnose(
    plan: Plan,
    text: str,
    library: ActionLibrary,
    max_steps: int,
    lost: frozenset[str] = frozenset(),
) -> Iterator[Diagnostic]:
    yield from _declarations(plan, library, lost)
    actions = callable_actions(plan, library)
    if all(step.action in actions and actions[step.action].extracts for step in plan.steps):
        max_steps = max(max_steps, MAX_EXTRACTIONS)
    yield from _confusables(plan, library, max_steps)
    yield from counts_of_best(plan, actions)
    for step in plan.steps[max_steps : max_steps + 1]:
        message = f"the plan has {len(plan.steps)} steps, {max_steps} are allowed"
        advice = "use fewer steps; --max-steps allows more"
        yield Diagnostic("too-many-steps", message, step.output_span, help=advice)
    yield from _declared_problems(plan)
    sources = {source.name for source in plan.sources}
    document = None if lost or sources else _document(plan, actions)
    numbered: dict[str, str | None] = {}
    given = {each.name: ValueType.TEXT for each in plan.parameters if each.name != CTX}
    assigned = dict.fromkeys(sources, ValueType.CONTEXT)
    later = {step.output for step in plan.steps}
    for step in plan.steps[:max_steps]:  # bounded: each name is compared with all others
        known = actions.get(step.action)
        if known is None and step.action not in lost:
            yield _unknown_action(step, actions)
        named = assigned | given
        fitting = fitting_names(step, known, named)
        taken = {reference.name for reference in step.references()}
        for argument, names in zip(step.arguments, fitting, strict=False):
            for item in items_of(argument):
                if (
                    isinstance(item, Reference) and not item.is_context
                    and item.name not in named and item.name not in lost
                ):  # fmt: skip
                    fits = names if isinstance(argument, Reference) else named
                    key = "" if lost else _bare(item.name)
                    meant = CTX if item.name == document else numbered.get(key)
                    yield _undefined(item, step, named, later, taken, [*fits], meant)
        if known is not None:
            yield from argument_problems(step, known, named, given)
            if known.composes and step is not plan.steps[-1]:
                why = f"'{step.action}' composes the answer, but a step follows it"
                advice = f"make '{step.output}' the last step, or use another action"
                yield Diagnostic("answer-not-last", why, step.action_span, help=advice)
        above = [name for name in assigned if name not in sources]
        question = plan.question or ""
        yield from string_references(step, known, fitting, [*above, *given], question, len(given))
        if step.output == CTX or step.output in sources or step.output in given:
            what = "a parameter" if step.output in given else "a source"
            what = "the document" if step.output == CTX else what
            message = f"{step.output} is {what} and cannot be assigned"
            yield Diagnostic("duplicate-name", message, step.output_span, help=_OWN_NAME)
        elif step.output in assigned:
            message = f"'{step.output}' is assigned twice"
            yield Diagnostic("duplicate-name", message, step.output_span, help=_OWN_NAME)
        assigned.setdefault(step.output, known.returns if known else ValueType.TEXT)
        begin = text.rfind("\n", 0, step.output_span.start) + 1
        number = text[begin : step.output_span.start].removesuffix(". ")
        if number.isdecimal():
            key = f"step{number}"
            numbered[key] = None if key in numbered else step.output


def _declared_problems(plan: Plan) -> Iterator[Diagnostic]:
    """The errors and notes of parameters and sources."""
    items = {item for step in plan.steps for each in step.arguments for item in items_of(each)}
    asked = plan.question if String(plan.question or "") in items else ""
    seen: set[str] = set()
    for each in (*plan.parameters, *plan.sources):
        is_given = each in plan.parameters
        what = "parameter" if is_given else "source"
        if each.name in seen or each.name == CTX:
            why = f"is the document and no {what}" if each.name == CTX else "is declared twice"
            advice = f"give each {what} a name of its own"
            yield Diagnostic("duplicate-name", f"{each.name} {why}", each.span, help=advice)
        elif each.name not in plan.read_names and not (
            is_given and f"{{{each.name}}}" in (asked or "")
        ):
            way = f'alone or beside a text: ["...", {each.name}]' if is_given else "in place of CTX"
            yield Diagnostic(
                "unused-parameter" if is_given else "unused-source", f"no step reads the {what} '{each.name}'", each.span, "note",
                help=f"pass it to a step {way}, or remove it",
            )  # fmt: skip
        seen.add(each.name)


def _declarations(plan: Plan, library: ActionLibrary, lost: frozenset[str]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    used = {step.action for step in plan.steps}
    for action in plan.new_actions:
        name = action.name
        if name in seen:
            message = f"action '{name}' is declared twice"
            yield Diagnostic("duplicate-name", message, action.span, help="remove one of the two")
        elif name in library:
            instead = library[name].signature
            advice = "the plan's own declaration is used"
            advice += "" if instead == action.signature else f", not {instead}"
            why = f"action '{name}' is in the library already"
            yield Diagnostic("shadowed-action", why, action.span, "note", help=advice)
        if twice := action.repeated_parameter:
            message = f"action '{name}' has two parameters '{twice}'"
            advice = "give each parameter a name of its own"
            yield Diagnostic("duplicate-name", message, action.span, help=advice)
        if name not in used and name not in seen and not lost:
            message, advice = f"action '{name}' is never called", "call it in a step, or remove it"
            yield Diagnostic("unused-action", message, action.span, "note", help=advice)
        seen.add(name)


def _confusables(plan: Plan, library: ActionLibrary, max_steps: int) -> Iterator[Diagnostic]:
    """Names that look like another name of the plan, of the library or CTX, each reported once."""
    known = {skeleton(name): name for name in (*library, CTX)}
    told: set[str] = set()
    places = [(each.name, each.span) for each in (*plan.parameters, *plan.sources)]
    places += ((each.name, each.span) for each in plan.new_actions)
    for step in plan.steps[:max_steps]:
        places += [(step.output, step.output_span), (step.action, step.action_span)]
        places += ((each.name, each.span) for each in step.references())
    for name, span in places:
        first = known.setdefault(skeleton(name), name)
        if name not in (first, CTX) and name not in library and name not in told:
            told.add(name)
            why = f"'{name}' looks like '{first}' but is a different name"
            pairs = zip(name, first, strict=False)
            other = next((a for a, b in pairs if a != b), name[len(first) :][:1] or name[-1])
            advice = f"it has {unicodedata.name(other, f'U+{ord(other):04X}')}"
            yield Diagnostic("confusable-name", why, span, "note", help=advice)


def _unknown_action(step: Step, actions: ActionLibrary) -> Diagnostic:
    message = f"action '{step.action}' is not in library '{actions.name}'"
    meant = _obvious(step.action, actions)
    close = meant or did_you_mean(step.action, actions, cutoff=0.8)
    fits = meant is not None and actions[meant].accepts(len(step.arguments))
    letters = (*"XYZ", *(f"X{i}" for i in range(4, len(step.arguments) + 1)))
    taken = [CTX] * (Reference(CTX) in step.arguments[:1])
    taken += letters[: len(step.arguments) - len(taken)]
    advice = (
        f"declare it under 'New actions:': - {step.action}({', '.join(taken)}) : what it returns"
    )
    if close:
        shown = close if fits else actions[close].signature
        advice = f"did you mean '{shown}'?" + ("" if fits else f" Else {advice}")
    return Diagnostic(
        "unknown-action",
        message,
        step.action_span,
        help=advice if close else f"use an action of the library, or {advice}",
        fix=Fix(step.action_span, str(meant)) if fits else None,
    )


def _obvious(name: str, known: Iterable[str]) -> str | None:
    """The only known name that differs just in case and underscores or, from five letters on, in one letter more or less."""
    if len(name) > MAX_SUGGESTED_LENGTH:
        return None
    bare = _bare(name)
    close = [k for k in known if _bare(k) == bare] or [
        k
        for k in known
        if len(k) > 4 and (_is_one_more(_bare(k), bare) or _is_one_more(bare, _bare(k)))
    ]
    return close[0] if len(close) == 1 else None


def _bare(name: str) -> str:
    return name.casefold().replace("_", "")


def _is_one_more(longer: str, shorter: str) -> bool:
    """Whether removing one letter (not a digit) from `longer` gives `shorter`."""
    return len(longer) == len(shorter) + 1 and any(
        longer[:i] + longer[i + 1 :] == shorter and not longer[i].isdigit()
        for i in range(len(longer))
    )


def _document(plan: Plan, actions: Mapping[str, Action]) -> str | None:
    """The name that a plan uses in place of CTX: its only undefined name for a document; None if not certain."""
    outputs = {step.output for step in plan.steps} | {each.name for each in plan.parameters}
    names = {
        argument.name
        for step in plan.steps
        for argument, parameter in zip(
            step.arguments, getattr(actions.get(step.action), "parameters", ()), strict=False
        )
        if parameter.type is ValueType.CONTEXT and isinstance(argument, Reference)
    } - outputs
    is_sure = len(names) == 1 and not any(_bare(name) == _bare(CTX) for name in plan.read_names)
    return next((name for name in names if is_sure and not _obvious(name, outputs)), None)


def _undefined(
    reference: Reference,
    step: Step,
    assigned: Mapping[str, ValueType],
    later: Collection[str],
    taken: Collection[str],
    fitting: Sequence[str],
    sure: str | None,
) -> Diagnostic:
    if reference.name == step.output:
        return Diagnostic(
            "self-reference", f"step '{step.output}' takes its own output", reference.span,
            help="pass CTX, or the output of an earlier step",
        )  # fmt: skip
    close = did_you_mean(reference.name, [*assigned, CTX])
    meant = sure or _obvious(reference.name, [*assigned, CTX])
    fits = ["CTX" if name == CTX else f"'{name}'" for name in (*fitting[:1], *fitting[1:][-2:])]
    if reference.name in later:
        advice = "a later step assigns it: move that step up"
    elif close:
        advice = f"did you mean '{close}'?"
    elif fits:
        advice = f"pass {' or '.join(fits)}, or write the text itself in quotes"
    else:
        advice = "assign it in an earlier step, or write the text itself in quotes"
    is_clear = reference.name not in later and meant not in taken
    return Diagnostic(
        "undefined-name",
        f"'{reference.name}' is not an output of an earlier step",
        reference.span,
        help=advice,
        fix=Fix(reference.span, meant) if meant and is_clear else None,
    )
