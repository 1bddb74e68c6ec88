"""Models: `Request → Completion`. `backends` make models, `middleware` wraps them.

A request has two equivalent forms: `messages`, the prompt for a language model, and `task`, the
same request as data, for backends that compute a reply without a prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.digest import digest
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.signatures import Action, ActionLibrary, ValueType
from pearl.replies.items import ItemKind


class Message(Struct, frozen=True):
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


def messages_digest(messages: Iterable[Message]) -> str:
    """Digest of messages in hexadecimal."""
    return digest(part for each in messages for part in (each.role, each.content)).hex()


class PlanTask(Struct, frozen=True):
    """Write a plan for a question, without its document; `round` n is the n-th repair."""

    question: str
    library: ActionLibrary
    round: int = 0
    n_rejected: int = 0  # Valid plans so far whose run did not give the right answer
    has_sources: bool = False


class ActionTask(Struct, frozen=True):
    """Carry out one step over a text (None if it reads none), or merge its results over parts of a text; `inputs` names the arguments that are earlier outputs."""

    output: str
    action: Action
    arguments: tuple[tuple[str, str], ...]
    document: str | None
    explanation: str = ""
    question: str = ""
    inputs: frozenset[str] = frozenset()
    gives: ValueType = ValueType.TEXT
    is_of_numbers: bool = False
    parts: tuple[str, ...] | None = None
    is_quoted: bool = False


class ItemsTask(Struct, frozen=True):
    """Carry out one step for several items, each on its own. It has only the call, so that equal steps of different plans share a request."""

    output: str
    action: Action
    arguments: tuple[tuple[str, str], ...]
    items: tuple[str, ...]
    kind: ItemKind
    labels: tuple[str, ...] = ()
    n_picks: int = 0
    round: int = 0
    inputs: frozenset[str] = frozenset()
    is_named: bool = False
    """Whether items have names of their own, which show that no row of a reply is shifted."""
    why: str = ""
    is_quoted: bool = False

    @property
    def is_in_lines(self) -> bool:
        """Whether the reply has a line for each item, in place of a JSON object."""
        return self.is_named and self.kind in ("yes_no", "label") and not self.is_quoted


class LookupTask(Struct, frozen=True):
    """Write the query that answers a question about a table; `round` n follows n rejected replies."""

    output: str
    action: Action
    question: str
    round: int = 0


class ChooseTask(Struct, frozen=True):
    """Choose the option that answers a question, based on a document or an answer in words. The reply is its letter, perhaps after reasons."""

    question: str
    options: tuple[str, ...]
    document: str | None = None
    answer: str | None = None
    is_reasoned: bool = False


class CheckTask(Struct, frozen=True):
    """Judge for each claim whether its passage supports it; `question` is what the claims answer, or ""."""

    output: str
    claims: tuple[tuple[str, str], ...]
    question: str = ""


class MineTask(Struct, frozen=True):
    """Propose the actions that a question needs but the library lacks."""

    question: str
    library: ActionLibrary


class RefineTask(Struct, frozen=True):
    """Merge equivalent action drafts into at most `max_actions` more general ones."""

    drafts: tuple[Action, ...]
    max_actions: int


Task = (
    PlanTask | ActionTask | ItemsTask | LookupTask | ChooseTask
    | CheckTask | MineTask | RefineTask
)  # fmt: skip

ConstrainBy = Literal["grammar", "json"]  # A grammar, or a schema for JSON


class Constrains(Struct, frozen=True):
    """A model's support for constraints, which its server may still reject: the forms, and the maximum length of free text in them."""

    by: frozenset[ConstrainBy] = frozenset()
    max_text: int | None = None


WireForm = Literal["chat", "messages", "gemini"]
"""An API: Chat Completions (also of llama.cpp, Ollama, ...), Anthropic's Messages, Gemini's generateContent."""


_DECLARED: dict[str, Mapping[str, Any]] = {}


def parameter(
    name: str, *, chat: str | None, messages: str | None, gemini: str | None, default: Any = None
) -> Any:
    """Declare an optional parameter of requests: its name in each wire form, or None if the form has no such parameter.

    Cache keys, the bodies of requests and batches, traces and spans all follow from the declaration. A
    parameter that a wire form lacks is listed in `Completion.left_out`.
    """
    wire = {"chat": chat, "messages": messages, "gemini": gemini}
    told = {"wire": wire, "default": default}
    if _DECLARED.setdefault(name, told) != told:
        raise ValueError(
            f"parameter '{name}' is declared already, with other names or another default"
        )
    return None


class Sampling(Struct, frozen=True, kw_only=True):
    """Sampling parameters of requests; settings with the same names set them.

    Attributes:
        temperature: None for 0, the most likely reply.
        top_p: Share of the probability from which tokens are drawn.
        seed: Sampling seed.
    """

    temperature: float | None = parameter(
        "temperature", chat="temperature", messages="temperature", gemini="temperature", default=0.0
    )
    top_p: float | None = parameter("top_p", chat="top_p", messages="top_p", gemini="topP")
    seed: int | None = parameter("seed", chat="seed", messages=None, gemini="seed")


@cache
def declared(kind: type[Sampling]) -> Mapping[str, Mapping[str, Any]]:
    """The parameters of a class of requests or settings, by name; of each, `wire` has its names in the wire forms, `default` its default."""
    return {name: _DECLARED[name] for name in kind.__struct_fields__ if name in _DECLARED}


def parameters_of(holder: Sampling) -> dict[str, Any]:
    """The parameters that are set, by name."""
    values = ((name, getattr(holder, name)) for name in declared(type(holder)))
    return {name: value for name, value in values if value is not None}


class Request(Sampling, frozen=True, dict=True):
    """A request to a model.

    Attributes:
        messages: The prompt; a document comes first.
        task: The same request as data.
        max_output_tokens: None for the backend's own limit.
        constraint: Only for models that support it; the caller still validates the reply.
        constrain_by: The form of the constraint; a JSON reply is converted to a sentence of the language.
        n_later: Counts the later requests that are expected by now, with the same prefix
            (`pearl.llm.messages.prefix_end`).
        n_between: Requests that are expected to be sent before the next of them.
        kept_s: Seconds for which the server should keep the prefix in its cache; 0 not to write it.
    """

    messages: tuple[Message, ...]
    task: Task
    max_output_tokens: int | None = parameter(
        "max_output_tokens", chat="max_tokens", messages="max_tokens", gemini="maxOutputTokens"
    )
    constraint: Constraint | None = None
    constrain_by: ConstrainBy = "grammar"
    # Replies do not depend on these.
    n_later: Callable[[], int] = int
    n_between: int = 0
    kept_s: float = 0.0

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters that the request sets, by name."""
        defaults = {name: each["default"] for name, each in declared(type(self)).items()}
        asked = defaults | parameters_of(self)
        return {name: value for name, value in asked.items() if value is not None}

    def named(self, form: WireForm) -> dict[str, Any]:
        """The parameters that the request sets, by their names in a wire form; those without a name there are left out."""
        names = declared(type(self))
        wire = ((names[name]["wire"][form], value) for name, value in self.parameters.items())
        return {name: value for name, value in wire if name is not None}

    @property
    def told(self) -> dict[str, Any]:
        """The parameters that the request sets, by their names in Chat Completions, else their own."""
        names = declared(type(self))
        return {
            names[name]["wire"]["chat"] or name: value for name, value in self.parameters.items()
        }

    @cached_property
    def digest(self) -> str:
        """Digest of the messages in hexadecimal; cached, because they contain a document."""
        return messages_digest(self.messages)

    @property
    def document(self) -> str | None:
        """The document, or the part of it, in the messages; None if they contain none."""
        if isinstance(self.task, ActionTask) and self.task.parts is not None:
            return None
        document: str | None = getattr(self.task, "document", None)
        return document

    @property
    def prompt(self) -> str:
        """All messages as one text, for counting, logging and matching."""
        return "\n\n".join(message.content for message in self.messages)


class Usage(Struct, frozen=True):
    """Token usage of one or more calls as reported by the server; never negative.

    Attributes:
        n_input_tokens: Tokens of prompts.
        n_output_tokens: Tokens of replies, hidden ones included.
        n_cached_tokens: Input tokens that were served from a cache.
        n_implausible_calls: Calls with impossible reported usage (negative, more cached than input
            tokens, not a number), which was dropped or capped.
        n_written_tokens: Input tokens that were written to a cache.
        n_written_long_tokens: Those of them that the cache keeps for an hour or longer.

    Example:
        >>> Usage(1, 2, 3, 4, 5, 6) + Usage(10, 20, 30, 40, 50, 60) == Usage(11, 22, 33, 44, 55, 66)
        True
    """

    n_input_tokens: int = 0
    n_output_tokens: int = 0
    n_cached_tokens: int = 0
    n_implausible_calls: int = 0
    n_written_tokens: int = 0
    n_written_long_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        # Written out, because a call adds up five times
        return Usage(
            self.n_input_tokens + other.n_input_tokens,
            self.n_output_tokens + other.n_output_tokens,
            self.n_cached_tokens + other.n_cached_tokens,
            self.n_implausible_calls + other.n_implausible_calls,
            self.n_written_tokens + other.n_written_tokens,
            self.n_written_long_tokens + other.n_written_long_tokens,
        )

    @classmethod
    def bounded(
        cls, n_input: int, n_output: int, n_cached: int, n_written: int, n_long: int
    ) -> Usage:
        """A usage from untrusted data, reduced so that no part is larger than its whole."""
        n_cached = min(n_cached, n_input)
        n_written = min(n_written, n_input - n_cached)
        return cls(n_input, n_output, n_cached, 0, n_written, min(n_long, n_written))

    @property
    def n_tokens(self) -> int:
        """Input plus output tokens."""
        return self.n_input_tokens + self.n_output_tokens

    def to_dict(self) -> dict[str, int]:
        """As JSON data; counts that few servers report are left out if they are 0."""
        rare = ("implausible_calls", "written_tokens", "written_long_tokens")
        return {
            "input_tokens": self.n_input_tokens,
            "output_tokens": self.n_output_tokens,
            "cached_tokens": self.n_cached_tokens,
            **{name: n for name in rare if (n := getattr(self, f"n_{name}"))},
        }

    def larger(self, other: Usage) -> Usage:
        """Element-wise maximum of two counts of the same call."""
        return replace(
            self,
            n_input_tokens=max(self.n_input_tokens, other.n_input_tokens),
            n_output_tokens=max(self.n_output_tokens, other.n_output_tokens),
        )


class PrefixCaching(Struct, frozen=True):
    """The prefix cache of a server that stores only what requests mark: its lifetimes, shortest first; a model's `caching` has it."""

    lifetimes_s: tuple[float, ...]
    min_tokens: int
    mark: Callable[[float], Mapping[str, Any]]
    fields: Mapping[str, Any] = {}
    has_key: bool = False


class PrefixUse(Struct, frozen=True):
    """How a call used the server's prefix cache: `first` filled it, `waited` followed the first, `free` did not wait; and why."""

    role: Literal["first", "waited", "free"]
    why: str
    waited_s: float = 0.0


class Completion(Struct, frozen=True):
    """A usable reply. An unusable one raises `ModelError`; a completion is never empty.

    Attributes:
        text: Not blank (`pearl.llm.flaws`), no lone surrogates.
        model: The model name that the server reports.
        finish_reason: `stop`, or None if the server reports none; a truncated reply is an error.
        is_remembered: Whether the reply came from a cache; then its usage is 0.
        prefix: How the call used the server's prefix cache, if the warm-up middleware is active.
        reasoning: The reasoning before the reply, as far as the server sends it; for the trace.
        is_flex: Whether the server processed it in its cheaper service tier `flex`.
        cut_prompt: Why the server may have read only a part of the prompt; such a reply is not cached.
        fingerprint: The server's fingerprint of what generated it.
        temperature: The temperature that the server was sent; None for none.
        left_out: Parameters of the request that the server was not sent: its API has no name for them, or it
            rejects them.
        prompt: For a reply that is stored with its prompt: the prompt without document texts; else "".
    """

    text: str
    model: str
    usage: Usage = Usage()
    finish_reason: Literal["stop"] | None = "stop"
    is_remembered: bool = False
    prefix: PrefixUse | None = None
    reasoning: str = ""
    is_flex: bool = False
    cut_prompt: str = ""
    fingerprint: str = ""
    temperature: float | None = None
    left_out: tuple[str, ...] = ()
    prompt: str = ""


class Model(Protocol):
    """One model behind one backend."""

    @property
    def name(self) -> str:
        """`backend:name`, as on the command line."""

    @property
    def identity(self) -> str:
        """The cache identity: everything that replies depend on (name, server, weights).

        Replies cached under an identity replace later calls. It contains no secrets and is never
        blank.
        """

    @property
    def window(self) -> int | None:
        """Context window in tokens; None for no limit."""

    @property
    def notice(self) -> str:
        """One line to show to users before the model's first use, or ""."""

    @property
    def constrains(self) -> Constrains:
        """Its support for constraints; `Constrains()` for none."""

    @property
    def reads_prompts(self) -> bool:
        """Whether replies depend only on the messages; False if they are computed from the task."""

    async def complete(self, request: Request) -> Completion:
        """Send one request; raises a `ModelError` if there is no usable reply."""

    async def aclose(self) -> None:
        """Close connections."""


class ModelBase:
    """A `Model` with defaults: subclasses define `complete`, and override what differs.

    By default, the name of the class is its name and its cache identity; it has no known window, supports
    no constraints, and reads the messages of requests.
    """

    window: int | None = None
    notice: str = ""
    constrains: Constrains = Constrains()
    reads_prompts: bool = True

    @cached_property
    def name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    @cached_property
    def identity(self) -> str:
        """The name."""
        return self.name

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        raise NotImplementedError(f"{self.name} has no complete(request)")

    async def aclose(self) -> None:
        """Do nothing."""
