"""Models: `Request → Completion`. `backends` make models, `middleware` wraps them.

A request says the same thing twice: `messages`, the prompt that a language model reads, and
`task`, the same request as data, for backends that compute a reply instead of reading a prompt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from pearl.documents.digest import digest
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.signatures import Action, ActionLibrary, ValueType

__all__ = [
    "ActionTask",
    "ChooseTask",
    "CombineTask",
    "Completion",
    "ConstrainBy",
    "Constrains",
    "Message",
    "MineTask",
    "Model",
    "PlanTask",
    "PrefixUse",
    "RefineTask",
    "Request",
    "Task",
    "Usage",
    "messages_digest",
]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


def messages_digest(messages: Iterable[Message]) -> str:
    """What tells messages from others, in hexadecimal."""
    return digest(part for each in messages for part in (each.role, each.content)).hex()


@dataclass(frozen=True, slots=True)
class PlanTask:
    """Write a plan for a question, without its document.

    Attributes:
        round: 0 for the first try, n for the n-th repair.
        n_rejected: Valid plans that were run before and did not reach the right answer.
    """

    question: str
    library: ActionLibrary
    round: int = 0
    n_rejected: int = 0


@dataclass(frozen=True, slots=True)
class ActionTask:
    """Carry out one step.

    Attributes:
        output: Name of the step's output.
        action: What to do.
        arguments: Parameter name and value of every argument but the document, in order.
        document: The text that CTX stands for, or the part of it that fits; None where the
            action takes none.
        explanation: What the plan says the step is for.
        question: The question of the plan, "" if it does not say.
        inputs: Names of those arguments that are outputs of earlier steps.
        gives: The type in which the result is read.
    """

    output: str
    action: Action
    arguments: tuple[tuple[str, str], ...]
    document: str | None
    explanation: str = ""
    question: str = ""
    inputs: frozenset[str] = frozenset()
    gives: ValueType = ValueType.TEXT


@dataclass(frozen=True, slots=True)
class CombineTask:
    """Merge the results of one step over several parts of a document into one result."""

    step: ActionTask
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChooseTask:
    """Choose the option that answers a question, by a document or by an answer in words.

    Attributes:
        question: What is asked.
        options: Two or more; the reply names one of them by its letter, A for the first.
        document: What to choose by, where the question is asked of a document.
        answer: What to choose by, where the question was answered in words before.
        is_reasoned: Whether the reply reasons before it names the option.
    """

    question: str
    options: tuple[str, ...]
    document: str | None = None
    answer: str | None = None
    is_reasoned: bool = False


@dataclass(frozen=True, slots=True)
class MineTask:
    """Name the new actions that answering a question would need, beside those of a library."""

    question: str
    library: ActionLibrary


@dataclass(frozen=True, slots=True)
class RefineTask:
    """Merge drafts of actions that do the same into fewer, more general ones.

    Attributes:
        drafts: Numbered from 1 in the prompt; the reply says which of them each action stands for.
        max_actions: So many are wanted at most.
    """

    drafts: tuple[Action, ...]
    max_actions: int


Task = PlanTask | ActionTask | CombineTask | ChooseTask | MineTask | RefineTask


ConstrainBy = Literal["grammar", "line", "json"]
"""One grammar for the whole reply, a new one for every line, or a schema for JSON."""


@dataclass(frozen=True, slots=True)
class Constrains:
    """How a model may be held to a constraint.

    A model that says it can may still find out, when it is asked, that its server cannot or will
    not: that is a `ModelError` of the kind `unconstrained`.

    Attributes:
        by: The forms it can be asked for.
        max_text: Characters of a free text in a constraint for it; None for no limit.
    """

    by: frozenset[ConstrainBy] = frozenset()
    max_text: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a model, in both forms.

    Attributes:
        messages: The prompt; where there is a document, it stands first.
        task: The same as data.
        max_output_tokens: None for the backend's own limit.
        temperature: 0 for the most likely reply; None for the backend's own.
        seed: For servers that draw their replies by one; None for the backend's own.
        constraint: What the reply has to be a sentence of; only for models that say they can be
            held to one. Whoever asks reads the reply all the same.
        constrain_by: The form of it that is wanted; a reply in JSON comes back as the sentence
            that it stands for.
    """

    messages: tuple[Message, ...]
    task: Task
    max_output_tokens: int | None = None
    temperature: float | None = 0.0
    seed: int | None = None
    constraint: Constraint | None = None
    constrain_by: ConstrainBy = "grammar"
    _digest: str = field(default="", init=False, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """Of the messages, in hexadecimal; taken once, for they hold a document."""
        if not self._digest:
            object.__setattr__(self, "_digest", messages_digest(self.messages))
        return self._digest

    @property
    def prompt(self) -> str:
        """All messages as one text, for counting, logging and matching."""
        return "\n\n".join(message.content for message in self.messages)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls, as the server counts them; none is below 0.

    Attributes:
        n_input_tokens: Of prompts.
        n_output_tokens: Of replies, hidden ones included.
        n_cached_tokens: Those of the input tokens that a cache served.
        n_implausible_calls: Calls for which the server reported what cannot be (fewer than none,
            more cached than read, no number): these numbers are left out or cut down.
    """

    n_input_tokens: int = 0
    n_output_tokens: int = 0
    n_cached_tokens: int = 0
    n_implausible_calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.n_input_tokens + other.n_input_tokens,
            self.n_output_tokens + other.n_output_tokens,
            self.n_cached_tokens + other.n_cached_tokens,
            self.n_implausible_calls + other.n_implausible_calls,
        )

    @property
    def n_tokens(self) -> int:
        """Input and output tokens together."""
        return self.n_input_tokens + self.n_output_tokens

    def larger(self, other: Usage) -> Usage:
        """The larger of the input tokens, and of the output tokens, of two counts of one call."""
        return replace(
            self,
            n_input_tokens=max(self.n_input_tokens, other.n_input_tokens),
            n_output_tokens=max(self.n_output_tokens, other.n_output_tokens),
        )


@dataclass(frozen=True, slots=True)
class PrefixUse:
    """How a call met the server's cache of prompts.

    Attributes:
        role: `first` primes the cache with the beginning of its prompt, the document; `waited`
            was held back until that was done; `free` went as it came.
        why: The reason, in words.
        waited_s: Seconds that it was held back.
        n_expected_cached_tokens: Input tokens that the cache should serve, in whole blocks.
    """

    role: Literal["first", "waited", "free"]
    why: str
    waited_s: float = 0.0
    n_expected_cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """A usable reply. What is not usable is a `ModelError`, never an empty completion.

    Attributes:
        text: Not blank (`pearl.llm.blank`), no lone surrogates.
        model: What the server says answered.
        finish_reason: Why the text ends: `stop`, or None where the server does not say; a cut reply
            is an error.
        is_remembered: Whether no call was made for it: its usage is 0 then.
        prefix: How the call met the server's cache of prompts, where a wrapper looks after that.
    """

    text: str
    model: str
    usage: Usage = field(default_factory=Usage)
    finish_reason: Literal["stop"] | None = "stop"
    is_remembered: bool = False
    prefix: PrefixUse | None = None


class Model(Protocol):
    """One model behind one backend."""

    @property
    def name(self) -> str:
        """`backend:name`, as on the command line."""
        ...

    @property
    def identity(self) -> str:
        """What tells it from all others whose replies may be different: name, server, weights.

        Replies that are kept under an identity are given in place of later calls. It holds no
        secrets, and is never blank.
        """
        ...

    @property
    def window(self) -> int | None:
        """Tokens it reads and writes in one call; None where there is no limit."""
        ...

    @property
    def notice(self) -> str:
        """One line to show people before its first use, or ""."""
        ...

    @property
    def constrains(self) -> Constrains:
        """How it may be held to a constraint; `Constrains()` for not at all."""
        ...

    @property
    def reads_prompts(self) -> bool:
        """Whether equal messages are the same request to it; not, if it computes from the task."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Carry out one request.

        Raises:
            ModelError: There is no usable reply.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...
