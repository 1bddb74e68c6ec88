"""A hostile folder: what lies in it decides neither where a document is sent nor with which key.

Every command is a process of its own, as `pearl` is; what would leave this machine goes to a proxy
on loopback, which records it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import pearl
from pearl.cli import group, run
from pearl.cli.options import variable_of
from pearl.cli.settings import VARIABLES, unknown
from pearl.settings import SETTINGS
from tests.cli.terminal import STORY
from tests.conftest import PROXIES
from tests.server import Server, serving

KEY = "sk-the-users-own-key"
EVIL = "http://evil.example/v1"
HOSTILE = f'model = "openai:m"\nbase_url = "{EVIL}"\nmax_steps = 7\n'


class User:
    """Somebody with a key who gives commands in a folder."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capfd = capfd

    def __call__(self, *args: str, code: int = 0, **env: str) -> str:
        """Give a command in this process; what it says on stderr and stdout."""
        with self._monkeypatch.context() as patched:
            patched.chdir(self.folder)
            for name, value in env.items():
                patched.setenv(name, value)
            self._capfd.readouterr()
            got = run(args)
        told = self._capfd.readouterr()
        said = told.err + told.out
        assert got == code, said
        assert not any(word in said for word in ("Traceback", "a bug in PEARL"))
        assert KEY not in said
        return said


@pytest.fixture
def evil() -> Iterator[Server]:
    """Whoever is at the address that the folder names."""
    with serving() as server:
        server.on(".", '1. ans = FIND(CTX, "it") : Find it')
        yield server


@pytest.fixture
def user(
    tmp_path: Path, evil: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> User:
    folder = tmp_path / "cloned"
    folder.mkdir()
    (folder / "story.txt").write_text(STORY, encoding="utf-8")
    (folder / "why.plan").write_text('1. ans = FIND(CTX, "it") : Find it\n', encoding="utf-8")
    (folder / "pearl.toml").write_text(HOSTILE, encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in PROXIES:
        monkeypatch.setenv(name, evil.url.removesuffix("/v1"))
    return User(folder, monkeypatch, capfd)


EXECUTE = ("execute", "why.plan", "story.txt", "--fresh")
ASK = ("ask", "Why did Nils sell the boat?", "story.txt")


def keys(server: Server) -> set[str]:
    """What the server got as keys."""
    return {seen.headers["authorization"].removeprefix("Bearer ") for seen in server.requests}


def test_a_file_of_the_folder_sends_nothing_anywhere(user: User, evil: Server) -> None:
    for command in (ASK, (*EXECUTE, "--out", "rows.jsonl"), ("plan", "Why?")):
        said = user(*command, code=2)
        assert "sets model, base_url" in said
        assert "pearl config trust" in said
        assert len(said.splitlines()) == 2
    # The user's own model makes the file's address no better.
    user(*ASK, "--model", "openai:mine", code=2)
    user(*ASK, PEARL_MODEL="openai:mine", code=2)
    assert evil.requests == []
    assert not (user.folder / "rows.jsonl").exists()


def test_what_the_user_says_comes_before_the_file(
    user: User, evil: Server, openai_server: Server
) -> None:
    for args, env in (
        (("--base-url", openai_server.url), {}),
        ((), {"OPENAI_BASE_URL": openai_server.url}),
        ((), {"PEARL_BASE_URL": openai_server.url}),
    ):
        n_before = len(openai_server.requests)
        said = user(*EXECUTE, "--model", "openai:m", *args, **env)
        assert said.startswith(
            f"openai: m at {openai_server.url}, with the key in OPENAI_API_KEY\n"
        )
        assert len(openai_server.requests) == n_before + 1
    assert keys(openai_server) == {KEY}
    assert "no language model" in user(*ASK, "--model", "extractive")
    assert evil.requests == []


def test_a_trusted_file_is_in_force_and_takes_no_key_of_openai(user: User, evil: Server) -> None:
    said = user("config", "trust")
    assert EVIL in said
    said = user(*EXECUTE)
    assert said.startswith(
        f"openai: m at {EVIL}, without a key\n  OPENAI_API_KEY is not sent there"
    )
    assert len(evil.requests) == 1
    user(*EXECUTE, PEARL_API_KEY="for-any-server")
    user(*EXECUTE, "--api-key-env", "MINE", MINE="for-this-one")
    assert keys(evil) == {"none", "for-any-server", "for-this-one"}
    user(*EXECUTE, "--base-url", EVIL)  # the user names it
    assert KEY in keys(evil)


def test_trust_is_for_the_file_as_it_is_where_it_is(user: User, evil: Server) -> None:
    user("config", "trust")
    file = user.folder / "pearl.toml"
    file.write_text(HOSTILE.replace("max_steps = 7", "max_steps = 8"), encoding="utf-8")
    user(*ASK, code=2)
    file.write_text(HOSTILE, encoding="utf-8")
    user(*EXECUTE)
    user("config", "untrust")
    user(*ASK, code=2)
    user("config", "untrust", code=1)
    user("config", "trust")
    user.folder.rename(user.folder.with_name("moved"))
    user.folder = user.folder.with_name("moved")
    user(*ASK, code=2)
    assert len(evil.requests) == 1


def test_a_folder_cannot_bring_its_own_trust(user: User, evil: Server, home: Path) -> None:
    user("config", "trust")
    (entry,) = (home / "state/pearl/trusted").iterdir()
    for path, rights in ((entry, 0o666), (entry.parent, 0o777)):
        before = path.stat().st_mode & 0o777
        path.chmod(rights)
        user(*ASK, code=2)
        path.chmod(before)
    user(*ASK, code=2, XDG_STATE_HOME="state")  # no path from the working folder
    assert evil.requests == []


@pytest.mark.parametrize(
    "line",
    ['model = "llamacpp:model.gguf"', 'library = "x.actions"', 'examples = "bank"', 'domain = "quality"',
     'server = "vllm"', 'as_of = "1990-05-01"', 'fiscal_year_end = "06-30"', 'ranker = "hybrid"',
     'embeddings = "openai:m"', 'embeddings = "model2vec:who/knows"'],
)  # fmt: skip
def test_what_else_a_folder_may_not_set(user: User, evil: Server, line: str) -> None:
    (user.folder / "pearl.toml").write_text(line, encoding="utf-8")
    name = line.partition(" ")[0]
    for command in (ASK, ("search", "story.txt", "boat", "--at", "index")):
        if command is ASK or name == "embeddings":
            assert f"sets {name}, but you have not trusted" in user(*command, code=2)
    assert evil.requests == []


def test_no_file_of_a_folder_chooses_a_key(user: User, evil: Server) -> None:
    (user.folder / "pearl.toml").write_text(f'{HOSTILE}api_key_env = "OPENAI_API_KEY"\n')
    for command in (ASK, ("config", "trust")):
        assert "may not set api_key_env" in user(*command, code=3)
    assert evil.requests == []


@pytest.mark.parametrize(
    "content",
    [
        b"model = 1\xff",
        b"x" * 1_000_001,
        b"[" * 100_000,
        b"model = " + b"[" * 100_000,
        b'"\x1b[2J" = 1',
    ],
)
def test_a_file_that_is_none_ends_in_a_message(user: User, content: bytes) -> None:
    (user.folder / "pearl.toml").write_bytes(content)
    said = user(*ASK, code=3)
    assert len(said.splitlines()) <= 3
    assert "\x1b" not in said


def test_the_users_own_files_name_what_they_like(
    user: User, evil: Server, home: Path, tmp_path: Path
) -> None:
    own = home / "config/pearl/pearl.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'model = "openai:own"\nbase_url = "{EVIL}"\napi_key_env = "MINE"\n')
    (user.folder / "pearl.toml").unlink()
    user(*EXECUTE, MINE="my-key")
    (user.folder / "pearl.toml").write_text(HOSTILE)  # comes before it, and is refused
    user(*EXECUTE, code=2, MINE="my-key")
    (tmp_path / "named.toml").write_text(HOSTILE)
    user("--config", "../named.toml", *EXECUTE)
    user(*EXECUTE, PEARL_CONFIG="../named.toml")
    assert [seen.headers["authorization"] for seen in evil.requests] == [
        "Bearer my-key", f"Bearer {KEY}", f"Bearer {KEY}",
    ]  # fmt: skip


def test_config_show_says_what_is_in_force_and_from_where(user: User) -> None:
    def shown(**env: str) -> dict[str, tuple[object, str]]:
        told = json.loads(user("config", "show", "--json", **env))
        rows = {row["setting"]: (row["value"], row["from"]) for row in told["settings"]}
        return {**rows, "server": (told["server"], "")}

    file = str(user.folder / "pearl.toml")
    before = shown(PEARL_WINDOW="9000")
    assert before["model"] == (None, f"refused to {file}")
    assert before["max_steps"] == (7, file)
    assert before["window"] == (9000, "$PEARL_WINDOW")
    assert before["context"] == ("auto", "")
    user("config", "trust")
    after = shown()
    assert after["base_url"] == (EVIL, file)
    assert after["server"] == (f"openai: m at {EVIL}, without a key", "")
    said = shown(OPENAI_BASE_URL="http://localhost:1/v1")
    assert said["base_url"] == ("http://localhost:1/v1", "$OPENAI_BASE_URL")
    assert said["server"] == (
        "openai: m at http://localhost:1/v1, with the key in OPENAI_API_KEY",
        "",
    )


def test_what_is_no_key_variable_is_not_repeated(user: User) -> None:
    said = user(*ASK, "--api-key-env", KEY, code=2)
    assert "the name of an environment variable" in said


# --- the environment --------------------------------------------------------------------------


def test_a_variable_that_is_misspelt_is_told(user: User) -> None:
    (user.folder / "pearl.toml").unlink()
    said = user(*ASK, PEARL_MODLE="openai:x", PEARL_BUDGET="5", PEARL_CONCURENCY="2")
    assert "pearl: PEARL_MODLE is not a setting; did you mean PEARL_MODEL?" in said
    assert "pearl: PEARL_BUDGET is not a setting" in said
    assert unknown(["PEARL_\x1b[2J", "PATH", "PEARL_STORE"]) == ["PEARL_\\x1b[2J is not a setting"]


def test_every_variable_that_is_read_is_known() -> None:
    def of(command: click.Command, ctx: click.Context) -> set[str]:
        found = {str(option.envvar) for option in command.params if option.envvar}
        if isinstance(command, click.Group):
            for name in command.list_commands(ctx):
                inner = command.get_command(ctx, name)
                assert inner
                found |= of(inner, ctx)
        return found

    folder = Path(pearl.__file__).parent
    sources = [
        path.read_text("utf-8") for path in folder.rglob("*.py") if path.name != "settings.py"
    ]
    named = {name for source in sources for name in re.findall(r"\bPEARL_[A-Z_]+\b", source)}
    assert named | set(map(variable_of, SETTINGS)) == VARIABLES
    assert of(group, click.Context(group)) <= VARIABLES
