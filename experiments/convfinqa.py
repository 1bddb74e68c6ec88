"""The dialogues of ConvFinQA as the cleaned set has them: an object with `dev`, or one dialogue a line.

Source:
    Chen et al., ConvFinQA: Exploring the Chain of Numerical Reasoning in Conversational Finance
    Question Answering (EMNLP 2022).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pearl import Document
from pearl.documents.table.rendering import markdown


@dataclass(frozen=True)
class Turn:
    """One question of a dialogue with what is right.

    Attributes:
        question: In words; it may rely on the questions before.
        answer: What people wrote, such as `9.5%`.
        program: The steps that lead to it.
        executed: What the authors' own code made of the program, to 5 decimals.
    """

    question: str
    answer: str
    program: str
    executed: float | str


@dataclass(frozen=True)
class Dialogue:
    """A dialogue about one page of a report.

    Attributes:
        id: Of the data; it has the company, the year and the page in it.
        turns: In order.
        before: The text before the table.
        table: Column → row → what is there.
        after: The text after the table.
    """

    id: str
    turns: tuple[Turn, ...]
    before: str
    table: dict[str, dict[str, float | str]]
    after: str

    @property
    def page(self) -> Document:
        """The page as a document: the text with the table in Markdown."""
        names = dict.fromkeys(name for column in self.table.values() for name in column)
        rows = ([name, *(_cell(column.get(name)) for column in self.table.values())] for name in names)  # fmt: skip
        table = markdown(["item", *self.table], rows)
        return Document(f"{self.before}\n\n{table}\n\n{self.after}", self.id)


def _cell(value: float | str | None) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else str(value or "")


def read_dialogues(path: Path) -> Iterator[Dialogue]:
    """Every dialogue of a file.

    Raises:
        ClickException: The file is not of this format; with the line.
    """
    text = path.read_text(encoding="utf-8")
    number = 0
    try:
        rows = json.loads(text)["dev"] if text.lstrip().startswith('{"dev"') else None
        for row in rows or text.splitlines():
            number += 1
            yield _dialogue(json.loads(row) if isinstance(row, str) else row)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise click.ClickException(f"{path}, dialogue {number}: {reason}") from error


def _dialogue(row: dict[str, Any]) -> Dialogue:
    said, page = row["dialogue"], row["doc"]
    turns = zip(
        said["conv_questions"],
        said["conv_answers"],
        said["turn_program"],
        said["executed_answers"],
        strict=True,
    )
    return Dialogue(
        row["id"],
        tuple(Turn(*turn) for turn in turns),
        page["pre_text"],
        page["table"],
        page["post_text"],
    )
