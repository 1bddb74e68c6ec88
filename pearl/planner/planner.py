"""Question → checked plan."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from datetime import date
from functools import partial

from msgspec import Struct

from pearl.documents.document import DocumentKind, Source
from pearl.dsl.checker import MAX_STEPS, CheckedPlan
from pearl.errors import UsageError
from pearl.llm import Model, PlanTask
from pearl.llm.client import Client
from pearl.llm.concurrency import SingleFlight
from pearl.llm.reply_limits import reply_limit
from pearl.planner.prompt import Rejected, asked_on, plan_messages, rejection_messages, told_sources
from pearl.planner.prompt_selection import PlannerMaterial, Shown
from pearl.planner.writer import MAX_REPAIRS, RepairLoop, composing
from pearl.trace import Trace

_LARGE = 65_536  # Window in tokens that any planning prompt fits, so that its length in bytes suffices as a bound


class PlannerSettings(Struct, frozen=True):
    """How questions are planned."""

    max_repairs: int = MAX_REPAIRS
    max_steps: int = MAX_STEPS
    max_output_tokens: int | None = None
    as_of: date | None = None
    fiscal_year_end: tuple[int, int] = (12, 31)

    def __post_init__(self) -> None:
        if self.as_of is None and self.fiscal_year_end != (12, 31):
            raise UsageError(
                "fiscal_year_end has no effect without as_of",
                help="give the date that questions refer to: --as-of today, or as_of=date(2024, 5, 1)",
            )
        if self.as_of is not None and type(self.as_of) is not date:
            raise UsageError(
                f"as_of must be a date, not {self.as_of!r}", help="as datetime.date(2024, 5, 1)"
            )
        try:
            date(2000, *self.fiscal_year_end)
        except (TypeError, ValueError):
            raise UsageError(
                f"fiscal_year_end must be a month and a day, not {self.fiscal_year_end!r}",
                help="as (9, 30) for 30 September",
            ) from None


class Planner:
    """Plans questions, without the document."""

    def __init__(
        self, client: Client, material: PlannerMaterial, settings: PlannerSettings
    ) -> None:
        self.client = client
        self.material = material
        self.settings = settings
        self.notes: dict[str, None] = {}
        """What prompts omitted, without repeats."""
        self.day = asked_on(settings.as_of, settings.fiscal_year_end)
        """The day of the questions, as worded in the prompt."""
        self._n_writing = 0
        self._plans: dict[Hashable, CheckedPlan] = {}
        self._writing: SingleFlight[CheckedPlan] = SingleFlight()

    def shown(
        self,
        question: str,
        *,
        kind: DocumentKind = "document",
        rejected: Sequence[Rejected] = (),
        sources: Sequence[Source] = (),
    ) -> Shown:
        """What the prompt for a question shows: as much as fits the model's window beside the reply."""
        client, settings = self.client, self.settings

        def fits(shown: Shown) -> bool:
            if client.window is None:
                return True
            room = client.window - reply_limit(
                PlanTask(question, shown.library), client.window, settings.max_output_tokens,
                max_steps=settings.max_steps,
            )  # fmt: skip
            messages = plan_messages(question, shown, self.told(sources), kind)
            text = "\n\n".join(m.content for m in (*messages, *rejection_messages(rejected)))
            # A token has at least one byte.
            return len(text.encode()) <= room or client.counter.count(text) <= room

        return self.material.shown(question, kind, fits, has_sources=bool(sources))

    def told(self, sources: Sequence[Source] = ()) -> str:
        """The part of a prompt about the sources and the day."""
        return "\n\n".join(filter(None, (told_sources(sources), self.day)))

    async def write(
        self,
        question: str,
        model: Model,
        *,
        kind: DocumentKind = "document",
        rejected: Sequence[Rejected] = (),
        parameters: Mapping[str, str] | None = None,
        sources: Sequence[Source] = (),
        trace: Trace | None = None,
    ) -> CheckedPlan:
        """Plan a question; a language model composes the answer."""
        settings = self.settings
        self._n_writing += 1
        try:
            with self.client.breaker.running():
                show = partial(self.shown, question, kind=kind, rejected=rejected, sources=sources)
                # In a thread, because for a small window tokens are counted, perhaps by a server.
                is_small = (self.client.window or _LARGE) < _LARGE
                shown = await asyncio.to_thread(show) if is_small else show()
                self.notes |= dict.fromkeys(shown.notes)
                plan = await RepairLoop(
                    question=question, shown=shown, model=model,
                    max_repairs=settings.max_repairs, max_steps=settings.max_steps,
                    max_output_tokens=settings.max_output_tokens, rejected=rejected,
                    day=self.told(sources), kind=kind, parameters=parameters or {}, sources=sources, fallback=self.client.plan_fallback,
                    trace=trace, n_later=lambda: self._n_writing - 1,
                ).write()  # fmt: skip
        finally:
            self._n_writing -= 1
        return composing(plan, question, settings.max_steps) if model.reads_prompts else plan

    async def write_shared(
        self,
        question: str,
        model: Model,
        trace: Trace,
        *,
        kind: DocumentKind = "document",
        sources: Sequence[Source] = (),
    ) -> CheckedPlan:
        """Write a plan; callers with the same question share it."""
        key = (question, kind, told_sources(sources))

        async def write() -> CheckedPlan:
            self._plans[key] = await self.write(
                question, model, kind=kind, sources=sources, trace=trace
            )
            return self._plans[key]

        return self._plans.get(key) or await self._writing.do(key, write)
