"""Question + library + examples → `CheckedPlan`, without the document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pearl.documents.document import DocumentKind
from pearl.documents.passages import terms
from pearl.dsl.checker import COUNTS_BEST, MAX_STEPS, CheckedPlan, check, compile_plan, mend_plan
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.decoding.forms import (
    header_constraint,
    line_constraint,
    plan_constraint,
    steps_constraint,
)
from pearl.dsl.decoding.grammar import MAX_WRITTEN_STEPS
from pearl.dsl.decoding.weak import n_texts, weak_plan_constraint
from pearl.dsl.nodes import (
    Argument,
    ListLiteral,
    Number,
    Plan,
    Reference,
    Step,
    String,
    print_argument,
    print_header,
    print_plan,
)
from pearl.dsl.parser import read
from pearl.dsl.signatures import CTX, Action, ActionLibrary
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
from pearl.llm.fallback import ConstraintFallback, ConstraintLevel
from pearl.llm.messages import constrained
from pearl.planner.examples import Example, wording
from pearl.planner.material import FULL, PlannerProfile, nearest_span, question_words
from pearl.planner.prompt import (
    Rejected,
    plan_messages,
    rejection_messages,
    repair_messages,
    short_plan_messages,
    steps_messages,
)
from pearl.trace import ConstraintRefused, PlanAttempted, Trace

_COMPARING = frozenset({"COMPARE", "COMPARISON", "CONTRAST"})
_GATHERING = frozenset({"LIST"})
_VERBS = frozenset({"FIND", "GET", "LIST", "SUMMARIZE", "IDENTIFY", "X", "Y", "OF", "ALL"})
"""Words of action names that do not describe the result."""

_COUNTED = lazy_pattern(r"\b(?:how many|number of)\b", re.I)

_MAX_EXPLANATION = 100


def n_reading_steps(question: str, max_steps: int) -> int:
    """Maximum steps of a small model's plan: one per part of the question, two for a comparison."""
    from pearl.embedded.questions import parts  # late: larger models need none of it

    found = parts(question)
    return min(max_steps, len(found) + sum(part.form == "comparison" for part in found))


def finish_plan(
    reply: str, question: str, library: ActionLibrary, *, max_written: int, max_steps: int
) -> tuple[str, tuple[Diagnostic, ...]]:
    r"""The plan in the reply of a small model, completed by rule.

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
        """Add the step that combines the outputs that no step uses."""
        from pearl.embedded.questions import parts

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
        """Record a fix."""
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


CODE = "unclear-plan"

MAX_LINES = 400
"""Lines of steps in a reply, all its plans together."""

_FINAL = lazy_pattern(
    r"\b(?:final\w*|correct\w*|revis\w*|improv\w*|better|fix\w*|updat\w*|instead|actually|wait|oops|mistake"
    r"|rewrit\w*|again|complete|whole|so the|therefore|(?:the|my) plan(?: is)?)\b",
    re.I,
)
_DRAFT = lazy_pattern(r"\b(?:drafts?|attempt|first try|sketch|rough|example|think\w*)\b", re.I)
_AGAINST = lazy_pattern(
    r"\b(?:do not|don['’]t|never|should not|must not|cannot|can['’]t) (?:use|follow|run|execute|apply) "
    r"(?:this|the|that|it|a)\b|\b(?:bad|wrong|invalid|unusable) (?:example|plan)\b"
    r"|\b(?:this|that|the|above) (?:plan )?is (?:wrong|bad|invalid|incorrect|unusable|not (?:valid|usable|correct))\b",
    re.I,
)
_OUTPUT = lazy_pattern(r"(\w{1,80})`?+\s*+(?:=|:=)")


def not_meant(reply: str, checked: CheckedPlan, question: str) -> tuple[Diagnostic, ...]:
    """An error for a valid plan that its reply withdraws, or gives beside another plan."""
    why = _why(reply.replace("\r\n", "\n").replace("\r", "\n"), checked, question)
    if not why:
        return ()
    at = checked.plan.steps[0].output_span
    return (
        Diagnostic(CODE, why, at, help="write the one plan for this question, and nothing else"),
    )


def _why(reply: str, checked: CheckedPlan, question: str) -> str:
    other = checked.plan.question or question
    asked, answered = ({*terms(text, drop_stop_words=True)} for text in (question, other))
    if 2 * len(asked & answered) < min(len(asked), len(answered)):
        return f"the plan is for another question: '{other[:80]}'"
    found = rows(reply)
    lines = [reply[row.span.start : row.span.end] for row in found]
    if sum(row.is_step for row in found) > MAX_LINES:
        return "there are several plans in the reply"
    plans = list(_plans(found, lines))
    chosen = [plan for plan in plans if any(found[i].role == "step" for i in plan)]
    if not chosen:
        return ""
    if len(chosen) > 1:
        return "there are several plans in the reply"
    (plan,) = chosen
    at = plans.index(plan)
    begin = plans[at - 1][-1] if at else 0
    end = plans[at + 1][0] if at + 1 < len(plans) else len(lines)
    above, below = (
        "\n".join(line for i, line in enumerate(lines[a:b], a) if found[i].role == "surplus")
        for a, b in ((begin, plan[0]), (plan[-1] + 1, end))
    )
    *_, said = _FINAL.split(above)
    if _AGAINST.search(said) or _AGAINST.search(below):
        return "the reply says that this plan is not to be used"
    calls = {_call(lines[i]) for i in plan}
    for number, each in enumerate(plans):
        if number == at or calls.issuperset(_call(lines[i]) for i in each):  # told again
            continue
        if number > at:
            competes = not _is_apart(found, lines, plan[-1], each[0], question)
        else:
            before = "\n".join(lines[max(0, each[0] - 6) : each[0]])
            between = "\n".join(lines[each[-1] + 1 : plan[0]])
            competes = not (_DRAFT.search(before) or _FINAL.search(between))
        if competes:
            return "there are several plans in the reply"
    return ""


def _plans(found: Sequence[Line], lines: Sequence[str]) -> Iterator[list[int]]:
    """The lines of steps, plan by plan: a number 1 begins one, unless its steps go on from those above."""
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
    """Letters and digits of a step, without its number and its explanation."""
    match = _OUTPUT.search(line)
    return re.sub(r"[\W_]+", "", line[match.start() if match else 0 :].partition(")")[0])


def _output(line: str) -> str:
    match = _OUTPUT.search(line)
    return match[1] if match else ""


def _is_apart(
    found: Sequence[Line], lines: Sequence[str], end: int, begin: int, question: str
) -> bool:
    """Whether a later plan belongs to another question or to an unclosed fence."""
    headings = [i for i in range(end + 1, begin) if found[i].form in ("question", "turn")]
    if headings:
        asked = [QUESTION.sub("", lines[i], count=1) for i in headings]
        return all(wording(each) != wording(question) for each in asked)
    fences = [i for i, row in enumerate(found) if row.form == "fence"]
    return len(fences) % 2 == 1 and end < fences[-1] < begin


MAX_REPAIRS = 4
"""Default number of repair rounds."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One round of planning."""

    reply: str
    text: str
    notes: tuple[Diagnostic, ...]
    diagnostics: tuple[Diagnostic, ...]
    usage: Usage


async def write_plan(
    question: str,
    library: ActionLibrary,
    model: Model,
    *,
    examples: Sequence[Example] = (),
    max_repairs: int = MAX_REPAIRS,
    max_steps: int = MAX_STEPS,
    max_output_tokens: int | None = None,
    rejected: Sequence[Rejected] = (),
    card: str = "",
    advice: str = "",
    kind: DocumentKind = "document",
    fallback: ConstraintFallback | None = None,
    profile: PlannerProfile = FULL,
    trace: Trace | None = None,
) -> CheckedPlan:
    """Write, repair and check a plan."""
    question = one_line(question)
    messages = first = (
        *first_messages(question, library, examples, card, advice, kind, profile),
        *rejection_messages(rejected),
    )
    attempts: list[Attempt] = []
    doubted: CheckedPlan | None = None
    fallback = fallback or ConstraintFallback(model.constrains)
    n_written = max_steps
    if profile.max_steps is not None:
        n_written = min(n_reading_steps(question, profile.max_steps), max_steps)
    writer = _Writer(
        library, model, fallback, profile, max_steps, n_written, max_output_tokens, trace
    )
    sent, n_cached = {messages}, 0
    for round in range(max_repairs + 1):
        task = PlanTask(question, library, round, len(rejected), kind)
        try:
            completion, level = await writer.write(messages, task)
        except ModelError as error:
            if error.kind != "repetition":
                raise
            if trace is not None:
                trace.append(
                    PlanAttempted(
                        round=round, model=model.name, reply=error.reply,
                        diagnostics=(error.message,), constraint=fallback.level.name,
                        usage=error.usage or Usage(), shape=card, profile=profile.name,
                    )
                )  # fmt: skip
            raise PlanningError(
                f"no valid plan after {counted(len(attempts) + 1, 'attempt')}; {error.message}",
                attempts=attempts,
                help=f"{error.help}; --fallback direct answers without a plan",
            ) from error
        n_cached += writer.n_cached > 0
        reading = read(completion.text, tolerant=True)
        fixed: Sequence[Diagnostic]
        if profile.is_explained:
            text, fixed = mend_plan(reading.text, library, max_steps=max_steps)
        else:
            text, fixed = finish_plan(
                reading.text, question, library, max_written=n_written, max_steps=max_steps
            )
        checked: CheckedPlan | None = None
        problems: tuple[Diagnostic, ...] = ()
        try:
            checked = compile_plan(text, library, max_steps=max_steps, question=question)
            problems = unread(checked) + not_meant(completion.text, checked, question)
            if not problems and round == 0 < max_repairs:
                # Reported once only: counting the best passages may be what the question asks for.
                problems = tuple(note for note in checked.notes if note.code == COUNTS_BEST)
                doubted = checked if problems else None
        except PlanError as error:
            problems = error.diagnostics
        notes = (*reading.notes, *fixed)
        attempts.append(Attempt(completion.text, text, notes, problems, completion.usage))
        if trace is not None:
            trace.append(
                PlanAttempted(
                    round=round, model=completion.model, reply=completion.text,
                    notes=(
                        *(render_diagnostics([d], reading.original, "reply")
                          for d in notes if d.severity == "note"),
                        *(f"fixed: {d.message} [{d.code}]" for d in notes if d.severity != "note"),
                    ),
                    diagnostics=tuple(render_diagnostics([d], text, "plan") for d in problems),
                    constraint=level.name, usage=completion.usage, shape=card,
                    profile=profile.name,
                    n_calls=max(1, writer.n_calls),  # a truncated reply may count, too
                    n_cached=writer.n_cached,
                )
            )  # fmt: skip
        if checked is not None and not problems:
            return checked.asking(question)
        messages = repair_messages(first, text, problems)
        if messages in sent:  # the reply would be the cached one
            break
        sent.add(messages)
    if doubted is not None:
        return doubted.asking(question)
    last = next(d for d in attempts[-1].diagnostics if d.severity == "error")
    cached = f", {n_cached} of them cached" if n_cached else ""
    raise PlanningError(
        f"no valid plan after {counted(len(attempts), 'attempt')}{cached}; last problem: {last.message} [{last.code}]",
        attempts=attempts,
        help="--trace FILE keeps every attempt; --fallback direct answers without a plan",
    )


def first_messages(
    question: str,
    library: ActionLibrary,
    examples: Sequence[Example],
    card: str,
    advice: str,
    kind: DocumentKind,
    profile: PlannerProfile,
) -> tuple[Message, ...]:
    """The prompt of a profile; arguments as of `plan_messages`."""
    if profile.is_explained:
        return plan_messages(question, library, examples, card, advice, kind)
    assert profile.max_steps is not None
    n_steps = n_reading_steps(question, profile.max_steps)
    return short_plan_messages(question, library, examples, n_steps, card)


def unread(checked: CheckedPlan) -> tuple[Diagnostic, ...]:
    """Diagnostics of a valid plan that never reads the document."""
    references = [reference for step in checked.plan.steps for reference in step.references()]
    if any(reference.is_context for reference in references):
        return ()
    return (
        Diagnostic(
            "unread-document",
            "no step reads the document",
            checked.plan.steps[0].action_span,
            help="pass CTX to the step that finds the input of the others",
        ),
    )


class _Writer:
    """Requests a plan under the strongest constraint that the model supports."""

    def __init__(
        self,
        library: ActionLibrary,
        model: Model,
        fallback: ConstraintFallback,
        profile: PlannerProfile,
        max_steps: int,
        n_written: int,
        max_output_tokens: int | None,
        trace: Trace | None,
    ) -> None:
        self._library = library
        self._model = model
        self._fallback = fallback
        self._profile = profile
        self._max_steps = max_steps
        self._n_written = min(n_written, MAX_WRITTEN_STEPS)
        self._max_output_tokens = max_output_tokens
        self._trace = trace
        self.n_calls = 0
        self.n_cached = 0

    async def write(
        self, messages: tuple[Message, ...], task: PlanTask
    ) -> tuple[Completion, ConstraintLevel]:
        """Return the reply and the constraint level it was written under."""
        self.n_calls = self.n_cached = 0
        return await self._fallback.ask(
            lambda level: self._on(level, messages, task), self._refused, self._flaw
        )

    def _flaw(self, text: str) -> str | None:
        """Why a reply does not keep to its constraint; steps of a short one need no explanation."""
        errors = read(text, tolerant=not self._profile.is_explained).errors
        return next((broken.message for broken in errors), None)

    async def _on(
        self, level: ConstraintLevel, messages: tuple[Message, ...], task: PlanTask
    ) -> Completion:
        if not self._profile.is_explained:
            return await self._in_short(level, messages, task)
        if level.name in ("library", "json"):
            return await self._in_two_phases(level, messages, task)
        constraint: Constraint | None = None
        if level.by is not None:
            kind = line_constraint if level.name == "lines" else plan_constraint
            constraint = kind(
                self._library, max_steps=self._n_written, max_text=self._fallback.max_text
            )
        return await self._ask(level, messages, task, constraint)

    async def _in_short(
        self, level: ConstraintLevel, messages: tuple[Message, ...], task: PlanTask
    ) -> Completion:
        """Request steps alone; an endless reply counts as far as it goes, for it may begin with them."""
        if level.by == "line":  # one grammar does
            level = level._replace(by="grammar")
        words = question_words(task.question)
        try:
            constraint = weak_plan_constraint(
                words, task.question, self._library, max_steps=self._n_written
            )
        except LibraryError as error:
            raise ModelError(error.message, kind="unconstrained") from error
        try:
            return await self._ask(level, messages, task, constraint)
        except ModelError as error:
            if error.kind not in ("repetition", "truncated") or not error.reply:
                raise
            return Completion(error.reply, self._model.name, error.usage or Usage())

    async def _in_two_phases(
        self, level: ConstraintLevel, messages: tuple[Message, ...], task: PlanTask
    ) -> Completion:
        """Request the new actions first: the grammar of the steps needs all action names."""
        max_text = self._fallback.max_text
        first = await self._ask(
            level, messages, task, header_constraint(self._library, max_text=max_text)
        )
        declared = {action.name: action for action in read(first.text, tolerant=True).actions}
        header = print_header(declared.values())
        known = self._library.extended(declared.values())
        try:
            constraint = steps_constraint(known, max_steps=self._n_written, max_text=max_text)
        except LibraryError as error:  # every action needs an output of another one
            raise ModelError(error.message, kind="unconstrained") from error
        second = await self._ask(level, steps_messages(messages, header), task, constraint)
        return replace(second, text=f"{header}\n\n{second.text}", usage=first.usage + second.usage)

    async def _ask(
        self,
        level: ConstraintLevel,
        messages: tuple[Message, ...],
        task: PlanTask,
        constraint: Constraint | None,
    ) -> Completion:
        most = self._profile.reply_tokens(
            task, self._model.window, self._max_output_tokens, self._max_steps
        )
        request = Request(messages, task, most)
        completion = await self._model.complete(constrained(request, constraint, level.by))
        self.n_calls += 1
        self.n_cached += completion.is_remembered
        return completion

    def _refused(self, level: ConstraintLevel, error: ModelError) -> None:
        if self._trace is not None:
            self._trace.append(ConstraintRefused(constraint=level.name, reason=error.message))


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
