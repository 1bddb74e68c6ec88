"""Constraint levels: use the strictest one that the model supports; a rejected one is not tried again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, get_args

from msgspec.structs import replace

from pearl.dsl.parser import read
from pearl.errors import ModelError, UsageError, suggest
from pearl.llm import Completion, ConstrainBy, Constrains

Mode = Literal["auto", "grammar", "json", "off"]
"""`auto` falls back to no constraint if it must; the other modes are mandatory."""

MODES: tuple[Mode, ...] = get_args(Mode)

Level = ConstrainBy | None
"""`grammar`: every plan is valid; `json`: every plan can be parsed; None (`none` in traces): replies are parsed tolerantly."""

Judge = Callable[[ConstrainBy, ModelError | None], None]
"""Called with the form asked for, and how the reply violates it (None if it does not)."""

_LEVELS: dict[Mode, tuple[Level, ...]] = {
    "auto": ("grammar", "json", None),
    "grammar": ("grammar",),
    "json": ("json",),
    "off": (None,),
}


def _plan_flaw(text: str) -> str | None:
    """The first error of the strict parser of plans."""
    return next((broken.message for broken in read(text).errors), None)


class ConstraintFallback:
    """The constraint state of one model, shared by all requests for the same kind of text."""

    def __init__(
        self,
        constrains: Constrains,
        mode: Mode = "auto",
        judge: Judge = lambda by, violation: None,
    ) -> None:
        if mode not in MODES:
            raise UsageError(
                f"unknown constraint '{mode}'", help=suggest(mode, MODES, "constraints")
            )
        self._levels = [each for each in _LEVELS[mode] if each is None or each in constrains.by]
        self.max_text = constrains.max_text
        self._judge = judge
        if not self._levels:
            raise UsageError(
                f"the model does not support constraints (--constrain {mode})",
                help="use --constrain auto, or off",
            )

    @property
    def level(self) -> Level:
        """The strictest level that was not rejected."""
        return self._levels[0]

    @property
    def is_required(self) -> bool:
        """Whether every request must have a constraint."""
        return self._levels[-1] is not None

    def step_down(self, refused: Level, error: ModelError) -> None:
        """Step down from a rejected level; only once if it was rejected for several concurrent tasks."""
        if self._levels[0] == refused:
            if len(self._levels) == 1:
                raise error
            del self._levels[0]

    async def ask(
        self,
        ask: Callable[[Level], Awaitable[Completion]],
        on_refused: Callable[[Level, ModelError], None],
        flaw: Callable[[str], str | None] = _plan_flaw,
    ) -> tuple[Completion, Level]:
        """Send a request at the strictest supported level. A level at which replies are invalid, because the server ignores it, is not used again."""
        before = list(self._levels)
        verdicts: dict[ConstrainBy, ModelError | None] = {}
        while True:
            level = self.level
            try:
                completion = await ask(level)
            except ModelError as error:
                if error.kind == "bad_request":  # Not because of the constraint
                    self._levels = before
                if error.kind != "unconstrained":
                    raise
                on_refused(level, error)
                self.step_down(level, error)
                if level is not None:
                    verdicts[level] = error
                continue
            if level is not None:
                verdicts[level] = None
                if broken := flaw(completion.text):
                    verdicts[level] = ignored = ModelError(
                        f"{completion.model} violates the grammar: {broken}",
                        kind="unconstrained",
                        help="use --constrain off",
                        is_sent=False,  # Its reply is already counted
                    )
                    on_refused(level, ignored)
                    self.step_down(level, ignored)
            for by, violation in verdicts.items():
                self._judge(by, violation)
            return completion, level


def reply_fallback(
    constrains: Constrains, mode: Mode = "auto", **judged: Judge
) -> ConstraintFallback:
    """The constraint state for replies to steps. They have JSON forms only, which servers with grammars also accept."""
    held = replace(constrains, by=constrains.by & {"json"})
    return ConstraintFallback(held, "json" if mode == "grammar" else mode, **judged)
