"""`pearl refine actions` as people meet it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pearl.cli import run
from pearl.mining.refinement import Refinement
from pearl.plugins.extras import install_hint
from tests.mining.drafts import PLAIN, header, mined, row
from tests.server import Server
from tests.shared import shared

Pearl = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pearl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Pearl:
    """Runs a command in a folder of its own; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    Path("drafts.txt").write_text(PLAIN, encoding="utf-8")

    def command(*args: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(args)
        captured = capsys.readouterr()
        assert not any(word in captured.err for word in ("Traceback", "a bug in PEARL"))
        return code, captured.out, captured.err

    return command


def test_the_library_goes_to_stdout_and_the_figures_to_stderr(pearl: Pearl) -> None:
    code, out, err = pearl("refine", "actions", "drafts.txt")
    assert code == 0
    assert "# stands for: FIND_REASON, FIND_REASONS, IDENTIFY_CAUSE" in out
    figures = [line for line in err.splitlines() if not line.startswith("extractive")]
    assert figures[:5] == [
        "drafts                 13",
        "malformed               4",
        "merged, same text       1",
        "merged, same name       2",
        "merged, same meaning    0",
    ]
    assert figures[8] == "actions                 5  (of 80 at most)"


def test_what_is_written_passes_check_and_fmt(pearl: Pearl) -> None:
    assert pearl("refine", "actions", "drafts.txt", "-o", "d.actions")[0] == 0
    assert pearl("check", "d.actions")[0] == 0
    assert pearl("fmt", "--check", "d.actions")[0] == 0


def test_reports_are_a_page_or_the_data(pearl: Pearl) -> None:
    args = ("refine", "actions", "drafts.txt", "-o", "d.actions", "--compare", "seed")
    code, _, err = pearl(*args, "--report", "r.json")
    assert code == 0
    assert "also in seed" in err
    report = Refinement.model_validate_json(Path("r.json").read_bytes())
    assert report.comparison is not None
    assert report.comparison.library == "seed"
    assert pearl(*args, "--report", "r.html", "--force")[0] == 0
    assert Path("r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    code, _, err = pearl(*args, "--report", "r.pdf")
    assert (code, ".html or .json" in err) == (2, True)


def test_the_inputs_are_safe(pearl: Pearl) -> None:
    assert pearl("refine", "actions", "drafts.txt", "-o", "drafts.txt")[0] == 2
    assert Path("drafts.txt").read_text(encoding="utf-8") == PLAIN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file has no drafts"),
        ("A story, not a library.\n", "no draft of 1 can be read"),
        (mined(head=header(v=7)), "version 7"),
        (json.dumps(row(0)), "header"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_file(pearl: Pearl, text: str, message: str) -> None:
    Path("bad").write_text(text, encoding="utf-8")
    code, out, err = pearl("refine", "actions", "bad", "-o", "d.actions", "--report", "r.html")
    assert (code, out) == (3, "")
    assert message in err
    assert "  help: " in err
    assert not Path("d.actions").exists()
    assert not Path("r.html").exists()


def test_a_model_that_fails_is_told_and_no_model_is_needed(pearl: Pearl) -> None:
    Path("rules.json").write_text('[{"match": "never", "reply": "x"}]', encoding="utf-8")
    args = ("refine", "actions", "drafts.txt", "--model", "scripted:rules.json")
    code, out, err = pearl(*args, "--max-actions", "3")
    assert (code, out) == (5, "")
    assert "no rule of rules.json matches" in err
    code, out, _ = pearl(*args, "--max-actions", "3", "--rounds", "0")
    assert code == 0
    assert out.count("# stands for") == 3


def test_settings_of_the_file_reach_the_subcommand(
    pearl: Pearl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_CONFIG", "pearl.toml")
    Path("pearl.toml").write_text('model = "nonsense"\n', encoding="utf-8")
    code, _, err = pearl("refine", "actions", "drafts.txt")
    assert (code, "unknown model 'nonsense'" in err) == (2, True)


def test_the_group_shows_what_it_has(pearl: Pearl) -> None:
    assert "actions" in pearl("refine", "--help")[1]
    assert pearl("refine")[0] == 2
    assert pearl("refine", "nothing")[0] == 2


def test_embeddings_measure_likeness(
    pearl: Pearl, monkeypatch: pytest.MonkeyPatch, openai_server: Server
) -> None:
    args = ("refine", "actions", "drafts.txt", "--embeddings")
    monkeypatch.setitem(sys.modules, "model2vec", None)
    code, _, err = pearl(*args, "model2vec:tiny")
    assert (code, install_hint("semantic") in err) == (2, True)
    code, _, err = pearl(*args, "tiny")
    assert (code, "unknown embeddings 'tiny'" in err) == (2, True)
    code, _, err = pearl(*args, "openai:m", "--base-url", openai_server.url)
    assert (code, f"embeddings: m at {openai_server.url}" in err) == (0, True)
    (sent,) = {tuple(seen.body["input"]) for seen in openai_server.requests}
    assert all(": " in text for text in sent)
    openai_server.next("401")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("elsewhere").resolve()))
    assert pearl(*args, "openai:m", "--base-url", openai_server.url)[0] == 5


def test_the_published_drafts_beside_the_published_library(pearl: Pearl) -> None:
    code, out, err = pearl(
        "refine", "actions", str(shared("pearl_traces/actions_mined.txt")), "--max-actions", "80",
        "--compare", str(shared("pearl_traces/actions_refined.txt")), "--report", "r.json",
    )  # fmt: skip
    assert code == 0
    assert out.count("# stands for") == 80
    report = Refinement.model_validate_json(Path("r.json").read_bytes())
    assert report.comparison is not None
    assert len(report.comparison.in_both) >= 40
    assert "also in actions_refined" in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--max-actions", "1"), "actions, more than --max-actions 1"),
        (("--max-tokens", "1"), "tokens, more than --max-tokens 1"),
    ],
)
def test_limits_that_cannot_be_kept_are_told(
    pearl: Pearl, args: tuple[str, ...], said: str
) -> None:
    Path("drafts.txt").write_text(
        "CONCAT(S1, S2, ...) : Join\nCOUNT(ITEMS) : Count\nFIND(CTX, X) : Find X\n", "utf-8"
    )
    code, _, err = pearl("refine", "actions", "drafts.txt", *args)
    assert code == 1
    assert said in err
    assert "no action is left that reads a text" in err


def test_what_had_no_reply_at_first_is_no_loss(pearl: Pearl) -> None:
    found = "FIND_FLAW(CTX, X) : Find the flaw of X"
    failed = row(0, status="failed", error="no server")
    Path("m.jsonl").write_text(mined(failed, row(0, found)), "utf-8")
    code, _, err = pearl("refine", "actions", "m.jsonl")
    assert code == 0
    assert "drafts                 2  (1 of them seeds)" in err
    Path("m.jsonl").write_text(mined(failed), "utf-8")
    code, _, err = pearl("refine", "actions", "m.jsonl")
    assert code == 1
    assert "no question gave a draft, the library is the seeds" in err
    assert "no server" in err
