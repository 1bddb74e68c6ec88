"""Sentences of a grammar as a random decoder writes them: llguidance over single bytes."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
from llguidance import LLMatcher, LLTokenizer

__all__ = ["admits", "sentence"]


@cache
def _bytes() -> LLTokenizer:
    return LLTokenizer("byte")


def _matcher(grammar: str) -> LLMatcher:
    matcher = LLMatcher(_bytes(), grammar)
    assert not matcher.get_error(), matcher.get_error()
    return matcher


def sentence(grammar: str, seed: int, *, stop: float = 0.3) -> str:
    """One sentence, each byte drawn from those allowed; ends with chance `stop` where it may."""
    draw = random.Random(seed)
    matcher = _matcher(grammar)
    eos = _bytes().eos_token
    written = bytearray()
    while not matcher.is_stopped():
        mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
        allowed = np.flatnonzero(np.unpackbits(mask, bitorder="little")).tolist()
        if matcher.is_accepting() and (allowed == [eos] or draw.random() < stop):
            break
        token = draw.choice([token for token in allowed if token != eos])
        matcher.consume_token(token)
        written.append(token)
    return written.decode()


def admits(grammar: str, text: str) -> bool:
    """Whether a text is a sentence, says llguidance."""
    matcher = _matcher(grammar)
    tokens = _bytes().tokenize_str(text)
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()
