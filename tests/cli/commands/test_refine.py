"""`pearl refine actions` as people meet it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pearl.mining.refinement import Refinement
from tests.cli.terminal import Terminal
from tests.mining.drafts import PLAIN, mined, row

REFINE = ("refine", "actions", "drafts.txt")


@pytest.fixture(autouse=True)
def _drafts(pearl: Terminal) -> None:
    Path("drafts.txt").write_text(PLAIN, encoding="utf-8")


def test_what_is_written_passes_check_and_fmt_and_the_report_has_the_data(pearl: Terminal) -> None:
    args = (*REFINE, "-o", "d.actions")
    pearl(*args, "--report", "r.json")
    assert msgspec.json.decode(Path("r.json").read_bytes(), type=Refinement).actions
    pearl("check", "d.actions")
    pearl("fmt", "--check", "d.actions")


def test_a_model_that_fails_is_told_and_no_model_is_needed(pearl: Terminal) -> None:
    Path("rules.json").write_text('[{"match": "never", "reply": "x"}]', encoding="utf-8")
    args = (*REFINE, "--model", "scripted:rules.json", "--max-actions", "3")
    assert pearl(*args, code=5) == ""
    assert "no rule of rules.json matches" in pearl.talk
    assert pearl(*args, "--rounds", "0").count("# stands for") == 3


def test_what_had_no_reply_at_first_is_no_loss(pearl: Terminal) -> None:
    found = "FIND_FLAW(CTX, X) : Find the flaw of X"
    failed = row(0, status="failed", error="no server")
    Path("m.jsonl").write_text(mined(failed, row(0, found)), "utf-8")
    pearl("refine", "actions", "m.jsonl")
    assert "drafts                2  (1 of them seeds)" in pearl.talk
    Path("m.jsonl").write_text(mined(failed), "utf-8")
    pearl("refine", "actions", "m.jsonl", code=1)
    assert "no question gave a draft, the library is the seeds" in pearl.talk
    assert "no server" in pearl.talk


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ((*REFINE, "--max-actions", "1"), 1, "actions, more than --max-actions 1"),
        ((*REFINE, "--max-tokens", "1"), 1, "tokens, more than --max-tokens 1"),
    ],
)
def test_what_cannot_be_kept_or_given_is_told(
    pearl: Terminal, args: tuple[str, ...], code: int, said: str
) -> None:
    text = "CONCAT(S1, S2, ...) : Join\nCOUNT(ITEMS) : Count\nFIND(CTX, X) : Find X\n"
    Path("drafts.txt").write_text(text, "utf-8")
    pearl(*args, code=code)
    assert said in pearl.talk
    assert ("no action is left that reads a text" in pearl.talk) == (code == 1)
    assert Path("drafts.txt").read_text("utf-8") == text
