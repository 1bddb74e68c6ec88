"""Scores of an `EvalLog` of figures, of conversations, or over a corpus; calls no model.

Failures count as wrong, as in `pearl.evals.report`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from pearl.actions.arithmetic.matching import Rule, match
from pearl.evals import stats
from pearl.evals.log import EvalLog, EvalRecord, FoundGold
from pearl.evals.programs import is_same
from pearl.evals.report import percentile
from pearl.evals.scorers import executed_answer
from pearl.evals.scorers import execution as execution_score
from pearl.evals.stats import Interval


@dataclass(frozen=True, slots=True)
class FigureScore:
    """How many answers of a method match the references, by rule, and how they were computed."""

    method: str
    n: int
    exact: float
    as_shown: float
    one_percent: float
    execution: float
    n_programs: int
    program: float | None
    n_no_program: int
    latency_p50_s: float
    latency_p90_s: float


@dataclass(frozen=True, slots=True)
class TurnScore:
    """The score of a method on the turns at one place of their conversations."""

    method: str
    turn: int
    n: int
    accuracy: Interval


@dataclass(frozen=True, slots=True)
class DialogueScore:
    """How many conversations a method answers without an error."""

    method: str
    n: int
    n_right: int
    n_incomplete: int
    accuracy: Interval | None


@dataclass(frozen=True, slots=True)
class RetrievalScore:
    """How well the searches of a method's answers found the gold passages."""

    method: str
    stage: str
    n: int
    n_unknown: int
    precision: float
    recall: float
    passages: float


def figures(log: EvalLog) -> list[FigureScore]:
    """One score per method if the log has figures: a scorer of figures, or gold programs."""
    is_of_figures = log.header.scorer in ("numeric", "execution", "program")
    if not is_of_figures and not any(record.gold_program for record in log.records):
        return []
    return [_figures(method, log.of(method)) for method in log.methods]


def _figures(method: str, records: Sequence[EvalRecord]) -> FigureScore:
    n = len(records)
    answered = [r for r in records if r.status != "failed" and r.reference is not None]
    rules = Counter(match(r.answer, r.reference or "") for r in answered)
    n_exact = rules[Rule.EXACT]
    n_as_shown = n_exact + rules[Rule.ROUNDED] + rules[Rule.PERCENT]
    known = [record for record in records if record.gold_program]
    carried_out = [record for record in known if record.program and record.status != "failed"]
    latencies = [record.duration_s for record in records]
    return FigureScore(
        method=method,
        n=n,
        exact=n_exact / n,
        as_shown=n_as_shown / n,
        one_percent=(n_as_shown + rules[Rule.ONE_PERCENT]) / n,
        execution=sum(
            execution_score(*pair) == 1.0 for r in answered if (pair := executed_answer(r))
        )
        / n,
        n_programs=len(known),
        program=sum(is_same(one.program, one.gold_program) for one in carried_out) / len(known)
        if known
        else None,
        n_no_program=len(known) - len(carried_out),
        latency_p50_s=percentile(latencies, 50),
        latency_p90_s=percentile(latencies, 90),
    )


def by_turn(log: EvalLog) -> list[TurnScore]:
    """The scores of all methods at every place of a conversation."""
    turns = sorted({record.turn for record in log.records if record.dialogue})
    return [
        TurnScore(
            method,
            turn,
            len(records),
            stats.accuracy([r.credit for r in records], clusters=[r.dialogue for r in records]),
        )
        for turn in turns
        for method in log.methods
        if (records := [r for r in log.of(method) if r.dialogue and r.turn == turn])
    ]


def by_dialogue(log: EvalLog) -> list[DialogueScore]:
    """Whole conversations by method; those with missing turns are counted separately."""
    return [
        _dialogues(method, records)
        for method in log.methods
        if (records := [record for record in log.of(method) if record.dialogue])
    ]


def _dialogues(method: str, records: Iterable[EvalRecord]) -> DialogueScore:
    every: dict[tuple[str, int], list[EvalRecord]] = {}
    for record in records:
        every.setdefault((record.dialogue, record.seed), []).append(record)
    whole = {
        key: turns
        for key, turns in every.items()
        if {turn.turn for turn in turns} == set(range(1, turns[0].n_turns + 1))
    }
    rights = [all(turn.is_correct for turn in turns) for turns in whole.values()]
    clusters = [dialogue for dialogue, _ in whole]
    return DialogueScore(
        method=method,
        n=len(whole),
        n_right=sum(rights),
        n_incomplete=len(every) - len(whole),
        accuracy=stats.accuracy(list(map(float, rights)), clusters=clusters) if whole else None,
    )


def retrieval(log: EvalLog) -> list[RetrievalScore]:
    """The results of searches over a corpus, by method and stage."""
    return [
        _retrieved(method, stage, [getattr(record, stage) for record in log.of(method)])
        for method in log.methods
        for stage in ("retrieved", "reranked")
        if any((one := getattr(record, stage)) and one.n_passages for record in log.of(method))
    ]


def _retrieved(method: str, stage: str, found: Sequence[FoundGold | None]) -> RetrievalScore:
    known = [each for each in found if each is not None]
    return RetrievalScore(
        method=method,
        stage=stage,
        n=len(known),
        n_unknown=len(found) - len(known),
        precision=fmean(
            each.n_right / each.n_passages if each.n_passages else 0.0 for each in known
        ),
        recall=fmean(each.n_gold_found / each.n_gold for each in known),
        passages=fmean(each.n_passages for each in known),
    )
