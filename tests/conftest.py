"""Isolation of all tests: no data of the user, no other host."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import FAST, THOROUGH
from tests.server import Server, serving
from tests.skips import ALLOWED

pytest_plugins = ["tests.suite"]

LOOPBACK = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "")

# What is compiled is kept, whatever the user's setting: a few hundred child processes load PEARL.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell has what runs in the background ignore Ctrl-C, its children, too: tests that send it to
# their programs would wait until those end by themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more about the machine than about the code.
settings.register_profile(
    "fast",
    max_examples=FAST,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("fast"), max_examples=THOROUGH)
settings.load_profile("fast")

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--installed ENVIRONMENT`: where a user's installation is that tests/test_installed.py uses."""
    parser.addoption("--installed", type=Path, metavar="ENVIRONMENT")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """An unknown skip fails the run; a worker of xdist reports its own to the controller."""
    if hasattr(session.config, "workerinput"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    skipped = {report.longrepr[2] for report in reporter.stats.get("skipped", [])}
    for reason in sorted({each.removeprefix("Skipped: ") for each in skipped} - ALLOWED):
        reporter.ensure_newline()
        reporter.section("tests/skips.py does not allow this", red=True)
        reporter.line(reason, red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection() -> None:
    """Thousands of tests stay until the end: the garbage collector need not look at them."""
    gc.disable()


def pytest_collection_finish() -> None:
    """It looks at what comes after them."""
    gc.freeze()
    gc.enable()


class Homes:
    """Folders of a user: an empty one each time, which may be the last one if it is empty still."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._last: Path | None = None

    def empty(self) -> Path:
        """An empty folder, where the environment says that home is."""
        if self._last is None or any(self._last.iterdir()):
            self._last = self._folders.mktemp("home")
        return self._last


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Homes:
    """What makes homes: few tests write into theirs."""
    return Homes(tmp_path_factory)


@pytest.fixture
def home(homes: Homes) -> Path:
    """The user's folder, empty."""
    return homes.empty()


@pytest.fixture(scope="session")
def for_all() -> Iterator[pytest.MonkeyPatch]:
    """What is patched once, for every test: it takes longer than most tests do."""
    with pytest.MonkeyPatch.context() as patched:
        yield patched


@pytest.fixture(scope="session", autouse=True)
def _nobodys_settings(for_all: pytest.MonkeyPatch) -> None:
    """Settings of whoever runs the tests play no part in them."""
    for name in os.environ:
        if name.startswith(("PEARL_", "OPENAI_", "HF_", "XDG_")):
            for_all.delenv(name)


@pytest.fixture(autouse=True)
def _nobodys_state(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Nor does their state, which stays as it is."""
    monkeypatch.setenv("HOME", str(home))
    for name, folder in (
        ("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "data"), ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"), ("HF_HOME", "cache"), ("TIKTOKEN_CACHE_DIR", "cache"),
    ):  # fmt: skip
        monkeypatch.setenv(name, str(home / folder))


@pytest.fixture(scope="session")
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the first certificate of the bundle that clients read."""
    import certifi

    end = "-----END CERTIFICATE-----\n"
    first = Path(certifi.where()).read_text(encoding="utf-8").partition(end)[0]
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(first + end, encoding="utf-8")
    return path


@pytest.fixture(scope="session", autouse=True)
def _little_work(for_all: pytest.MonkeyPatch, one_certificate: Path) -> None:
    """What costs a test much time and tells it nothing is left out, in child processes, too."""
    # A client reads every certificate there is, once for each proxy: 0.1 s that no server here sees.
    for_all.setenv("SSL_CERT_FILE", str(one_certificate))
    # Threads of llama.cpp spin while they wait for each other; where other tests want the cores,
    # that takes a hundred times as long as the work.
    for_all.setenv("OMP_WAIT_POLICY", "passive")


@pytest.fixture(scope="session", autouse=True)
def _no_network(for_all: pytest.MonkeyPatch) -> None:
    """To tests and to the processes they start, this machine is alone in the world."""
    for name in PROXIES:  # a child process looks for the world behind a closed door
        for_all.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        for_all.setenv(name, ",".join(filter(None, LOOPBACK)))
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def only_here(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in LOOPBACK:
            raise OSError(f"tests reach no host but this one: {address[0]}")
        connect(self, address)

    def look_up_here(host: Any, *arguments: Any, **options: Any) -> Any:
        if host not in (*LOOPBACK, None):
            raise socket.gaierror(socket.EAI_NONAME, f"tests know no host but this one: {host}")
        return lookup(host, *arguments, **options)

    for_all.setattr(socket.socket, "connect", only_here)
    for_all.setattr(socket, "getaddrinfo", look_up_here)


@pytest.fixture
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that failed is made again at once."""
    from pearl.llm.middleware.retry import CircuitBreaker

    monkeypatch.setattr(CircuitBreaker, "sleep", lambda breaker, wait_s: asyncio.sleep(0))


@pytest.fixture
def openai_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """An OpenAI-compatible server on loopback, known not to obey constraints unless it `takes_constraints`."""
    from pearl.llm.backends.openai.sessions import ServerMemory

    read = ServerMemory.read

    def known(memory: ServerMemory, name: str) -> Any:
        is_verdict = any(each in name for each in (": json of", ": grammar of", ": line"))
        if is_verdict and not server.takes_constraints:
            return {"refused": "the server of the tests takes none"}
        return read(memory, name)

    monkeypatch.setattr(ServerMemory, "read", known)
    with serving() as server:
        yield server
