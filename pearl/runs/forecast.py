"""Tasks → bounds of calls, tokens and cost. The prompts of a run are counted; replies are taken as empty or as long as possible; retries are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from pearl.llm import PlanTask, Usage
from pearl.llm.client import Role
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

    def add(self, costs: StepCosts, n: int = 1, marked_tokens: float = 0.0) -> None:
        """Add the costs of `n` more executions of the step."""
        self.n += n
        self.calls += costs.calls
        self.input_tokens += costs.input_tokens
        self.output_tokens += costs.output_tokens
        self.longest = max(self.longest, costs.input_tokens.upper)
        self.marked_tokens += marked_tokens

    @property
    def usd(self) -> Range | None:
        """The cost in US dollars; None for an unknown price. The lower bound assumes cached prompts, the upper bound cache writes and no batches."""
        if (price := self.price) is None:
            return None
        inputs, outputs = self.input_tokens, self.output_tokens
        lengths = {False, price.is_long(self.longest)}
        cached = Usage(int(inputs.least), int(outputs.least), int(inputs.least))
        least = self.share * min(price.cost_usd(cached, is_long=each) for each in lengths)
        if inf in (inputs.upper, outputs.upper):
            return Range(least, inf)
        n = n_written = ceil(inputs.upper)
        if price.write_on_request or not self.may_write:
            n_written = int(min(n, self.marked_tokens))
        n_kept = n_written if price.write_on_request else 0
        usages = [
            Usage(n, ceil(outputs.upper), n_written_tokens=n_all, n_written_long_tokens=n_long)
            for n_all, n_long in ((0, 0), (n_written, 0), (n_written, n_kept))
        ]
        return Range(
            least, max(price.cost_usd(u, is_long=each) for u in usages for each in lengths)
        )

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


class Forecast:
    """The estimate for a run, to which `add` adds its tasks."""

    def __init__(
        self, pearl: Pearl, *, price: Price | None = None, is_batched: bool = False,
        prices: Mapping[str, Price | None] | None = None,
    ) -> None:  # fmt: skip
        self._pearl = pearl
        self._is_batched = is_batched
        self._steps: dict[str, StepForecast] = {}
        self._seen: set[bytes] = set()  # Documents that were read, and questions that were planned
        self._compiled = lru_cache(maxsize=256)(
            lambda plan, question: pearl.compile(plan, question=question)
        )
        self.model = pearl.client.name
        self.price = price
        self.prices = prices or {}  # Of the other models, by name
        self.counter = pearl.limits.counter.method
        self.reply_tokens = pearl.limits.reply_tokens
        self.n_tasks = self.n_unplanned = self.n_problems = self.n_known = 0
        self.problems: list[str] = []  # The first of them
        self.total = StepForecast(name="total")

    @property
    def steps(self) -> tuple[StepForecast, ...]:
        """The estimates of planning and of each step."""
        return tuple(self._steps.values())

    @property
    def cost_usd(self) -> Range | None:
        """The cost in US dollars; None if a price is unknown, or if no task can run."""
        costs = [step.usd for step in self.steps]
        if None in costs or (self.n_problems and not costs):
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
            "problems": self.problems,
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

    def add(self, unit: Unit) -> None:
        """Add a unit of work; no request is sent."""
        self.n_tasks += 1
        if not isinstance(unit, Task):
            name, costs = unit.costs(self._pearl)
            self._add(name, None, costs)
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
            self.n_problems += 1
            if len(self.problems) < 3:
                where = f"{unit.id}: " if unit.id else ""
                self.problems.append(f"{where}{error.message}")

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
            is_marked = step.output in builder.heads and not self._is_new(read)
            self._add(name, role, costs, costs.input_tokens.upper if is_marked else 0.0)
            self._add(f"{name}, undecided", "escalate", estimator.escalated)
            self._add(f"{name}, checked", "checker", estimator.checked)

    def _add(self, name: str, role: Role | None, costs: StepCosts, marked: float = 0.0) -> None:
        """Add costs to a step of the model with a role; without a role, of all models together."""
        if role and not costs.calls.upper:
            return
        if name not in self._steps:
            client = self._pearl.clients[role] if role else self._pearl.client
            model = client.name if role and self.prices else ""
            price = self.prices.get(model, self.price) if model or not self.prices else None
            self._steps[name] = StepForecast(
                name=name, model=model, price=price,
                may_write=getattr(client.model, "caching", None) is None,
                share=(self._is_batched and price is not None and price.batch) or 1.0,
            )  # fmt: skip
        for each in (self._steps[name], self.total):
            each.add(costs, marked_tokens=marked)

    def _is_new(self, key: bytes) -> bool:
        """Whether a document or question occurs for the first time."""
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _plan(self, question: str, kind: DocumentKind, sources: Sequence[Source]) -> None:
        """Add the estimate for planning; equal questions are planned once."""
        pearl = self._pearl
        asked = one_line(question)
        actions = pearl.material.actions_for(kind, has_sources=bool(sources))
        material = pearl.planner.shown(asked, kind=kind, sources=sources)
        descriptions = pearl.planner.told(sources)
        messages = plan_messages(asked, material, descriptions, kind)
        if not self.n_unplanned:  # The cost of its steps is unknown until the plan is written
            self.total.add(StepCosts(ANY, ANY, ANY), n=0)
        self.n_unplanned += 1
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
        self._add(PLANNING, "planner", costs)


def forecast(pearl: Pearl, tasks: Iterable[Unit]) -> Forecast:
    """Estimate tasks without sending requests."""
    found = Forecast(pearl)
    for task in tasks:
        found.add(task)
    return found
