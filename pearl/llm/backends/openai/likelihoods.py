"""Tokens of texts and log-likelihoods of candidates, as servers report them.

No chat API reports the probability of a given token. llama.cpp reports that of the generated token,
and a logit bias makes it generate any; vLLM reports those of the tokens of a prompt. Both apply the
model's chat template on request. Candidates are tokenised apart from the prompt, as in a reply.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import AliasPath, BaseModel, Field

from pearl.errors import ModelError
from pearl.llm import Completion, Request, Usage
from pearl.llm.backends.openai.endpoint import Endpoint, messages_of, scrubbed
from pearl.llm.backends.openai.replies import Text, read_as, read_usage
from pearl.llm.messages import write_numbers

Post = Callable[[str, Mapping[str, Any]], Awaitable[bytes]]
"""Posts a body to a path and returns that of the response with status 200; raises `ModelError`."""

Likelihoods = Callable[[Request, Endpoint, Post], Awaitable[Completion]]
"""Computes the log-likelihoods of a request's candidates; raises `ModelError`."""

# Logit bias that forces a token; the server reports its probability without the bias
FORCED = 10_000.0
N_TOLD = 200  # Most likely tokens reported beside it: they need no requests of their own


class _Prompt(BaseModel):
    prompt: str


class _Tokens(BaseModel):
    tokens: list[int]


class _Token(BaseModel):
    id: int
    logprob: float


class _Taken(_Token):
    top_logprobs: list[_Token] = []


class _NextReply(BaseModel):
    taken: list[_Taken] = Field([], validation_alias=AliasPath("choices", 0, "logprobs", "content"))
    usage: Any = None
    model: Text | None = None


class _OfToken(BaseModel):
    logprob: float


class _PromptChoice(BaseModel):
    index: int
    prompt_logprobs: list[dict[int, _OfToken] | None]


class _PromptReply(BaseModel):
    choices: list[_PromptChoice]
    model: Text | None = None


async def text_tokens(text: str, parameter: str, endpoint: Endpoint, post: Post) -> list[int]:
    """The tokens of a text; `parameter` is its name in the body (`Server.tokenizes`)."""
    body: dict[str, Any] = {"model": endpoint.model, parameter: scrubbed(text)}
    # A mark of the chat template within the text is text, not a token of its own.
    if parameter == "content":
        return await _tokens({**body, "add_special": False, "parse_special": False}, endpoint, post)
    return await _tokens({**body, "add_special_tokens": False}, endpoint, post)


async def prompt_tokens(
    messages: list[dict[str, str]], parameter: str, endpoint: Endpoint, post: Post
) -> list[int]:
    """The tokens of messages in the chat template of the model."""
    body: dict[str, Any] = {"model": endpoint.model, "messages": messages}
    if parameter == "content":
        template = await post("/../apply-template", body)
        prompt = read_as(_Prompt, template, endpoint, "prompt").prompt
        body = {"content": prompt, "add_special": True, "parse_special": True}
    else:
        body["add_generation_prompt"] = True
    return await _tokens(body, endpoint, post)


async def _tokens(body: Mapping[str, Any], endpoint: Endpoint, post: Post) -> list[int]:
    return read_as(_Tokens, await post("/../tokenize", body), endpoint, "list of tokens").tokens


async def by_next_token(request: Request, endpoint: Endpoint, post: Post) -> Completion:
    """By llama.cpp's server, with one request for each token whose probability is still unknown."""
    prompt = await prompt_tokens(messages_of(request), "content", endpoint, post)
    paths = [await text_tokens(each, "content", endpoint, post) for each in request.candidates]
    logprobs: dict[tuple[int, ...], float] = {}
    model, n_cached = None, 0
    for path in paths:
        for n, token in enumerate(path):
            if tuple(path[: n + 1]) in logprobs:
                continue
            body = {
                "model": endpoint.model,
                "prompt": [*prompt, *path[:n]],
                "max_tokens": 1,
                "logprobs": N_TOLD,
                "logit_bias": [[token, FORCED]],
                "temperature": 0.0,
                "cache_prompt": True,
            }
            data = await post("/completions", body)
            reply = read_as(_NextReply, data, endpoint, "completion with logprobs")
            if not logprobs:
                usage = read_usage(reply.usage, "prompt_tokens", "completion_tokens")
                model, n_cached = reply.model, usage.n_cached_tokens
            if not reply.taken or reply.taken[0].id != token:
                raise _not_told(endpoint)
            for each in (reply.taken[0], *reply.taken[0].top_logprobs):
                logprobs.setdefault((*path[:n], each.id), each.logprob)
    values = [sum(logprobs[tuple(path[: n + 1])] for n in range(len(path))) for path in paths]
    n_read = len(prompt) + sum(map(len, paths))
    usage = Usage(n_read, 0, min(n_cached, n_read))
    return Completion(write_numbers(values), model or endpoint.model, usage)


async def by_prompt(request: Request, endpoint: Endpoint, post: Post) -> Completion:
    """By vLLM's server, in one request of a prompt for each candidate, which ends with it."""
    prompt = await prompt_tokens(messages_of(request), "prompt", endpoint, post)
    paths = [await text_tokens(each, "prompt", endpoint, post) for each in request.candidates]
    body = {
        "model": endpoint.model,
        "prompt": [[*prompt, *path] for path in paths],
        "max_tokens": 1,
        "temperature": 0.0,
        "prompt_logprobs": 0,
    }
    data = await post("/completions", body)
    reply = read_as(_PromptReply, data, endpoint, "completion with prompt_logprobs")
    by_index = {choice.index: choice.prompt_logprobs for choice in reply.choices}
    values = []
    for i, path in enumerate(paths):
        told = by_index.get(i, [])
        if len(told) != len(prompt) + len(path):
            raise _not_told(endpoint)
        chances = [
            (each or {}).get(token) for each, token in zip(told[len(prompt) :], path, strict=True)
        ]
        if None in chances:
            raise _not_told(endpoint)
        values.append(sum(each.logprob for each in chances if each))
    # The prompt counts once, although the server may compute it for each candidate.
    usage = Usage(len(prompt) + sum(map(len, paths)))
    return Completion(write_numbers(values), reply.model or endpoint.model, usage)


def _not_told(endpoint: Endpoint) -> ModelError:
    return ModelError(
        f"{endpoint.shown} does not report the likelihoods of the requested tokens",
        kind="malformed",
    )
