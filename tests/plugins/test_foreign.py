"""Third-party plug-ins, through the real command: the examples of CONTRIBUTING.md, and broken ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pearl import plugins
from pearl.cli import run
from pearl.data.domains import CONTRACT
from tests.models import verdicts_on
from tests.root import ROOT
from tests.server import Server

FILE = re.compile(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", re.M | re.S)

KINDS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in ROOT.glob("pearl/**/*.py")
    if re.search(r"^CONTRACT = ", path.read_text(), re.M)
}
"""Every package whose modules are plug-ins."""

NOTED = """
import functools, os
def _noted(name, function):
    @functools.wraps(function)
    def called(*args, **kwargs):
        with open(os.environ["CALLED"], "a") as file:
            file.write(f"{__name__}.{name}\\n")
        return function(*args, **kwargs)
    return called
for _name in ("create", "run", "read", "rank", "predict", "score", "split", "collect", "body"):
    if _name in globals():
        globals()[_name] = _noted(_name, globals()[_name])
"""
"""Put at the end of a plug-in, it tells which of its functions were called."""

PLAN = """\
New actions:
- None

1. things = LIST_ALL(CTX, "things") : List the things
2. ans = OWN_LONGEST(things) : Take the longest
"""
OF_ROWS = """\
1. halves = SPLIT(CTX, "mine") : Cut in two
2. tagged = TAG(halves, "it is about a boat") : Say of each
3. those = WHERE(tagged, "tagged", "is", "yes") : Those
4. n = COUNT(those) : How many
"""


def examples() -> dict[str, str]:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return {match[1]: match[2] for match in FILE.finditer(text)}


def install(folder: Path, name: str, groups: dict[str, dict[str, str]]) -> None:
    """What an installer would leave of a distribution."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{entry} = {value}" for entry, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def install_mine(folder: Path, tail: str = "") -> Path:
    files = examples()
    project = tomllib.loads(files.pop("pyproject.toml"))["project"]
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text + tail, encoding="utf-8")
    install(folder, project["name"], project["entry-points"])
    return folder


class Mine:
    """The command `pearl` with the plug-ins of CONTRIBUTING.md."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = install_mine(folder / "site", NOTED)

    def __call__(self, *args: str, code: int = 0) -> str:
        env = {
            **os.environ,
            "PYTHONPATH": str(self.site),
            "CALLED": str(self.folder / "called"),
            "COLUMNS": "200",
        }
        done = subprocess.run(
            [sys.executable, "-m", "pearl", *args],
            capture_output=True, text=True, cwd=self.folder, env=env,
        )  # fmt: skip
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout + done.stderr

    @property
    def called(self) -> set[str]:
        return set((self.folder / "called").read_text().split())


@pytest.fixture
def mine(tmp_path: Path) -> Mine:
    (tmp_path / "story.mine").write_text("Avyf fbyq gur obng. " * 200)
    (tmp_path / "mine.actions").write_text(
        "LIST_ALL(CTX, X) : List all X\nOWN_LONGEST(ITEMS) : Return the longest of ITEMS\n"
    )
    (tmp_path / "a.plan").write_text(PLAN)
    return Mine(tmp_path)


def test_every_kind_of_plug_in_has_a_short_example() -> None:
    files = examples()
    project = tomllib.loads(files["pyproject.toml"])["project"]
    of_contrib = {group for group in project["entry-points"] if ".contrib." in group}
    assert set(project["entry-points"]) == KINDS | of_contrib
    named = {value for entries in project["entry-points"].values() for value in entries.values()}
    assert {f"{name.replace('.', '/')}.py" for name in named} == set(files) - {"pyproject.toml"}
    for path, text in files.items():
        lines = [line for line in text.splitlines() if line.strip()]
        assert len(lines) <= (24 if path == "pyproject.toml" else 20), path


def test_run_with_plug_ins(mine: Mine) -> None:
    mine(
        "execute", "a.plan", "story.mine", "--library", "mine.actions", "--model", 'mine:{"entries": ["a pen", "a house"]}',
        "--executor", "mine", "--domain", "mine", "--context", "retrieve", "--window", "600",
        "--max-output-tokens", "100", "--ranker", "mine", "--out", "rows.jsonl", "--max-calls", "9",
    )  # fmt: skip
    (row,) = map(json.loads, (mine.folder / "rows.jsonl").read_text().splitlines())
    assert row["status"] == "answered"
    assert row["answer"] == "a house"
    assert mine.called == {
        f"pearl_mine.{name}" for name in (
            "backend.create", "executor.run", "reader.read", "ranker.rank", "longest.run",
        )
    }  # fmt: skip


def test_rows_with_plug_ins(mine: Mine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "mine")
    (mine.folder / "rows.plan").write_text(OF_ROWS)
    (mine.folder / "boat.txt").write_text("Nils sold the boat. Ada kept hers.")
    said = verdicts_on(("Nils sold the boat.", "Ada kept hers."), "yes", "no")
    told = mine(
        "execute", "rows.plan", "boat.txt", "--model", f"mine:{said}", "--out", "mine://rows.jsonl", "--telemetry",
    )  # fmt: skip
    (row,) = map(json.loads, (mine.folder / "rows.jsonl").read_text().splitlines())
    assert row["answer"] == "1"
    assert "mine: StepFinished" in told.splitlines()
    assert mine.called >= {"pearl_mine.unit.split", "pearl_mine.tag.collect"}


def test_evaluation_with_plug_ins(mine: Mine) -> None:
    rows = [
        {"question": "Who sold it?", "document": "Nils sold the boat.", "reference": "Nils, I think"},
        {"question": "What?", "document": "A boat.", "reference": "Three boats"},
    ]  # fmt: skip
    (mine.folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    told = mine(
        "eval", "--domain", "mine", "--subset", "mine", "--data", "rows.jsonl", "--model", "mine:Nils",
        "--methods", "mine", "--scorer", "mine", "--json",
    )  # fmt: skip
    assert '"method": "mine"' in told
    assert {"pearl_mine.method.predict", "pearl_mine.scorer.score", "pearl_mine.domain.read"} <= (
        mine.called
    )


def test_search_with_plug_ins(mine: Mine) -> None:
    (mine.folder / "notes.txt").write_text("Nils sold the boat.\n\nHabeas bed.")
    args = ("--method", "dense", "--embeddings", "mine", "--json")
    hits = json.loads(mine("search", "notes.txt", "bead", *args))
    assert [hit["text"] for hit in hits] == ["Habeas bed.", "Nils sold the boat."]
    assert mine.called == {"pearl_mine.embedder.create"}


def test_an_index_is_built_again_after_a_reader_is_installed_or_changed(mine: Mine) -> None:
    (mine.folder / "notes.txt").write_text("Ada kept hers.")
    reader = mine.site / "pearl_mine/reader.py"
    mine.site.rename(mine.folder / "later")
    search = ("search", "story.mine", "notes.txt", "boat obng")
    assert "Avyf fbyq gur obng" in mine(*search)
    (mine.folder / "later").rename(mine.site)
    assert "Nils sold the boat" in mine(*search)
    assert "built again" not in mine(*search)
    reader.write_text(reader.read_text().replace('"rot13")', '"rot13").upper()'))
    assert "NILS SOLD THE BOAT" in mine(*search)
    (mine.site / "pearl_mine-1.0.dist-info").rename(mine.site / "pearl_mine-1.1.dist-info")
    assert "with other readers" in mine(*search)


def test_a_row_of_a_former_reader_is_not_kept(mine: Mine) -> None:
    (mine.folder / "a.plan").write_text(
        '1. all = SPLIT(CTX, "sentence") : Split\n2. n = COUNT(all) : Count\n'
    )
    execute = ("execute", "a.plan", "story.mine", "--out", "rows.jsonl", "--force")
    mine.site.rename(mine.folder / "later")
    mine(*execute)
    (mine.folder / "later").rename(mine.site)
    mine(*execute)
    assert "pearl_mine.reader.read" in mine.called


def test_command_and_server_plug_ins(mine: Mine, openai_server: Server) -> None:
    openai_server.takes_constraints = True
    assert mine("hello") == "hello\n"
    assert "Say hello." in mine("--help")
    told = mine(
        "plan", "Who?", "--model", "openai:m", "--base-url", openai_server.url, "--server", "mine",
        "--constrain", "json", code=5,
    )  # fmt: skip
    assert "Mine ignores a JSON Schema" in told
    assert "start it with --strict" in told
    assert any("mine_schema" in seen.body for seen in openai_server.requests)


@pytest.mark.slow
def test_the_examples_keep_the_contracts_of_their_kinds(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/contracts",
         "-k", "mine or longest"],
        capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(install_mine(tmp_path))},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4_000:]
    n_passed = re.search(r"(\d+) passed", done.stdout)
    assert n_passed
    assert int(n_passed[1]) > 40


ASKING_FOR_THEIRS = ("plan", "Who?", "--domain", "theirs")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed distributions in which this process looks for the module `theirs`."""

    def forget() -> None:
        for found in (
            plugins._entry_points,
            plugins._registered,
            plugins._load_registered,
            plugins.names,
        ):
            found.cache_clear()
        sys.modules.pop("theirs", None)

    with monkeypatch.context() as patched:
        patched.syspath_prepend(tmp_path)
        forget()
        yield tmp_path
    forget()


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("import no_such_package", "cannot be imported: ModuleNotFoundError: No module named"),
        ("def f(:", "cannot be imported: SyntaxError: "),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("DOMAIN = 1", "lacks read()"),
        ("read = 1", "lacks DOMAIN, read()"),
    ],
)
def test_error_of_a_broken_plug_in_names_its_distribution(
    module: str, said: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert CONTRACT.__name__ == "DomainModule"
    install(site, "their-package", {"pearl.data.domains": {"theirs": "theirs"}})
    (site / "theirs.py").write_text(module + "\n")
    assert run(ASKING_FOR_THEIRS) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) <= 3
    assert lines[0].startswith(f"pearl: the plug-in 'theirs' of their-package {said}")


def test_broken_commands_do_not_affect_others(mine: Mine) -> None:
    modules = {"absent": "import no_such_package", "empty": "x = 1", "odd": "command = 1"}
    install(mine.site, "their-package", {"pearl.cli.commands": {name: name for name in modules}})
    for name, text in modules.items():
        (mine.site / f"{name}.py").write_text(text + "\n")
    told = mine("--help")
    for name in modules:
        assert re.search(rf"^  {name} +broken: 'pearl {name}' shows the error$", told, re.M)
    assert "Say hello." in told
    assert mine("hello") == "hello\n"
    for words in (["absent"], ["empty", "--help"], ["odd", "a", "--b"]):
        assert f"the plug-in '{words[0]}'" in mine(*words, code=2).splitlines()[0]


def test_duplicate_plug_in_is_an_error(tmp_path: Path) -> None:
    for name in ("their-package", "other-package"):
        install(tmp_path, name, {"pearl.data.domains": {"theirs": "theirs"}})
    done = subprocess.run(
        [sys.executable, "-m", "pearl", *ASKING_FOR_THEIRS],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) <= 3
    assert "their-package" in lines[0]
    assert "other-package" in lines[0]


def test_entry_points_of_contrib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the checkout count, one whose module was removed is not there, and those of others come last."""
    install(tmp_path, "pearl-plans", {"pearl.data.domains": {"outdated": "pearl.contrib"}})
    install(
        tmp_path, "their-package", {"pearl.data.domains": {"ours": "theirs", "removed": "theirs"}}
    )
    (tmp_path / "pyproject.toml").write_text(
        'name = "pearl-plans"\n[project.entry-points."pearl.data.domains"]\n'
        '# what most do not use\nours = "pearl.contrib.ours:DOMAIN"\nremoved = "pearl.contrib.removed"\n[tool]\na = 1\n'
    )
    (tmp_path / "pearl/contrib").mkdir(parents=True)
    for name in ("ours", "__init__"):
        (tmp_path / f"pearl/contrib/{name}.py").write_text("")
    monkeypatch.setattr(plugins, "_ROOT", tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(plugins, "_entry_points", plugins._entry_points.__wrapped__)
    assert plugins._registered.__wrapped__("pearl.data.domains") == {
        "ours": [("pearl-plans", "", "ours", "pearl.contrib.ours:DOMAIN")],
        "removed": [("their-package", "1.0", "removed", "theirs")],
    }
    (tmp_path / "pyproject.toml").write_text('name = "of-others"\n')
    assert "outdated" in plugins._registered.__wrapped__("pearl.data.domains")
