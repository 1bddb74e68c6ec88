"""Requests to a tiny model, and its replies."""

from __future__ import annotations

import asyncio

from pearl.actions.library import load_library
from pearl.llm import Completion, Message, PlanTask, Request
from pearl.llm.backends.transformers import TransformersModel

LIBRARY = load_library("seed")


def asked(text: str = "Why did Ada sell the boat?", limit: int | None = 3_000) -> Request:
    return Request((Message("user", text),), PlanTask(text, LIBRARY), limit)


def reply(model: TransformersModel, request: Request) -> Completion:
    async def ask() -> Completion:
        try:
            return await model.complete(request)
        finally:
            await model.aclose()

    return asyncio.run(ask())
