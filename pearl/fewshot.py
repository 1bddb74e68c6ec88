"""Examples for the planner: plan files with their questions, checked against the library in use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pearl import resources
from pearl.dsl.checker import check
from pearl.dsl.nodes import Plan
from pearl.dsl.parser import parse
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import DataError, PlanCheckError, PlanSyntaxError

__all__ = ["Example", "load_examples"]


@dataclass(frozen=True, slots=True)
class Example:
    """A question with a plan that is known to be good."""

    question: str
    plan: Plan


def load_examples(bank: str | Path, library: ActionLibrary) -> tuple[Example, ...]:
    """The examples of a folder, sorted by file name, that are valid under a library.

    An example that calls actions the library lacks would teach the model to call them; it is left
    out. That happens when a domain's examples are used with another library.

    Args:
        bank: Name of a shipped bank (`quality`, `medical`, `generic`) or a folder of plan files.
        library: The library the planner is given.

    Raises:
        DataError: There is no such bank, or a file of it is no plan with a question.
    """
    folder = resources.find("fewshot", str(bank)) or Path(bank)
    if not folder.is_dir():
        raise DataError(f"no folder of examples '{bank}'")
    examples: list[Example] = []
    for path in sorted(folder.glob("*.plan")):
        try:
            plan = parse(path.read_text(encoding="utf-8"))
        except PlanSyntaxError as error:
            raise DataError(f"not a plan: {error.message}", path=path) from error
        if not plan.question:
            raise DataError("an example begins with 'Question: ...'", path=path, line=1)
        try:
            check(plan, library)
        except PlanCheckError:
            continue
        examples.append(Example(plan.question, plan))
    return tuple(examples)
