"""How much a call may be shown and reply, and how strictly its replies are taken."""

from __future__ import annotations

from dataclasses import dataclass

from pearl.documents.tokens import Counter
from pearl.errors import UsageError, suggest
from pearl.interpreter.context import DEFAULT_RETRIEVED_TOKENS, STRATEGIES, Strategy
from pearl.llm.reply_limits import reading_limit
from pearl.tables.sql_engines import SqlEngine, check_engine


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """Token limits of a call."""

    counter: Counter
    strategy: Strategy = "auto"
    window: int | None = None
    max_output_tokens: int | None = None
    max_retrieved: int = DEFAULT_RETRIEVED_TOKENS
    max_parts: int | None = None
    max_prompt_tokens: int | None = None
    items_per_call: int = 32
    max_reasks: int = 1
    max_item_tokens: int = 64
    is_strict: bool = False
    is_strict_rows: bool = False
    recheck: int = 0
    is_constrained: bool = False
    is_apart: bool = False
    sql_engine: SqlEngine = "sqlite"
    usual_reply_tokens: int | None = None

    def __post_init__(self) -> None:
        check_engine(self.sql_engine)
        if self.strategy not in STRATEGIES:
            raise UsageError(
                f"unknown context strategy '{self.strategy}'",
                help=suggest(self.strategy, STRATEGIES, "strategies"),
            )

    @property
    def reply_tokens(self) -> int:
        """Tokens reserved in the context window for the reply."""
        most = reading_limit(self.window, self.max_output_tokens)
        if self.max_output_tokens is not None or self.usual_reply_tokens is None:
            return most
        return min(most, self.usual_reply_tokens)

    @property
    def prompt_tokens(self) -> int | None:
        """Maximum tokens of a prompt; None for no limit.

        The reply counts towards the context window, but not towards `max_prompt_tokens`.
        """
        if self.window is None:
            return self.max_prompt_tokens
        left = self.window - self.reply_tokens
        return left if self.max_prompt_tokens is None else min(left, self.max_prompt_tokens)

    def known_tokens(self, document: str) -> int | None:
        """Tokens of a document; None where its length alone shows that they do not matter.

        To count those of a short one takes a large part of a call.
        """
        most = self.prompt_tokens
        if most is None or self.counter.at_most(document) <= most:
            return None
        return self.counter.count(document)
