"""The file format of drafts of actions, written by mining and read by refining.

The first line of a file of mined drafts is the header, every further line a question with what the
model proposed for it, in the order of the data. It is an export of mining's run in the store.
"""

from __future__ import annotations

from typing import Literal

from pearl.data.journal import Frozen
from pearl.llm import Usage
from pearl.llm.fallback import ConstraintLevelName

DRAFTS_VERSION: Literal[1] = 1


class MinedHeader(Frozen):
    """The header: data and settings of the mining run."""

    kind: Literal["pearl-mined"] = "pearl-mined"
    v: Literal[1] = DRAFTS_VERSION
    pearl_version: str
    domain: str
    data: str
    model: str
    library: str
    """Name of the library whose actions the prompt showed."""
    seed_actions: tuple[str, ...]
    """Those actions, in the format of an action file: `NAME(CTX, X) : definition`."""
    prompt_sha256: str
    """Digest of the prompt without the question."""


class MinedRow(Frozen):
    """One question and the actions that were proposed for it."""

    id: str
    index: int
    """Place of the question in the data, from 0."""
    question: str
    status: Literal["mined", "unreadable", "failed"]
    """`mined`: every action of the reply was parsed, possibly none; `unreadable`: some were not;
    `failed`: no reply."""
    model: str
    prompt_sha256: str
    reply: str = ""
    actions: tuple[str, ...] = ()
    """The parsed actions, each `NAME(CTX, X) : definition`."""
    calls: tuple[str, ...] = ()
    """Names of the actions that the sketched plan calls, each once."""
    diagnostics: tuple[str, ...] = ()
    """The diagnostics, rendered."""
    constraint: ConstraintLevelName = "none"
    """The constraint level of the reply."""
    error: str | None = None
    usage: Usage = Usage()
    duration_s: float = 0.0
