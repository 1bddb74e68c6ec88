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
from pearl.errors import ModelError
from pearl.llm import Constrains, Request
from pearl.llm.backends.scripted import Scripted

__all__ = ["Asked", "OracleModel", "Session", "document_of", "labelled"]


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
        return Asked(
            answer,
            answer.text,
            answers_in(query.kind, answer.text),
            len(self.oracle.calls) - n_before,
        )

    async def aclose(self) -> None:
        """Let go of the client."""
        await self._pearl.aclose()


def document_of(window: Window) -> Document:
    """A window as pearl reads it."""
    return Document(window.text, "window.txt")


def labelled(window: Window, labels: Mapping[str, str]) -> Window:
    """The window with other labels for its texts: what a reference sees that trusts the oracle."""
    entries = tuple(replace(entry, label=labels[entry.text]) for entry in window.entries)
    return Window(entries, window.labels)
