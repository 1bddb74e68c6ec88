"""Tokens of texts and of prompts, as servers count them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import BaseModel

from pearl.llm.backends.openai.endpoint import Endpoint, scrubbed
from pearl.llm.backends.openai.replies import read_as

Post = Callable[[str, Mapping[str, Any]], Awaitable[bytes]]
"""Posts a body to a path and returns that of the response with status 200; raises `ModelError`."""


class _Prompt(BaseModel):
    prompt: str


class _Tokens(BaseModel):
    tokens: list[int]


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
