"""Chat Completions, the API of OpenAI and most servers: write request bodies, read reply bodies as `Completion` or `ModelError`."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from pearl.documents.digest import digest
from pearl.dsl.decoding.constraint import Constraint
from pearl.errors import ModelError
from pearl.errors.patterns import lazy_pattern
from pearl.errors.validation import place
from pearl.llm import Completion, PrefixCaching, Request, Usage
from pearl.llm.backends.openai.api import Accepted, Api, Body, Schema
from pearl.llm.backends.openai.endpoint import Endpoint, scrubbed
from pearl.llm.backends.openai.faults import reported
from pearl.llm.flaws import REPETITION_HELP, is_blank
from pearl.replies.raw import unique_json, without_reasoning

# --- A request → its body


def body(request: Request, model: str, accepted: Accepted) -> Body:
    """The body of a request without its constraint."""
    turns = accepted.turns(request)
    data: Body = {"model": model, "messages": turns, **accepted.parameters(request, "chat")}
    if (caching := accepted.caching) is not None:
        data |= caching.fields
        if caching.has_key and (head := accepted.kept_prefix(request)) is not None:
            data["prompt_cache_key"] = digest([turns[0]["content"], head]).hex()[:32]
    return data


def response_format(body: Body, schema: Schema) -> Body:
    """Add the form of the reply, a JSON Schema, to a body."""
    named = {"name": "reply", "strict": True, "schema": schema}
    return {**body, "response_format": {"type": "json_schema", "json_schema": named}}


_GPT = lazy_pattern(r"gpt-(\d+)(?:\.(\d+))?(?!\d)")  # "gpt-5.6-mini", "gpt-10"


def openai_caching(model: str) -> PrefixCaching | None:
    """OpenAI's control of its prefix cache, for models that store only what requests mark; None for older models."""
    # GPT-5.6 and later store the whole of each prompt, at a price, unless requests mark what to
    # store, and read only up to a mark. Older models cache without marks, and reject them.
    version = _GPT.match(model)
    if version is None or (int(version[1]), int(version[2] or 0)) < (5, 6):
        return None
    return PrefixCaching(
        (1_800.0,),
        min_tokens=1_024,
        mark=lambda kept_s: {"prompt_cache_breakpoint": {"mode": "explicit"}},
        fields={"prompt_cache_options": {"mode": "explicit"}},
        has_key=True,
    )


# --- Why a reply ended

Ending = Literal["whole", "truncated", "filtered", "refused", "repetition", "failed"]

_REASONS: dict[Ending, frozenset[str]] = {
    # OpenAI, Mistral, DeepSeek, vLLM, SGLang, llama.cpp, Ollama, OpenRouter: stop. Anthropic and
    # Bedrock: end_turn, stop_sequence. TGI and watsonx: eos_token. Together: eos. Cohere: complete.
    # AI21: endoftext. Bedrock's Titan: finish, finished. xAI: reason_stop. Qianfan: normal.
    "whole": frozenset(
        {"stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed",
         "endoftext", "finish", "finished", "reason_stop", "finish_reason_stop", "normal"}
    ),
    "truncated": frozenset(
        {"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length",
         "max_length", "token_limit", "max_context", "context_length", "context_length_exceeded",
         "context_window_exceeded", "model_context_window_exceeded", "reason_max_len",
         "reason_max_context", "finish_reason_max_tokens"}
    ),
    # Gemini: safety, recitation, blocklist, prohibited_content, spii. Bedrock: content_filtered,
    # guardrail_intervened. Cohere: error_toxic. Zhipu: sensitive.
    "filtered": frozenset(
        {"content_filter", "content_filtered", "safety", "recitation", "blocklist",
         "prohibited_content", "spii", "image_safety", "guardrail_intervened", "error_toxic",
         "sensitive", "finish_reason_safety", "moderation"}
    ),
    "refused": frozenset({"refusal"}),
    "repetition": frozenset({"repetition"}),
}  # fmt: skip


def ending(reason: str) -> Ending:
    """The meaning of a finish reason, ignoring case."""
    reason = reason.strip().casefold().replace("-", "_")
    return next((ending for ending, names in _REASONS.items() if reason in names), "failed")


# --- Usage

MOST_TOKENS = 100_000_000  # Maximum tokens of one call
BYTES_A_CHARACTER = 4  # Maximum bytes, and so tokens, of a character
HIDDEN_INPUT_TOKENS = 65_536  # Maximum tokens that a server may add to a prompt
HIDDEN_OUTPUT_TOKENS = 262_144  # Maximum tokens of hidden reasoning


# Names of cache lifetimes: OpenAI's and Anthropic's; LiteLLM uses Anthropic's names.
_LONG = ("ttl_12h_tokens", "ephemeral_12h_input_tokens", "ephemeral_1h_input_tokens")
_SHORT = ("ttl_30m_tokens", "ephemeral_30m_input_tokens", "ephemeral_5m_input_tokens")


def read_usage(reported: Any, input_name: str, output_name: str) -> Usage:
    """The usage of a reply; gateways use OpenAI's names, Anthropic's, or both."""
    details = _part(reported, f"{input_name}_details")
    parts = [
        _part(details, "cache_write_tokens_details"),
        _part(details, "cache_creation_token_details"),
        _part(reported, "cache_creation"),
    ]
    is_plausible = all(
        each is None or isinstance(each, dict) for each in (reported, details, *parts)
    )

    def most(*values: Any) -> int:
        nonlocal is_plausible
        largest = 0
        for value in values:
            if isinstance(value, float) and value.is_integer():  # JSON has a single number type
                value = int(value)
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if is_number and 0 <= value <= MOST_TOKENS:
                largest = max(largest, value)
            elif value is not None:
                is_plausible = False
        return largest

    n_cached = most(_part(details, "cached_tokens"), _part(reported, "cache_read_input_tokens"))
    n_written = most(
        _part(details, "cache_write_tokens"), _part(details, "cache_creation_tokens"),
        _part(reported, "cache_creation_input_tokens"),
    )  # fmt: skip
    n_long = n_short = 0
    if told := [part for part in parts if part is not None]:  # Few servers tell them
        n_long = sum(most(*(_part(part, name) for part in told)) for name in _LONG)
        n_short = sum(most(*(_part(part, name) for part in told)) for name in _SHORT)
    n_written = max(n_written, n_long + n_short)
    n_input, n_output = most(_part(reported, input_name)), most(_part(reported, output_name))
    is_plausible &= n_cached + n_written <= n_input
    usage = Usage.bounded(n_input, n_output, n_cached, n_written, n_long)
    return usage if is_plausible else replace(usage, n_implausible_calls=1)


def plausible(usage: Usage, request: Request) -> Usage:
    """Drop or cap counts that are impossible for a request."""
    n_characters = sum(len(message.content) for message in request.messages)
    if request.constraint is not None:
        n_characters += len(request.constraint.text)
    most_input = BYTES_A_CHARACTER * n_characters + HIDDEN_INPUT_TOKENS
    most_output = (request.max_output_tokens or 0) + HIDDEN_OUTPUT_TOKENS
    if usage.n_input_tokens > most_input:
        usage = replace(usage, n_input_tokens=0, n_cached_tokens=0, n_implausible_calls=1,
            n_written_tokens=0, n_written_long_tokens=0,
        )  # fmt: skip
    if usage.n_output_tokens > most_output:
        usage = replace(usage, n_output_tokens=0, n_implausible_calls=1)
    return usage


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


# --- The body of a reply


class ChatMessage(Struct):
    """The message of a reply."""

    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: Any = None
    reasoning_content: Any = None  # Of llama.cpp, DeepSeek, SGLang
    reasoning: Any = None  # Of vLLM, OpenRouter
    thinking: Any = None  # Of Ollama

    def __post_init__(self) -> None:
        """Join content that comes in blocks; reasoning is kept separately (Mistral, gateways to Anthropic)."""
        if isinstance(self.content, list):
            texts, reasoning = [], []
            for block in self.content:
                if isinstance(block, str) or _part(block, "type") in ("text", "output_text"):
                    texts.append(_text_in(block))
                elif _part(block, "type") in ("thinking", "reasoning"):
                    reasoning.append(_text_in(block))
            self.content = "".join(texts)
            self.reasoning = self.reasoning or "".join(reasoning)

    @property
    def text(self) -> str:
        """The text of the reply; "" without one."""
        return self.content if isinstance(self.content, str) else ""

    @property
    def thought(self) -> str:
        """The reasoning, under whichever field name the server uses."""
        given = self.reasoning_content or self.reasoning or self.thinking
        return given if isinstance(given, str) else ""

    @property
    def elsewhere(self) -> dict[str, str]:
        """Texts outside of `content` by field, the most likely reply first."""
        calls = self.tool_calls if isinstance(self.tool_calls, list) else []
        arguments = [_part(_part(call, "function"), "arguments") for call in calls[:1]]
        texts = {"tool_calls": next((a for a in arguments if isinstance(a, str)), "")}
        for name in ("reasoning_content", "reasoning", "thinking"):
            text = getattr(self, name)
            texts[name] = text if isinstance(text, str) else ""
        return {name: text for name, text in texts.items() if not is_blank(text)}


def _text_in(block: Any) -> str:
    """The text of a content block; the name of its field differs between servers."""
    if isinstance(block, list):
        return "".join(map(_text_in, block))
    if isinstance(block, dict):
        names = ("text", "thinking", "reasoning")
        return next((_text_in(block[name]) for name in names if block.get(name)), "")
    return block if isinstance(block, str) else ""


class ChatChoice(Struct):
    """One of the replies to a request; only the first is read."""

    message: ChatMessage | None = None
    finish_reason: str | None = None
    native_finish_reason: Any = None  # Of the server behind a gateway
    error: Any = None  # Set by gateways


class ChatReply(Struct):
    """The body of a response of Chat Completions."""

    choices: list[ChatChoice]
    usage: Any = None  # Any: an invalid usage must not invalidate a paid reply
    model: str | None = None
    service_tier: Any = None
    system_fingerprint: Any = None


class Listed(Struct, frozen=True):
    """One model of a listing."""

    id: str
    owned_by: Any = None
    fields: Mapping[str, Any] = {}  # All that the server says of it


class _Listing(Struct):
    data: list[dict[str, Any]]


def listed(data: Any) -> list[Listed]:
    """The models in the JSON data of a listing; raises a `ValueError` for other data."""
    return [
        Listed(convert(fields.get("id"), str), fields.get("owned_by"), fields)
        for fields in convert(data, _Listing).data
    ]


def read_completion(body: bytes, endpoint: Endpoint) -> Completion:
    """The completion in a body."""
    reply = read_as(ChatReply, body, endpoint)
    usage = read_usage(reply.usage, "prompt_tokens", "completion_tokens")
    return completion_of(reply, usage, endpoint)


def completion_of(reply: ChatReply, usage: Usage, endpoint: Endpoint) -> Completion:
    """The completion in the first choice of a reply."""
    choice = reply.choices[0] if reply.choices else None
    message = choice.message if choice else None
    text = message.text if message else ""
    with billed(usage, text):
        if choice is None:
            raise ModelError(f"{endpoint.shown} sent a reply without choices", kind="empty")
        if choice.error:
            raise reported(choice.error, endpoint)
        if message is None:
            raise unlike("chat completion", "choices.0.message", endpoint)
        if message.refusal:
            raise refusal(message.refusal, endpoint)
        # Before the text, because a truncated reply may be blank.
        reasons = [choice.finish_reason]  # Some servers send None
        native = choice.native_finish_reason
        if isinstance(native, str) and ending(native) in ("truncated", "filtered", "refused"):
            reasons.append(native)
        for reason in reasons:
            if reason is not None:
                _check_ending(reason, usage, endpoint)
        whole = Completion(
            text,
            reply.model or endpoint.model,
            usage,
            "stop" if choice.finish_reason is not None else None,
            reasoning=message.thought,
            is_flex=reply.service_tier == "flex",
            fingerprint=reply.system_fingerprint
            if isinstance(reply.system_fingerprint, str)
            else "",
        )
        if is_blank(text):
            raise BlankError(whole, message.elsewhere, endpoint)
    return whole


def read_models(body: bytes) -> list[Listed]:
    """The models of a listing; raises a `ValueError` if the body is none."""
    data = _loaded(body)
    return listed({"data": data} if isinstance(data, list) else data)  # Together AI's is a list


def _loaded(body: bytes) -> Any:
    """The data of a body, whose texts have no lone surrogates; raises a `ValueError` if it is no JSON."""
    try:
        data = json.loads(body)
        if b"\\ud" in body or b"\\uD" in body:  # an escape may be half a character
            data = json.loads(scrubbed(json.dumps(data, ensure_ascii=False)))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return data


_Reply = TypeVar("_Reply", bound=Struct)

_HELP = "check the address, which usually ends in /v1"


def read_json(body: bytes, endpoint: Endpoint) -> Any:
    """The data of a body with status 200, if it is no error."""
    try:
        data = endpoint.hidden(_loaded(body))
    except (ValueError, RecursionError):
        # Truncate again after hiding keys, so that no part of a key is left.
        excerpt = endpoint.quote(body[:2_000].decode(errors="replace"))[:120] or "it is empty"
        message = f"the reply of {endpoint.shown} is not complete JSON: {excerpt}"
        raise ModelError(message, kind="malformed", help=_HELP) from None
    if isinstance(data, dict) and data.get("error"):
        raise reported(data["error"], endpoint)
    return data


def read_as(
    kind: type[_Reply], body: bytes, endpoint: Endpoint, what: str = "chat completion"
) -> _Reply:
    """Read a body with status 200 as a `kind`; `what` names it in messages."""
    data = read_json(body, endpoint)
    try:
        return convert(data, kind)
    except ValidationError as error:
        raise unlike(what, place(error), endpoint) from None
    except UnicodeError:  # msgspec reads no name with half a character
        raise unlike(what, "", endpoint) from None


def unlike(what: str, place: str, endpoint: Endpoint) -> ModelError:
    """The error for a body that is not an object, or does not validate at a place."""
    wrong = f"its '{place}' is missing or of the wrong type" if place else "it is not a JSON object"
    message = f"the reply of {endpoint.shown} is not a {what}: {wrong}"
    return ModelError(message, kind="malformed", help=_HELP)


def refusal(said: str, endpoint: Endpoint) -> ModelError:
    """The error for a refusal by the model."""
    return ModelError(f"{endpoint.model} refuses: {endpoint.quote(said)}", kind="refused")


def truncated(usage: Usage, endpoint: Endpoint) -> ModelError:
    """The error for a truncated reply."""
    return ModelError(
        f"the reply of {endpoint.model} was cut off after {usage.n_output_tokens:,} tokens",
        kind="truncated",
        help="allow more with --max-output-tokens, or use a model with a larger window",
    )


def _check_ending(reason: str, usage: Usage, endpoint: Endpoint) -> None:
    """Raise an error unless a finish reason means a complete reply."""
    match ending(reason):
        case "whole":
            return
        case "truncated":
            raise truncated(usage, endpoint)
        case "filtered":
            message = f"the content filter of {endpoint.shown} stopped the reply"
            raise ModelError(message, kind="filtered")
        case "refused":
            raise refusal(f"it ended the reply with '{reason}'", endpoint)
        case "repetition":
            raise ModelError(
                f"{endpoint.shown} stopped the reply because it repeated itself",
                kind="repetition",
                help=REPETITION_HELP,
            )
        case _:
            raise ModelError(
                f"{endpoint.shown} ended the reply with '{endpoint.quote(reason)}', so it may be incomplete",
                kind="transport",
            )


class BlankError(ModelError):
    """The reply has no text in `content`, but perhaps in other fields: `elsewhere` by field."""

    def __init__(
        self, completion: Completion, elsewhere: Mapping[str, str], endpoint: Endpoint
    ) -> None:
        place = next(iter(elsewhere), None)
        super().__init__(
            f"the reply of {endpoint.model} is blank"
            + (f"; the server put text into '{place}'" if place else ""),
            kind="empty",
            help=None if place is None else
            "turn thinking and tools off on the server, or allow longer replies: --max-output-tokens",
        )  # fmt: skip
        self.completion = completion
        self.elsewhere = elsewhere


def within(completion: Completion, request: Request, endpoint: Endpoint) -> Completion:
    """Check the usage of a completion against its request, and return it."""
    usage = plausible(completion.usage, request)
    cut = _cut_prompt(usage, request)
    if cut or usage is not completion.usage:
        completion = replace(completion, usage=usage, cut_prompt=cut)
    limit = request.max_output_tokens
    is_unsaid = completion.finish_reason is None
    if is_unsaid and limit is not None and completion.usage.n_output_tokens >= limit:
        with billed(completion.usage, completion.text):
            raise truncated(completion.usage, endpoint)
    return completion


# A vocabulary has at least one token per word, and few tokenizers merge frequent word pairs; only
# long runs of one character have more characters per token than this.
TOKENS_A_WORD = 0.7
CHARACTERS_A_TOKEN = 16
LEAST_WORDS = 200  # Minimum words of a prompt whose count is checked: chat templates change the count of short ones


def _cut_prompt(usage: Usage, request: Request) -> str:
    """Why the server may have read only a part of the prompt, judged by its token count; "" if it read all."""
    n_read = usage.n_input_tokens
    if not n_read or usage.n_cached_tokens:  # Not reported, or perhaps without cached tokens
        return ""
    texts = [message.content for message in request.messages]
    if n_read >= _least_tokens(texts, sum(map(_most_words, texts))):  # Faster than a split
        return ""
    n_words = sum(len(text.split()) for text in texts)
    if n_words < LEAST_WORDS or n_read >= _least_tokens(texts, n_words):
        return ""
    # Slow, but rarely needed
    if n_read >= _least_tokens([_RUN.sub(r"\1", text) for text in texts], n_words):
        return ""
    return (
        f"the server counts {n_read:,} tokens for a prompt of {n_words:,} words: it may have cut the "
        "prompt; raise its context window, or set the window with --window"
    )


_BLANKS = string.whitespace.encode() + b"\x1c\x1d\x1e\x1f"
"""The characters of ASCII that separate words."""


def _most_words(text: str) -> int:
    if not text.isascii():
        return len(text)
    return 1 + len(text) - len(text.encode().translate(None, _BLANKS))


def _least_tokens(texts: Sequence[str], n_words: int) -> float:
    return max(TOKENS_A_WORD * n_words, sum(map(len, texts)) / CHARACTERS_A_TOKEN)


_RUN = lazy_pattern(r"(.)\1{3,}", re.S)  # A run of one character, such as "-----"


@contextmanager
def billed(usage: Usage, said: str = "") -> Iterator[None]:
    """Add the usage and the text of a reply to errors raised in this context."""
    try:
        yield
    except ModelError as error:
        if usage != Usage():
            error.usage = usage
        error.reply = said
        raise


def sentence(completion: Completion, constraint: Constraint, endpoint: Endpoint) -> Completion:
    """Convert the JSON of a completion to a sentence of the constraint's language."""
    split = without_reasoning(completion.text)
    with billed(completion.usage, completion.text):
        if split.is_unclosed:
            raise truncated(completion.usage, endpoint)
        text = scrubbed(split.text)
        assert constraint.json_form
        if not constraint.json_form.is_read_by_caller:
            try:
                # JSON escapes may encode lone surrogates.
                text = scrubbed(constraint.json_form.text_of(unique_json(split.text)))
            except (ValueError, RecursionError) as error:
                reason = endpoint.quote(str(error))
                raise ModelError(
                    f"the reply of {endpoint.model} is not the JSON that '{constraint.name}' requires: {reason}",
                    kind="unconstrained",
                    help="use --constrain off",
                ) from None
            if is_blank(text):
                raise BlankError(completion, {}, endpoint)
    return replace(completion, text=text, reasoning=completion.reasoning or split.reasoning)


API = Api("chat", "/chat/completions", body, read_completion)
