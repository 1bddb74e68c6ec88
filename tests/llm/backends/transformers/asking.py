"""Requests to a tiny model."""

from __future__ import annotations

from pearl.actions.library import load_library
from pearl.llm import Message, PlanTask, Request

LIBRARY = load_library("seed")


def asked(text: str = "Why did Ada sell the boat?", limit: int | None = 3_000) -> Request:
    return Request((Message("user", text),), PlanTask(text, LIBRARY), limit)
