"""Tasks → bounds of calls, tokens and cost. The prompts of a run are counted; replies are taken as empty or as long as possible; retries are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import ceil, inf
from typing import Any

from msgspec import Struct

from pearl.documents.digest import digest
from pearl.documents.document import Document, DocumentKind, Source
from pearl.dsl.binding import bind
from pearl.dsl.graph import PlanGraph
from pearl.errors import PearlError
from pearl.interpreter.cost_ranges import ANY, NONE, Range, StepCosts
from pearl.interpreter.estimate import CostEstimator
from pearl.interpreter.execution import prepared
from pearl.interpreter.requests import RequestBuilder
from pearl.llm import PlanTask, Usage
from pearl.llm.client import Client, Role
from pearl.llm.prices import Price
from pearl.llm.reply_limits import reply_limit
from pearl.pipeline import Pearl
from pearl.planner.prompt import plan_messages
from pearl.planner.writer import one_line
from pearl.runs.executors import Task, Unit

PLANNING = "(plans)"


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
        """Add the costs of `n` more executions of the step, or of another step."""
        self.n += n
        self.calls += costs.calls
        self.input_tokens += costs.input_tokens
        self.output_tokens += costs.output_tokens
        own = costs.longest if isinstance(costs, StepForecast) else costs.input_tokens.upper
        self.longest = max(self.longest, own)
        self.marked_tokens += costs.marked_tokens if isinstance(costs, StepForecast) else 0

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


class Forecast(Struct, frozen=True):
    """The estimate for a run."""

    steps: tuple[StepForecast, ...]
    total: StepForecast
    n_tasks: int
    n_unplanned: int
    problems: tuple[str, ...]
    n_problems: int
    reply_tokens: int
    counter: str
    model: str
    price: Price | None
    n_known: int = 0
    prices: Mapping[str, Price | None] = {}  # Of the other models, by name

    @property
    def cost_usd(self) -> Range | None:
        """The cost in US dollars; None if a price is unknown."""
        if not self.prices:
            return self.total.usd
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
        self._is_batched = is_batched
        self._prices = prices or {}
        self._pearl = pearl
        self._price = price
        self._steps: dict[str, StepForecast] = {}
        self._seen: set[bytes] = set()  # Documents that were read, and questions that were planned
        self._n_tasks = self._n_unplanned = self._n_problems = 0
        self._problems: list[str] = []
        self._compiled = lru_cache(maxsize=256)(
            lambda plan, question: pearl.compile(plan, question=question)
        )

    def add(self, unit: Unit) -> None:
        """Add a unit of work."""
        self._n_tasks += 1
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
                checked = bind(self._compiled(unit.plan, unit.question), unit.parameters)
                self._run(prepared(checked)[1].graph, unit.document())
        except PearlError as error:
            self._n_problems += 1
            if len(self._problems) < 3:
                where = f"{unit.id}: " if unit.id else ""
                self._problems.append(f"{where}{error.message}")

    def result(self) -> Forecast:
        """The estimate for all tasks so far."""
        limits = self._pearl.limits
        total = self._new("total", self._price, self._pearl.client)
        steps = tuple(self._steps.values())
        for step in steps:
            total.add(step, step.n)
        if self._n_unplanned:  # The cost of its steps is unknown until the plan is written
            total.add(StepCosts(ANY, ANY, ANY), 0)
        return Forecast(
            steps, total, self._n_tasks, self._n_unplanned, tuple(self._problems), self._n_problems,
            limits.reply_tokens, limits.counter.method, self._pearl.client.name, self._price,
            prices=self._prices,
        )  # fmt: skip

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
        model = client.name if role and self._prices else ""
        price = self._prices.get(model, self._price) if model or not self._prices else None
        step = self._steps[name] = self._new(name, price, client)
        step.model = model
        return step

    def _new(self, name: str, price: Price | None, client: Client) -> StepForecast:
        may_write = getattr(client.model, "caching", None) is None
        share = (self._is_batched and price is not None and price.batch) or 1.0
        return StepForecast(name=name, price=price, share=share, may_write=may_write)

    def _plan(self, question: str, kind: DocumentKind, sources: Sequence[Source]) -> None:
        """Add the estimate for planning; equal questions are planned once."""
        pearl = self._pearl
        asked = one_line(question)
        actions = pearl.material.actions_for(kind, has_sources=bool(sources))
        material = pearl.planner.shown(asked, kind=kind, sources=sources)
        descriptions = pearl.planner.told(sources)
        messages = plan_messages(asked, material, descriptions, kind)
        self._n_unplanned += 1
        if not self._is_new(digest(["question", question, kind, descriptions])):
            return
        # Under a grammar, the new actions and the steps are separate replies.
        planner = pearl.clients["planner"]
        is_held = planner.settings.constrain in ("auto", "grammar")
        n_phases = 2 if is_held and "grammar" in planner.constrains.by else 1
        first = pearl.limits.counter.count("\n\n".join(message.content for message in messages))
        most = n_phases * (1 + pearl.planner.settings.max_repairs)
        limits = pearl.limits_of("planner")
        task = PlanTask(question, actions)
        reply_tokens = reply_limit(
            task, limits.window, limits.max_output_tokens,
            max_steps=pearl.planner.settings.max_steps,
        )  # fmt: skip
        costs = StepCosts(
            Range(1, most), Range(first, first if most == 1 else inf),
            Range(1, most * reply_tokens),
        )  # fmt: skip
        self._named(PLANNING, "planner").add(costs)
