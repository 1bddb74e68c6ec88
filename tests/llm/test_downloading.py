"""Model files from servers: whole, checked, and gone on with after a break."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from pearl.errors import DataError, UsageError
from pearl.llm import weights
from pearl.llm.weights import Remote, download, find_remote
from tests.server import Canned, Seen, Server

DATA = b"GGUF" + bytes(range(256)) * 4_000
DIGEST = hashlib.sha256(DATA).hexdigest()


@dataclass
class Files:
    """A server of one file, that takes ranges; `n_sent` bytes come before the connection ends."""

    data: bytes = DATA
    etag: str = '"one"'
    n_sent: int | None = None
    takes_ranges: bool = True
    ranges: list[str | None] = field(default_factory=list)

    def __call__(self, seen: Seen) -> Canned:
        asked = seen.headers.get("range")
        self.ranges.append(asked)
        headers = {"etag": self.etag} if self.etag else {}
        if not asked or not self.takes_ranges or seen.headers.get("if-range") != self.etag:
            return self._cut(self.data, 200, headers)
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(self.data):
            return Canned(b"", 416)
        headers["content-range"] = f"bytes {start}-{len(self.data) - 1}/{len(self.data)}"
        return self._cut(self.data[start:], 206, headers)

    def _cut(self, data: bytes, status: int, headers: dict[str, str]) -> Canned:
        if self.n_sent is None:
            return Canned(data, status, headers)
        n, self.n_sent = self.n_sent, None
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "", ""]).encode()
        return Canned(head + data[:n], manner="raw")


@pytest.fixture
def files(openai_server: Server) -> Files:
    openai_server.answer = files = Files()
    return files


@pytest.fixture
def remote(openai_server: Server, files: Files) -> Remote:
    found = find_remote(openai_server.url.replace("/v1", "/a/model.gguf"))
    assert found
    return found


def left(remote: Remote) -> set[str]:
    return {path.name for path in remote.path.parent.iterdir()}


@pytest.mark.parametrize("sha256", [None, DIGEST, DIGEST.upper()])
def test_a_file_is_downloaded_once(remote: Remote, files: Files, sha256: str | None) -> None:
    told: list[tuple[int, int | None]] = []
    assert download(remote, sha256, lambda n, total: told.append((n, total)))
    assert remote.checked_path().read_bytes() == DATA
    assert told[-1] == (len(DATA), len(DATA))
    assert left(remote) == {"model.gguf"}
    assert not download(remote, sha256)
    assert files.ranges == [None]


def test_an_interrupted_download_resumes(remote: Remote, files: Files) -> None:
    files.n_sent = 100_000
    with pytest.raises(DataError, match="same command again; it resumes after 0") as caught:
        download(remote)
    assert len(str(caught.value).splitlines()) <= 3
    assert not remote.is_there
    assert download(remote, DIGEST)
    assert remote.path.read_bytes() == DATA
    assert files.ranges == [None, "bytes=100000-"]
    assert left(remote) == {"model.gguf"}


@pytest.mark.parametrize(
    "change",
    [
        lambda files: setattr(files, "etag", '"two"'),
        lambda files: setattr(files, "takes_ranges", False),
        lambda files: setattr(files, "data", DATA[:50_000]),  # shorter than what is here
    ],
)
def test_a_changed_file_is_downloaded_from_the_start(
    remote: Remote, files: Files, change: Callable[[Files], None]
) -> None:
    files.n_sent = 100_000
    with pytest.raises(DataError):
        download(remote)
    change(files)
    assert download(remote)
    assert remote.path.read_bytes() == files.data


def test_a_download_without_a_strong_etag_starts_over(remote: Remote, files: Files) -> None:
    files.etag, files.n_sent = 'W/"one"', 100_000
    with pytest.raises(DataError, match="same command again; it starts over"):
        download(remote)
    assert download(remote, DIGEST)
    assert files.ranges == [None, None]


def test_a_different_range_is_not_appended(
    remote: Remote, files: Files, openai_server: Server
) -> None:
    files.n_sent = 100_000
    with pytest.raises(DataError):
        download(remote)
    openai_server.next(Canned(b"x" * 10, 206, {"content-range": "bytes 5-14/15", "etag": '"one"'}))
    with pytest.raises(DataError, match="a different part"):
        download(remote)
    assert download(remote, DIGEST)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("404", "no such file"), ("403", "refuses"), ("401", "requires a login"), ("500", "answers 500"),
        ("page", "GGUF file"), ("drip", "GGUF file"),
        (Canned(b"GGU"), "is not a GGUF file"), (Canned(b""), "is not a GGUF file"),
        (Canned(b"", 302, {"location": "http://example.org/model.gguf"}), "."),
        (Canned(DATA, headers={"content-encoding": "gzip"}), "compressed"),
        (Canned(DATA, headers={"content-length": str(10**18)}), "more than the free disk"),
        (Canned(DATA, manner="short"), "could not be downloaded"),
    ],
)  # fmt: skip
def test_unusable_downloads_are_refused_and_removed(
    remote: Remote, openai_server: Server, answer: str | Canned, said: str
) -> None:
    openai_server.next(answer)
    with pytest.raises(DataError, match=said) as caught:
        download(remote)
    assert len(str(caught.value).splitlines()) <= 3
    assert not remote.is_there


def test_a_hanging_download_times_out(
    remote: Remote, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "READ_TIMEOUT_S", 0.2)
    openai_server.next("hang")
    with pytest.raises(DataError, match="could not be downloaded"):
        download(remote)


def test_a_file_of_another_digest_is_refused_and_removed(remote: Remote) -> None:
    with pytest.raises(DataError, match="SHA-256"):
        download(remote, "0" * 64)
    assert left(remote) == set()
    assert download(remote)
    with pytest.raises(DataError, match="remove the earlier download"):
        download(remote, "0" * 64)
    assert remote.is_there


def test_a_redirect_is_followed(remote: Remote, openai_server: Server, files: Files) -> None:
    openai_server.next(Canned(b"", 302, {"location": "/elsewhere/blob"}))
    assert download(remote, DIGEST)


def test_addresses_that_differ_in_their_query_are_two_files(
    openai_server: Server, files: Files
) -> None:
    url = openai_server.url.replace("/v1", "/a/model.gguf")
    paths = []
    for id in ("1", "2"):
        files.data = DATA + id.encode()
        found = find_remote(f"{url}?id={id}")
        assert found
        assert download(found)
        paths.append(found.checked_path())
    assert [path.read_bytes()[-1:] for path in paths] == [b"1", b"2"]
    assert {path.name for path in paths} == {"model.gguf"}


def test_a_killed_download_leaves_no_file_and_goes_on(remote: Remote, files: Files) -> None:
    code = (
        "import os, signal, pearl.llm.weights as d;"
        f"r = d.find_remote({remote.url!r});"
        "d.download(r, None, lambda n, total: os.kill(os.getpid(), signal.SIGKILL))"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert not remote.is_there
    assert download(remote, DIGEST)


def test_names_of_a_hub_and_where_files_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_remote("hf:me/small-GGUF/sub/small.Q4_K_M.gguf")
    assert found
    assert found.url == "https://huggingface.co/me/small-GGUF/resolve/main/sub/small.Q4_K_M.gguf"
    assert found.path.parts[-7:-4] == ("huggingface.co", "me", "small-GGUF")
    with pytest.raises(DataError, match="pearl models get hf:me/small-GGUF"):
        found.checked_path()
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example.org/")
    mirrored = find_remote("hf:me/small-GGUF/small.gguf")
    assert mirrored
    assert mirrored.url == "https://mirror.example.org/me/small-GGUF/resolve/main/small.gguf"
    assert find_remote("minilm") is None


@pytest.mark.parametrize(
    "name",
    [
        "hf:me/small", "hf:me/small/model.bin", "hf:me/../model.gguf", "hf:../../x.gguf", "hf:",
        "https://example.org/", "https://example.org/model.bin", "https:///model.gguf",
        "https://example.org/../../x.gguf", "https://example.org/%2e%2e/x.gguf", "ftp://h/x.gguf",
        "https://example.org/a%2Fb/..%2Fx.gguf", "https://[/x.gguf", "http://example.org/x.gguf",
        "https://example.org/.gguf", "https://example.org/a b.gguf", "https://h:99999/x.gguf",
    ],
)  # fmt: skip
def test_invalid_addresses_of_model_files_are_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_remote(name)
    assert len(str(caught.value).splitlines()) <= 3


def test_an_invalid_digest_is_refused(remote: Remote) -> None:
    with pytest.raises(UsageError, match="64"):
        download(remote, "abc")


def test_redirect_to_an_unencrypted_server_is_an_error_of_the_data(
    openai_server: Server, remote: Remote
) -> None:
    target = openai_server.url.replace("127.0.0.1", "0.0.0.0") + "/model.gguf"
    openai_server.answer = lambda seen: (
        Canned(DATA)
        if "0.0.0.0" in seen.headers["host"]
        else Canned(b"", 302, {"location": target})
    )
    with pytest.raises(DataError, match="is not encrypted"):
        download(remote)
    assert not remote.is_there
