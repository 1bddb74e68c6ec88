"""Plans over windows, run by pearl against an oracle in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from aggregation.oracle import Oracle
from aggregation.plans import plan_of
from aggregation.queries import Query
from aggregation.scoring import answers_in
from aggregation.windows import Window

from pearl import Answer, Document, Pearl
from pearl.actions.values import Scalar, as_text
from pearl.errors import ModelError
from pearl.llm import Constrains, Request
from pearl.llm.backends.scripted import Scripted

__all__ = ["Asked", "OracleModel", "Session", "document_of", "labelled", "value_of"]


class OracleModel(Scripted):
    """The oracle as a model of this process, treated as one behind a server is.

    Args:
        oracle: What replies.
        is_held: Whether it counts as held to the form of its replies, which it then has to keep.
    """

    reads_prompts = True

    def __init__(self, oracle: Oracle, *, is_held: bool = False) -> None:
        self.constrains = Constrains(frozenset({"grammar"}) if is_held else frozenset())

        def reply(request: Request) -> str:
            call = oracle.call(request.prompt)
            if call.is_truncated:
                raise ModelError("cut off", kind="truncated", reply=call.reply)
            return call.reply

        super().__init__(reply, name="oracle", source=f"{id(oracle)}", is_recording=False)


@dataclass(frozen=True)
class Asked:
    """What came of one question.

    Attributes:
        text: Its value.
        named: The answers, as `scoring.answers_in` reads them.
        n_calls: Calls that it took.
    """

    answer: Answer
    text: str
    named: frozenset[str]
    n_calls: int

    @property
    def labels(self) -> dict[str, str | None]:
        """The label that each different text got; None where it is undecided."""
        step = next(step for step in self.answer.steps if step.action == "CLASSIFY")
        return {str(row.fields["Instance"]): row.value for row in step.rows or ()}


class Session:
    """One window, one oracle, one client: what is labelled for a question is labelled for the next.

    Args:
        window: What is asked about.
        oracle: What labels.
        model: What labels in its place, by its name.
        settings: Arguments of `Pearl`.
    """

    def __init__(self, window: Window, oracle: Oracle, *, model: str = "", **settings: Any) -> None:
        self.window = window
        self.oracle = oracle
        self.document = document_of(window)
        self._pearl = Pearl(model or OracleModel(oracle), **settings)

    async def ask(self, query: Query, document: Document | None = None) -> Asked:
        """Run the plan of a query over the window, or over another document.

        Raises:
            ExecutionError: A step failed.
        """
        document = document or self.document
        n_before = len(self.oracle.calls)
        answer = await self._pearl.execute(plan_of(query, self.window.labels), document)
        text = value_of(answer)
        named = answers_in(query.kind, text)
        return Asked(answer, text, named, len(self.oracle.calls) - n_before)

    async def aclose(self) -> None:
        """Let go of the client."""
        await self._pearl.aclose()


def value_of(answer: Answer) -> str:
    """An answer without what is said of the rows behind it, in brackets."""
    values = {step.output: step.value for step in answer.steps}
    found = [values[output] for output in answer.outputs]
    if len(found) == 1 and isinstance(found[0], Scalar):
        return as_text(found[0].value)
    return answer.text


def document_of(window: Window) -> Document:
    """A window as pearl reads it."""
    return Document(window.text, "window.txt")


def labelled(window: Window, labels: Mapping[str, str]) -> Window:
    """The window with other labels for its texts: what a reference sees that trusts the oracle."""
    entries = tuple(replace(entry, label=labels[entry.text]) for entry in window.entries)
    return Window(entries, window.labels)
