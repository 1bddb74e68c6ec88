"""The notebooks: kept clean, without logic of their own, and they run."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.root import ROOT
from tests.skips import NO_LARGE

nbformat = pytest.importorskip("nbformat", reason=NO_LARGE)
inputtransformer2 = pytest.importorskip("IPython.core.inputtransformer2", reason=NO_LARGE)

NOTEBOOKS = sorted((ROOT / "experiments/notebooks").glob("*.ipynb"))

MAX_LINES = 15
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|tmp|work|Users|var|opt|mnt)/|[A-Z]:\\\\")

SHOWN = {
    "01_mine_and_refine": ("malformed", "# stands for: FIND_REASON, FIND_REASONS", "<iframe"),
    "02_plan_and_self_correct": (
        "[wrong-arity]",
        "move that step up",
        "ans = CONCAT(motive, feeling)",
        "<title>The plan as a graph</title>",
    ),
    "03_execute_on_medical_reports": ("<b>not in the document:</b>", "normalised: "),
    "04_evaluate_and_compare": ("guessing gets 25%", "McNemar", "<svg"),
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


@notebooks
def test_a_notebook_defines_no_functions_and_has_short_cells(path: Path) -> None:
    cells = read(path).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    assert cells[-1].cell_type == "markdown"
    for cell in cells:
        if cell.cell_type != "code":
            continue
        assert len(cell.source.splitlines()) <= MAX_LINES, cell.source
        code = inputtransformer2.TransformerManager().transform_cell(cell.source)
        tree = compile(code, path.name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        assert not any(isinstance(node, defined) for node in ast.walk(tree)), cell.source


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
