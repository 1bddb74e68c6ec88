"""A single question on a terminal: its plan, step by step, from real processes and as drawn lines."""

from __future__ import annotations

import signal
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from pearl.cli import progress
from pearl.cli.progress import PlanProgress
from pearl.llm import Usage
from pearl.llm.prices import Price
from pearl.trace import (
    Event,
    ModelCalled,
    ModelProgressed,
    ModelWaited,
    PlanAttempted,
    RunStarted,
    StepFailed,
    StepFinished,
    StepStarted,
)
from tests.cli.own_terminal import OnTerminal
from tests.server import Server

PLAN = """\
New actions:
- None

1. reason = FIND_REASON(CTX, "the boat") : Find why it was sold
2. mood = FIND_EMOTION(CTX, reason, "her brother") : How she felt
"""
OUTPUTS = ("reason", "mood")
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"
"""What hides the cursor, and shows it again."""


@pytest.mark.slow
def test_ctrl_c_leaves_the_terminal_as_it_was(openai_server: Server, tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("Ada sold the boat because it leaked.", encoding="utf-8")
    (tmp_path / "why.plan").write_text(PLAN, encoding="utf-8")
    openai_server.next("hang")
    command = ("execute", "why.plan", "story.txt", "--model", "openai:m", "--base-url")
    child = OnTerminal(tmp_path, "-m", "pearl", *command, openai_server.url, "--timeout-s", "60")
    try:
        while HIDDEN not in child.written or "1. reason" not in child.written:
            assert child.read(), child.written
        n = len(child.written)
        child.process.send_signal(signal.SIGINT)
        assert child.end() == 130, child.written
    finally:
        child.close()
    after = child.written[n:]
    assert "\x1b[2K" in after, "what was live is gone"
    assert after.rfind(SHOWN) > child.written.rfind(HIDDEN) - n
    assert not any(word in child.written for word in ("Traceback", "a bug in PEARL"))


# --- as drawn -------------------------------------------------------------------------------------


def started(plan: str = PLAN, outputs: tuple[str, ...] = OUTPUTS) -> RunStarted:
    return RunStarted(
        question="Why?", plan=plan, method="plan", document="d", document_sha256="", n_characters=9,
        n_document_tokens=3, token_count="estimate", model="m", window=None, steps=outputs,
    )  # fmt: skip


def finished(step: str, state: str = "found", truncated: str = "", s: float = 3.0) -> StepFinished:
    return StepFinished(
        step=step, action="FIND", value="v", state=state, truncated=truncated, is_native=False,
        context="full", coverage=1.0, n_calls=1, usage=Usage(1_000, 200), duration_s=s,
    )  # fmt: skip


def called(step: str) -> ModelCalled:
    return ModelCalled(
        step=step, purpose="step", model="m", duration_s=3.0, usage=Usage(1_000, 200)
    )


def watched(*events: Event) -> PlanProgress:
    seen = PlanProgress(reads_plan=True, price=Price(input_usd=1.0, output_usd=10.0))
    for event in events:
        seen.note(event)
    return seen


def drawn(seen: PlanProgress, width: int = 80, encoding: str = "utf-8") -> str:
    file = TextIOWrapper(BytesIO(), encoding=encoding)
    console = Console(file=file, width=width, highlight=False)
    console.print(seen.drawn(console))
    file.seek(0)
    return "\n".join(line.rstrip() for line in file.read().rstrip("\n").split("\n"))


def looks(seen: PlanProgress) -> dict[str, object]:
    cells = [*seen.drawn(Console(width=80)).columns][1].cells
    return {str(cell): cell.style for cell in cells if isinstance(cell, Text)}


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stands still where lines are drawn in this process."""
    monkeypatch.setattr(progress, "monotonic", lambda: 100.0)


WRITING = ModelProgressed(
    purpose="step", step="mood", phase="writing", n_tokens=12, text="She was\nglad \x1b[31mof it"
)


def test_a_screen() -> None:
    attempted = PlanAttempted(
        round=0, model="m", reply="", diagnostics=("1:2: error: no action 'X'\n  | x",),
        usage=Usage(10, 2),
    )  # fmt: skip
    seen = watched(
        ModelProgressed(purpose="plan", phase="asked"), attempted,
        ModelProgressed(purpose="plan", phase="asked", attempt=2),
    )  # fmt: skip
    said = drawn(seen)
    assert "⠋ writing the plan (attempt 2) " in said
    assert "\n  1 problem in attempt 1: 1:2: error: no action 'X'\n" in said
    for event in (
        replace(attempted, diagnostics=()), started(),
        StepStarted(step="reason", action="FIND_REASON"), called("reason"), finished("reason"),
        StepStarted(step="mood", action="FIND_EMOTION"), WRITING,
    ):  # fmt: skip
        seen.note(event)
    assert drawn(seen) == (
        "✓ plan written at attempt 2                             0 s, 24 tokens, $0.0001\n"
        '✓ 1. reason = FIND_REASON(CTX, "the boat") : Find w… 3 s, 1,200 tokens, $0.0030\n'
        '⠋ 2. mood = FIND_EMOTION(CTX, reason, "her brother"…                        0 s\n'
        "  12 tokens\n"
        "  She was glad \\u001b[31mof it\n"
        "  1 of 2 steps                                       0 s, 1,224 tokens, $0.0031"
    )


def test_why_a_step_waits_is_told() -> None:
    waited = ModelWaited(
        reason="the server is busy", wait_s=34, attempt=3, n_attempts=7, step="mood"
    )
    seen = watched(started(), StepStarted(step="mood", action="X"), WRITING, waited)
    assert "\n  waits 34 s, retry 3 of 6: the server is busy\n" in drawn(seen)
    assert "glad" not in drawn(seen), "that attempt is over"
    limit = replace(waited, attempt=0, n_attempts=0, reason="rate limit")
    seen.note(limit)
    assert "\n  waits 34 s: rate limit\n" in drawn(seen)
    failed = watched(started(), StepFailed(step="mood", error="no reply"))
    assert looks(seen)["waits 34 s: rate limit"] == looks(failed)["no reply"] == "yellow"
    seen.note(WRITING)
    assert "waits" not in drawn(seen)
    assert looks(seen)["12 tokens"] == "dim"


def test_silence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(started(), StepStarted(step="mood", action="X"))
    monkeypatch.setattr(progress, "monotonic", lambda: 100 + progress.SLOW_S - 1)
    assert "no news" not in drawn(seen)
    monkeypatch.setattr(progress, "monotonic", lambda: 100 + progress.SLOW_S)
    assert "\n  no progress for 20 s\n" in drawn(seen)


@example(text="x" * 500, width=12, encoding="ascii")
@given(
    text=st.text(max_size=500), width=st.integers(12, 200),
    encoding=st.sampled_from(["utf-8", "ascii", "latin-1", "cp437"]),
)  # fmt: skip
def test_every_line_fits_whatever_is_said(text: str, width: int, encoding: str) -> None:
    seen = watched(
        started(),
        ModelProgressed(purpose="step", step="reason", phase="writing", text=text),
        ModelWaited(reason=text, wait_s=1, attempt=1, n_attempts=2, step="mood"),
        StepFailed(step=text, error=text),
    )  # fmt: skip
    for row in drawn(seen, width, encoding).split("\n"):
        assert cell_len(row) <= width
        row.encode(encoding)  # raises if the terminal cannot show it
        assert row.isprintable() or all(c.isprintable() or ord(c) > 160 for c in row)
