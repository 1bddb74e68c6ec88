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
from pathlib import Path

import pytest

import pearl
from pearl.actions.library import load_library, read_actions
from pearl.actions.operators import with_operators
from pearl.dsl.checker import compile_plan
from tests.docs.blocks import (
    KINDS,
    PAGES,
    Block,
    all_blocks,
    blocks_of,
    commands,
    files_of,
    is_printed,
    parse,
    pearl_commands,
)
from tests.root import ROOT
from tests.server import Server

START = """exec 2>&1
set -o pipefail
trap 'echo "$? $BASH_COMMAND" >>"{}"' ERR
"""
"""How the shell begins: a command that fails is noted, and the next one runs."""
MADE = {"model.gguf", "documents/lease.txt", "demo/story.txt"}
"""What a page has somebody get, or makes itself by `pearl init` or `pearl demo --copy`."""
PLUG_INS = ROOT / "CONTRIBUTING.md"
"""Its blocks of Python are files of a package, which tests/plugins/test_foreign.py installs and tries."""


def each(*kinds: str) -> pytest.MarkDecorator:
    """A test for every block of these kinds."""
    blocks = [block for block in all_blocks(*kinds) if (block.page, block.kind) != (PLUG_INS, "python")]  # fmt: skip
    return pytest.mark.parametrize("block", blocks, ids=[block.place for block in blocks])


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    blocks = list(all_blocks())
    assert not [block.place for block in blocks if block.kind not in KINDS]
    fences = sum(len(re.findall(r"^ *```", page.read_text("utf-8"), re.M)) for page in PAGES)
    assert fences == 2 * len(blocks), "a block that is indented or not closed is not tested"


@each("sh", "sh server")
def test_commands_are_parsed(block: Block, folder: Path) -> None:
    earlier = [b for b in blocks_of(block.page) if b.kind.startswith("sh") and b.line < block.line]
    made = {name for b in earlier for name in re.findall(r"^cat > (\S+)", b.text, re.M)} | MADE
    for name in [name for b in (*earlier, block) for args in pearl_commands(b.text) for name in files_of(args)[1]]:  # fmt: skip
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    for args in pearl_commands(block.text):
        parse(args)
        if block.kind == "sh server":
            missing = [n for n in files_of(args)[0] if n not in made and not list(Path().glob(n))]
            assert not missing


@each("sh setup")
def test_targets_and_extras_of_set_up_blocks_exist(block: Block) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]  # fmt: skip
    for command in commands(block.text):
        if command[0] == "make":
            assert set(command[1:]) <= set(targets), command
        assert set(re.findall(r"\[(\w+)\]", " ".join(command))) <= set(extras)
        if command[0].endswith("/pearl"):
            parse(command[1:])


SHELL_PAGES = [page for page in PAGES if any(block.kind == "sh" for block in blocks_of(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", SHELL_PAGES, ids=[page.stem for page in SHELL_PAGES])
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
    failed = failures.read_text().splitlines() if failures.exists() else []
    expected = [code for block in blocks for code in re.findall(r"#.*exit code (\d+)", block.text)]
    assert [line.split()[0] for line in failed] == expected, f"{failed}\n{ran.stdout}"
    assert not any(word in ran.stdout for word in ("Traceback", "a bug in PEARL"))
    for block, output in zip(blocks, ran.stdout.split("=== ")[1:], strict=True):
        wanted = _below(block)
        assert wanted is None or is_printed(wanted.text, output), f"{block.place}\n{output}"


@each("python")
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
    names: dict[str, object] = {"__name__": "block"}

    async def main() -> None:
        await eval(code, names)

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        if code.co_flags & inspect.CO_COROUTINE:
            pearl.run(main())
        else:
            exec(code, names)
    wanted = _below(block)
    assert wanted is None or is_printed(wanted.text, printed.getvalue()), printed.getvalue()


@each("python server")
def test_python_that_is_not_run_imports_what_is_there(block: Block) -> None:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for node in ast.walk(compile(block.text, block.place, "exec", flags)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}:" if isinstance(node, ast.ImportFrom) else ""
            for name in node.names:
                pkgutil.resolve_name(module + name.name)


@each("plan", "actions", "json", "toml")
def test_plans_actions_and_data_are_valid(block: Block) -> None:
    if block.kind == "plan":  # the page about numbers has plans with actions of finance
        library = load_library("finance" if block.page.stem == "tables" else "seed")
        compile_plan(block.text, with_operators(library))
    elif block.kind == "actions":
        actions, errors = read_actions(block.text)
        assert (bool(actions), errors) == (True, [])
    else:
        (json if block.kind == "json" else tomllib).loads(block.text)


def test_a_text_is_below_what_printed_it() -> None:
    for page in PAGES:
        blocks = blocks_of(page)
        for before, block in zip([None, *blocks], blocks, strict=False):
            is_right = before is not None and before.kind in ("sh", "python")
            assert block.kind != "text" or is_right, block.place


def _below(block: Block) -> Block | None:
    """The output that is shown for a block: the next one, if that is one."""
    blocks = blocks_of(block.page)
    after = blocks[blocks.index(block) + 1 :]
    return after[0] if after and after[0].kind == "text" else None
