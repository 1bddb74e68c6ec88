"""Commands run in this process, in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import PLAN, STORY, Terminal


@pytest.fixture
def pearl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """A terminal in a folder with a story and a plan; beside the folder is what is nobody's business."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("story.txt").write_text(STORY, encoding="utf-8")
    Path("why.plan").write_text(PLAN, encoding="utf-8")
    (tmp_path / "secret.txt").write_text("Nils sold the boat. The key is under the mat.", "utf-8")
    return Terminal(folder, capsys)
