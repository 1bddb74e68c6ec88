"""Every code block of every page is tested, by what its first line says (tests/docs/blocks.py)."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from types import CodeType

import pytest

import pearl
from pearl.actions.library import load_library, read_actions
from pearl.actions.operators import with_operators
from pearl.dsl.checker import compile_plan
from tests.docs.blocks import KINDS, PAGES, Block, all_blocks, blocks_of, is_told
from tests.docs.commands import (
    commands,
    exit_codes,
    files_read,
    files_written,
    parse,
    pearl_commands,
)
from tests.root import ROOT
from tests.server import Server

LIBRARY = with_operators(load_library("seed"))
START = """exec 2>&1
set -o pipefail
trap 'echo "$? $BASH_COMMAND" >>"{}"' ERR
"""
"""How the shell begins: a command that fails is noted, and the next one runs."""
MADE = {"model.gguf", "documents/lease.txt", "demo/story.txt"}
"""What a page has somebody get, or makes itself by `pearl init` or `pearl demo --copy`."""
PLUG_INS = ROOT / "CONTRIBUTING.md"
"""Its blocks of Python are files of a package, which tests/plugins/test_foreign.py installs and tries."""


def each(*kinds: str, but: Path | None = None) -> pytest.MarkDecorator:
    """A test for every block of these kinds."""
    blocks = [block for block in all_blocks(*kinds) if block.page != but]
    return pytest.mark.parametrize("block", blocks, ids=[block.place for block in blocks])


def pages_with(kind: str, but: Path | None = None) -> pytest.MarkDecorator:
    """A test for every page with blocks of this kind."""
    pages = [page for page in PAGES if page != but and any(b.kind == kind for b in blocks_of(page))]
    return pytest.mark.parametrize("page", pages, ids=[page.stem for page in pages])


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    counted = Counter(block.kind for block in all_blocks())
    assert set(counted) <= KINDS, [b.place for b in all_blocks() if b.kind not in KINDS]
    fences = sum(
        len(re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.M)) for page in PAGES
    )
    assert fences == 2 * counted.total(), "a block that is indented or not closed is not tested"
    assert counted["sh"] >= 25
    assert counted["python"] >= 30


@each("sh", "sh server")
def test_commands_are_parsed(block: Block, folder: Path) -> None:
    earlier = [b for b in blocks_of(block.page) if b.kind.startswith("sh") and b.line < block.line]
    made = {name for b in earlier for name in re.findall(r"^cat > (\S+)", b.text, re.M)} | MADE
    written = {
        name for b in (*earlier, block) for args in pearl_commands(b.text) for name in files_written(args)
    }  # fmt: skip
    for name in written:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    for args in pearl_commands(block.text):
        parse(args)
        if block.kind == "sh server":
            for name in files_read(args):
                assert name in made or list(Path().glob(name)), name


@each("sh setup")
def test_targets_and_extras_of_set_up_blocks_exist(block: Block) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]  # fmt: skip
    found = list(commands(block.text))
    assert found
    for command in found:
        if command[0] == "make":
            assert set(command[1:]) <= set(targets), command
        for extra in re.findall(r"\[(\w+)\]", " ".join(command)):
            assert extra in extras
        if command[0].endswith("/pearl"):
            parse(command[1:])


@pytest.mark.slow
@pages_with("sh")
def test_commands_run(page: Path, folder: Path, tmp_path: Path) -> None:
    """One shell for the page, which notes what fails; `text` blocks are what was printed."""
    tools, failures = tmp_path / "bin", tmp_path / "failures"
    tools.mkdir()
    (tools / "pearl").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pearl "$@"\n')
    (tools / "pearl").chmod(0o755)
    blocks = [block for block in blocks_of(page) if block.kind == "sh"]
    script = "".join(f"echo '=== {block.line}'\n{block.text}" for block in blocks)
    ran = subprocess.run(
        ["bash", "-c", f"{START.format(failures)}{script}"], capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{tools}:{os.environ['PATH']}"},
    )  # fmt: skip
    told = failures.read_text().splitlines() if failures.exists() else []
    foretold = [code for block in blocks for code in exit_codes(block.text)]
    assert [int(line.split()[0]) for line in told] == foretold, f"{told}\n{ran.stdout}"
    assert not any(word in ran.stdout for word in ("Traceback", "a bug in PEARL"))
    for block, output in zip(blocks, ran.stdout.split("=== ")[1:], strict=True):
        wanted = _below(block)
        if wanted is not None:
            assert is_told(wanted.text, output), f"{wanted.place}\n{output}"


@each("python", but=PLUG_INS)
def test_python_runs(
    block: Block, folder: Path, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook, where `await` may stand; `openai:` is a server on this machine."""
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    openai_server.on(
        "written before the document is seen|plan", '1. ans = FIND_REASON(CTX, "it") : Find out why'
    )
    openai_server.on("Rewrite this question: And why", "Why was the boat sold?")
    # Not with what this module imports from the future: models would not find the classes they name.
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(block.text, block.place, "exec", flags, dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        _execute(code)
    wanted = _below(block)
    assert wanted is None or is_told(wanted.text, printed.getvalue()), printed.getvalue()


@each("python server")
def test_python_that_is_not_run_imports_what_is_there(block: Block) -> None:
    tree = compile(
        block.text, block.place, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports
    for node in imports:
        for name in node.names:
            module = f"{node.module}:" if isinstance(node, ast.ImportFrom) else ""
            pkgutil.resolve_name(module + name.name)


@each("plan")
def test_plans_are_valid(block: Block) -> None:
    compile_plan(block.text, _library(block))


@each("actions")
def test_actions_are_valid(block: Block) -> None:
    actions, found = read_actions(block.text)
    assert actions
    assert found == []


@each("json", "toml")
def test_data_can_be_read(block: Block) -> None:
    (json if block.kind == "json" else tomllib).loads(block.text)


def test_a_text_is_below_what_printed_it() -> None:
    for page in PAGES:
        blocks = blocks_of(page)
        for before, block in zip([None, *blocks], blocks, strict=False):
            if block.kind == "text":
                assert before is not None, block.place
                assert before.kind in ("sh", "python"), block.place


def _below(block: Block) -> Block | None:
    """The output that is shown for a block: the next one, if that is one."""
    blocks = blocks_of(block.page)
    after = blocks[blocks.index(block) + 1 :]
    return after[0] if after and after[0].kind == "text" else None


def _execute(code: CodeType) -> None:
    """Run a module, to its end where it awaits."""
    names: dict[str, object] = {"__name__": "block"}
    if code.co_flags & inspect.CO_COROUTINE:

        async def main() -> None:
            await eval(code, names)

        pearl.run(main())
    else:
        exec(code, names)


def _library(block: Block) -> object:
    """What a plan of a page may call: that about numbers has actions of finance."""
    name = "finance" if block.page.stem == "tables" else "seed"
    return with_operators(load_library(name))
