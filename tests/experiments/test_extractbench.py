"""`experiments/extractbench.py` over a folder of the benchmark's layout, with PDFs of our own, and a server on this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

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
RACES = {
    "name": "Races", "description": "Results of races",
    "schema_definition": {
        "type": "object",
        "$defs": {"rank": {"anyOf": [{"type": "integer"}, {"type": "string"}], "evaluation_config": "string_semantic"}},
        "properties": {
            "race": {"type": "string", "evaluation_config": "string_exact"},
            "groups": {"type": "array", "evaluation_config": "array_llm", "items": {
                "type": "object",
                "properties": {
                    "group": {"type": "string", "evaluation_config": "string_exact"},
                    "results": {"type": "array", "evaluation_config": "array_llm", "items": {
                        "type": "object",
                        "properties": {"rank": {"$ref": "#/$defs/rank"}, "boat": {"type": "string", "evaluation_config": "string_case_insensitive"}},
                    }},
                },
            }},
        },
    },
}  # fmt: skip
PAGES = {
    "money/loans/pdf+gold/[kiel] loan.pdf": "The lender is Kieler Hafenbank. Further banks: Elbe Bank, Sund Bank. It lends 2,500,000 euros. The law of Holstein applies.",
    "sport/races/pdf+gold/regatta.pdf": "Autumn Regatta. Juniors: 1 Seagull. Seniors: 1 Heron, DNF Otter.",
}  # fmt: skip
GOLD = {
    "money/loans/pdf+gold/[kiel] loan.gold.json": {
        "lender": "KIELER HAFENBANK", "banks": ["Sund Bank", "Elbe Bank", "Oder Bank"], "amount": 2500000, "law": "Holstein law",
    },
    "sport/races/pdf+gold/regatta.gold.json": {
        "race": "Autumn Regatta", "groups": [
            {"group": "Seniors", "results": [{"rank": 1, "boat": "HERON"}, {"rank": "DNF", "boat": "Otter"}]},
            {"group": "Juniors", "results": [{"rank": 1, "boat": "Tern"}]},
        ],
    },
}  # fmt: skip


def value(value: object, quote: str) -> dict[str, object]:
    return {"value": value, "quote": quote}


REPLIES: dict[str, dict[str, Any]] = {
    "Hafenbank": {
        "lender": value("Kieler Hafenbank", "The lender is Kieler Hafenbank"),
        "banks": [value("Elbe Bank", "Elbe Bank"), value("Sund Bank", "Sund Bank")],
        "amount": value(2500000, "lends 2,500,000 euros"), "law": value("law of Holstein", "law of Holstein"),
    },
    "Regatta": {
        "race": value("Autumn Regatta", "Autumn Regatta"),
        "groups": [
            {"group": value("Juniors", "Juniors"), "results": [{"rank": value("1", "1 Seagull"), "boat": value("Seagull", "1 Seagull")}]},
            {"group": value("Seniors", "Seniors"), "results": [
                {"rank": value("1", "1 Heron"), "boat": value("Heron", "1 Heron")},
                {"rank": value("DNF", "DNF Otter"), "boat": value("Otter", "DNF Otter")},
            ]},
        ],
    },
}  # fmt: skip


def checked(seen: Seen) -> str:
    claims = re.findall(r"<claim \d+>(.*?)</claim", seen.prompt, re.DOTALL)
    return verdicts(*["supported"] * len(claims))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the benchmark's layout."""
    for name, text in PAGES.items():
        pdf = fpdf.FPDF()
        pdf.add_page()
        pdf.set_font("helvetica", size=11)
        pdf.multi_cell(0, 8, text)
        path = tmp_path / "dataset" / name
        path.parent.mkdir(parents=True)
        pdf.output(str(path))
        path.with_name("unlabelled.pdf").write_bytes(path.read_bytes())
    for name, gold in GOLD.items():
        (tmp_path / "dataset" / name).write_text(json.dumps(gold, indent=2), encoding="utf-8")
    for name, schema in {"money/loans/loans": LOANS, "sport/races/races": RACES}.items():
        (tmp_path / f"dataset/{name}-schema.json").write_text(json.dumps(schema), encoding="utf-8")
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
    for name, reply in REPLIES.items():
        openai_server.on(name, json.dumps(reply))
    return openai_server


def test_the_whole_of_it_runs_and_a_second_run_asks_nothing(folder: Path, server: Server) -> None:
    ran = run(folder, server)
    assert ran.returncode == 0, ran.stderr
    loans, races, both = (line.split() for line in ran.stdout.splitlines()[-3:])
    # schema, PDFs, valid; gold, right, wrong, missing
    assert loans[:7] == ["loans", "1", "1", "6", "5", "0", "1"]
    assert races[:7] == ["races", "1", "1", "9", "8", "1", "0"]
    assert both[:7] == ["all", "2", "2", "15", "13", "1", "1"]
    (wrong,) = json.loads((folder / "extractbench/races.scores.json").read_text("utf-8"))["differences"]  # fmt: skip
    assert (wrong["path"], wrong["predicted"]) == ("groups[0].results[0].boat", "Seagull")
    n_asked = len(server.requests)
    assert run(folder, server).stdout.splitlines()[-3:] == ran.stdout.splitlines()[-3:]
    assert len(server.requests) == n_asked


def test_a_forecast_asks_nothing(folder: Path, server: Server) -> None:
    ran = run(folder, server, "--forecast", "--schemas", "loans", "--", "--price", "input=1,output=2")  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[:2] for line in ran.stdout.splitlines()[1:3]] == [["loans", "1"], ["all", "1"]]  # fmt: skip
    assert not server.requests


def test_a_folder_without_the_benchmark_is_refused(folder: Path, server: Server) -> None:
    ran = run(folder, server, "--schemas", "none")
    assert ran.returncode == 1
    assert "no NAME-schema.json" in ran.stderr
