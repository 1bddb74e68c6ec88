"""What scores are made of: outcomes, plans, figures, conversations and searches, as tables on a terminal."""

from __future__ import annotations

import click

from pearl.cli.tables import ends, figures, show
from pearl.errors.wording import counted
from pearl.evals import conversations
from pearl.evals.log import EvalLog
from pearl.evals.report import KINDS, outcomes, plan_figures


def print_conversations(log: EvalLog) -> None:
    """Print the tables that a log has something for."""
    _outcomes(log)
    _plans(log)
    _figures(log)
    _turns(log)
    _dialogues(log)
    _retrieval(log)


def _outcomes(log: EvalLog) -> None:
    click.echo("")
    table = figures("outcomes", *(kind.replace(" ", "\n") for kind in KINDS))
    for one in outcomes(log):
        table.add_row(one.method, *(f"{one.n_of[kind]:,}" for kind in KINDS))
    show(table)


def _plans(log: EvalLog) -> None:
    found = plan_figures(log)
    if not found:
        return
    click.echo("")
    table = figures(
        "plans", "n", "different", "steps", "calls", "depth", "width", "actions", "in all"
    )
    for one in found:
        means = (one.steps, one.calls, one.depth, one.width, one.actions)
        table.add_row(
            one.method,
            f"{one.n:,}",
            f"{one.n_different:,}",
            *(f"{mean:.1f}" for mean in means),
            f"{one.n_actions:,}",
        )
    show(table)
    for one in found:
        used = ", ".join(f"{name} {n:,}" for name, n in one.most_used)
        click.echo(f"{one.method}, most used: {used}")


def _figures(log: EvalLog) -> None:
    scores = conversations.figures(log)
    if not scores:
        return
    click.echo("")
    has_programs = any(score.n_programs for score in scores)
    programs = ("program\n%", "no\nprogram") if has_programs else ()
    table = figures(
        "figures", "exact\n%", "as shown\n%", "within\n1 %", "execution\n%", *programs, "s\np50", "s\np90"
    )  # fmt: skip
    for score in scores:
        program = "" if score.program is None else _percent(score.program)
        table.add_row(
            score.method,
            *map(_percent, (score.exact, score.as_shown, score.one_percent, score.execution)),
            *((program, f"{score.n_no_program:,}") if has_programs else ()),
            f"{score.latency_p50_s:.2f}",
            f"{score.latency_p90_s:.2f}",
        )
    show(table)


def _turns(log: EvalLog) -> None:
    scores = conversations.by_turn(log)
    if not scores:
        return
    click.echo("")
    table = figures("turn", "method", "n", "accuracy\n%", "95 %")
    for score in scores:
        table.add_row(
            str(score.turn),
            score.method,
            f"{score.n:,}",
            _percent(score.accuracy.estimate),
            ends(score.accuracy),
        )
    show(table)


def _dialogues(log: EvalLog) -> None:
    scores = conversations.by_dialogue(log)
    if not scores:
        return
    click.echo("")
    table = figures("whole dialogues", "right", "%", "95 %", "incomplete")
    for score in scores:
        interval = score.accuracy
        table.add_row(
            score.method,
            f"{score.n_right:,}/{score.n:,}",
            "" if interval is None else _percent(interval.estimate),
            "" if interval is None else ends(interval),
            f"{score.n_incomplete:,}",
        )
    show(table)
    if n := max(score.n_incomplete for score in scores):
        click.echo(f"{counted(n, 'dialogue')} with a turn missing: not counted as whole ones")


def _retrieval(log: EvalLog) -> None:
    scores = conversations.retrieval(log)
    if not scores:
        return
    click.echo("")
    table = figures(
        "searches", "stage", "n", "precision\n%", "recall\n%", "passages", "not\nmeasured"
    )
    for score in scores:
        table.add_row(
            score.method,
            score.stage,
            f"{score.n:,}",
            _percent(score.precision),
            _percent(score.recall),
            f"{score.passages:.1f}",
            f"{score.n_unknown:,}",
        )
    show(table)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
