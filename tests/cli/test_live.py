"""A single question on a terminal: its plan, step by step, from real processes and as drawn lines."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from pearl.cli import progress
from pearl.cli.progress import PlanSection, Screen
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
from tests.cli.emulator import OnTerminal
from tests.cli.test_progress import Held
from tests.server import Canned, Server, completion, error

PLAN = """\
New actions:
- None

1. reason = FIND_REASON(CTX, "the boat") : Find why it was sold
2. mood = FIND_EMOTION(CTX, reason, "her brother") : How she felt
"""
OUTPUTS = ("reason", "mood")


class Child(OnTerminal):
    """A command on a terminal whose screen is looked at."""

    def until(self, wanted: Callable[[str], bool]) -> str:
        """Read its output until the screen shows something, or it has ended."""
        while not wanted(self.terminal.screen) and (text := self.read()):
            self.terminal.feed(text)
        return self.terminal.screen

    def shows(self, *parts: str) -> str:
        """Wait until the screen has all of these parts at once."""
        screen = self.until(lambda screen: all(part in screen for part in parts))
        assert all(part in screen for part in parts), screen
        return screen

    def last(self) -> str:
        """Wait for its end; returns the screen."""
        screen = self.until(lambda screen: False)
        self.process.wait()
        return screen


@contextmanager
def on_a_terminal(
    server: Server, folder: Path, *args: str, width: int = 80, height: int = 24, **env: str
) -> Iterator[Child]:
    """A command that asks the server, with a terminal for everything."""
    (folder / "story.txt").write_text("Ada sold the boat because it leaked.", encoding="utf-8")
    (folder / "why.plan").write_text(PLAN, encoding="utf-8")
    child = Child(
        folder, "-m", "pearl", *args, "--model", "openai:gpt-4o-mini", "--base-url", server.url,
        "--constrain", "off", "--timeout-s", "60", width=width, height=height, **env,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.close()


QUOTE = "> Ada sold the boat because it leaked."
GLAD, LEAKED = f"Glad.\n{QUOTE}", f"It leaked.\n{QUOTE}"


@pytest.mark.slow
def test_steps_turn_from_waiting_to_running_to_done(openai_server: Server, tmp_path: Path) -> None:
    said = Canned(completion("> Ada sold the boat because it leaked."))
    held = Held(openai_server, Canned(completion(PLAN)), said, Canned(completion(GLAD)))
    with on_a_terminal(openai_server, tmp_path, "ask", "Why?", "story.txt") as child:
        child.shows("writing the plan (attempt 1)")
        held.let_go()
        screen = child.shows("✓ plan written", " 1. reason = FIND_REASON(CTX", "needs reason")
        assert "· 2. mood = FIND_EMOTION" in screen
        assert "✓ 1." not in screen
        assert not child.terminal.has_cursor
        held.let_go()
        screen = child.shows("✓ 1. reason", "1 of 2 steps")
        assert "needs" not in screen
        held.let_go()
        screen = child.last()
        assert child.process.returncode == 0, screen
    assert child.terminal.has_cursor
    assert not child.terminal.n_wrapped
    assert screen.count("1. reason = ") == 1, "what was live stays once"
    steps, _, answer = screen.partition("2 of 2 steps")
    assert "✓ 1. reason" in steps
    assert "✓ 2. mood" in steps
    assert " tokens, $0." in steps
    assert "Glad." in answer


@pytest.mark.slow
def test_a_wait_is_told_and_resizing_does_no_harm(openai_server: Server, tmp_path: Path) -> None:
    slow = Canned(error("slow down"), 429, {"retry-after": "2"})
    replies = (Canned(completion(LEAKED)), Canned(completion(GLAD)))
    held = Held(openai_server, slow, *replies)
    with on_a_terminal(openai_server, tmp_path, "execute", "why.plan", "story.txt") as child:
        child.shows("1. reason")
        held.let_go()
        child.shows("waits 2 s, retry 1 of ", "429")
        child.resize(40, 10)
        held.let_go()
        child.shows("✓ 1. reason = FIND_REASON(CTX, ", "…")
        held.let_go()
        screen = child.last()
        assert child.process.returncode == 0, screen
    assert "Glad." in screen


@pytest.mark.slow
def test_ctrl_c_leaves_the_terminal_as_it_was(openai_server: Server, tmp_path: Path) -> None:
    held = Held(openai_server, Canned(completion("nobody reads it")))
    with on_a_terminal(openai_server, tmp_path, "execute", "why.plan", "story.txt") as child:
        child.shows("1. reason")
        child.until(lambda screen: not child.terminal.has_cursor)
        child.process.send_signal(signal.SIGINT)
        screen = child.last()
        assert child.process.returncode == 130, screen
        held.let_go()
    assert child.terminal.has_cursor
    assert "1. reason" not in screen
    assert not any(word in screen for word in ("Traceback", "a bug in PEARL"))


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


def watched(*events: Event) -> PlanSection:
    seen = PlanSection(reads_plan=True, price=Price(input_usd=1.0, output_usd=10.0))
    for event in events:
        seen.note(event)
    return seen


def drawn(
    seen: PlanSection,
    width: int = 80,
    height: int = 24,
    encoding: str = "utf-8",
    *,
    ended: bool = False,
) -> str:
    file = TextIOWrapper(BytesIO(), encoding=encoding)
    console = Console(file=file, width=width, height=height, highlight=False)
    screen = Screen(seen, console)
    console.print(*screen.lines(is_over=ended), sep="\n")
    file.seek(0)
    return "\n".join(line.rstrip() for line in file.read().rstrip("\n").split("\n"))


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
    assert drawn(seen) == (
        "⠋ writing the plan (attempt 2)                          0 s, 12 tokens, $0.0000\n"
        "  1 problem in attempt 1: 1:2: error: no action 'X'\n"
        "0 s, 12 tokens, $0.0000"
    )
    for event in (
        attempted.model_copy(update={"diagnostics": ()}), started(),
        StepStarted(step="reason", action="FIND_REASON"), called("reason"), finished("reason"),
        StepStarted(step="mood", action="FIND_EMOTION"), WRITING,
    ):  # fmt: skip
        seen.note(event)
    assert drawn(seen) == (
        "✓ plan written at attempt 2                             0 s, 24 tokens, $0.0001\n"
        '✓ 1. reason = FIND_REASON(CTX, "the boat") : Find w… 3 s, 1,200 tokens, $0.0030\n'
        '⠋ 2. mood = FIND_EMOTION(CTX, reason, "her brother") : How she felt         0 s\n'
        "  12 tokens\n"
        "  She was glad \\u001b[31mof it\n"
        "1 of 2 steps, 0 s, 1,224 tokens, $0.0031"
    )


def test_how_a_step_ended_is_told_in_words_too() -> None:
    for event, word, mark in (
        (finished("reason"), "", "✓"),
        (finished("reason", state="nothing"), "nothing found", "–"),
        (finished("reason", state="undecided"), "undecided", "?"),
        (finished("reason", truncated="the end"), "degraded", "!"),
        (StepFailed(step="reason", error="no reply"), "failed", "✗"),
    ):
        row = drawn(watched(started(), event)).split("\n")[0]
        assert row.startswith(f"{mark} 1. reason")
        assert word in row


def test_why_a_step_waits_is_told() -> None:
    waited = ModelWaited(
        reason="the server is busy", wait_s=34, attempt=3, n_attempts=7, step="mood"
    )
    seen = watched(started(), StepStarted(step="mood", action="X"), WRITING, waited)
    assert "\n  waits 34 s, retry 3 of 6: the server is busy\n" in drawn(seen)
    assert "glad" not in drawn(seen), "that attempt is over"
    limit = waited.model_copy(update={"attempt": 0, "n_attempts": 0, "reason": "rate limit"})
    seen.note(limit)
    assert "\n  waits 34 s: rate limit\n" in drawn(seen)
    seen.note(WRITING)
    assert "waits" not in drawn(seen)


def test_silence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(started(), StepStarted(step="mood", action="X"))
    monkeypatch.setattr(progress, "monotonic", lambda: 100 + progress.SLOW_S - 1)
    assert "no news" not in drawn(seen)
    monkeypatch.setattr(progress, "monotonic", lambda: 100 + progress.SLOW_S)
    assert "\n  no progress for 20 s\n" in drawn(seen)


LONG = "New actions:\n- None\n\n" + "".join(
    f'{n}. v{n} = FIND_REASON(CTX, "boat {n}") : x\n' for n in range(1, 31)
)
NAMES = tuple(f"v{n}" for n in range(1, 31))


def test_a_plan_longer_than_the_screen_is_a_line_that_says_what_runs() -> None:
    seen = watched(started(LONG, NAMES), *[finished(name) for name in NAMES[:10]])
    seen.note(StepStarted(step="v11", action="FIND_REASON"))
    said = drawn(seen, height=12).split("\n")
    assert said[0] == "10 of 30 steps; running: v11"
    assert len(said) == 2
    assert len(drawn(seen, ended=True).split("\n")) == 31


@example(text="", width=1, height=8, encoding="utf-8")
@given(
    text=st.text(max_size=500), width=st.integers(1, 200), height=st.integers(1, 40),
    encoding=st.sampled_from(["utf-8", "ascii", "latin-1", "cp437"]),
)  # fmt: skip
def test_every_line_fits_whatever_is_said(
    text: str, width: int, height: int, encoding: str
) -> None:
    seen = watched(
        started(LONG, NAMES), *[finished(name) for name in NAMES[:3]],
        ModelProgressed(purpose="step", step="v4", phase="writing", text=text),
        ModelWaited(reason=text, wait_s=1, attempt=1, n_attempts=2, step="v5"),
        StepFailed(step=text, error=text),
    )  # fmt: skip
    rows = drawn(seen, width, height, encoding).split("\n")
    assert len(rows) <= max(1, height - 1)
    for row in rows:
        assert cell_len(row) <= max(1, width)
        row.encode(encoding)  # raises if the terminal cannot show it
        assert row.isprintable() or all(c.isprintable() or ord(c) > 160 for c in row)
