"""240 questions about twelve documents, the sentences that answer them, and their two halves.

The questions were written before anything was measured, and none was changed since. One half is open:
what has to be set is set on it. The other is frozen: figures are of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import Stemmer

from pearl.errors import Span

FOLDER = Path(__file__).parent
DEMO = FOLDER.parents[1] / "pearl" / "documents" / "demo"

DOCUMENTS = {
    "story": DEMO / "story.txt",
    "cello": FOLDER / "documents" / "cello.txt",
    "hives": FOLDER / "documents" / "hives.txt",
    "consultation": DEMO / "consultation.txt",
    "migraine": FOLDER / "documents" / "migraine.txt",
    "hip": FOLDER / "documents" / "hip.txt",
    "lease": FOLDER / "documents" / "lease.txt",
    "catering": FOLDER / "documents" / "catering.txt",
    "painting": FOLDER / "documents" / "painting.txt",
    "flood": FOLDER / "documents" / "flood.txt",
    "dairy": FOLDER / "documents" / "dairy.txt",
    "tram": FOLDER / "documents" / "tram.txt",
}
"""The file of every document."""

SORTS = {
    "story": ("story", "cello", "hives"),
    "consultation": ("consultation", "migraine", "hip"),
    "contract": ("lease", "catering", "painting"),
    "report": ("flood", "dairy", "tram"),
}
"""The documents of each sort."""

SHIPPED = ("story", "consultation")
"""Documents that the embedded model was developed with; it never saw the others."""

KINDS = ("what", "who", "when", "amount", "why", "how", "may")
HALVES = ("open", "frozen")

_STEM = Stemmer.Stemmer("english").stemWord
_FUNCTION_WORDS = """
a about after all an and any are as at be been being by can cannot could did do does done for from
had has have having he her hers herself him himself his how i if in into is it its itself just
may me might more most much must my no nor not of off on once one only or other our out over own
shall she should so some such than that the their them themselves then there these they this
those to too under until up upon us was we were what when where which while who whom whose why
will with without would you your many far soon often long
"""


@dataclass(frozen=True)
class Question:
    """A question with its gold."""

    id: str
    document: str
    text: str
    kind: str
    sentences: tuple[str, ...]
    half: str

    @property
    def sort(self) -> str:
        """The sort of its document."""
        return next(sort for sort, names in SORTS.items() if self.document in names)


def read_questions(half: str | None = None) -> list[Question]:
    """All questions, or those of a half, in their order."""
    lines = (FOLDER / "questions.jsonl").read_text("utf-8").splitlines()
    found = []
    for line in lines:
        row = json.loads(line)
        text, marked = row.pop("question"), tuple(row.pop("sentences"))
        found.append(Question(text=text, sentences=marked, **row))
    return [question for question in found if half in (None, question.half)]


def read_document(name: str) -> str:
    """The text of a document."""
    return DOCUMENTS[name].read_text("utf-8")


def halves(stated: Iterable[tuple[str, bool]]) -> dict[str, str]:
    """The half of each question by its id and whether its document answers it.

    Of a document, those that it answers and then the others are ordered by a hash of their ids and taken
    in turn. Every other document begins with the frozen half: so both have as many unanswered ones.
    """
    of_document: dict[str, list[tuple[bool, str, str]]] = {name: [] for name in DOCUMENTS}
    for id, is_stated in stated:
        key = hashlib.sha256(id.encode()).hexdigest()
        of_document[id.rpartition("-")[0]].append((not is_stated, key, id))
    return {
        id: HALVES[(first + place) % 2]
        for first, found in enumerate(of_document.values())
        for place, (_, _, id) in enumerate(sorted(found))
    }


def overlap(question: str, right: Sequence[str]) -> float:
    """Share of a question's content words that the sentences have, from 0 to 1, by their stems.

    Function words do not count, and neither do names: words with a capital, but for the first.
    """
    words = re.findall(r"[\w']+", question)
    content = [word for n, word in enumerate(words) if n == 0 or not word[0].isupper()]
    asked = _stems(content)
    return (
        len(asked & _stems(re.findall(r"[\w']+", " ".join(right)))) / len(asked) if asked else 0.0
    )


def right_places(question: Question, document: str, cut: Sequence[Span]) -> set[int]:
    """Places from 0, among the sentences that a document is cut into, of those that answer a question."""
    starts = [document.index(text) for text in question.sentences]
    spans = [
        (start, start + len(text)) for start, text in zip(starts, question.sentences, strict=True)
    ]
    return {
        place
        for place, sentence in enumerate(cut)
        for start, end in spans
        if max(start, sentence.start) < min(end, sentence.end)
    }


def _stems(words: Iterable[str]) -> set[str]:
    lower = (word.lower().removesuffix("'s") for word in words)
    return {_STEM(word) for word in lower if word not in _FUNCTION_WORDS.split()}
