"""Question + actions + examples → `CheckedPlan`, without the document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from itertools import count
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pearl.actions import native
from pearl.actions.operators import ANSWER
from pearl.documents.document import DocumentKind, Source
from pearl.documents.passages import terms
from pearl.documents.rows import shortened
from pearl.dsl.binding import values_left
from pearl.dsl.checker import COUNTS_BEST, MAX_STEPS, CheckedPlan, check, compile_plan, mend_plan
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.decoding.forms import plan_constraint
from pearl.dsl.decoding.grammar import MAX_WRITTEN_STEPS, header_grammar, indexed_grammar
from pearl.dsl.nodes import Argument, Declared, Reference, Step, String, print_header
from pearl.dsl.parser import read
from pearl.dsl.signatures import CTX
from pearl.dsl.tolerance import QUESTION, Line, rows
from pearl.errors import (
    Diagnostic,
    LibraryError,
    ModelError,
    PlanError,
    PlanningError,
    UsageError,
    render_diagnostics,
)
from pearl.errors.escaping import counted
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Completion, Message, Model, PlanTask, Request, Usage
from pearl.llm.fallback import ConstraintFallback, Level
from pearl.llm.messages import constrained
from pearl.llm.reply_limits import reply_limit
from pearl.planner.examples import wording
from pearl.planner.prompt import (
    MAX_ABOUT,
    Rejected,
    given_later,
    plan_messages,
    rejection_messages,
    repair_messages,
    steps_messages,
)
from pearl.planner.prompt_selection import Shown
from pearl.trace import Event, PlanAttempted, Trace, constraint_refused


def composing(plan: CheckedPlan, question: str, max_steps: int) -> CheckedPlan:
    """Add a last step that composes the answer, if the plan has several results or joins them."""
    steps = plan.plan.steps
    names: list[str] = list(plan.outputs)
    last = plan.action(steps[-1])
    inputs = [a.name for a in steps[-1].arguments if isinstance(a, Reference) and not a.is_context]
    others = [name for name in names if name != steps[-1].output]
    if last.composes and others:  # It composes, but not from all results
        names, steps = [*inputs, *others], steps[:-1]
    elif native.is_joining(last) and last.is_native and not others:
        is_all = len(inputs) == len(steps[-1].arguments)
        names, steps = (inputs, steps[:-1]) if is_all else (names, steps)
    action = plan.actions.get(ANSWER.name)
    if len(names) < 2 or len(steps) >= max_steps or action is None or not action.composes:
        return plan
    taken = {step.output for step in steps}
    names_of_answers = ("answer" if n == 1 else f"answer_{n}" for n in count(1))
    output = next(name for name in names_of_answers if name not in taken)
    arguments: list[Argument] = [String(question)]
    arguments += [Reference(name) for name in dict.fromkeys(names)]
    last_step = Step(output, ANSWER.name, tuple(arguments), "Answer the question")
    return check(replace(plan.plan, steps=(*steps, last_step)), plan.actions, max_steps=max_steps)


MAX_LINES = 400  # Maximum step lines in a reply, over all of its plans

# "Do not use this plan", but not "This plan is not only for letters".
_AGAINST = lazy_pattern(
    r"\b(?:do not|don['’]t|never|should not|must not|cannot|can['’]t) (?:use|follow|run|execute|apply) "
    r"(?:this|the|that|it|a)\b|\b(?:bad|wrong|invalid|unusable) (?:example|plan)\b"
    r"|\b(?:this|that|the|above) (?:plan )?is (?:wrong|bad|invalid|incorrect|unusable|not (?:valid|usable|correct))\b",
    re.I,
)
# "User: Why did she leave?"
_ASKED = lazy_pattern(r"^[\s*#>]*+(?:user|human)[\s*]*+:(.+)", re.I | re.M)
_OUTPUT = lazy_pattern(r"(\w{1,80})`?+\s*+=")  # The output of a step: "answer = "


def not_meant(reply: str, checked: CheckedPlan, question: str) -> tuple[Diagnostic, ...]:
    """An error for a valid plan if its reply withdraws it, contains another plan, or answers another question."""
    why = _why(reply.replace("\r\n", "\n").replace("\r", "\n"), checked, question)
    at = checked.plan.steps[0].output_span
    advice = "write the one plan for this question, and nothing else"
    return (Diagnostic("unclear-plan", why, at, help=advice),) if why else ()


def _why(reply: str, checked: CheckedPlan, question: str) -> str:
    heading = checked.plan.question or question
    wanted, planned = ({*terms(text, drop_stop_words=True)} for text in (question, heading))
    if 2 * len(wanted & planned) < min(len(wanted), len(planned)):
        return f"the plan is for another question: '{heading[:80]}'"
    marked = rows(reply)
    lines = [reply[row.span.start : row.span.end] for row in marked]
    if sum(row.is_step for row in marked) > MAX_LINES:
        return "the reply has several plans"
    plans = list(_plans(marked, lines))
    chosen = [plan for plan in plans if any(marked[i].role == "step" for i in plan)]
    if not chosen:
        return ""
    if len(chosen) > 1:
        return "the reply has several plans"
    (plan,) = chosen
    at = plans.index(plan)
    begin = plans[at - 1][-1] if at else 0
    end = plans[at + 1][0] if at + 1 < len(plans) else len(lines)
    above, below = (
        "\n".join(lines[i] for i in range(a, b) if marked[i].role == "surplus")
        for a, b in ((begin, plan[0]), (plan[-1] + 1, end))
    )
    asked = _ASKED.search(above)  # The question of a person invented by the model
    if asked and not wanted & {*terms(asked[1], drop_stop_words=True)}:
        return f"the plan is for another question: '{asked[1].strip()[:80]}'"
    if _AGAINST.search(above) or _AGAINST.search(below):
        return "the reply says not to use this plan"
    calls = {_call(lines[i]) for i in plan}
    for number, each in enumerate(plans):
        is_repeated = number == at or calls.issuperset(_call(lines[i]) for i in each)
        is_apart = number > at and _is_apart(marked, lines, plan[-1], each[0], question)
        if not (is_repeated or is_apart):
            return "the reply has several plans"
    return ""


def _plans(found: Sequence[Line], lines: Sequence[str]) -> Iterator[list[int]]:
    """Group step lines into plans: number 1 begins a plan, unless its steps use the outputs above."""
    plan: list[int] = []
    steps = [i for i, row in enumerate(found) if row.is_step]
    for k, i in enumerate(steps):
        is_first = found[i].number == 1 and plan
        if is_first and (found[plan[-1]].number != 1 or i > plan[-1] + 1):
            rest = next(
                (m for m, j in enumerate(steps[k + 1 :], k + 1) if found[j].number == 1), None
            )
            own = {_output(lines[j]) for j in steps[k:rest]}
            given = {_output(lines[j]) for j in plan} - own
            text = " ".join(lines[j] for j in steps[k:rest])
            if given.isdisjoint(re.findall(r"\w+", text)):
                yield plan
                plan = []
        plan.append(i)
    if plan:
        yield plan


def _call(line: str) -> str:
    """The letters and digits of a step, without its number and explanation."""
    match = _OUTPUT.search(line)
    return re.sub(r"[\W_]+", "", line[match.start() if match else 0 :].partition(")")[0])


def _output(line: str) -> str:
    match = _OUTPUT.search(line)
    return match[1] if match else ""


def _is_apart(
    found: Sequence[Line], lines: Sequence[str], end: int, begin: int, question: str
) -> bool:
    """Whether a later plan belongs to another question, or stands in an unclosed fence."""
    headings = [i for i in range(end + 1, begin) if found[i].form in ("question", "turn")]
    if headings:
        questions = [QUESTION.sub("", lines[i], count=1) for i in headings]
        return all(wording(each) != wording(question) for each in questions)
    fences = [i for i, row in enumerate(found) if row.form == "fence"]
    return len(fences) % 2 == 1 and end < fences[-1] < begin


MAX_REPAIRS = 4  # Default number of repair rounds


class Attempt(Struct, frozen=True):
    """One round of planning."""

    reply: str
    text: str
    diagnostics: tuple[Diagnostic, ...]


def unread(checked: CheckedPlan) -> tuple[Diagnostic, ...]:
    """Diagnostics of a valid plan that never reads the document."""
    references = [reference for step in checked.plan.steps for reference in step.references()]
    declines = any("declines" in checked.action(step).traits for step in checked.plan.steps)
    if declines or any(reference.is_context for reference in references):
        return ()
    at = checked.plan.steps[0].action_span
    advice = "pass CTX to the step that finds the input of the others"
    return (Diagnostic("unread-document", "no step reads the document", at, help=advice),)


def repeated(checked: CheckedPlan) -> tuple[Diagnostic, ...]:
    """An error if a valid plan makes a call twice, as models that cannot plan do."""
    first: dict[tuple[str, tuple[Argument, ...]], int] = {}
    for i, step in enumerate(checked.plan.steps, start=1):
        if (n := first.setdefault((step.action, step.arguments), i)) != i:
            advice = "write each step once; a later step may use its output again"
            why = f"step {i} is the same call as step {n}"
            return (Diagnostic("repeated-step", why, step.action_span, help=advice),)
    return ()


@dataclass
class RepairLoop:
    """Writes, repairs and checks the plan for a question, under the strictest constraint the model supports."""

    question: str
    shown: Shown
    model: Model
    _: KW_ONLY
    max_repairs: int = MAX_REPAIRS
    max_steps: int = MAX_STEPS
    max_output_tokens: int | None = None
    rejected: Sequence[Rejected] = ()
    day: str = ""
    kind: DocumentKind = "document"
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameter values by name; in the question, the names stand in braces."""
    sources: Sequence[Source] = ()
    fallback: ConstraintFallback | None = None
    trace: Trace | None = None
    n_later: Callable[[], int] = int  # Returns how many plans are expected after this one

    def __post_init__(self) -> None:
        self._fallback = self.fallback or ConstraintFallback(self.model.constrains)
        self._n_constrained = min(self.max_steps, MAX_WRITTEN_STEPS)
        self._n_calls = self._n_cached = 0
        self.library = self.shown.library
        self._declared = declared(self.parameters)
        self._known: dict[str, Any] = {
            "max_steps": self.max_steps, "question": self.question, "parameters": self._declared,
            "sources": [Declared(s.name, shortened(s.about, MAX_ABOUT)) for s in self.sources if s.name != CTX],
        }  # fmt: skip

    async def write(self) -> CheckedPlan:
        """Request a plan, then repairs until it has no flaws."""
        told = "\n\n".join(filter(None, (given_later(self._declared), self.day)))
        messages = first = (
            *plan_messages(self.question, self.shown, told, self.kind),
            *rejection_messages(self.rejected),
        )
        attempts: list[Attempt] = []
        doubted: CheckedPlan | None = None
        sent, n_calls, n_cached = {messages}, 0, 0
        for round in range(self.max_repairs + 1):
            task = PlanTask(
                self.question, self.library, round, len(self.rejected), bool(self._known["sources"])
            )
            self._n_calls = self._n_cached = 0
            try:
                completion, level = await self._fallback.ask(
                    partial(self._reply, messages, task),
                    lambda level, error: self._tell(constraint_refused(level, error)),
                )
            except ModelError as error:
                n_calls += self._n_calls + error.is_sent
                self._tell(PlanAttempted(
                    round=round, model=self.model.name, reply=error.reply,
                    diagnostics=(error.message,), constraint=self._fallback.level or "none",
                    usage=error.usage or Usage(), n_calls=self._n_calls + error.is_sent,
                    n_cached=self._n_cached, n_failed=int(error.is_sent),
                ))  # fmt: skip
                if error.kind != "repetition":
                    raise
                raise PlanningError(
                    f"no valid plan after {counted(n_calls, 'call')}; {error.message}",
                    attempts=attempts,
                    help=f"{error.help}; `pearl ask` answers without a plan",
                ) from error
            self._n_calls = max(1, self._n_calls)  # A truncated reply also counts
            n_calls += self._n_calls
            n_cached += self._n_cached
            reading = read(completion.text, tolerant=True)
            text, fixed = mend_plan(reading.text, self.library, **self._known)
            checked, problems = self._checked(text, completion.text)
            if checked is not None and not problems and round == 0 < self.max_repairs:
                # Reported once, because the question may ask for a count of the best passages.
                problems = tuple(note for note in checked.notes if note.code == COUNTS_BEST)
                doubted = checked if problems else None
            notes = (*reading.notes, *fixed)
            attempts.append(Attempt(completion.text, text, problems))
            self._tell(PlanAttempted(
                round=round, model=completion.model, reply=completion.text,
                notes=(
                    *(self.shown.notes if round == 0 else ()),
                    *(render_diagnostics([d], reading.original, "reply")
                      for d in notes if d.severity == "note"),
                    *(f"fixed: {d.message} [{d.code}]" for d in notes if d.severity != "note"),
                ),
                diagnostics=tuple(render_diagnostics([d], text, "plan") for d in problems),
                constraint=level or "none", usage=completion.usage,
                n_calls=self._n_calls, n_cached=self._n_cached,
            ))  # fmt: skip
            if checked is not None and not problems:
                return checked.asking(self.question)
            messages = repair_messages(first, text, problems)
            if messages in sent:  # The cache would return the same reply
                break
            sent.add(messages)
        if doubted is not None:
            return doubted.asking(self.question)
        last = next(d for d in attempts[-1].diagnostics if d.severity == "error")
        cached = f", {n_cached} of them cached" if n_cached else ""
        raise PlanningError(
            f"no valid plan after {counted(n_calls, 'call')}{cached}; last problem: {last.message} [{last.code}]",
            attempts=attempts,
            help=f"{'--fresh asks the model again; ' if n_cached else ''}--trace FILE keeps every attempt; "
            "`pearl ask` answers without a plan",
        )

    def _checked(self, text: str, reply: str) -> tuple[CheckedPlan | None, tuple[Diagnostic, ...]]:
        try:
            checked = compile_plan(text, self.library, **self._known)
        except PlanError as error:
            return None, error.diagnostics
        problems = [*values_left(checked, self.parameters), *unread(checked), *repeated(checked)]
        if self.sources and not any(each.name == CTX for each in self.sources):
            read_names = (each for step in checked.plan.steps for each in step.references())
            if ctx := next((each for each in read_names if each.name == CTX), None):
                why, names = "there is no CTX, only sources", [each.name for each in self.sources]
                advice = f"pass {' or '.join(names)}"
                problems.append(Diagnostic("undefined-name", why, ctx.span, help=advice))
        return checked, (*problems, *not_meant(reply, checked, self.question))

    def _tell(self, event: Event) -> None:
        if self.trace is not None:
            self.trace.append(event)

    async def _reply(
        self, messages: tuple[Message, ...], task: PlanTask, level: Level
    ) -> Completion:
        """The reply at a constraint level."""
        try:
            if level == "grammar":
                return await self._in_two_phases(messages, task, level)
        except LibraryError as error:  # For example, if every action needs the output of another
            raise ModelError(error.message, kind="unconstrained", is_sent=False) from error
        constraint: Constraint | None = None
        if level == "json":
            constraint = plan_constraint(
                self.library, max_steps=self._n_constrained, max_text=self._fallback.max_text
            )
        return await self._ask(messages, task, constraint, level)

    async def _in_two_phases(
        self, messages: tuple[Message, ...], task: PlanTask, level: Level
    ) -> Completion:
        """Request the new actions first, because the grammar of the steps needs the names of all actions."""
        max_text = self._fallback.max_text
        constraint = Constraint("new-actions", header_grammar(self.library, max_text=max_text))
        first = await self._ask(messages, task, constraint, level)
        declared = {action.name: action for action in read(first.text, tolerant=True).actions}
        header = print_header(declared.values())
        known = self.library.extended(declared.values())
        grammar = indexed_grammar(
            known, max_steps=self._n_constrained, max_text=max_text, parameters=[*self.parameters],
            contexts=[each.name for each in self.sources] or [CTX],
        )  # fmt: skip
        constraint = Constraint("steps", grammar)
        second = await self._ask(steps_messages(messages, header), task, constraint, level)
        return replace(second, text=f"{header}\n\n{second.text}", usage=first.usage + second.usage)

    async def _ask(
        self, messages: tuple[Message, ...], task: PlanTask, constraint: Constraint | None, level: Level
    ) -> Completion:  # fmt: skip
        limit = reply_limit(
            task, self.model.window, self.max_output_tokens, max_steps=self.max_steps
        )
        request = Request(messages, task, limit, n_later=self.n_later)
        completion = await self.model.complete(constrained(request, constraint, level))
        self._n_calls += 1
        self._n_cached += completion.is_remembered
        return completion


def declared(names: Iterable[str]) -> tuple[Declared, ...]:
    """The parameters in the form in which a plan declares them."""
    return tuple(Declared(name, f"the {name.replace('_', ' ')} of the question") for name in names)


def one_line(question: str) -> str:
    """Normalise a question to one line, as in plan files."""
    if not isinstance(question, str):
        raise UsageError(
            f"a question must be a str, not a {type(question).__name__}",
            help='pass the question first: pearl.ask("Who ...?", document)',
        )
    line = " ".join(question.split())
    if not line:
        raise UsageError("the question is empty", help='ask something: pearl ask "Who ...?" FILE')
    try:
        line.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the question is not valid text: half a character at position {error.start + 1}",
            help="retype it; a lone surrogate cannot be encoded as UTF-8",
        ) from None
    return line
