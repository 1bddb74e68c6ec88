"""When calls and waits were, by the trace."""

from __future__ import annotations

from pearl.llm import Usage
from pearl.trace import CallFailed, ModelCalled, ModelWaited, PlanAttempted
from pearl.view.page import bars, n_at_once


def called(step: str, t_s: float, duration_s: float, *, is_remembered: bool = False) -> ModelCalled:
    return ModelCalled(
        t_s=t_s, step=step, purpose="step", model="m", duration_s=duration_s, usage=Usage(),
        is_remembered=is_remembered,
    )  # fmt: skip


def test_everything_that_took_time_has_a_bar() -> None:
    failed = CallFailed(
        t_s=5.0, step="b", purpose="step", model="m", kind="truncated", reply="", duration_s=2.0, usage=Usage()
    )  # fmt: skip
    found = bars(
        [
            PlanAttempted(t_s=1.0, round=0, model="m", reply="x", diagnostics=("wrong",)),
            PlanAttempted(t_s=1.5, round=1, model="m", reply="y"),
            called("a", 4.0, 2.0),
            failed,
            ModelWaited(t_s=5.0, reason="it is busy", wait_s=1.0, attempt=1),
            called("b", 6.0, 0.0, is_remembered=True),
        ]
    )
    assert [(bar.kind, bar.start_s, bar.end_s) for bar in found] == [
        ("plan", 0.0, 1.0),
        ("plan", 1.0, 1.5),
        ("call", 2.0, 4.0),
        ("failed", 3.0, 5.0),
        ("wait", 5.0, 6.0),
        ("kept", 6.0, 6.0),
    ]
    assert n_at_once(found) == 2


def test_one_call_after_the_other_is_never_two_at_once() -> None:
    assert n_at_once(bars([called("a", 1.0, 1.0), called("b", 2.0, 1.0)])) == 1
