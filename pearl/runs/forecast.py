"""Tasks → bounds of calls, tokens and cost. The prompts of a run are counted; replies are taken as empty or as long as possible; retries are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, inf
from typing import Any

from pearl.documents.digest import digest
from pearl.documents.document import Document, DocumentKind, Source
from pearl.dsl.binding import bind
from pearl.dsl.graph import PlanGraph
from pearl.errors import PearlError
from pearl.interpreter.cost_ranges import ANY, NONE, Range, StepCosts
from pearl.interpreter.estimate import CostEstimator
from pearl.interpreter.execution import prepared
from pearl.interpreter.requests import RequestBuilder
from pearl.llm import Usage
from pearl.llm.client import Role
from pearl.llm.prices import Price
from pearl.pipeline import Pearl
from pearl.planner.prompt import plan_messages
from pearl.planner.writer import one_line
from pearl.runs.executors import Task, Unit

PLANNING = "(plans)"


@dataclass(slots=True)
class StepForecast(StepCosts):
    """Estimate for one step over all tasks, or for planning."""

    name: str = ""
    model: str = ""
    price: Price | None = None
    n: int = 0
    longest: float = 0.0  # Maximum tokens of a prompt
    may_write: bool = True  # Whether the server may write to its cache what requests do not mark
    marked_tokens: float = 0.0  # Maximum tokens that requests mark for the cache
    share: float = 1.0  # Price factor for batches

    def add(self, costs: StepCosts, n: int = 1) -> None:
        """Add the costs of `n` more executions."""
        self.n += n
        self.calls += costs.calls
        self.input_tokens += costs.input_tokens
        self.output_tokens += costs.output_tokens
        self.longest = max(self.longest, costs.input_tokens.upper)

    @property
    def usd(self) -> Range | None:
        """The cost in US dollars; None if the price is unknown."""
        return None if self.price is None else self.cost_usd(self.price)

    def cost_usd(self, price: Price) -> Range:
        """The cost in US dollars: the lower bound assumes cached prompts, the upper bound cache writes and no batches."""
        inputs, outputs = self.input_tokens, self.output_tokens

        def readings(n_input: int, n_output: int, n_cached: int = 0) -> list[float]:
            n_most = n_input - n_cached
            if price.write_on_request or not self.may_write:
                n_most = int(min(n_most, self.marked_tokens))
            n_kept = n_most if price.write_on_request else 0
            return [
                price.cost_usd(Usage(n_input, n_output, n_cached, 0, *written), is_long=is_long)
                for written in ((0, 0), (n_most, 0), (n_most, n_kept))
                for is_long in {False, price.is_long(self.longest)}
            ]

        least = min(readings(int(inputs.least), int(outputs.least), int(inputs.least)))
        most = inf
        if inf not in (inputs.upper, outputs.upper):
            most = max(readings(ceil(inputs.upper), ceil(outputs.upper)))
        return Range(least * self.share, most)

    def to_dict(self, usd: Range | None) -> dict[str, Any]:
        """As JSON data; null means unknown."""
        return {
            "name": self.name,
            **({"model": self.model} if self.model else {}),
            "n": self.n,
            "calls": self.calls.to_dict(),
            "input_tokens": self.input_tokens.to_dict(),
            "output_tokens": self.output_tokens.to_dict(),
            "cost_usd": None if usd is None else usd.to_dict(),
        }


@dataclass(slots=True)
class Forecast:
    """The estimate for a run."""

    model: str
    counter: str
    reply_tokens: int
    price: Price | None
    prices: Mapping[str, Price | None]  # Of the other models, by name
    total: StepForecast = field(default_factory=StepForecast)
    steps: Sequence[StepForecast] = ()
    n_tasks: int = 0
    n_unplanned: int = 0
    n_problems: int = 0
    n_known: int = 0
    problems: tuple[str, ...] = ()

    @property
    def cost_usd(self) -> Range | None:
        """The cost in US dollars; None if a price is unknown."""
        costs = [step.usd for step in self.steps]
        if None in costs:
            return None
        cost = sum(filter(None, costs), NONE)
        return Range(cost.least, inf) if self.n_unplanned else cost

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; null means unknown."""
        return {
            "kind": "pearl-forecast",
            "v": 1,
            "model": self.model,
            "n_tasks": self.n_tasks,
            "n_unplanned": self.n_unplanned,
            "n_problems": self.n_problems,
            "problems": list(self.problems),
            "steps": [step.to_dict(step.usd) for step in self.steps],
            "total": self.total.to_dict(self.cost_usd),
            "reply_tokens": self.reply_tokens,
            "token_count": self.counter,
            "price_usd_per_million": None if self.price is None else str(self.price),
            **(
                {"prices": {n: p and str(p) for n, p in self.prices.items()}} if self.prices else {}
            ),
            "n_known": self.n_known,
        }


def forecast(pearl: Pearl, tasks: Iterable[Unit], *, price: Price | None = None) -> Forecast:
    """Estimate tasks without sending requests."""
    forecaster = Forecaster(pearl, price=price)
    for task in tasks:
        forecaster.add(task)
    return forecaster.result()


class Forecaster:
    """Accumulates the estimates of tasks."""

    def __init__(
        self, pearl: Pearl, *, price: Price | None = None, is_batched: bool = False,
        prices: Mapping[str, Price | None] | None = None,
    ) -> None:  # fmt: skip
        self._pearl, self._is_batched = pearl, is_batched
        self._steps: dict[str, StepForecast] = {}
        self._seen: set[bytes] = set()  # Documents that were read, and questions that were planned
        limits = pearl.limits
        self._found = Forecast(
            pearl.client.name, limits.counter.method, limits.reply_tokens, price, prices or {}
        )
        self._compiled = lru_cache(maxsize=256)(pearl.compile)

    def add(self, unit: Unit) -> None:
        """Add a unit of work."""
        self._found.n_tasks += 1
        if not isinstance(unit, Task):
            name, costs = unit.costs(self._pearl)
            self._named(name, None).add(costs)
            return
        try:
            if unit.problem is not None or unit.document is None:
                raise unit.problem or PearlError("the task has no document")
            if unit.plan is None:
                read = unit.document() if unit.has_sources else None
                kind, sources = (read.kind, read.sources) if read else (unit.kind, ())
                self._plan(unit.question or "", kind, sources)
            else:
                checked = bind(self._compiled(unit.plan, question=unit.question), unit.parameters)
                self._run(prepared(checked)[1].graph, unit.document())
        except PearlError as error:
            self._found.n_problems += 1
            if len(self._found.problems) < 3:
                where = f"{unit.id}: " if unit.id else ""
                self._found.problems += (f"{where}{error.message}",)

    def result(self, n_known: int = 0) -> Forecast:
        """The estimate for all tasks, of which `n_known` others have a row."""
        found = self._found
        found.steps, found.n_known = [*self._steps.values()], n_known
        found.total = StepForecast(name="total")
        for step in found.steps:
            found.total.add(step, step.n)
        if found.n_unplanned:  # The cost of its steps is unknown until the plan is written
            found.total.add(StepCosts(ANY, ANY, ANY), 0)
        return found

    def _run(self, graph: PlanGraph, document: Document) -> None:
        """Add the estimate for a plan over a document."""
        pearl = self._pearl
        others = [
            None if pearl.clients.get(role, pearl.client) is pearl.client else pearl.limits_of(role)
            for role in ("rows", "escalate")
        ]
        builder = RequestBuilder(graph, document, pearl.limits, pearl.searcher)
        estimator = CostEstimator(builder, *others, checker=pearl.limits_of("checker"))
        read = digest(["read", document.digest])
        for step in graph.steps:
            name = f"{step.output} = {step.action}"
            role: Role = "rows" if graph.checked.action(step).cost == "rows" else "main"
            costs = estimator.step(step)
            # The last request with a prefix need not mark it.
            if step.output in builder.heads and not self._is_new(read):
                self._named(name, role).marked_tokens += costs.input_tokens.upper
            self._add(name, role, costs)
            self._add(f"{name}, undecided", "escalate", estimator.escalated)
            self._add(f"{name}, checked", "checker", estimator.checked)

    def _add(self, name: str, role: Role, costs: StepCosts) -> None:
        if costs.calls.most != 0:
            self._named(name, role).add(costs)

    def _is_new(self, key: bytes) -> bool:
        """Whether a document or question occurs for the first time."""
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _named(self, name: str, role: Role | None) -> StepForecast:
        """The row of a step for the model of a role; without a role, for all models together."""
        if name in self._steps:
            return self._steps[name]
        client = self._pearl.clients[role] if role else self._pearl.client
        prices = self._found.prices
        model = client.name if role and prices else ""
        price = prices.get(model, self._found.price) if model or not prices else None
        share = (self._is_batched and price is not None and price.batch) or 1.0
        may_write = getattr(client.model, "caching", None) is None
        self._steps[name] = StepForecast(
            name=name, model=model, price=price, share=share, may_write=may_write
        )
        return self._steps[name]

    def _plan(self, question: str, kind: DocumentKind, sources: Sequence[Source]) -> None:
        """Add the estimate for planning; equal questions are planned once."""
        pearl, planner = self._pearl, self._pearl.planner
        asked, descriptions = one_line(question), planner.told(sources)
        shown = planner.shown(asked, kind=kind, sources=sources)
        messages = plan_messages(asked, shown, descriptions, kind)
        self._found.n_unplanned += 1
        if not self._is_new(digest(["question", question, kind, descriptions])):
            return
        first = pearl.limits.counter.count("\n\n".join(message.content for message in messages))
        most = planner.max_calls
        inputs = Range(first, first if most == 1 else inf)
        outputs = Range(1, most * planner.reply_tokens(asked, shown))
        self._named(PLANNING, "planner").add(StepCosts(Range(1, most), inputs, outputs))
