"""What people see while they wait, from real processes; servers hold until it was seen."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pearl import Document, Pearl, Trace
from pearl.cli import progress
from pearl.cli.progress import Reporter
from pearl.llm import Usage
from pearl.llm.backends.scripted import Scripted
from pearl.trace import Event, ModelProgressed, PlanAttempted, PlanFailed, StepFailed
from tests.server import Canned, Seen, Server, completion

PLAN = 'New actions:\n- None\n\n1. reason = FIND_REASON(CTX, "the boat") : Find why it was sold\n'
QUESTION = "Why did Ada sell the boat?"

OFTEN = """
import sys
from pearl.cli import main, progress
progress.FIRST_LINE_S = progress.LINES_S = 0.05
main()
"""


class Held:
    """A server's replies, each held back until the test lets it go."""

    def __init__(self, server: Server, *replies: Canned) -> None:
        self._replies = list(replies)
        self._go = threading.Semaphore(0)
        server.answer = self._answer

    def _answer(self, seen: Seen) -> Canned:
        assert self._go.acquire(timeout=60), "nobody has seen what was waited for"
        return self._replies.pop(0)

    def let_go(self) -> None:
        """Send the next reply."""
        self._go.release()


@contextmanager
def asking(server: Server, folder: Path, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """`pearl ask` in a process of its own."""
    story = folder / "story.txt"
    story.write_text("Ada sold the boat because it leaked.", encoding="utf-8")
    command = [
        sys.executable, "-c", OFTEN, "ask", QUESTION, str(story), "--model", "openai:test-model",
        "--base-url", server.url, "--constrain", "off", "--timeout-s", "60", *args,
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.kill()


def until(read: Callable[[], bytes], wanted: str, seen: list[str]) -> None:
    """Read what is said until something is among it."""
    while data := read():
        seen.append(data.decode(errors="replace"))
        if wanted in "".join(seen):
            return
    raise AssertionError(f"{wanted!r} was never said: {''.join(seen)}")


LEAKED = "It leaked.\n> Ada sold the boat because it leaked."


@pytest.mark.slow
def test_lines_say_what_is_done_and_the_plan_comes_before_its_steps(
    openai_server: Server, tmp_path: Path
) -> None:
    held = Held(openai_server, Canned(completion(PLAN)), Canned(completion(LEAKED)))
    said: list[str] = []
    with asking(openai_server, tmp_path) as child:
        assert child.stderr
        assert child.stdout
        until(child.stderr.readline, "pearl: writing the plan (attempt 1), ", said)
        assert "FIND_REASON" not in "".join(said)
        held.let_go()
        until(child.stderr.readline, "1. reason = FIND_REASON(CTX", said)
        until(child.stderr.readline, "pearl: step 1 of 1: reason = FIND_REASON, ", said)
        held.let_go()
        out = child.stdout.read().decode()
        said.append(child.stderr.read().decode())
        assert child.wait() == 0, said
    assert out.startswith("It leaked.")
    assert "FIND_REASON" not in out
    assert "".join(said).count("1. reason = ") == 1


def test_what_has_ended_is_not_said_to_go_on() -> None:
    def asked(reporter: progress.Reporter, id: str) -> None:
        reporter(id, ModelProgressed(purpose="plan", phase="asked"))

    def line(ended: Event) -> str:
        reporter = progress.Reporter(2)
        asked(reporter, "a")
        assert "a: writing the plan" in reporter._line()
        reporter("a", ended)
        return reporter._line()

    attempted = PlanAttempted(round=0, model="m", reply="", diagnostics=(), usage=Usage())
    for ended in (PlanFailed(n_attempts=5), attempted):
        assert "writing" not in line(ended)
    assert "1 problem in attempt 1" in line(attempted.model_copy(update={"diagnostics": ("no",)}))


@pytest.mark.parametrize("total", [1, 2])
def test_the_progress_of_a_private_run_has_no_words_of_data_questions_and_replies(
    total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_PRIVATE", "1")
    reporter, screen, lines = Reporter(total), progress.PlanSection(), []

    def listen(event: Event) -> None:
        reporter("Zelmira", event)
        screen.note(event)
        lines.append(reporter._line())
        lines.extend(map(str, (*screen.parts.values(), *screen.steps.values())))

    plans = [
        "1. Zelmira = NO_SUCH(CTX) : x",
        PLAN.replace("reason", "zelmira").replace("boat", "Zelmira"),
    ]
    asker = Pearl(Scripted(lambda request: plans.pop(0) if plans else "It leaked."))
    asyncio.run(asker.ask(QUESTION, Document("It leaked."), trace=Trace("Zelmira", listen)))
    listen(ModelProgressed(purpose="step", phase="writing", step="zelmira", text="Zelmira"))
    listen(StepFailed(step="zelmira", error="no Zelmira"))
    assert "1 problem in attempt 1" in str(lines)
    assert "step 1 of 1" in str(lines)
    assert "zelmira" not in str(lines).casefold()
