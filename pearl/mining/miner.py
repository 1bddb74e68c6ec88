"""Draft actions from training questions, one prompt each, without the document; unparsable drafts are kept."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct, convert
from msgspec.structs import replace

from pearl.actions.library import load_library, read_actions
from pearl.actions.operators import with_operators
from pearl.documents.digest import text_sha256
from pearl.dsl.checker import callable_actions, diagnose
from pearl.dsl.decoding.forms import plan_constraint
from pearl.dsl.nodes import print_action
from pearl.dsl.parser import NO_STEP, read
from pearl.dsl.signatures import EACH, Action, ActionLibrary
from pearl.dsl.tolerance import rows
from pearl.errors import Diagnostic, ModelError, render_diagnostics
from pearl.interpreter.cost_ranges import Range, StepCosts
from pearl.llm import Completion, Message, MineTask, Model, Request, Usage, messages_digest
from pearl.llm.fallback import ConstraintFallback, Level, Mode
from pearl.llm.messages import MINE_ASKED, constrained
from pearl.llm.reply_limits import reply_limit
from pearl.pipeline import Pearl
from pearl.planner.examples import Example, load_examples
from pearl.planner.prompt import material
from pearl.planner.prompt_selection import Shown
from pearl.plugins.version import __version__
from pearl.runs.executors import RecordUnit, Resources
from pearl.trace import Trace

GENERAL = "seed"
"""The general library of actions; a domain may not need all of them."""

MinedStatus = Literal["mined", "unreadable", "failed"]


class MinedHeader(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The header: data and settings of the mining run."""

    kind: Literal["pearl-mined"] = "pearl-mined"
    v: Literal[1] = 1
    pearl_version: str
    domain: str
    data: str
    model: str
    library: str  # Name of the library whose actions the prompt showed
    seed_actions: tuple[str, ...]
    """The actions of `library`, in the format of an action file: `NAME(CTX, X) : definition`."""
    prompt_sha256: str  # Digest of the prompt without the question


class MinedRow(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One question and the actions that were proposed for it."""

    id: str
    index: int  # Place of the question in the data, from 0
    question: str
    status: MinedStatus
    """`mined`: every action of the reply was parsed, possibly none; `unreadable`: some were not;
    `failed`: no reply."""
    model: str
    prompt_sha256: str
    reply: str = ""
    actions: tuple[str, ...] = ()  # The parsed actions, each `NAME(CTX, X) : definition`
    calls: tuple[str, ...] = ()  # Names of the actions that the sketched plan calls, each once
    undeclared: tuple[str, ...] = ()  # Those of them that neither the prompt nor the reply defines
    diagnostics: tuple[str, ...] = ()  # The diagnostics, rendered
    constraint: str = "none"  # The constraint level of the reply
    error: str | None = None
    usage: Usage = Usage()
    duration_s: float = 0.0


_MINER = """\
You collect the actions that plans are made of. A plan answers a question about a long document, \
which in a plan is called CTX; each of its steps calls one action, and each action is carried out \
by a reader who sees the document and the arguments, nothing else. You see the question, not the \
document. You sketch a plan for the question and declare every action it needs that is not there yet."""

_RULES = """\
How to write it:
- Begin with a line "New actions:" and below it one line "- NAME(CTX, X) : definition" for every \
action that the sketch needs and the list lacks, or "- None" if it lacks nothing.
- An action is worth adding only if many other questions would use it: name what it does \
(FIND_MOTIVE, not FIND_MOTIVE_OF_THE_CAPTAIN), and make a parameter of whatever belongs to this one \
question. No negated twin of an action that is there.
- The definition is one instruction that reads well with an argument in place of every parameter, which it names: Find the reasons for X in CTX.
- Then a blank line, then the steps, numbered from 1: 1. output = ACTION(arguments) : what the step is for
- An argument is CTX, the output of an earlier step, a string in straight double quotes, a number, \
or a list of those in square brackets. A call never stands inside a call.
- Reply with the new actions and the steps alone."""


def mine_messages(
    question: str, library: ActionLibrary, examples: Sequence[Example] = ()
) -> tuple[Message, ...]:
    """Request new actions; everything before the question is a common prefix."""
    parts = [
        *material("Actions that are there", Shown(library, tuple(examples)), _RULES),
        f"{MINE_ASKED}\n\nQuestion: {question}",
    ]
    return Message("system", _MINER), Message("user", "\n\n".join(parts))


_NOTHING = ("heading", "none", "blank", "fence")  # Lines that say no action is needed


class Question(Struct, frozen=True):
    """A training question: its id, its index in the data from 0, and its text on one line."""

    id: str
    index: int
    text: str


class Miner:
    """Asks a model for new actions."""

    def __init__(
        self,
        model: Model,
        library: ActionLibrary,
        examples: Sequence[Example] = (),
        full_library: ActionLibrary | None = None,
        constrain: Mode = "auto",
        *,
        max_output_tokens: int | None = None,
    ) -> None:
        self._model = model
        self._max_output_tokens = max_output_tokens
        self._fallback = ConstraintFallback(model.constrains, constrain)
        self._library = library
        full, self._examples = full_library or library, list[Example]()
        for example in examples:  # with declarations of the actions that the seed library lacks
            plan = example.plan
            known = {*library, *(action.name for action in plan.new_actions)}
            called = dict.fromkeys(step.action for step in plan.steps)
            new = [full[name] for name in called if name not in known and name in full]
            plan = replace(plan, new_actions=(*plan.new_actions, *new))
            self._examples.append(replace(example, plan=plan))
        self._declared = {a.name: a for each in self._examples for a in each.plan.new_actions}
        # The prompt up to the question is built once.
        self._head, last = mine_messages("", library, self._examples)
        self._body = last.content

    @property
    def prompt(self) -> str:
        """The prompt without the question."""
        return f"{self._head.content}\n\n{self._body}"

    @property
    def prompt_sha256(self) -> str:
        """Digest of the prompt without the question, in hexadecimal."""
        return messages_digest((self._head, Message("user", self._body)))

    def header(self, *, domain: str, data: str) -> MinedHeader:
        """The header of a file of rows."""
        return MinedHeader(
            pearl_version=__version__, domain=domain, data=data, model=self._model.name,
            library=self._library.name,
            seed_actions=tuple(map(print_action, self._library.values())),
            prompt_sha256=self.prompt_sha256,
        )  # fmt: skip

    async def ask(self, question: Question, model: Model | None = None) -> MinedRow:
        """The row of one question; a call that fails is a failed row."""
        messages = (self._head, Message("user", self._body + question.text))
        began = time.monotonic()

        def row(status: MinedStatus, **fields: Any) -> MinedRow:
            return MinedRow(
                id=question.id, index=question.index, question=question.text, status=status,
                prompt_sha256=messages_digest(messages),
                duration_s=round(time.monotonic() - began, 3), **fields,
            )  # fmt: skip

        task = MineTask(question.text, self._library)
        limit = reply_limit(task, self._model.window, self._max_output_tokens)
        request = Request(messages, task, limit, n_later=lambda: 1)  # a question is one of many

        async def sketch(level: Level) -> Completion:
            constraint = None
            if level is not None:
                constraint = plan_constraint(
                    self._library, requires_new=True, max_text=self._fallback.max_text
                )
            return await (model or self._model).complete(constrained(request, constraint, level))

        try:
            completion, level = await self._fallback.ask(sketch, lambda level, error: None)
        except ModelError as error:
            return row("failed", model=self._model.name, error=error.message)
        proposal = read_proposal(completion.text, self._library, self._declared)
        return row(
            "mined" if proposal.is_read else "unreadable", model=completion.model,
            reply=completion.text, actions=tuple(map(print_action, proposal.actions)),
            calls=proposal.calls, undeclared=proposal.undeclared, diagnostics=proposal.diagnostics,
            constraint=level or "none", usage=completion.usage,
        )  # fmt: skip


def miner_of(pearl: Pearl, seed_library: str) -> Miner:
    """A miner with a `Pearl`'s model, limits and examples."""
    return Miner(
        pearl.calls(),
        seeds(seed_library, pearl.domain.library),
        # Operators need no declaration: every library has them.
        load_examples(pearl.material.bank, pearl.library),
        pearl.library,
        pearl.client.settings.constrain,
        max_output_tokens=pearl.limits.max_output_tokens,
    )


def seeds(name: str, own: str) -> ActionLibrary:
    """A library by name or file; the general one is cut to the actions that the domain's library also has."""
    library = load_library(name)
    if name != GENERAL:
        return library
    kept = library.keys() & load_library(own).keys()
    fit = [action for action in library.values() if action.name in kept]
    return ActionLibrary(name, fit or library.values())


@dataclass(frozen=True, slots=True)
class MineUnit(RecordUnit):
    """One question that actions are drafted for."""

    question: Question
    seed_library: str
    prompt: str

    @property
    def depends_on(self) -> Sequence[str]:
        """Return the prompt without the question; the question is already the source."""
        return (self.prompt,)

    def costs(self, pearl: Pearl) -> tuple[str, StepCosts]:
        """One call; up to three if the model refuses a constraint."""
        limits, client = pearl.limits, pearl.client
        is_held = bool(client.constrains.by) and client.settings.constrain != "off"
        calls = Range(1, 3 if is_held else 1)
        n_input = limits.counter.count(f"{self.prompt}{self.question.text}")
        task = MineTask(self.question.text, pearl.library)
        n_reply = reply_limit(task, client.window, limits.max_output_tokens)
        inputs = Range(n_input, inf if is_held else n_input)
        return "(drafts)", StepCosts(calls, inputs, Range(1, calls.upper * n_reply))

    async def perform(self, resources: Resources, trace: Trace) -> MinedRow:
        """Ask for actions."""
        pearl = resources.pearl
        miner = resources.once(
            (MineUnit, self.seed_library), lambda: miner_of(pearl, self.seed_library)
        )
        row = await miner.ask(self.question, pearl.calls(trace))
        if row.status == "failed":
            pearl.client.breaker.check()
        return row


def mine_units(questions: Iterable[Question], seed_library: str, prompt: str) -> Iterator[MineUnit]:
    """A unit for each question."""
    for question in questions:
        source = text_sha256(question.text)
        yield MineUnit(question.id, None, source, question, seed_library, prompt)


def mined(row: Mapping[str, Any], unit: MineUnit) -> MinedRow:
    """The stored row of a unit, with the present index of its question."""
    return convert({**row, "index": unit.question.index}, MinedRow)


class Proposal(Struct, frozen=True):
    """A parsed reply."""

    actions: tuple[Action, ...]
    calls: tuple[str, ...] = ()
    undeclared: tuple[str, ...] = ()
    diagnostics: tuple[str, ...] = ()
    is_read: bool = True


def read_proposal(
    reply: str, library: ActionLibrary, declared: Mapping[str, Action] = MappingProxyType({})
) -> Proposal:
    """Parse a reply: new actions, maybe with a sketch of a plan; calls of the actions in `declared` count as drafts, too."""
    reading = read(reply, tolerant=True)
    text, actions = reading.text, list(reading.actions)
    calls = undeclared = tuple[str, ...]()
    flaws: Sequence[Diagnostic]
    if reading.plan is not None:
        is_read = not reading.errors
        calls = tuple(dict.fromkeys(step.action for step in reading.plan.steps))
        known = with_operators(library)
        unknown = [n for n in calls if n not in callable_actions(reading.plan, known)]
        missing = dict.fromkeys(name.removeprefix(EACH) for name in unknown)
        drafted = [declared[name] for name in missing if name in declared]
        actions += drafted
        undeclared = tuple(name for name in missing if name not in declared)
        found = diagnose(reading, known.extended(drafted))
        flaws = [each for each in found if each.severity == "error"]
    else:
        # Without a sketch: a block of new actions, or lines of an action file.
        flaws = [each for each in reading.errors if each.message != NO_STEP]
        if not actions and not all(row.form in _NOTHING for row in rows(reading.original)):
            actions, flaws = read_actions(reading.original)
            # Fixes remove all prose, so show the original text.
            text = reading.original if actions or not text.strip() else text
            flaws = flaws if actions else reading.errors
        is_read = not flaws
    rendered = tuple(render_diagnostics([each], text, "reply") for each in flaws)
    return Proposal(tuple(actions), calls, undeclared, rendered, is_read)


def common_drafts(rows: Iterable[MinedRow], n: int = 15) -> list[tuple[str, int]]:
    """The most frequent drafts, by signature, with the number of questions that propose each."""
    signatures = ({action.partition(" : ")[0] for action in row.actions} for row in rows)
    counts = Counter(chain.from_iterable(signatures))
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n]
