"""The notebooks: kept clean, and they run."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.root import ROOT
from tests.skips import NO_LARGE

nbformat = pytest.importorskip("nbformat", reason=NO_LARGE)

NOTEBOOKS = sorted((ROOT / "experiments/notebooks").glob("*.ipynb"))

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|tmp|work|Users|var|opt|mnt)/|[A-Z]:\\\\")

SHOWN = {
    "01_mine_and_refine": ("malformed", "# stands for: FIND_ADVICE x2", "9/14"),
    "02_plan_and_self_correct": (
        "[wrong-arity]",
        "move that step up",
        "ans = CONCAT(motive, feeling)",
    ),
    "03_execute_on_medical_reports": ("not in the document: ",),
    "04_evaluate_and_compare": ("guessing gets 25%", "McNemar"),
}
"""What is worth seeing in each."""

notebooks = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


@notebooks
def test_a_notebook_has_no_output_and_no_paths_of_a_machine(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata == METADATA, "clear it: no more than the kernel and the language"
    for cell in notebook.cells:
        assert cell.metadata == {}, cell.source
        assert not cell.get("outputs"), cell.source
        assert cell.get("execution_count") is None, cell.source
    assert not MACHINE_PATH.search(path.read_text(encoding="utf-8"))


@pytest.mark.slow  # a kernel takes seconds to start
@notebooks
def test_a_notebook_runs_and_shows_its_results(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's own, not the notebook's
        from nbclient import NotebookClient

        notebook = read(path)
        client = NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}})
        client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    said = [output.text for output in outputs if output.get("name") == "stderr"]
    assert not said
    shown = "\n".join(
        [output.get("text", "") for output in outputs]
        + [text for output in outputs for text in map(str, output.get("data", {}).values())]
    )
    for words in SHOWN[path.stem]:
        assert words in shown
