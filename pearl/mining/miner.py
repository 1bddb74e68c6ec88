"""Training questions → drafts of actions, one prompt a question.

The model sketches a plan for a question and declares the actions that the seed library lacks; the
plan language's own reader reads the reply. A reply that cannot be read is kept with what is wrong
with it. The document is never shown.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, replace

from pearl import __version__
from pearl.actions.library import read_actions
from pearl.dsl.checker import diagnose
from pearl.dsl.decoding.forms import sketch_constraint
from pearl.dsl.line_classifier import rows
from pearl.dsl.parser import NO_STEP, read
from pearl.dsl.printer import print_action
from pearl.dsl.signatures import Action, ActionLibrary
from pearl.errors import Diagnostic, ModelError, render_diagnostics
from pearl.llm import Completion, Message, MineTask, Model, Request, messages_digest
from pearl.llm.fallback import ConstraintFallback, ConstraintLevel, Mode
from pearl.llm.messages import constrained
from pearl.llm.reply_limits import reply_limit
from pearl.mining.drafts import MinedHeader, MinedRow
from pearl.mining.prompt import mine_messages
from pearl.planner.examples import Example
from pearl.runs.scheduling import as_completed

__all__ = ["Miner", "Proposal", "Question", "common_drafts", "read_proposal"]

_NOTHING = ("heading", "none", "blank", "fence")
"""Lines that say that nothing is needed."""


@dataclass(frozen=True, slots=True)
class Question:
    """A training question: its id, its place in the data from 0, and what it asks, on one line."""

    id: str
    index: int
    text: str


class Miner:
    """Asks a model for new actions, one question at a time or many at once.

    Args:
        model: Whom to ask.
        library: The seed actions that the prompt shows.
        examples: Plans that are shown; what they call and the seed lacks is declared in them.
        full_library: Where the definitions of those actions are from.
        constrain: Hold the model to the grammar of sketches, as `Pearl` does for plans.
        max_output_tokens: Tokens of one reply at most; None for `reply_limits`' own.
    """

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
        self._ladder = ConstraintFallback(
            model.constrains, constrain, ("static", "json-static", "none")
        )
        self._library = library
        self._examples = [
            _declaring(example, library, full_library or library) for example in examples
        ]
        # The prompt is the same up to the question; it is put together once, not for each of them.
        self._head, last = mine_messages("", library, self._examples)
        self._body = last.content

    @property
    def prompt_sha256(self) -> str:
        """Digest of the prompt without the question, in hexadecimal."""
        return messages_digest((self._head, Message("user", self._body)))

    def header(self, *, domain: str, data: str) -> MinedHeader:
        """What stands on top of a file of the rows.

        Args:
            domain: Whose examples the prompt shows.
            data: What to call the questions.
        """
        return MinedHeader(
            pearl_version=__version__,
            domain=domain,
            data=data,
            model=self._model.name,
            library=self._library.name,
            seed_actions=tuple(map(print_action, self._library.values())),
            prompt_sha256=self.prompt_sha256,
        )

    def mine(self, questions: Iterable[Question], n: int = 8) -> AsyncGenerator[MinedRow, None]:
        """Rows as the replies come in, `n` questions at once; questions are taken one by one."""
        return as_completed(questions, self.ask, n)

    async def ask(self, question: Question) -> MinedRow:
        """The row of one question. It never raises for what a model does."""
        messages = (self._head, Message("user", self._body + question.text))
        row = MinedRow(
            id=question.id,
            index=question.index,
            question=question.text,
            status="failed",
            model=self._model.name,
            prompt_sha256=messages_digest(messages),
        )
        began = time.monotonic()
        try:
            completion, rung = await self._ladder.ask(
                lambda rung: self._sketch(rung, messages, question), lambda rung, error: None
            )
        except ModelError as error:
            return row.model_copy(
                update={"error": error.message, "duration_s": round(time.monotonic() - began, 3)}
            )
        proposal = read_proposal(completion.text, self._library)
        return row.model_copy(
            update={
                "constraint": rung.name,
                "status": "mined" if proposal.is_read else "unreadable",
                "model": completion.model,
                "reply": completion.text,
                "actions": tuple(print_action(action) for action in proposal.actions),
                "calls": proposal.calls,
                "diagnostics": proposal.diagnostics,
                "usage": completion.usage,
                "duration_s": round(time.monotonic() - began, 3),
            }
        )

    async def _sketch(
        self, rung: ConstraintLevel, messages: tuple[Message, ...], question: Question
    ) -> Completion:
        task = MineTask(question.text, self._library)
        limit = reply_limit(task, self._model.window, self._max_output_tokens)
        request = Request(messages, task, limit)
        if rung.by is not None:
            constraint = sketch_constraint(self._library, max_text=self._ladder.max_text)
            request = constrained(request, constraint, rung.by)
        return await self._model.complete(request)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a reply proposes.

    Attributes:
        actions: The new actions that can be read.
        calls: Names of the actions that the sketched plan calls, each once.
        diagnostics: What is wrong with the reply, rendered.
        is_read: Whether the reply was read from end to end; its sketch may still be wrong.
    """

    actions: tuple[Action, ...]
    calls: tuple[str, ...] = ()
    diagnostics: tuple[str, ...] = ()
    is_read: bool = True


def read_proposal(reply: str, library: ActionLibrary) -> Proposal:
    r"""Read a reply: a sketch with its new actions, or new actions alone.

    Example:
        >>> seed = ActionLibrary("seed", [])
        >>> read_proposal("New actions:\n- FIND_MOTIVE(CTX, X) : Find why X acts", seed).actions[0].name
        'FIND_MOTIVE'
        >>> read_proposal("I would look for the motive.", seed).is_read
        False
    """
    reading = read(reply, tolerant=True)
    if reading.plan is not None:
        found = [d for d in diagnose(reading, library) if d.severity == "error"]
        calls = tuple(dict.fromkeys(step.action for step in reading.plan.steps))
        return Proposal(
            reading.actions, calls, _rendered(found, reading.text), is_read=not reading.errors
        )
    # Without a sketch: a block of new actions, or lines as an action file has them.
    text, actions = reading.text, list(reading.actions)
    broken = [d for d in reading.errors if d.message != NO_STEP]
    if not actions and not all(row.form in _NOTHING for row in rows(reading.original)):
        actions, broken = read_actions(reading.original)
        # Of prose, nothing is left when it is mended; it is shown as it was.
        text = reading.original if actions or not reading.text.strip() else reading.text
        broken = broken if actions else list(reading.errors)
    return Proposal(tuple(actions), (), _rendered(broken, text), is_read=not broken)


def _rendered(found: Sequence[Diagnostic], text: str) -> tuple[str, ...]:
    return tuple(render_diagnostics([diagnostic], text, "reply") for diagnostic in found)


def _declaring(example: Example, seed: ActionLibrary, full: ActionLibrary) -> Example:
    """The example, declaring as new what it calls and the seed lacks."""
    declared = {action.name for action in example.plan.new_actions}
    called = dict.fromkeys(step.action for step in example.plan.steps)
    new = [full[n] for n in called if n not in seed and n not in declared and n in full]
    plan = replace(example.plan, new_actions=(*example.plan.new_actions, *new))
    return replace(example, plan=plan)


def common_drafts(rows: Iterable[MinedRow], n: int = 15) -> list[tuple[str, int]]:
    """The commonest drafts, by signature, with the number of questions that propose each."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update({action.partition(" : ")[0] for action in row.actions})
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n]
