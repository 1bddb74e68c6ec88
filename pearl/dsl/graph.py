"""Make a `PlanGraph` of a `CheckedPlan`: the data dependencies between steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple

from msgspec import Struct

from pearl.dsl.binding import bound
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.nodes import ListLiteral, Number, Reference, Step, String, is_data, items_of
from pearl.dsl.signatures import Trait, ValueType
from pearl.errors.callers import ShownInNotebooks

_READ = frozenset({ValueType.LIST, ValueType.NUMBER, ValueType.BOOL, ValueType.DATE})
"""Types that the text of an output is parsed into; other types stay text."""


class NeededRows(NamedTuple):
    """How many rows a LIMIT needs from a step, and the WHEREs between the two."""

    n: int
    wheres: tuple[Step, ...]


class PlanGraph(ShownInNotebooks, Struct, frozen=True, dict=True):
    """A plan as a directed acyclic graph."""

    checked: CheckedPlan
    dependencies: tuple[frozenset[int], ...]

    def __str__(self) -> str:
        return str(self.checked)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps, in plan order."""
        return self.checked.plan.steps

    @cached_property
    def text(self) -> str:
        """The plan as text."""
        return str(self.checked)

    @property
    def composer(self) -> Step | None:
        """The last step, if it composes the answer from the results of others."""
        last = self.steps[-1]
        return last if self.checked.action(last).composes else None

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The outputs that the answer consists of: those that no step uses, or only the composer."""
        last = self.composer
        if last is None:
            return self.checked.outputs
        others = (name for name in self.checked.outputs if name != last.output)
        return tuple(dict.fromkeys([*(each.name for each in last.references()), *others]))

    @cached_property
    def tried(self) -> Mapping[int, Sequence[int]]:
        """For each step that takes the first non-empty result: the steps of these results, in order."""
        index = {step.output: i for i, step in enumerate(self.steps)}
        return {
            i: [index[each.name] for each in step.references()]
            for i, step in enumerate(self.steps) if "tries" in self.checked.action(step).traits
        }  # fmt: skip

    @cached_property
    def needs(self) -> Sequence[frozenset[int]]:
        """The steps that each step needs in every run; of alternative results, only the first."""
        needed = enumerate(self.dependencies)
        return [frozenset(self.tried[i][:1]) if i in self.tried else needs for i, needs in needed]

    @cached_property
    def always(self) -> frozenset[int]:
        """The steps that every run carries out."""
        return _closure(
            self.needs,
            (i for i, step in enumerate(self.steps) if step.output in self.checked.outputs),
        )

    @cached_property
    def waits(self) -> Sequence[Collection[int]]:
        """The steps that must end before each step begins: those it uses, and the alternative tried before it."""
        waits = list(map(set, self.dependencies))
        # What only a later alternative needs waits for the earlier one, which may make it superfluous. A step cannot wait
        # for one below it: `levels` goes through the plan from top to bottom.
        for first, then in chain.from_iterable(map(pairwise, self.tried.values())):
            later = _closure(self.dependencies, [then]) - _closure(self.dependencies, [first])
            for i in later - self.always:
                waits[i] |= {first} if first < i else set()
        return waits

    @cached_property
    def read_by(self) -> Mapping[str, frozenset[str]]:
        """For each output, the document and sources that its step reads, directly or through earlier steps."""
        found: dict[str, frozenset[str]] = {}
        for step in self.steps:
            names = [{r.name} if r.is_context else found[r.name] for r in step.references()]
            found[step.output] = frozenset().union(*names)
        return found

    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Groups of steps that can run concurrently: each depends on steps of earlier groups only."""
        depth: list[int] = []
        for needs in self.waits:
            depth.append(1 + max((depth[i] for i in needs), default=-1))
        return tuple(
            tuple(i for i, at in enumerate(depth) if at == level)
            for level in range(max(depth, default=-1) + 1)
        )

    @cached_property
    def gives(self) -> Mapping[str, ValueType]:
        """The type that each output is parsed into, by output name."""
        gives: dict[str, ValueType] = {}
        for step in reversed(self.steps):  # upwards: the steps that read an output decide its type
            action = self.checked.action(step)
            wanted = gives.setdefault(step.output, action.returns)
            if action.returns is not ValueType.TEXT:
                gives[step.output] = action.returns
            if not (action.is_native or action.reads_rows):
                continue
            for i, argument in enumerate(step.arguments):
                parameter = action.parameter(i)
                is_figure = parameter.reads in ("figure", "number")
                # An output inside a list of numbers is one number; an output in place of the list is several.
                is_figure |= parameter.name == "NUMBERS" and isinstance(argument, ListLiteral)
                taken = ValueType.NUMBER if is_figure else parameter.type
                taken = ValueType.DATE if parameter.reads == "date" else taken
                if taken is ValueType.TEXT and action.returns is ValueType.TEXT:
                    taken = wanted  # a text passed on, as by FIRST_FOUND, is read like the result
                for one in items_of(argument) if taken in _READ else ():
                    if isinstance(one, Reference):
                        # If steps want several types, a list wins: it can be read as the others, too.
                        is_list = gives.get(one.name) is ValueType.LIST
                        gives[one.name] = ValueType.LIST if is_list else taken
        return gives

    @cached_property
    def needed_rows(self) -> Mapping[str, NeededRows]:
        """For each model step whose rows only a LIMIT reads, directly or through WHEREs on its replies: what the LIMIT needs."""
        read = [reference.name for step in self.steps for reference in step.references()]
        steps = {step.output: step for step in self.steps}
        needed: dict[str, NeededRows] = {}
        for limit in self.steps:
            if not self._is(limit, "first") or not isinstance(limit.arguments[1], Number):
                continue
            wheres: list[Step] = []
            step = limit
            while (
                isinstance(source := step.arguments[0], Reference)
                and not source.is_context
                and read.count(source.name) == 1
            ):
                step = steps[source.name]
                if not self._is(step, "condition") or any(map(is_data, step.arguments[1:])):
                    break
                wheres.append(step)
            fields = {each.arguments[1] for each in wheres}
            if self.checked.action(step).reads_rows and fields <= {String(step.output)}:
                n = int(limit.arguments[1].value)
                needed[step.output] = NeededRows(n, tuple(wheres))
        return needed

    def _is(self, step: Step, trait: Trait) -> bool:
        return trait in self.checked.action(step).traits

    @cached_property
    def lists_of_numbers(self) -> frozenset[str]:
        """The outputs whose entries a native action reads as numbers."""
        return frozenset(
            item.name
            for step in self.steps
            for i, argument in enumerate(step.arguments)
            if self.checked.action(step).is_native
            and self.checked.action(step).parameter(i).name == "NUMBERS"
            for item in items_of(argument)
            if isinstance(item, Reference)
        )


def _closure(needs: Sequence[frozenset[int]], steps: Iterable[int]) -> frozenset[int]:
    """The steps and all steps that they need."""
    found: set[int] = set()
    left = list(steps)
    while left:
        if (i := left.pop()) not in found:
            found.add(i)
            left += needs[i]
    return frozenset(found)


def build_graph(checked: CheckedPlan) -> PlanGraph:
    """Resolve every reference to the step that produces it; parameters without a value become blank."""
    if not checked.given:
        checked = bound(checked, {each.name: "" for each in checked.plan.parameters})
    index = {step.output: i for i, step in enumerate(checked.plan.steps)}
    return PlanGraph(
        checked,
        tuple(
            frozenset(index[r.name] for r in step.references() if not r.is_context)
            for step in checked.plan.steps
        ),
    )
