"""A file that grows: what is in it after every way in which writing may end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pearl.data.journal import Journal, read_journal
from pearl.errors import DataError
from tests.root import ROOT
from tests.skips import needs_full_device


class Header(BaseModel):
    kind: str = "a test of journals"
    v: int = 1
    model: str = "m"


class Row(BaseModel):
    id: int
    text: str = ""


ROWS = [Row(id=0, text="first"), Row(id=1, text="zwei\n\u2028 \U0001f511"), Row(id=2)]
WHOLE = b"".join(row.model_dump_json().encode() + b"\n" for row in (Header(), *ROWS))
HEADER_END = WHOLE.index(b"\n") + 1
LAST_BEGINS = WHOLE[:-1].rindex(b"\n") + 1


def write(path: Path, *rows: Row, header: Header | None = None) -> list[Row]:
    """Append rows; what was there before."""
    with Journal(path, header or Header(), Row) as journal:
        for row in rows:
            journal.append(row)
        return journal.rows


def test_a_new_file_has_a_header_and_what_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    assert write(path, *ROWS) == []
    assert path.read_bytes() == WHOLE
    assert read_journal(path, Header, Row) == (Header(), ROWS, len(WHOLE))


def test_it_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    for i, row in enumerate(ROWS):
        assert write(path, row) == ROWS[:i]
    assert path.read_bytes() == WHOLE


def test_every_row_is_there_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path, Header(), Row) as journal:
        for i, row in enumerate(ROWS, start=1):
            journal.append(row)
            assert read_journal(path, Header, Row)[1] == ROWS[:i]


@pytest.mark.parametrize("at", range(len(WHOLE) + 1))
def test_a_file_cut_off_anywhere_is_mended(tmp_path: Path, at: int) -> None:
    """Whatever the moment at which a process was killed, only the row being written is lost."""
    path = tmp_path / "j.jsonl"
    path.write_bytes(WHOLE[:at])
    n_whole = max(0, WHOLE.count(b"\n", 0, at) - 1)
    assert write(path, *ROWS[n_whole:]) == ROWS[:n_whole]
    assert path.read_bytes() == WHOLE


def test_a_row_without_its_line_break_is_not_taken(tmp_path: Path) -> None:
    """It may be whole JSON and yet half a row: `12` of `123`."""
    path = tmp_path / "j.jsonl"
    path.write_bytes(WHOLE[:-1])
    assert read_journal(path, Header, Row) == (Header(), ROWS[:-1], LAST_BEGINS)


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=3))
def test_no_content_is_written_over_unless_it_is_our_own(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("any") / "j.jsonl"
    content = b"\n".join(lines)
    path.write_bytes(content)
    if not content or Header().model_dump_json().encode().startswith(content):
        write(path)
    else:
        with pytest.raises(DataError):
            write(path, Row(id=9))
        assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"Dear diary,\nit rained\n", "not a file of this kind"),
        (b"no line break", "of another kind"),
        (b"\n", "not a file of this kind"),
        (b'{"v": "x"}\n', "not a file of this kind"),
        (b"\xff\xfe\n", "not a file of this kind"),
        (WHOLE + b"torn in the middle\n" + WHOLE, "j.jsonl:5: not a row"),
        (WHOLE[:HEADER_END] + b'{"id": "x"}\n', "j.jsonl:2: not a row: id"),
    ],
)
def test_what_is_no_journal_stays_as_it_is(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=words):
        write(path, Row(id=9))
    assert path.read_bytes() == content


def test_another_header_is_refused_by_the_field(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(WHOLE)
    with pytest.raises(DataError, match="made with another model: m, now n") as caught:
        write(path, Row(id=9), header=Header(model="n"))
    assert len(str(caught.value).splitlines()) == 2
    with pytest.raises(DataError, match=r"another model: m, now n{57}\.\.\.\n"):
        write(path, Row(id=9), header=Header(model="n" * 500))
    assert path.read_bytes() == WHOLE
    with Journal(path, Header(model="n"), Row, varying={"model"}) as journal:
        assert journal.rows == ROWS


def test_only_one_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    code = "import fcntl, sys; fcntl.flock(open(sys.argv[1], 'ab'), fcntl.LOCK_EX); print('locked', flush=True); sys.stdin.read()"
    code = code.replace(
        "fcntl.flock(open(sys.argv[1], 'ab')", "f = open(sys.argv[1], 'ab'); fcntl.flock(f"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(DataError, match="another process is writing this file"):
            write(path)
        assert path.read_bytes() == b""
        other.communicate()
    write(path)
    assert path.read_bytes() == WHOLE[:HEADER_END]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file that could grow"):
        write(tmp_path)
    with pytest.raises(DataError, match="cannot be written: No such file or directory"):
        write(tmp_path / "absent" / "j.jsonl")


@pytest.mark.parametrize("rights", [0o500, 0o000])
def test_a_folder_without_rights_is_told(tmp_path: Path, rights: int) -> None:
    tmp_path.chmod(rights)
    user = os.geteuid()
    if user == 0:  # the superuser writes everywhere; nobody does not
        os.seteuid(65_534)
    try:
        with pytest.raises(DataError, match="cannot be written: Permission denied"):
            write(tmp_path / "j.jsonl")
    finally:
        os.seteuid(user)
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "device", [pytest.param("/dev/full", marks=needs_full_device), "/dev/zero", "/dev/null"]
)
def test_devices_do_not_grow(device: str) -> None:
    with pytest.raises(DataError, match="no file that could grow"):
        write(Path(device))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="no file that could grow"):
        write(tmp_path / "pipe")


FILL = """
import resource, signal, sys
from tests.data.test_journal import Header, Journal, Row
from pearl.errors import DataError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
n = 0
try:
    with Journal(sys.argv[1], Header(), Row) as journal:
        while True:
            journal.append(Row(id=n, text="x" * 50))
            n += 1
except DataError as error:
    print(n, str(error).splitlines()[0])
"""


@pytest.mark.parametrize("room", [10, 1_000])
def test_what_was_written_before_the_disk_was_full_is_kept(tmp_path: Path, room: int) -> None:
    path = tmp_path / "j.jsonl"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FILL, path, str(room)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.stderr == ""
    n, _, words = done.stdout.partition(" ")
    assert words.startswith(f"{path}: cannot be written: ")
    assert write(path, Row(id=-1)) == [Row(id=i, text="x" * 50) for i in range(int(n))]
    assert read_journal(path, Header, Row)[1][-1] == Row(id=-1)


def test_a_file_that_is_not_there_or_empty_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_journal(tmp_path / "absent", Header, Row)
    (tmp_path / "empty").touch()
    with pytest.raises(DataError, match="the file is empty"):
        read_journal(tmp_path / "empty", Header, Row)
