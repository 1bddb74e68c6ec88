"""`pearl lsp`: which actions the plans of a folder may call, and what a stranger's folder decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl.cli import run
from pearl.cli.settings import found_in, trust
from pearl.contrib.editor.command import _actions_for
from pearl.contrib.editor.features import findings, formatted, outline
from pearl.errors import DataError, LibraryError, UsageError
from pearl.plugins import extras


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.actions").write_text("MINE(CTX) : Mine\n", encoding="utf-8")
    return tmp_path


def settings(folder: Path, text: str, *, is_trusted: bool = True) -> None:
    (folder / "pearl.toml").write_text(text, encoding="utf-8")
    found = found_in(folder)
    assert found is not None
    if is_trusted:
        trust(found.path, found.content)


@pytest.mark.parametrize(
    ("file", "said", "named", "library"),
    [
        ("", {}, None, "seed"),
        ('domain = "medical"', {}, None, "medical"),
        ('domain = "medical"', {"domain": "quality"}, None, "quality"),
        ('domain = "quality"', {}, "own.toml", "medical"),
    ],
)
def test_the_library_is_that_of_the_settings(
    folder: Path, file: str, said: dict[str, str], named: str | None, library: str
) -> None:
    settings(folder, f"{file}\n")
    (folder / "own.toml").write_text('domain = "medical"\n', encoding="utf-8")
    config = None if named is None else str(folder / named)
    assert _actions_for(folder, said, config, {*said}).library.name == library


def test_a_trusted_file_of_the_project_names_a_library_beside_it(folder: Path) -> None:
    settings(folder, 'library = "mine.actions"\n')
    known = _actions_for(folder, {}, None, set())
    assert known.path == folder / "mine.actions"
    assert _actions_for(folder.parent, {}, None, set()).library.name == "seed"


@pytest.mark.parametrize("line", ['library = "/etc/passwd"', 'domain = "medical"'])
def test_a_strangers_file_decides_nothing_and_is_not_silently_ignored(
    folder: Path, line: str
) -> None:
    settings(folder, f"{line}\n", is_trusted=False)
    with pytest.raises(UsageError, match="you have not trusted this file"):
        _actions_for(folder, {}, None, set())
    assert _actions_for(folder, {"library": "seed"}, None, {"library"}).library.name == "seed"


def test_what_the_editor_says_is_of_the_project_and_what_the_command_line_says_of_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"library": "mine.actions"}
    assert _actions_for(folder, said, None, set()).path == folder / "mine.actions"
    monkeypatch.chdir(folder)
    assert _actions_for(Path("/"), said, None, {"library"}).path == folder / "mine.actions"
    with pytest.raises(DataError, match="no action library or file"):
        _actions_for(Path("/"), said, None, set())


@pytest.mark.parametrize("name", ["{0}/mine.actions", "../mine.actions", "link.actions"])
def test_the_editor_names_no_library_outside_of_the_project(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = folder / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    (project / "link.actions").symlink_to(folder / "mine.actions")
    library = name.format(folder)
    with pytest.raises(UsageError, match="outside the project"):
        _actions_for(project, {"library": library}, None, set())
    assert _actions_for(project, {"library": library}, None, {"library"}).path


@pytest.mark.slow
def test_an_action_file_of_any_length_is_read_as_far_as_it_may_go(folder: Path) -> None:
    lines = "".join(f"FIND_{i}(CTX, X) : Find X\n" for i in range(40_000))
    (folder / "mine.actions").write_text(lines, encoding="utf-8")
    with pytest.raises(LibraryError, match="more than 5,000 actions"):
        _actions_for(folder, {"library": "mine.actions"}, None, set())
    [found] = findings(lines, "actions", None)
    assert "more than 5,000 actions" in found.message
    assert formatted(lines, "actions") is None
    assert len(outline(lines, "actions").declarations) == 5_000


@pytest.mark.parametrize("text", ["library = ", 'libary = "seed"', 'library = "nope.actions"'])
def test_a_file_of_settings_that_is_wrong_is_told(folder: Path, text: str) -> None:
    (folder / "pearl.toml").write_text(text, encoding="utf-8")
    found = "nope" in text and found_in(folder)
    if found:
        trust(found.path, found.content)
    with pytest.raises(DataError):
        _actions_for(folder, {}, None, set())


def test_the_extra_is_named_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert run(["lsp"]) == 2
    told = capsys.readouterr().err
    assert "pygls" in told
    assert "[lsp]" in told
