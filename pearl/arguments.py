"""The settings as keyword arguments: their types, for type checkers (a test compares them), checks before a call, and hints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pearl.errors import UsageError, suggest
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Model
from pearl.llm.client import Function
from pearl.settings import ROLES, schema

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from pearl.dsl.signatures import ActionLibrary
    from pearl.llm.middleware.budget import Budget
    from pearl.llm.middleware.caching import Replies
    from pearl.retrieval.search import Searcher

AnyModel = str | Model | Function
"""The name of a model, a model, or a function from messages to text."""


class SettingArguments(TypedDict, total=False):
    """All settings as keyword arguments, and those fields of `ClientSettings` that are not settings."""

    base_url: str | None
    api_key_env: str | None
    server: str | None
    model_name: str | None
    window: int | None
    timeout_s: float
    is_asked: bool
    concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    prefix: Literal["auto", "off"]
    constrain: Literal["auto", "grammar", "json", "off"]
    attempts: int
    first_wait_s: float
    deadline_s: float | None
    is_shared: bool
    seed: int | None
    temperature: float | None
    top_p: float | None
    embeddings: str | None
    domain: str
    examples: str | Path | None
    planner_model: AnyModel | None
    rows_model: AnyModel | None
    escalate_model: AnyModel | None
    checker_model: AnyModel | None
    mapper_model: AnyModel | None
    max_output_tokens: int | None
    nearest: int | None
    max_steps: int
    max_repairs: int
    fallback: Literal["direct", "none"]
    context: str
    ocr: Literal["auto", "off", "force"]
    ocr_language: str
    pdf_tables: Literal["auto", "off"]
    hidden: bool
    ranker: str
    as_of: date | None
    fiscal_year_end: tuple[int, int]
    compose: Literal["auto", "off"]
    check: Literal["auto", "all", "off"]
    passes: int
    looks: int
    items_per_call: int
    row_quotes: int
    strict: bool


class Arguments(SettingArguments, total=False):
    """All keyword arguments of `Pearl`."""

    model: AnyModel | AsyncOpenAI
    library: str | Path | ActionLibrary | None
    searcher: Searcher | None
    replies: Replies | None
    budget: Budget | None
    private: bool


@cache
def types() -> Mapping[str, Any]:
    """The types of the settings by their names."""
    return get_type_hints(SettingArguments)


def _told(kind: Any) -> str:
    """The values of a type in words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin in (Union, UnionType):
        return " or ".join(map(_told, inner))
    if origin is tuple:
        return f"({', '.join('...' if each is ... else _told(each) for each in inner)})"
    return "None" if kind is type(None) else str(kind.__name__)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type; a whole number fits `float`, a truth value is no number."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        kinds = inner[:1] * len(value) if inner[-1] is ... else inner
        return len(value) == len(kinds) and all(map(_fits, value, kinds))
    others = {int: bool, float: bool, date: datetime}  # which `isinstance` would accept
    is_other = kind in others and isinstance(value, others[kind])
    return isinstance(value, (int, float) if kind is float else kind) and not is_other


def check_arguments(given: Mapping[str, object]) -> None:
    """Check the names and types of settings; raise a `UsageError`. The models of roles are checked when they are created."""
    for name, value in given.items():
        if name not in types():
            raise UsageError(f"unknown setting '{name}'", help=suggest(name, types(), "settings"))
        if name not in ROLES and not _fits(value, kind := types()[name]):
            raise UsageError(f"{name}: expected {_told(kind)}, not {value!r:.60}")


_OPTION = lazy_pattern(r"--([a-z][a-z-]*[a-z])(?:[ =](\w[\w.:*-]*))?")  # --constrain off, --hidden

_OTHERS = {
    "token-budget": "token_budget", "max-cost": "max_cost_usd", "max-tokens": "max_tokens", "max-calls": "max_calls",
    "max-time": "max_minutes", "source": "sources", "price": "price", "store": "store", "executor": "executor", "batch-threshold": "batch_threshold",
    "set": "parameters",
}  # fmt: skip
"""Options of the command line that are not settings → arguments of `ask`, `Session` and `Session.run`."""


def with_arguments(text: str) -> str:
    """Replace the options in a text, such as `--token-budget`, by the Python arguments of the same meaning.

    Example:
        >>> with_arguments("raise --token-budget, or use --constrain off; --hidden reads them")
        "raise `token_budget`, or use constrain='off'; hidden=True reads them"
    """
    options = {
        (s.flag or f"--{name.replace('_', '-')}")[2:]: name for name, (_, s) in schema().items()
    }

    def argument(found: re.Match[str]) -> str:
        name, word = options.get(found[1]) or _OTHERS.get(found[1]), found[2]
        if name is None:
            return found[0]
        kind, rest = types().get(name), found[0].removeprefix(f"--{found[1]}")
        if kind is bool:
            return f"{name}=True{rest}"
        if word and word.isdecimal():
            return f"{name}={word}"
        is_value = word and (word in get_args(kind) or ":" in word[:-1] or word.isupper())
        return f"{name}={word!r}" if is_value else f"`{name}`{rest}"

    return _OPTION.sub(argument, text)
