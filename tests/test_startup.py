"""Start-up: modules that fast commands may import, and caches."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from pearl import plugins
from pearl.dsl import parser
from pearl.errors import UsageError
from pearl.plugins.files import cache_file
from tests.conftest import PROXIES
from tests.dsl.sampling import accepts
from tests.server import Server

HEAVY = (
    "asyncio", "datasets", "difflib", "email", "httpx2", "importlib.metadata", "numpy", "openai",
    "pydantic", "rich", "scipy", "subprocess", "tiktoken",
)  # fmt: skip
"""Each takes longer to import than what these commands do."""

OWN = (
    "pearl.documents.confinement",
    "pearl.documents.evidence",
    "pearl.dsl.scanner",
    "pearl.llm",
    "pearl.pipeline",
    "pearl.replies",
    "pearl.data.rows",
    "pearl.runs.store",
)

PLAN = '1. a = FIND(CTX, "x") : f\n'


def python(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}"], capture_output=True, text=True, check=True,
        env={**os.environ, **env},
    )  # fmt: skip
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("action", "others"),
    [
        ("import pearl", ("click", "lark", *OWN)),
        (
            "from pearl.cli import run; run(['--version'])",
            ("lark", "msgspec", "pearl.cli.options", *OWN),
        ),
        (
            "from pearl.cli import run; run(['check', 'a.plan'])",
            ("lark", "regex", "sqlite3", "tempfile", "fractions", "string", *OWN),
        ),
        ("from pearl.cli import run; run(['check', '--help'])", ("lark", "pearl.dsl.parser", *OWN)),
    ],
)
def test_imports_of_fast_commands(
    action: str, others: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.plan").write_text(PLAN)
    assert python(f"{action}; print(sorted({{*{(*HEAVY, *others)}}} & set(sys.modules)))") == "[]"


def test_results_need_no_pydantic() -> None:
    code = "import pearl.interpreter.answer, pearl.runs.export; print('pydantic' in sys.modules)"
    assert python(code) == "False"


def test_a_child_that_reads_a_page_or_a_message_imports_no_rules_of_numbers() -> None:
    code = "import pearl.documents.readers.mail; print('pearl.documents.numbers' in sys.modules)"
    assert python(code) == "False"


UNUSED = ("numpy", "lark", "regex", "rich", "markdown_it", "pydantic", "openai", "ctypes", "email", "zipfile", "statistics",
          "tempfile", "importlib.metadata", "pearl.documents.pdf", "pearl.runs.request")  # fmt: skip
"""What no run of a plan over a text needs."""
CLIENT = ("h11", "http", "urllib.request", "pearl.llm.backends.openai.wire")
"""What a run needs only where a server is asked."""


def test_imports_of_a_run(
    openai_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.plan").write_text(PLAN)
    Path("a.txt").write_text("Nils sold the boat.")
    asked = ["execute", "a.plan", "a.txt", "--model", "openai:m", "--base-url", openai_server.url]
    for name in PROXIES:
        monkeypatch.delenv(name)
    store = str(tmp_path / "store")

    def imported(names: tuple[str, ...]) -> str:
        code = f"from pearl.cli import run; run({asked}); print(sorted({{*{names}}} & set(sys.modules)))"
        return python(code, PEARL_STORE=store)

    assert imported(UNUSED) == "[]"
    n_asked = len(openai_server.requests)
    assert imported((*UNUSED, *CLIENT)) == "[]"
    assert len(openai_server.requests) == n_asked > 0


def test_no_pickle_is_read_and_none_is_written(tmp_path: Path) -> None:
    (tmp_path / "pearl").mkdir(mode=0o700)
    bomb = pickle.dumps(Bomb())
    (tmp_path / "pearl" / "plan.tables").write_bytes(b"0\n" + bomb)
    code = f"from pearl.dsl.parser import parse; parse({PLAN!r}); print('whole')"
    assert python(code, XDG_CACHE_HOME=str(tmp_path)) == "whole"
    assert [path.name for path in (tmp_path / "pearl").iterdir()] == ["plan.tables"]


class Bomb:
    """What ends the process that loads a pickle of it."""

    def __reduce__(self) -> tuple[object, ...]:
        return sys.exit, ("executed",)


def test_no_cache_in_an_unusable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache_file("tables") is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_file("tables") == tmp_path / "pearl" / "tables"
    assert (tmp_path / "pearl").stat().st_mode & 0o077 == 0


def test_third_party_plug_in_does_not_replace_a_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[pearl.data.domains]\nletters = mine\ngeneric = mine\n[pearl.llm.backends]\nother = mine\n"
    )
    (tmp_path / "mine.py").write_text("DOMAIN = 'letters'\nread = print\n")
    code = (
        "from pearl import plugins; names = plugins.names('pearl.data.domains');"
        "print(names.count('generic'), plugins.load('pearl.data.domains', 'letters').DOMAIN,"
        "plugins.load('pearl.data.domains', 'generic').__name__)"
    )
    assert python(code, PYTHONPATH=str(tmp_path)) == "1 letters pearl.data.domains.generic"


def test_no_plug_in_of_that_name() -> None:
    assert not plugins.exists("pearl.data.domains", "nonsense")
    with pytest.raises(UsageError):
        plugins.load("pearl.data.domains", "nonsense")


@pytest.mark.parametrize(
    "step",
    [
        '1. å = FIND(CTX, "x") : f', "1. a… = FIND(CTX) : f", "1. …a = FIND(CTX) : f",
        "1. a = FI²D(CTX) : f", "1. a = FIND(b\u200b) : f", "1. a = FIND(b\u00a0) : f",
        f"1. {'ü' * 80} = FIND(CTX) : f", f"1. {'ü' * 81} = FIND(CTX) : f",
        f"1. {'a' * 81} = FIND(CTX) : f", "1. " + "e\u0301" * 41 + " = FIND(CTX) : f",
        '1. a = FIND("\ud800") : f', '1. a = FIND("\ufffe") : f', '1. a = FIND("\x85\u00a0") : f',
        '1. a = FIND("\u00a0") : \u00a0f', "1. a = FIND(CTX) : f\uffff", "1. a = FIND(CTX) : f\udfff",
        '1. a = FIND("\U0001f600") : \U0001f600\u00a0', "1. a = FIND(CTX) : f\x7f",
    ],
)  # fmt: skip
def test_coarse_expressions_read_the_language_of_the_grammar(step: str) -> None:
    reading = parser.read(step)
    is_read = reading.plan is not None and not reading.errors
    assert is_read == accepts(step, "file")
