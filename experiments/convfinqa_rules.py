"""What rules alone reach on ConvFinQA: every turn is planned and answered by the embedded model, without a language model.

A turn goes the way that `pearl ask` goes: made clear by its history, taken apart, planned, and run over the page. An
answer is *right* if its number is that of the gold program by the scorer `numeric`, as written or with the
scale of its table; *sign* if it would be but for its sign or its percent sign, which the cleaning of the data has
turned and dropped in places;
*wrong*; or *refused*: not found, undecided, or passages in place of a figure.

Settings:

- `page, questions`: the right page; the history is the earlier questions of the dialogue;
- `page, answers`: the same with the right answers of the earlier questions;
- `corpus, questions`: the page of the row that search over all pages finds first, by question and history;
- `corpus, metadata`: the same with the ticker and the year of the right page in the query, an upper bound for who has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from convfinqa import Dialogue, Turn
from convfinqa_retrieval import RowTopics, page_of, passages, ticker_and_year

from pearl import Answer, Document, Pearl
from pearl.actions.arithmetic.matching import Rule, match
from pearl.actions.arithmetic.program import parse
from pearl.data.turns import Turn as Earlier
from pearl.documents.table.quantities import SCALES
from pearl.errors import PearlError
from pearl.retrieval.corpus import Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.search import Searcher

__all__ = ["KINDS", "Rules", "by_rules", "verdict"]

KINDS = ("right", "sign", "wrong", "refused")
COMPUTED = frozenset({"FIND_FIGURE", "CALCULATE", "EVALUATE"})
"""Actions whose value is a figure; what others give by rule are passages."""
TODAY = date(2021, 12, 31)
"""Relative periods refer to it: a date after all reports, the same on every day."""
LONGEST = 4
"""Turns with a later index, and programs with more steps, are counted together."""


@dataclass
class Rules:
    """Counts of turns for one setting.

    Attributes:
        total: Verdict → turns, against what the gold programs come to.
        by_people: The same against the answers that people wrote.
        by_program: Kind of the gold program → verdict → turns.
        by_turn: Place in the dialogue → verdict → turns.
        dialogues: Dialogues.
        dialogues_right: Those whose turns are all right.
        pages_right: Turns that were asked of the right page.
        wrong: Every wrong answer.
    """

    total: Counter[str] = field(default_factory=Counter)
    by_people: Counter[str] = field(default_factory=Counter)
    by_program: dict[str, Counter[str]] = field(default_factory=dict)
    by_turn: dict[str, Counter[str]] = field(default_factory=dict)
    dialogues: int = 0
    dialogues_right: int = 0
    pages_right: int = 0
    wrong: list[dict[str, str]] = field(default_factory=list)

    @property
    def turns(self) -> int:
        """All turns."""
        return self.total.total()

    @property
    def accuracy(self) -> float:
        """Right turns of all turns."""
        return self.total["right"] / max(self.turns, 1)

    @property
    def precision(self) -> float:
        """Right turns of those that were answered."""
        return _precision(self.total)

    def add(self, number: int, turn: Turn, answer: str | None, page: bool) -> bool:
        """Count the answer to a turn, None for none; whether it is right."""
        found = verdict(answer, str(turn.executed))
        self.total[found] += 1
        self.by_people[verdict(answer, turn.answer)] += 1
        self.by_program.setdefault(_kind(turn.program), Counter())[found] += 1
        place = f"{number}" if number <= LONGEST else f"{LONGEST + 1} or later"
        self.by_turn.setdefault(place, Counter())[found] += 1
        self.pages_right += page
        return found == "right"

    def as_json(self) -> dict[str, Any]:
        """All counts."""
        return {
            "turns": self.turns,
            "accuracy": self.accuracy,
            "precision": self.precision,
            **vars(self),
        }

    def __str__(self) -> str:
        head = (
            f"{'':24}{'turns':>7}" + "".join(f"{kind:>9}" for kind in KINDS) + "  right of answered"
        )
        lines = [
            _line("all turns", self.total),
            _line("  by people's answers", self.by_people),
            *(_line(f"  {kind}", self.by_program[kind]) for kind in sorted(self.by_program)),
            *(_line(f"  turn {place}", self.by_turn[place]) for place in sorted(self.by_turn)),
        ]
        share = self.dialogues_right / max(self.dialogues, 1)
        pages = self.pages_right / max(self.turns, 1)
        return "\n".join([
            head, *lines,
            f"dialogues all right     {self.dialogues_right:>7,} of {self.dialogues:,} ({share:.1%})",
            f"turns of the right page {self.pages_right:>7,} ({pages:.1%})",
        ])  # fmt: skip


def _line(name: str, counts: Counter[str]) -> str:
    n = counts.total()
    cells = "".join(f"{counts[kind]:>9,}" for kind in KINDS)
    return f"{name:24}{n:>7,}{cells}  {_precision(counts):.1%}"


def _precision(counts: Counter[str]) -> float:
    answered = counts.total() - counts["refused"]
    return counts["right"] / answered if answered else 0.0


def _kind(program: str) -> str:
    n_steps = len(parse(program).steps)
    if not n_steps:
        return "number"
    return f"{n_steps} steps" if n_steps < LONGEST else f"{LONGEST} steps or more"


def verdict(answer: str | None, reference: str) -> str:
    """What an answer is beside the right one.

    Example:
        >>> verdict("$ 5.2 million", "5.2"), verdict("-62", "62"), verdict("9", "5"), verdict(None, "5")
        ('right', 'sign', 'wrong', 'refused')
    """
    if answer is None:
        return "refused"
    said = [answer, _without_scale(answer)]
    if any(_is_same(each, reference) for each in said):
        return "right"
    bare = [each.translate(_SIGNS) for each in said]
    is_turned = any(
        _is_same(each + sign, reference.lstrip("-")) for each in bare for sign in ("", "%")
    )
    return "sign" if is_turned else "wrong"


_SIGNS = str.maketrans("", "", "-()%")


def _without_scale(text: str) -> str:
    """A figure in the scale of its table, as the gold programs have it."""
    for word in SCALES:
        text = text.replace(f" {word}", "")
    return text


def _is_same(answer: str, reference: str) -> bool:
    return match(answer, reference) not in (None, Rule.ONE_PERCENT)


def figure_of(answer: Answer) -> str | None:
    """The figure of an answer; None where it found none, is undecided, or has passages or several values."""
    if answer.status != "answered" or len(answer.outputs) != 1:
        return None
    (last,) = (step for step in answer.steps if step.output == answer.outputs[0])
    return answer.text.strip() if last.action in COMPUTED else None


async def by_rules(dialogues: Sequence[Dialogue]) -> dict[str, Rules]:
    """Every setting by its name."""
    found = {}
    index = _PageIndex(dialogues)
    async with Pearl(domain="finance", as_of=TODAY) as pearl:
        for name in ("page, questions", "page, answers", "corpus, questions", "corpus, metadata"):
            where, _, what = name.partition(", ")
            found[name] = rules = Rules()
            for dialogue in dialogues:
                history: list[Earlier] = []
                right = []
                for number, turn in enumerate(dialogue.turns, start=1):
                    page: Document | None = dialogue.page
                    if where == "corpus":
                        page = await index.best(
                            dialogue, turn, history, is_known=what == "metadata"
                        )
                    answer = None if page is None else await _answered(pearl, turn, page, history)
                    is_page = page is not None and page.text == dialogue.page.text
                    right.append(rules.add(number, turn, answer, is_page))
                    if verdict(answer, str(turn.executed)) == "wrong":
                        rules.wrong.append({
                            "id": dialogue.id, "turn": str(number), "question": turn.question,
                            "is": str(answer), "gold": str(turn.executed),
                        })  # fmt: skip
                    said = str(turn.executed) if what == "answers" else ""
                    history.append(Earlier(turn.question, said))
                rules.dialogues += 1
                rules.dialogues_right += all(right)
    return found


async def _answered(
    pearl: Pearl, turn: Turn, page: Document, history: Sequence[Earlier]
) -> str | None:
    try:
        return figure_of(await pearl.ask(turn.question, page, history=history))
    except PearlError:  # no figure, or operands that do not fit: refused
        return None


class _PageIndex:
    """The rows of all pages, with ticker and year in front of each."""

    def __init__(self, dialogues: Sequence[Dialogue]) -> None:
        rows = RowTopics(dialogues).pages
        self._index = Index.build(passages(rows, with_page=True), Cutting("document"))
        self._pages = {page_of(dialogue): dialogue.page for dialogue in dialogues}
        self._searcher = Searcher()

    async def best(
        self, dialogue: Dialogue, turn: Turn, history: Sequence[Earlier], *, is_known: bool
    ) -> Document | None:
        """The page of the row that matches best; None if none matches."""
        known = f" {' '.join(ticker_and_year(page_of(dialogue)))}" if is_known else ""
        earlier = [each.question for each in history]
        found = await self._searcher.search(self._index, turn.question + known, 1, history=earlier)
        return self._pages[found.hits[0].passage.fields["page"]] if found.hits else None
