"""`Conversation`: questions about one document, each interpreted with those before it; stored as JSON Lines."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError

from pearl.data.log_files import Frozen, reason
from pearl.data.samples import Turn
from pearl.documents.document import Document
from pearl.errors import DataError, UsageError
from pearl.errors.escaping import to_json
from pearl.interpreter.answer import Answer
from pearl.interpreter.row import ResultRow
from pearl.pipeline import Pearl
from pearl.planner.writer import one_line
from pearl.retrieval.index import IndexedDocument
from pearl.trace import Trace

MAX_QUESTION, MAX_ANSWER = 100_000, 10_000_000  # Maximum characters of a turn in a file


class _Header(Frozen):
    """The first line of the file: the document of the conversation."""

    kind: Literal["conversation"] = "conversation"
    v: Literal[1] = 1
    document: str
    document_sha256: str = ""  # SHA-256 of its text; "" for a corpus, which may change


class _Row(ResultRow):
    """A turn: the row of its answer."""

    question: Annotated[str, Field(max_length=MAX_QUESTION)]
    answer: Annotated[str, Field(max_length=MAX_ANSWER)]

    @property
    def turn(self) -> Turn:
        return Turn(one_line(self.question), self.answer)


class Conversation:
    """Asks questions one after another; each is interpreted with the turns before it.

    Args:
        pearl: Model and library.
        document: The subject of all questions: a document or a corpus.

    Attributes:
        document: The subject of all questions.
        last: The last answer; None if this process has given none.

    Example:
        >>> import pearl
        >>> document = pearl.Document("Ada sold the boat because it leaked. Otto slept.")
        >>> talk = Conversation(pearl.Pearl(), document)
        >>> print(pearl.run(talk.ask("Who sold the boat?")).evidence[0].text)
        Ada sold the boat because it leaked.
        >>> pearl.run(talk.ask("Why did Ada sell it?")).evidence[0].text
        'Ada sold the boat because it leaked.'
        >>> len(talk.turns)
        2
    """

    def __init__(self, pearl: Pearl, document: Document) -> None:
        self.document = document
        self.last: Answer | None = None
        self._pearl = pearl
        self._rows: list[_Row] = []
        self._turn = asyncio.Lock()
        self._unclear = ""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns so far, oldest first."""
        return tuple(row.turn for row in self._rows)

    async def ask(
        self, question: str, *, token_budget: int | None = None, trace: Trace | None = None
    ) -> Answer:
        """Answer a question; concurrent questions wait for each other. A turn that fails is not kept.

        Args:
            question: Not blank. One that is not clear is asked as it stands if it is repeated.
            token_budget: As in `Pearl.ask`.
            trace: Records all events.

        Raises:
            UsageError: The question is not clear, neither by itself nor by the turns before it.
            PearlError: As `Pearl.ask`.
        """
        trace = Trace() if trace is None else trace
        async with self._turn:
            understood = await self._pearl.understand(question, history=self.turns, trace=trace)
            is_repeated, self._unclear = question == self._unclear, ""
            if understood.notes and not is_repeated:
                self._unclear = question
                raise UsageError(
                    "say who or what this asks about, or repeat it to ask it as it stands"
                )
            answer = await self._pearl.ask_understood(
                understood, self.document, token_budget=token_budget, trace=trace
            )
            row = {**answer.to_dict(), "question": one_line(question)}
            self._rows.append(_Row.model_validate(row))
            self.last = answer
        return answer

    def undo(self) -> Turn | None:
        """Remove and return the last turn, if any."""
        self.last = None
        return self._rows.pop().turn if self._rows else None

    def clear(self) -> None:
        """Forget all turns."""
        self.last = None
        self._rows.clear()

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the file: a header and the turns, one JSON object each."""
        rows = (row.model_dump(exclude_unset=True) for row in self._rows)
        return tuple(map(to_json, (self._header.model_dump(), *rows)))

    def to_jsonl(self) -> str:
        """The text of the file, which `from_jsonl` reads."""
        return "".join(f"{line}\n" for line in self.lines)

    @classmethod
    def from_jsonl(cls, text: str, pearl: Pearl, document: Document, *, path: str = "") -> Self:
        """Read a conversation, to continue it; an incomplete last line is left out.

        Args:
            text: The result of `to_jsonl`; untrusted.
            pearl: Model and library.
            document: The subject of the conversation.
            path: Name of the file in messages.

        Raises:
            DataError: The text is not a conversation, or is about another document.
        """
        first, *rows = text.split("\n")
        label = path or None
        made = cls(pearl, document)
        try:
            header = _Header.model_validate_json(first)
        except ValidationError:
            raise DataError(
                "not a conversation", path=label, line=1, help="`pearl chat -o FILE` writes one"
            ) from None
        if header.document_sha256 != made._header.document_sha256:
            raise DataError(
                f"the conversation is about another document or another version of it: {header.document}",
                path=label,
                help="start a new one",
            )
        for number, line in enumerate(rows, start=2):
            try:
                row = _Row.model_validate_json(line)
                one_line(row.question)
            except (ValidationError, UsageError) as error:
                if number > len(rows):  # an incomplete line, or the text after the last line break
                    break
                why = error.message if isinstance(error, UsageError) else reason(error)
                raise DataError(f"not a turn: {why}", path=label, line=number) from None
            made._rows.append(row)
        return made

    @property
    def _header(self) -> _Header:
        is_corpus = isinstance(self.document, IndexedDocument)
        sha256 = "" if is_corpus else self.document.digest
        return _Header(document=self.document.name, document_sha256=sha256)
