"""Log-likelihoods of candidates from servers that tell the probability of a given token.

No chat API does: llama.cpp tells the probability of the token that it takes, and can be made to take
any; vLLM tells those of the tokens of a prompt. Both apply the model's chat template on request.
Candidates are tokenised apart from the prompt, as they would be written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from pearl.errors import ModelError
from pearl.llm import Completion, Request, Usage
from pearl.llm.backends.openai import replies
from pearl.llm.backends.openai.endpoint import Endpoint, scrubbed
from pearl.llm.backends.openai.replies import read_usage
from pearl.llm.messages import write_numbers

Post = Callable[[str, Mapping[str, Any]], Awaitable[bytes]]
"""Posts a body to a path and returns that of the response with status 200; raises `ModelError`."""

Likelihoods = Callable[[Request, Endpoint, Post], Awaitable[Completion]]
"""Computes the log-likelihoods of a request's candidates; raises `ModelError`."""

# Logit bias of a token that has to be taken; the probability that is told is that without it.
FORCED = 10_000.0
N_TOLD = 200  # Most likely tokens told beside it: siblings among them need no request of their own


class _Prompt(BaseModel):
    prompt: str


class _Tokens(BaseModel):
    tokens: list[int]


class _Token(BaseModel):
    id: int
    logprob: float


class _Taken(_Token):
    top_logprobs: list[_Token] = []


class _Logprobs(BaseModel):
    content: list[_Taken]


class _NextChoice(BaseModel):
    logprobs: _Logprobs


class _NextReply(BaseModel):
    choices: list[_NextChoice]
    usage: Any = None
    model: replies.Text | None = None


class _OfToken(BaseModel):
    logprob: float


class _PromptChoice(BaseModel):
    index: int
    prompt_logprobs: list[dict[int, _OfToken] | None]


class _PromptReply(BaseModel):
    choices: list[_PromptChoice]
    usage: Any = None
    model: replies.Text | None = None


async def by_next_token(request: Request, endpoint: Endpoint, post: Post) -> Completion:
    """By llama.cpp's server: walks the tree of the candidates' tokens, one request per unknown token.

    The server keeps the state of the prompt, so a request takes as long as one token of a reply.
    """
    template = await post("/../apply-template", {"messages": _messages(request)})
    text = replies.read_as(_Prompt, template, endpoint, "prompt").prompt

    async def tokens(text: str, *, is_prompt: bool) -> list[int]:
        body = {"content": text, "add_special": is_prompt, "parse_special": is_prompt}
        return replies.read_as(
            _Tokens, await post("/../tokenize", body), endpoint, "list of tokens"
        ).tokens

    prompt = await tokens(text, is_prompt=True)
    paths = [await tokens(scrubbed(each), is_prompt=False) for each in request.candidates]
    told: dict[tuple[int, ...], float] = {}
    first: _NextReply | None = None
    for path in paths:
        for n in range(1, len(path) + 1):
            if tuple(path[:n]) in told:
                continue
            body = {
                "model": endpoint.model,
                "prompt": [*prompt, *path[: n - 1]],
                "max_tokens": 1,
                "logprobs": N_TOLD,
                "logit_bias": [[path[n - 1], FORCED]],
                "temperature": 0.0,
                "cache_prompt": True,
            }
            data = await post("/completions", body)
            reply = replies.read_as(_NextReply, data, endpoint, "completion with logprobs")
            first = first or reply
            found = reply.choices[0].logprobs.content if reply.choices else []
            if not found or found[0].id != path[n - 1]:
                raise _not_told(endpoint)
            for each in (found[0], *found[0].top_logprobs):
                told.setdefault((*path[: n - 1], each.id), each.logprob)
    values = [sum(told[tuple(path[: n + 1])] for n in range(len(path))) for path in paths]
    n_read = len(prompt) + sum(map(len, paths))
    cached = read_usage(first and first.usage, "prompt_tokens", "completion_tokens").n_cached_tokens
    usage = Usage(n_read, 0, min(cached, n_read))
    return Completion(write_numbers(values), (first and first.model) or endpoint.model, usage)


async def by_prompt(request: Request, endpoint: Endpoint, post: Post) -> Completion:
    """By vLLM's server: each candidate at the end of a prompt of its own, all in one request."""

    async def tokens(body: Mapping[str, Any]) -> list[int]:
        data = await post("/../tokenize", {"model": endpoint.model, **body})
        return replies.read_as(_Tokens, data, endpoint, "list of tokens").tokens

    prompt = await tokens({"messages": _messages(request), "add_generation_prompt": True})
    paths = [
        await tokens({"prompt": scrubbed(each), "add_special_tokens": False})
        for each in request.candidates
    ]
    body = {
        "model": endpoint.model,
        "prompt": [[*prompt, *path] for path in paths],
        "max_tokens": 1,
        "temperature": 0.0,
        "prompt_logprobs": 0,
    }
    data = await post("/completions", body)
    reply = replies.read_as(_PromptReply, data, endpoint, "completion with prompt_logprobs")
    by_index = {choice.index: choice.prompt_logprobs for choice in reply.choices}
    values = [
        sum(_of_prompt(by_index.get(i, []), len(prompt), path, endpoint))
        for i, path in enumerate(paths)
    ]
    # As one reading of the prompt: what a server computes again is its own affair, and is not billed.
    usage = Usage(len(prompt) + sum(map(len, paths)))
    return Completion(write_numbers(values), reply.model or endpoint.model, usage)


def _of_prompt(
    told: Sequence[Mapping[int, _OfToken] | None],
    start: int,
    path: Sequence[int],
    endpoint: Endpoint,
) -> list[float]:
    """The log-likelihoods of a candidate's tokens, from `start` on."""
    if len(told) != start + len(path):
        raise _not_told(endpoint)
    found = [(each or {}).get(token) for each, token in zip(told[start:], path, strict=True)]
    values = [each.logprob for each in found if each is not None]
    if len(values) < len(path):
        raise _not_told(endpoint)
    return values


def _messages(request: Request) -> list[dict[str, str]]:
    return [{"role": each.role, "content": scrubbed(each.content)} for each in request.messages]


def _not_told(endpoint: Endpoint) -> ModelError:
    return ModelError(
        f"{endpoint.shown} does not report the likelihoods of the requested tokens",
        kind="malformed",
        help="use --planner model or rule",
    )
