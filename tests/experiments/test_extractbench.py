"""`experiments/extractbench.py` over a folder of the benchmark's layout, with PDFs of our own, and a server on this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import fpdf
import pytest

from tests.models import verdicts
from tests.root import ROOT
from tests.server import Seen, Server

pytestmark = pytest.mark.slow

LOANS = {
    "type": "object",
    "required": ["lender"],
    "properties": {
        "lender": {"type": "string", "evaluation_config": "string_fuzzy"},
        "banks": {"type": "array", "evaluation_config": "array_llm", "items": {"type": "string"}},
        "amount": {"evaluation_config": "number_tolerance", "anyOf": [{"type": "number"}, {"type": "null"}]},
        "law": {"anyOf": [{"type": "string"}, {"type": "null"}], "evaluation_config": "string_semantic"},
    },
}  # fmt: skip
PAGE = "The lender is Kieler Hafenbank. Further banks: Elbe Bank, Sund Bank. It lends 2,500,000 euros. The law of Holstein applies."
GOLD = {
    "lender": "KIELER HAFENBANK", "banks": ["Sund Bank", "Elbe Bank", "Oder Bank"], "amount": 2400000, "law": "Holstein law",
}  # fmt: skip


def value(value: object, quote: str) -> dict[str, object]:
    return {"value": value, "quote": quote}


REPLY = {
    "lender": value("Kieler Hafenbank", "The lender is Kieler Hafenbank"),
    "banks": [value("Elbe Bank", "Elbe Bank"), value("Sund Bank", "Sund Bank")],
    "amount": value(2500000, "lends 2,500,000 euros"), "law": value("law of Holstein", "law of Holstein"),
}  # fmt: skip


def checked(seen: Seen) -> str:
    claims = re.findall(r"<claim \d+>(.*?)</claim", seen.prompt, re.DOTALL)
    return verdicts(*["supported"] * len(claims))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the benchmark's layout."""
    folder = tmp_path / "dataset/money/loans"
    (folder / "pdf+gold").mkdir(parents=True)
    pdf = fpdf.FPDF()
    pdf.add_page()
    pdf.set_font("helvetica", size=11)
    pdf.multi_cell(0, 8, PAGE)
    pdf.output(str(folder / "pdf+gold/[kiel] loan.pdf"))
    pdf.output(str(folder / "pdf+gold/unlabelled.pdf"))
    (folder / "pdf+gold/[kiel] loan.gold.json").write_text(json.dumps(GOLD), encoding="utf-8")
    (folder / "loans-schema.json").write_text(json.dumps(LOANS), encoding="utf-8")
    return tmp_path


def run(folder: Path, server: Server, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "x"}  # fmt: skip
    script = str(ROOT / "experiments/extractbench.py")
    command = [sys.executable, script, ".", "--model", "openai:m"]
    return subprocess.run(
        [*command, *options], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip


@pytest.fixture
def server(openai_server: Server) -> Server:
    openai_server.on("<claim 1>", checked)
    openai_server.on("Hafenbank", json.dumps(REPLY))
    return openai_server


def test_the_whole_of_it_runs_and_a_second_run_asks_nothing(folder: Path, server: Server) -> None:
    ran = run(folder, server)
    assert ran.returncode == 0, ran.stderr
    loans, both = (line.split() for line in ran.stdout.splitlines()[-2:])
    # schema, PDFs, valid; gold, right, wrong, missing
    assert loans[:7] == ["loans", "1", "1", "6", "4", "1", "1"]
    assert both[1:7] == loans[1:7]
    n_asked = len(server.requests)
    assert run(folder, server).stdout.splitlines()[-2:] == ran.stdout.splitlines()[-2:]
    assert len(server.requests) == n_asked
