"""What commands wrote: a note that is damaged makes a file somebody else's, and ends no command."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl.runs.store.outputs import Outputs


def test_a_file_is_as_its_command_left_it_until_somebody_changes_it(tmp_path: Path) -> None:
    outputs, path = Outputs(tmp_path / "store"), tmp_path / "rows.jsonl"
    path.write_text("{}\n")
    assert not outputs.wrote(path)
    outputs.note(path, "execute", path)
    assert outputs.wrote(path)
    assert outputs.wrote(path, "execute")
    assert not outputs.wrote(path, "mine")
    path.write_text("{}\nmine\n")
    assert not outputs.wrote(path, "execute")


@pytest.mark.parametrize(
    "note",
    ["", "{", "[]", "null", "{}", '{"sha256": []}', '{"command": "execute"}',
     '{"command": "execute", "sha256": 1}', '{"command": 1, "sha256": []}'],
)  # fmt: skip
def test_a_damaged_note_is_none(tmp_path: Path, note: str) -> None:
    outputs, path = Outputs(tmp_path / "store"), tmp_path / "rows.jsonl"
    path.write_text("{}\n")
    outputs.note(path, "execute", path)
    (kept,) = (tmp_path / "store" / "outputs").iterdir()
    kept.write_text(note)
    assert not outputs.wrote(path)
    outputs.note(path, "execute", path)
    assert outputs.wrote(path, "execute")
