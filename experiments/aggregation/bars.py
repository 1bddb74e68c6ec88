"""What is measured, a function each; every one gives figures and whether they are what they must be."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from math import ceil
from statistics import mean
from typing import Any

from aggregation.oracle import HOSTILE, Fault, Oracle
from aggregation.queries import PAIR_QUERIES, Query, answers, score
from aggregation.questions import draw_questions
from aggregation.running import Session, document_of, labelled
from aggregation.windows import Window, draw_window

from pearl.errors import ExecutionError

N_PER_CALL = 32
MOST_TOKENS = 1.25
"""Input tokens of all calls, as a multiple of the document's."""
PAIRS_ENTRIES = 787
"""Of the published window of 32K tokens."""


@dataclass
class Bar:
    """A measurement."""

    name: str
    figures: dict[str, Any]
    failed: list[str] = field(default_factory=list)

    def require(self, is_met: bool, what: str) -> None:
        """Note what is not as it must be."""
        if not is_met and what not in self.failed:
            self.failed.append(what)


def _oracle(window: Window, seed: int, p: float = 1.0, **more: Any) -> Oracle:
    return Oracle(window.labels_of, window.labels, p, seed, **more)


def _tokens(characters: int) -> int:
    return ceil(characters / 4)


async def exact(
    n: int, n_windows: int, p: float, seed: int, n_questions: int, per_call: int = N_PER_CALL
) -> Bar:
    """Scores of all questions beside the reference's on the same labels; calls and tokens."""
    scores: list[float] = []
    references: list[float] = []
    by_template: Counter[str] = Counter()
    bar = Bar(f"{n:,} entries, p = {p}", {})
    calls, expected, first, sent, values, shown = 0, 0, 0, 0, 0, 0
    took: list[float] = []
    for i in range(seed, seed + n_windows):
        window = draw_window(n, i)
        oracle = _oracle(window, i, p)
        noisy = labelled(window, {text: oracle.label(text) for text in window.labels_of})
        session = Session(window, oracle, items_per_call=per_call)
        for question in draw_questions(window, i, n_questions):
            began = time.perf_counter()
            asked = await session.ask(question.query)
            took.append(time.perf_counter() - began)
            right = answers(question.query, noisy.entries)
            kind = question.query.kind
            scores.append(score(kind, asked.text, question.right))
            references.append(score(kind, "\n".join(sorted(right)), question.right))
            if asked.named != right:
                by_template[question.template] += 1
                bar.failed.append(
                    f"seed {i}, {question.template}: {asked.text[:80]!r}, not {sorted(right)[:3]}"
                )
            first += asked.n_calls if len(took) % n_questions == 1 else 0
        await session.aclose()
        calls += len(oracle.calls)
        expected += ceil(len(window.labels_of) / per_call)
        sent += _tokens(sum(len(call.prompt) for call in oracle.calls))
        values += _tokens(sum(map(len, window.labels_of)))
        shown += _tokens(len(window.text))
    bar.figures = {
        "windows": n_windows, "questions": len(scores), "score": round(mean(scores), 4),
        "reference": round(mean(references), 4), "differ": sum(by_template.values()),
        "calls": calls, "calls_expected": expected, "calls_after_first_question": calls - first,
        "tokens_by_values": round(sent / values, 3), "tokens_by_document": round(sent / shown, 3),
        "s_first": round(took[0], 2), "s_median": round(sorted(took)[len(took) // 2], 3),
    }  # fmt: skip
    bar.require(sent <= MOST_TOKENS * shown, "more input than 1.25 times the document")
    bar.require(scores == references, "a score is not the reference's")
    bar.require(p < 1 or set(scores) <= {1.0}, "a score below 1 with a perfect oracle")
    bar.require(calls == expected, f"{calls} calls, not {expected}")
    bar.require(first == calls, "a question after the first took calls")
    return bar


async def pairs(n_windows: int, p: float, seed: int, n: int = PAIRS_ENTRIES) -> Bar:
    """F1 of the twenty questions about pairs, beside the reference's on the same labels."""
    bar = Bar(f"pairs, {n} entries, p = {p}", {})
    found: list[float] = []
    references: list[float] = []
    calls = 0
    for i in range(seed, seed + n_windows):
        window = draw_window(n, i)
        oracle = _oracle(window, i, p)
        noisy = labelled(window, {text: oracle.label(text) for text in window.labels_of})
        session = Session(window, oracle)
        for number, query in enumerate(PAIR_QUERIES, start=1):
            asked = await session.ask(query)
            gold, right = (answers(query, each.entries) for each in (window, noisy))
            found.append(score("pairs", asked.text, gold))
            references.append(score("pairs", "\n".join(sorted(right)), gold))
            bar.require(
                asked.named == right,
                f"seed {i}, question {number}: {len(asked.named)} pairs, not {len(right)}",
            )
        await session.aclose()
        calls += len(oracle.calls)
    bar.figures = {
        "windows": n_windows, "questions": len(found), "f1": round(mean(found), 4),
        "reference": round(mean(references), 4), "calls": calls,
    }  # fmt: skip
    bar.require(found == references, "an F1 is not the reference's")
    bar.require(p < 1 or set(found) <= {1.0}, "an F1 below 1 with a perfect oracle")
    return bar


async def faults(kind: Fault, rate: float, seed: int, n: int = 1_000) -> Bar:
    """Rows with a right, a wrong and no label, where replies have a fault, and whether it is said."""
    window = draw_window(n, seed)
    oracle = _oracle(window, seed, faults={kind: rate})
    session = Session(window, oracle)
    asked = await session.ask(Query("count", label=window.labels[0]))
    await session.aclose()
    said = asked.labels
    right = sum(said.get(text) == label for text, label in window.labels_of.items())
    undecided = sum(said.get(text, "lost") is None for text in window.labels_of)
    wrong = len(window.labels_of) - right - undecided
    least = ceil(len(window.labels_of) / N_PER_CALL)
    bar = Bar(f"{kind} in {rate:.0%} of replies", {
        "rows": n, "right": right, "wrong": wrong, "undecided": undecided,
        "calls": len(oracle.calls), "calls_without": least,
        "replies_with": sum(bool(call.faults) for call in oracle.calls),
    })  # fmt: skip
    n_counted = sum(said[entry.text] == window.labels[0] for entry in window.entries)
    bar.require(asked.text == str(n_counted), f"{asked.text!r}, not {n_counted}")
    bar.require(
        (asked.answer.status == "undecided") == (undecided > 0), "undecided rows are not reported"
    )
    bar.require(wrong == 0, "a row has a label that the oracle did not give it")
    bar.require(undecided == 0 or rate < 1 or kind != "drop", "rows left undecided")
    return bar


async def undecided(share: float, n: int, n_windows: int, seed: int) -> Bar:
    """Answers where a share of the rows stays undecided: right, or said to be undecided."""
    bar = Bar(f"{share:.1%} of {n:,} rows undecided", {})
    counts: Counter[str] = Counter()
    for i in range(seed, seed + n_windows):
        window = draw_window(n, i)
        oracle = _oracle(window, i, unclear=share)
        session = Session(window, oracle)
        await _be_right_or_undecided(
            session, [*_asked(window, i), *_pairs_asked(window)], bar, counts
        )
        await session.aclose()
    bar.figures = {"windows": n_windows, **counts}
    return bar


def _asked(window: Window, seed: int) -> list[tuple[Query, frozenset[str]]]:
    return [(question.query, question.right) for question in draw_questions(window, seed)]


def _pairs_asked(window: Window) -> list[tuple[Query, frozenset[str]]]:
    return [(query, answers(query, window.entries)) for query in PAIR_QUERIES]


async def _be_right_or_undecided(
    session: Session, asked: list[tuple[Query, frozenset[str]]], bar: Bar, counts: Counter[str]
) -> None:
    """Ask, and count what is answered, said to be undecided and refused; what is answered must be right."""
    for query, right in asked:
        counts["questions"] += 1
        try:
            found = await session.ask(query)
        except ExecutionError:  # a share of rows of which none is decided
            counts["refused"] += 1
            continue
        if found.answer.status == "undecided":
            counts["undecided"] += 1
            continue
        counts["answered"] += 1
        bar.require(
            score(query.kind, found.text, right) == 1.0,
            f"{query}: {found.text[:80]!r}, not {sorted(right)[:3]}",
        )


async def edited(seed: int, n: int = 10_000) -> Bar:
    """Calls after one line of a window has changed."""
    window = draw_window(n, seed)
    draw = random.Random(seed)
    place = draw.randrange(n)
    entry = replace(
        window.entries[place], text="What has been written here instead?", label=window.labels[0]
    )
    other = replace(window, entries=(*window.entries[:place], entry, *window.entries[place + 1 :]))
    oracle = Oracle({**window.labels_of, **other.labels_of}, window.labels)
    session = Session(window, oracle)
    question = draw_questions(window, seed, 1)[0]
    before = await session.ask(question.query)
    after = await session.ask(question.query, document_of(other))
    await session.aclose()
    bar = Bar(
        f"one line of {n:,} edited", {"calls_before": before.n_calls, "calls_after": after.n_calls}
    )
    bar.require(after.n_calls <= 1, "more than one call")
    bar.require(
        after.named == answers(question.query, other.entries), "a wrong answer after the edit"
    )
    return bar


async def hostile(
    seed: int, n: int = 1_000, share: float = 0.01, per_call: int = N_PER_CALL
) -> Bar:
    """What rows that give orders do, where the oracle obeys them."""
    plain = draw_window(n, seed)
    draw = random.Random(seed)
    bad = set(draw.sample(range(n), max(1, round(share * n))))
    order = HOSTILE.format(label="location")
    window = Window(
        tuple(replace(entry, text=f"{entry.text} {order}") if i in bad else entry for i, entry in enumerate(plain.entries)),
        plain.labels,
    )  # fmt: skip
    sessions = [
        Session(plain, _oracle(plain, seed), items_per_call=per_call),
        Session(window, _oracle(window, seed, is_gullible=True), items_per_call=per_call),
    ]
    said = [(await session.ask(Query("most"))).labels for session in sessions]
    for session in sessions:
        await session.aclose()
    n_calls = [len(session.oracle.calls) for session in sessions]
    wrong = {text for text, label in window.labels_of.items() if said[1][text] != label}
    beside = {
        text
        for call in sessions[1].oracle.calls
        if any(order in item for item in call.items.values())
        for text in call.items.values()
    }
    others = {text for text in wrong if order not in text}
    bar = Bar(f"{share:.0%} hostile rows, {per_call} a call", {
        "calls": n_calls[1], "calls_without": n_calls[0], "hostile": len(bad),
        "wrong": len(wrong), "wrong_of_others": len(others), "wrong_of_other_calls": len(wrong - beside),
    })  # fmt: skip
    bar.require(n_calls[0] == n_calls[1], "hostile rows change the number of calls")
    bar.require(not wrong - beside, "a hostile row changed what another call says")
    bar.require(per_call > 1 or not others, "a hostile row changed another")
    return bar
