"""Reply of a weak planner → a plan: what no rule can make sense of is left out, what combines the steps is added.

The same rules that the grammar of `pearl.dsl.decoding.weak` enforces, for models that take none:
strings are about the question, no call is repeated, steps are few. A plan whose steps all remain
as they are is changed in its names and explanations alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from pearl.dsl.checker import check, mend_plan
from pearl.dsl.decoding.weak import n_texts
from pearl.dsl.nodes import Argument, ListLiteral, Number, Plan, Reference, Step, String
from pearl.dsl.parser import read
from pearl.dsl.printer import print_argument, print_plan
from pearl.dsl.signatures import CTX, Action, ActionLibrary
from pearl.embedded.questions import parts
from pearl.errors import Diagnostic, PlanError
from pearl.planner.spans import nearest_span

_COMPARING = frozenset({"COMPARE", "COMPARISON", "CONTRAST"})
_GATHERING = frozenset({"LIST"})
_VERBS = frozenset({"FIND", "GET", "LIST", "SUMMARIZE", "IDENTIFY", "X", "Y", "OF", "ALL"})
"""Words of names that do not say what is found."""

_COUNTED = re.compile(r"\b(?:how many|number of)\b", re.I)

_MAX_EXPLANATION = 100


def n_reading_steps(question: str, max_steps: int) -> int:
    """Steps that a weak planner may write: as many as the question has parts, two for a comparison.

    SmolLM2-135M writes all that it may: of 26 questions none got a step less.

    Example:
        >>> n_reading_steps("Who sold the mill?", 3), n_reading_steps("Who sold it, and when?", 3)
        (1, 2)
    """
    found = parts(question)
    return min(max_steps, len(found) + sum(part.form == "comparison" for part in found))


def finish_plan(
    reply: str, question: str, library: ActionLibrary, *, max_written: int, max_steps: int
) -> tuple[str, tuple[Diagnostic, ...]]:
    r"""The plan that a reply amounts to.

    Example:
        >>> from pearl.actions.library import load_library
        >>> reply = '1. a = FIND_REASON(CTX, "selling of the mill")\n2. b = IDENTIFY(CTX, "a dog")'
        >>> question = "Why did Ada sell the mill, and who bought it?"
        >>> text, _ = finish_plan(reply, question, load_library("seed"), max_written=3, max_steps=12)
        >>> print(text.partition("\n\n")[2])
        1. reason = FIND_REASON(CTX, "selling of the mill") : Find reason: selling of the mill
        2. identify = IDENTIFY(CTX, "Why did Ada sell the mill, and who bought it?") : Identify: the question
        3. ans = CONCAT(reason, identify) : Put the results together
    """
    text, fixed = mend_plan(reply, library, tolerant=True, max_steps=max_steps)
    plan = read(text).plan
    draft = _Draft(question, library)
    for step in plan.steps if plan is not None else ():
        if len(draft.steps) < min(max_written, max_steps):
            draft.add(step)
        else:
            draft.note("too-many-steps", f"'{step.output}' is left out: a step too many", step)
    if not draft.steps:
        return reply, ()
    if len(draft.steps) < max_steps:
        draft.combine()
    return print_plan(Plan(tuple(draft.steps))), (*fixed, *draft.notes)


@dataclass(slots=True)
class _Draft:
    """An unfinished plan."""

    question: str
    library: ActionLibrary
    steps: list[Step] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    notes: list[Diagnostic] = field(default_factory=list)
    _calls: dict[str, str] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        """Add a step of the reply, or leave it out."""
        action = self.library.get(step.action)
        if action is None or not action.accepts(len(step.arguments)):
            self.note("left-out", f"'{step.output}' is left out: no such call is known", step)
            return
        arguments = tuple(self._mended(argument, step) for argument in step.arguments)
        known = [argument for argument in arguments if argument is not None]
        if len(known) < len(arguments):
            self.note("left-out", f"'{step.output}' is left out: it uses what is not there", step)
            return
        call = f"{action.name}({', '.join(map(print_argument, known))})".casefold()
        if call in self._calls:
            self.note("repeated-call", f"'{step.output}' is left out: the call is there", step)
            self.outputs[step.output] = self._calls[call]
            return
        output = self._step(action, known)
        try:
            check(Plan(tuple(self.steps), question=self.question), self.library)
        except PlanError as error:
            del self.steps[-1]
            self.note("left-out", f"'{step.output}' is left out: {error.message}", step)
            return
        self._calls[call] = self.outputs[step.output] = output

    def combine(self) -> None:
        """Add the step that makes one answer of what no other step uses."""
        used = {each.name for step in self.steps for each in step.references()}
        loose = [Reference(s.output) for s in self.steps if s.output not in used]
        form = parts(self.question)[0].form
        comparing = self._named(_COMPARING, 2)
        if len(loose) == 2 and form == "comparison" and comparing is not None:
            self._step(comparing, [Reference(CTX), *loose], "comparison", "Compare the two")
        elif len(loose) > 1 and (concat := self.library.get("CONCAT")) is not None:
            self._step(concat, loose, "ans", "Put the results together")
        elif len(loose) == 1 and self._is_counted(form) and self._gathers(self.steps[-1]):
            count = self.library.get("COUNT")
            if count is not None and count.is_native:
                self._step(count, loose, "ans", "Count them")

    def note(self, code: str, message: str, step: Step) -> None:
        """Record what was mended."""
        self.notes.append(Diagnostic(code, message, step.action_span, "note"))

    def _mended(self, argument: Argument, step: Step) -> Argument | None:
        match argument:
            case Reference(name) if name == CTX:
                return argument
            case Reference(name):
                return Reference(self.outputs[name]) if name in self.outputs else None
            case String(value):
                span = nearest_span(value, self.question)
                if span != value:
                    message = f"{print_argument(argument)} is not of the question"
                    self.note("not-of-the-question", message, step)
                return String(span)
            case ListLiteral(items):
                inner = [self._mended(item, step) for item in items]
                if any(item is None for item in inner):
                    return None
                return ListLiteral(tuple(item for item in inner if item is not None))  # type: ignore[misc]
            case Number():
                return argument

    def _step(
        self, action: Action, arguments: Iterable[Argument], output: str = "", explanation: str = ""
    ) -> str:
        given = tuple(arguments)
        words = action.name.lower().split("_")
        telling = [word for word in words if word.upper() not in _VERBS] or words[:1]
        name = base = output or "_".join(telling)
        taken, n = {step.output for step in self.steps}, 2
        while name in taken:
            name, n = f"{base}_{n}", n + 1
        if not explanation:
            said = [self._told(one) for one in given if one != Reference(CTX)]
            verb = " ".join(word for word in words if len(word) > 1).capitalize()
            explanation = f"{verb}: {'; '.join(said)}" if said else verb
        self.steps.append(Step(name, action.name, given, explanation[:_MAX_EXPLANATION]))
        return name

    def _told(self, argument: Argument) -> str:
        if argument == String(self.question):
            return "the question"
        return argument.value if isinstance(argument, String) else print_argument(argument)

    def _is_counted(self, form: str) -> bool:
        """Whether the question asks for a number of things; how much of one is stated."""
        return form == "number" and bool(_COUNTED.search(self.question))

    def _named(self, words: frozenset[str], n: int) -> Action | None:
        """The action of the document and `n` texts whose name has one of these words."""
        return next(
            (a for a in self.library.values() if n_texts(a) == n and words & {*a.name.split("_")}),
            None,
        )

    @staticmethod
    def _gathers(step: Step) -> bool:
        return bool(_GATHERING & {*step.action.split("_")})
