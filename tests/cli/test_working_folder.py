"""Files that a stranger has put into the working folder are read, never executed, by any command."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from pearl import plugins
from pearl.cli import COMMANDS
from tests.docs.conftest import FOLDER
from tests.gguf_models import write_random_model
from tests.root import ROOT
from tests.server import Canned, Server, completion
from tests.skips import needs, needs_ray

PLANTED = {
    *sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize", "pearl",
    "actions", "grammars", "fewshot", "worker", "engine",
}  # fmt: skip

ASK = 'ask "Why does the captain turn back?" story.txt'
TABLE = "execute table.plan directory.csv --model openai:m --base-url {url}"

WITH_CHILDREN = [
    ['ask "Who pays the deposit?" contract.html'],
    pytest.param(
        [
            "execute find.plan story.txt --model llamacpp:tiny.gguf --window 4096 --max-output-tokens 8 --constrain off"
        ],
        marks=[needs("xllamacpp"), pytest.mark.slow],
    ),
    pytest.param([TABLE], marks=pytest.mark.slow),
    pytest.param(["execute why.plan story.txt --executor ray --out a.jsonl"], marks=needs_ray),
    pytest.param(["mcp letters/"], marks=[needs("mcp"), pytest.mark.slow]),
]
OTHERS = [
    [f"{ASK} --page answer.html --trace trace.jsonl", "view trace.jsonl"],
    ["check why.plan", "fmt why.plan"],
    ["completion bash"],
    ["config show"],
    ["demo"],
    ["doctor"],
    ["execute why.plan story.txt letters/ --out results.jsonl", "view results.jsonl", "runs list"],
    [
        "eval --domain quality --data dev.jsonl --methods direct -o a.jsonl",
        "compare a.jsonl a.jsonl",
    ],
    [
        'extract "deposit: str, day: date?" contracts/boat.txt -o fields.csv',
        "review fields.csv --report",
    ],
    ["grammar"],
    ["index reports/", 'search reports/ "who signed the lease"'],
    ["init leases"],
    ["mine --domain quality --data train.jsonl --out mined.jsonl"],
    ['plan "Why did Ada sell the mill?"'],
    ["refine actions drafts.txt -o mine.actions"],
]
EXIT_CODES = {"extract": 1, "models": 3}


@pytest.mark.parametrize(
    "lines",
    [*WITH_CHILDREN, *(pytest.param(lines, marks=pytest.mark.slow) for lines in OTHERS)],
    ids=lambda lines: lines[0],
)
def test_no_file_of_the_working_folder_is_executed(
    lines: list[str], tmp_path: Path, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = completion('{"select": ["Pharmacy"]}')
    openai_server.answer = lambda seen: Canned(query)
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, openai_server.url)
    monkeypatch.setenv("PIP_RETRIES", "0")
    folder, mark = tmp_path / "folder", tmp_path / "executed"
    shutil.copytree(FOLDER, folder)
    (folder / "find.plan").write_text('1. ans = FIND(CTX, "the captain") : Find\n')
    (folder / "table.plan").write_text('1. ans = LOOKUP(CTX, "Which are in Porto?") : Ask\n')
    write_random_model(folder / "tiny.gguf")
    for name in PLANTED:
        code = f"open({str(mark)!r}, 'a').write({name!r} + chr(10))\nraise SystemExit(99)\n"
        (folder / f"{name}.py").write_text(code)
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "__init__.py").write_text(code)
    for line in lines:
        command = shlex.split(line.format(url=openai_server.url))
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "pearl", *command], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            _, errors = process.communicate()
        assert not mark.exists(), mark.read_text()
        codes = {
            EXIT_CODES.get(command[0], 0),
            int(any("tiny" in each for each in command)),
        }  # it quotes nothing
        assert process.returncode in codes, errors
        assert not any(word in errors for word in ("Traceback", "a bug in PEARL"))


def test_every_command_is_tried() -> None:
    tried = {line.split()[0] for lines in OTHERS for line in lines}
    folder = ROOT / "pearl/cli/commands"  # without those of contrib
    own = {path.stem for path in folder.glob("[a-z]*.py")}
    assert {"ask", "models"} | tried == own <= set(plugins.names(COMMANDS))
