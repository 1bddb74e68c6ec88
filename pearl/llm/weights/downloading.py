"""URL of a GGUF file, or its name on a hub → the file in the cache folder.

    https://example.org/model.gguf        a file of any server
    hf:OWNER/REPO/FILE.gguf               a file of a repository on Hugging Face, or at $HF_ENDPOINT

What was downloaded when it broke off is kept, and gone on with where the server says that its file is
still the same. The file appears at once and whole.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pearl.documents.digest import digest, file_sha256
from pearl.errors import DataError, UsageError
from pearl.errors.escaping import redacted
from pearl.plugins.files import cache_file
from pearl.plugins.locks import locked_file

if TYPE_CHECKING:
    from aiohttp import ClientResponse

HUB = "https://huggingface.co"
HUB_VARIABLE = "HF_ENDPOINT"

MAGIC = b"GGUF"

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0
"""Seconds without a byte after which a download is given up."""

PIECE_BYTES = 2**20

_REPOSITORY_FILE = re.compile(r"hf:([\w.-]+)/([\w.-]+)/((?:[\w.-]+/)*[\w.-]+\.gguf)", re.ASCII)
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)", re.ASCII)

Progress = Callable[[int, int | None], object]
"""Called with the bytes that are here, and those of the whole file, None if that is not told."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A model file on a server."""

    name: str
    url: str
    path: Path

    @property
    def is_there(self) -> bool:
        """Whether it is here: it appears only once it is whole."""
        return self.path.is_file()

    def checked_path(self) -> Path:
        """The path of the file that is here."""
        if not self.is_there:
            raise DataError(
                "the model file is not here", path=self.path, help=f"pearl models get {self.name}"
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
            raise UsageError(f"{name!r} is no name of a model file", help="hf:OWNER/REPO/FILE.gguf")
        hub = os.environ.get(HUB_VARIABLE, "").strip().rstrip("/") or HUB
        url = f"{hub}/{found[1]}/{found[2]}/resolve/main/{found[3]}"
    elif "://" not in name:
        return None
    return Remote(name, url, _folder() / _place(url))


def download(
    remote: Remote, sha256: str | None = None, progress: Progress = lambda n, total: None
) -> bool:
    """Put a model file where it is kept; what is there already stays."""
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise UsageError("a SHA-256 has 64 hexadecimal digits", help="as sha256sum prints it")
    folder = remote.path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked_file(_folder() / ".lock"):
            if remote.is_there:
                _check(remote.path, sha256, remote)
                return False
            part = folder / f".{remote.path.name}.part"
            asyncio.run(_fetch(remote.url, part, progress))
            _check(part, sha256, remote)
            part.replace(remote.path)
            _validator_of(part).unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            error.strerror or str(error),
            path=error.filename or folder,
            help="check the path and the disk",
        ) from None
    return True


def _check(path: Path, sha256: str | None, remote: Remote) -> None:
    """Refuse, and remove, what is not the file."""
    with path.open("rb") as file:
        is_model = file.read(len(MAGIC)) == MAGIC
    if is_model and (sha256 is None or file_sha256(path) == sha256.lower()):
        return
    if path != remote.path:  # what was kept before stays for whoever uses it
        _forget(path)
    what = "differs in its SHA-256" if is_model else "is no GGUF file"
    raise DataError(
        f"what {redacted(remote.url)} has {what}",
        path=remote.path,
        help="check the address and the digest; nothing of it was kept"
        if path != remote.path
        else "it was downloaded before: remove it to download it again",
    )


async def _fetch(url: str, part: Path, progress: Progress) -> None:
    """Download what is missing of a file."""
    from aiohttp import ClientError, ClientSession, ClientTimeout

    from pearl.llm.backends.openai.connections import connector_of, proxy_of

    try:
        proxy = proxy_of(url)
    except ValueError as error:
        raise UsageError(str(error), help="set HTTPS_PROXY to a proxy that speaks HTTP") from None
    timeout = ClientTimeout(sock_connect=CONNECT_TIMEOUT_S, sock_read=READ_TIMEOUT_S)
    connector = connector_of(url, proxy or "", *(["https:"] if url.startswith("https:") else []))
    async with ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False
    ) as session:
        for _ in range(2):  # what was begun may be of no use any more
            headers = {"accept-encoding": "identity", **_going_on(part)}
            try:
                async with session.get(url, headers=headers, proxy=proxy) as response:
                    if response.status == 416:
                        _forget(part)
                        continue
                    await _save(response, part, progress)
                    return
            except (ClientError, TimeoutError) as error:
                raise _broken_off(url, part, str(error) or "no answer in time") from None
    raise _broken_off(url, part, "the server does not say what it has")


def _going_on(part: Path) -> dict[str, str]:
    """Headers that ask for the rest of what is here, if the server's file is still the same."""
    with suppress(OSError, UnicodeDecodeError):
        validator, n = _validator_of(part).read_text("ascii"), _size(part)
        if validator and n:
            return {"range": f"bytes={n}-", "if-range": validator}
    return {}


async def _save(response: ClientResponse, part: Path, progress: Progress) -> None:
    url = str(response.url)
    if response.status not in (200, 206):
        reason = {401: "it asks who you are", 403: "it refuses", 404: "it has no such file"}
        raise DataError(
            f"{redacted(url)} answers {response.status}: {reason.get(response.status, 'no file')}",
            help="check the address; where a licence has to be accepted, download it in a browser",
        )
    if response.url.scheme == "http" and not _is_here(response.url.host or ""):
        raise DataError(f"{redacted(url)} is not encrypted", help="name an address with https://")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise DataError(f"{redacted(url)} packs the file, which was not asked for")
    n, total = 0, response.content_length
    if response.status == 206:
        said = _RANGE.fullmatch(response.headers.get("content-range", ""))
        n = _size(part)
        if said is None or int(said[1]) != n:
            _forget(part)
            raise _broken_off(url, part, "it sends another part than it was asked for")
        total = int(said[2])
    if total is not None and total - n > shutil.disk_usage(part.parent).free:
        raise DataError(
            f"the file has {total / 1e6:,.0f} MB, more than the disk has left", path=part.parent
        )
    validator = response.headers.get("etag", "")
    _validator_of(part).write_text(
        "" if validator.startswith("W/") else validator, "ascii", "replace"
    )
    with part.open("ab" if n else "wb") as file:
        async for piece in response.content.iter_chunked(PIECE_BYTES):
            if not n and not piece.startswith(MAGIC[: len(piece)]):
                raise DataError(
                    f"what {redacted(url)} sends is no GGUF file", help="check the address"
                )
            n += len(piece)
            file.write(piece)
            progress(n, total)
        file.flush()
        os.fsync(file.fileno())
    if total is not None and n != total:
        raise _broken_off(url, part, f"{n:,} of {total:,} bytes came")


def _broken_off(url: str, part: Path, why: str) -> DataError:
    help = "check the address and the network"
    if kept := _size(part):
        how = f"goes on after {kept / 1e6:,.1f} MB" if _going_on(part) else "begins anew"
        help = f"run the same command again; it {how}"
    return DataError(
        f"{redacted(url)} could not be downloaded: {' '.join(why.split())[:200]}", help=help
    )


def _size(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0


def _forget(part: Path) -> None:
    for path in (part, _validator_of(part)):
        path.unlink(missing_ok=True)


def _validator_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def _folder() -> Path:
    folder = cache_file("models")
    if folder is None:
        raise DataError(
            "there is no cache folder that only you may write to",
            help="set XDG_CACHE_HOME to a folder of your own",
        )
    return folder


def _place(url: str) -> Path:
    """Where a file is kept: by server, path and query, so that no two are in one place."""
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
            f"{redacted(url)!r} is no address of a GGUF file",
            help="https://.../FILE.gguf, with plain letters in its path, or hf:OWNER/REPO/FILE.gguf",
        )
    if parts.scheme == "http" and not _is_here(host):
        raise UsageError(f"{redacted(url)} is not encrypted", help="name an address with https://")
    if parts.query:  # no name in a path has "="
        names.insert(-1, f"={digest([parts.query]).hex()[:16]}")
    return Path(host if port is None else f"{host}.{port}", *names)


def _is_here(host: str) -> bool:
    """Whether a host is this machine."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"
