"""The package as users install it: the wheel alone, without extras. `make test-wheel` runs this."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from html import unescape
from io import BytesIO
from pathlib import Path

import pytest

from tests.documents.readers.test_pdf import make_pdf
from tests.skips import NO_WHEEL

Command = Callable[..., subprocess.CompletedProcess[str]]

FACT = "The captain turned back because the lamp failed."


@pytest.fixture(scope="module")
def environment(request: pytest.FixtureRequest) -> Path:
    """A virtual environment that holds the wheel and what it depends on."""
    given: Path | None = request.config.getoption("--installed")
    if given is None:
        pytest.skip(NO_WHEEL)
    return given.resolve()


@pytest.fixture
def pearl(environment: Path, tmp_path: Path) -> Command:
    """Run the installed command in an empty folder."""

    def run(*args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [environment / "bin/pearl", *args],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done

    return run


def test_it_is_another_installation_than_this_checkout(environment: Path, tmp_path: Path) -> None:
    code = "import pearl; print(pearl.__file__)"
    done = subprocess.run(
        [environment / "bin/python", "-c", code],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""}, capture_output=True, text=True,
    )  # fmt: skip
    assert Path(done.stdout.strip()).is_relative_to(environment / "lib")


def test_it_says_its_version_and_shows_itself(pearl: Command) -> None:
    assert pearl("--version").stdout.startswith("pearl ")
    assert "Tobias" in pearl("demo").stdout


@pytest.mark.parametrize("kind", ["html", "pdf", "docx", "txt"])
def test_it_reads_documents(pearl: Command, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"story.{kind}"
    path.write_bytes(DOCUMENTS[kind]())
    row = json.loads(pearl("ask", "Why did the captain turn back?", path.name, "--json").stdout)
    assert FACT in [quote["text"] for quote in row["evidence"]]


def test_a_page_without_the_extra_for_pictures_shows_a_pdf_as_text(
    pearl: Command, environment: Path, tmp_path: Path
) -> None:
    (tmp_path / "story.pdf").write_bytes(make_pdf([[FACT]]))
    asked = ["ask", "Why did the captain turn back?", "story.pdf", "--page", "story.html"]
    pearl(*asked)
    page = unescape((tmp_path / "story.html").read_text())
    assert FACT in page
    assert "a picture of a page needs PIL, which is not installed" in page
    assert f'{environment}/bin/python -m pip install "pearl-plans[pictures] @ file://' in page


def test_it_brings_few_packages(environment: Path) -> None:
    (packages,) = environment.glob("lib/python*/site-packages")
    brought = {path.name.partition("-")[0] for path in packages.glob("*.dist-info")}
    assert "pillow" not in brought
    assert len(brought - {"pip", "setuptools"}) <= 40


def test_it_reads_rows_without_datasets(pearl: Command, tmp_path: Path) -> None:
    asked = {"question": "Why did the captain turn back?", "document": FACT}
    (tmp_path / "a.jsonl").write_text(json.dumps(asked))
    (tmp_path / "a.csv").write_text(",".join(asked) + "\n" + ",".join(asked.values()))
    for name in ("a.jsonl", "a.csv"):
        pearl("plan", "--data", name, "-o", f"{name}.plans")
        pearl("execute", "--tasks", f"{name}.plans", "--out", f"{name}.rows.jsonl")
        (row,) = map(json.loads, (tmp_path / f"{name}.rows.jsonl").read_text().splitlines())
        assert row["status"] == "answered"


@pytest.mark.parametrize(
    ("args", "package", "extra"),
    [
        (["eval", "--data", "a.jsonl", "--methods", "direct"], "scipy", "eval"),
        (["refine", "actions", "a.actions"], "scipy", "eval"),
        (["plan", "--data", "a.parquet", "-o", "p"], "pyarrow", "data"),
        (["plan", "--data", "no-such/dataset", "-o", "p"], "datasets", "data"),
        (["execute", "a.plan", "a.txt", "--executor", "ray", "--out", "r"], "ray", "ray"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_with_the_command_that_installs_it(
    pearl: Command, environment: Path, tmp_path: Path, args: list[str], package: str, extra: str
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"question": "Who?", "document": FACT}))
    (tmp_path / "a.actions").write_text("FIND_REASON(CTX, X) : Find the reason for X\n")
    (tmp_path / "a.plan").write_text('1. a = FIND_REASON(CTX, "it") : Find it\n')
    (tmp_path / "a.txt").write_text(FACT)
    (tmp_path / "a.parquet").touch()
    told = pearl(*args, code=2).stderr
    assert f"needs {package}, which is not installed" in told
    assert f'{environment}/bin/python -m pip install "pearl-plans[{extra}] @ file://' in told
    assert len(told.splitlines()) <= 3


def _docx() -> bytes:
    import docx

    document, data = docx.Document(), BytesIO()
    document.add_paragraph(FACT)
    document.save(data)
    return data.getvalue()


DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "html": lambda: f"<!doctype html><title>A</title><p>{FACT}</p>".encode(),
    "pdf": lambda: make_pdf([[FACT]]),
    "docx": _docx,
    "txt": FACT.encode,
}
