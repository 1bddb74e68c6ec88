"""What commands refuse: one cause and one mend on stderr, the same as JSON, and no file half-written."""

from __future__ import annotations

import json
import shlex
from contextlib import chdir
from pathlib import Path

import click
import pytest

from pearl.cli import group
from tests.cli.terminal import PLAN, QUESTION, STORY, Terminal, asked, write
from tests.service import write_service

LINES = (Path(__file__).with_name("refused.txt")).read_text("utf-8").splitlines()
CASES = [line for line in LINES if line and not line.startswith("#")]

SOURCES_PLAN = """\
Question: Which rule is it?

Sources:
- rules : the rules of the service
- reports

New actions:
- None

1. rule = FIND(rules, "fee refunded cancelled") : The rule
2. n = FIND(reports, "reports") : Which reports
"""


TEXTS = {
    "story.txt": STORY, "why.plan": PLAN, "void/sound.mp3": "", "empty.txt": " \n", "huge.txt": "word " * 300_000,
    "a.rtf": r"{\rtf1\ansi Nils sold it.}", "here.d/README.md": "mine", "old.csv": "a,b\n1,2\n", "c.plan": SOURCES_PLAN,
    "broken.plan": "1. a = NOPE(CTX) : x\n2. b = FIND(zz) : y\n", "none.actions": "# nothing yet\n", "wrong.toml": 'modle = "x"\n',
    "schema.json": '{"type": "object", "properties": {"patient": {"type": "string"}}}',
    "rules.json": '[{"match": ".", "reply": "I would rather not."}]', "mine.actions": "FIND(CTX, X) : Find X\n",
    "stopped.plan": PLAN.replace("Nils sell the boat?", "{drug} end?\n\nParameters:\n- drug : the drug that was stopped")
    .replace('"Nils selling the boat"', '["the stopping of", drug]'),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the cases name, each with its flaw; no case changes one."""
    folder = tmp_path_factory.mktemp("refused")
    with chdir(folder):
        write_service(folder)
        for name in ("void", "here.d"):
            Path(name).mkdir()
        for name, text in TEXTS.items():
            Path(name).write_text(text, encoding="utf-8")
        Path("photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
        Path("surrogate.txt").write_bytes(b"half \xed\xa0\x80 a character")
        write("tasks.jsonl", asked("a"))
        write("questions.jsonl", {"question": "Who?", "subsets": ["hard"]})
        write("data.jsonl", {"document": STORY}, {"document_path": "story.txt"})
        write("quality.jsonl", {"article": STORY, "questions": []})
        write(
            "results.jsonl", {"id": "a", "status": "answered", "question": QUESTION, "answer": "x"}
        )
        write("corpus.jsonl", {"id": "a1", "text": "The iron bridge.", "year": 1901})
    return folder


def takes_json(words: list[str]) -> bool:
    command: click.Command | None = group
    for word in words:
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), word)
    return command is not None and any(param.name == "as_json" for param in command.params)


@pytest.mark.usefixtures("_no_waits")
@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_refused_with_its_cause(
    files: Path, case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    monkeypatch.setenv("PEARL_MAX_DOCUMENT_MB", "1")
    pearl = Terminal(files, capsys)
    command, _, words = case.partition(" -> ")
    code, args = int(command[0]), shlex.split(command[1:].replace("\\", "\\\\"))
    args = [arg.encode("ascii", "replace").decode("unicode_escape") for arg in args]
    before = sorted(Path().rglob("*"))
    is_json = takes_json(args)
    shown = pearl(*args, *(["--json"] if is_json else []), code=code)
    told = pearl.talk[pearl.talk.index("pearl: ") :]  # without the line of the model
    assert words in told
    assert len(told.splitlines()) <= 4, told
    if is_json and shown != "[]\n":  # a search without a match
        failed = json.loads(shown)
        assert (failed["status"], failed["error"]["exit_code"]) == ("failed", code)
        assert failed["error"]["message"] in told
        assert (failed["error"]["help"] or "") in told
    else:
        assert is_json or shown == ""
    assert sorted(Path().rglob("*")) == before
