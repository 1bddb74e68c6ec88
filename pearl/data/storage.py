"""Files at addresses such as `s3://BUCKET/KEY`: listed by page, read by range, written atomically.

`s3://BUCKET/...`, `gs://BUCKET/...`, `az://CONTAINER/...` (obstore) and `file:///...`. An address is a file, a folder or a pattern: `*` stands for characters of one name, `**` for any folders.
Credentials come from the environment that the vendor's tools use. An address never has any.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Any

from msgspec import Struct

from pearl.documents.document import Document, check_size, from_bytes, limit_bytes
from pearl.errors import DataError, PearlError, UsageError
from pearl.errors.escaping import redacted
from pearl.plugins.extras import require_extra

RETRY: Any = {
    "max_retries": 8,
    "retry_timeout": timedelta(minutes=2),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=15), "base": 2},
}  # fmt: skip
"""How long obstore repeats a request that was throttled, failed or was not answered."""

_BUFFER = 4 * 2**20  # Bytes of one request when a file is read from its beginning to its end

_SCHEMES = ("s3", "gs", "az", "file")
_COMPRESSED = (".gz", ".zst")
_CAUSES = (
    (r"NoSuchBucket|ContainerNotFound|specified bucket", "the bucket does not exist", "check its name"),
    (r"\b403\b|AccessDenied|Forbidden", "access is denied", "check the credentials and their permissions"),
    (r"\b401\b|Unauthorized|InvalidAccessKey", "the credentials are not valid", "check the credentials"),
    (r"credential|metadata endpoint", "no credentials were found",
     "set those of the vendor in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    (r"SlowDown|\b503\b|\b429\b|throttl", "the storage refuses more requests now (throttled)",
     "give the same command again later; --concurrency N asks less at once"),
    (r"error sending request|connect|timed out|timeout|closed", "the storage cannot be reached",
     "give the same command again when it can"),
)  # fmt: skip
"""Text of an error, what happened, and what to do."""


def is_address(name: str) -> bool:
    """Whether a name is an address of this module."""
    scheme, mark, _ = name.partition("://")
    return bool(mark) and scheme in _SCHEMES


def _is_pattern(name: str) -> bool:
    return not set("*?[").isdisjoint(name)


def address_of(name: str) -> str:
    """Turn a local glob into a `file://` address; return other names unchanged."""
    if is_address(name) or not _is_pattern(name) or Path(name).exists():
        return name
    return f"file://{Path(name).absolute()}"


class StoredFile(Struct, frozen=True):
    """A file at an address: `home` is `s3://BUCKET`, a `size` of -1 is unknown; with a `version` (ETag), no other one is read."""

    home: str
    key: str
    size: int = -1
    version: str = ""

    def __str__(self) -> str:
        return f"{self.home}{'' if self.key.startswith('/') else '/'}{self.key}"

    @property
    def suffix(self) -> str:
        """The suffix of its name, without that of a compression."""
        path = PurePosixPath(self.key)
        return (PurePosixPath(path.stem) if path.suffix in _COMPRESSED else path).suffix.lower()

    @property
    def source(self) -> str:
        """The identity of the file, the same on every machine."""
        return f"{self} {self.size} {self.version}"

    def beside(self, name: str) -> tuple[StoredFile, bool]:
        """The file that a row of this file names, and whether it is in the folder of this file."""
        folder = posixpath.dirname(self.key)
        key = posixpath.normpath(posixpath.join(folder, name))
        is_inside = key.startswith(f"{folder}/") if folder else not key.startswith(("/", ".."))
        return self if key == self.key else StoredFile(self.home, key), is_inside

    def ranges(self) -> io.RawIOBase:
        """The file opened for reading by ranges; nothing is read in advance."""
        known = self if self.version else _storage(self.home).head(self.key)
        if known is None:
            raise _no_file(str(self))
        return _Ranges(known)

    def open(self, mode: str = "rb") -> IO[bytes]:
        """The file opened for reading from its beginning, decompressed."""
        whole = io.BufferedReader(self.ranges(), _BUFFER)
        if self.key.endswith(".gz"):
            import gzip

            return io.BufferedReader(gzip.GzipFile(fileobj=whole))
        if self.key.endswith(".zst"):
            require_extra("data", "reading .zst", "pyarrow")
            import pyarrow

            unpacked: Any = pyarrow.CompressedInputStream(pyarrow.PythonFile(whole, "r"), "zstd")
            return io.BufferedReader(unpacked)
        return whole

    def read_bytes(self) -> bytes:
        """The whole file, within the limit of documents."""
        check_size(self.size, "file is larger", str(self), "split it")
        with self.open() as file:
            data = file.read(limit_bytes() + 1)
        check_size(len(data), "file is larger", str(self), "split it")
        return data

    def load(self) -> Document:
        """The file as a document, read as `pearl.documents.document.load` reads a local one."""
        return from_bytes(self.read_bytes(), str(self))


class _Ranges(io.RawIOBase):
    """One version of a file; each read is one request."""

    def __init__(self, file: StoredFile) -> None:
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, (0, self._at, self._file.size)[whence] + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._file.size)
        if end <= self._at:
            return 0
        data = _storage(self._file.home).read(self._file, self._at, end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def files(address: str) -> Iterator[StoredFile]:
    """The files of an address, one by one, without hidden ones (`.name`, `_name`)."""
    home, key = _split(address)
    storage = _storage(home)
    if key and not key.endswith("/") and (file := storage.head(key)):
        yield file
        return
    folder, pattern = _pattern(key)
    is_empty = True
    for file in storage.list(folder):
        if _is_listed(file.key, folder, pattern):
            is_empty = False
            yield file
    if is_empty:
        raise _no_file(address)


def _pattern(key: str) -> tuple[str, list[str]]:
    """Split a key into the folder to list and the pattern of the names in it."""
    parts = key.rstrip("/").split("/")
    n_fixed = next((n for n, part in enumerate(parts) if _is_pattern(part)), len(parts))
    return "/".join(parts[:n_fixed]), parts[n_fixed:] or ["**"]


def _is_listed(key: str, folder: str, pattern: Sequence[str]) -> bool:
    names = key.removeprefix(folder).strip("/").split("/")
    return not any(name.startswith((".", "_")) for name in names) and _matches(names, pattern)


def _matches(names: Sequence[str], pattern: Sequence[str]) -> bool:
    if not (names and pattern):
        return not (names or pattern)
    if pattern[0] == "**":
        rest = pattern[1:]
        return not rest or _matches(names, rest) or _matches(names[1:], pattern)
    return fnmatchcase(names[0], pattern[0]) and _matches(names[1:], pattern[1:])


class OutputFolder:
    """A folder at an address, to which files are added."""

    def __init__(self, address: str) -> None:
        self._home, folder = _split(address)
        self._folder = folder.rstrip("/")
        if not self._folder or _is_pattern(self._folder):
            raise UsageError(f"'{address}' is no folder", help="name one: --out s3://BUCKET/FOLDER")
        self._storage = _storage(self._home)

    def files(self) -> Iterator[StoredFile]:
        """The files directly in the folder."""
        for file in self._storage.list(self._folder):
            if posixpath.dirname(file.key) == self._folder:
                yield file

    def is_read_by(self, address: str) -> bool:
        """Whether `files(address)` would yield the files of this folder."""
        home, key = _split(address)
        (folder, pattern), own = _pattern(key), self._folder
        if home == "file://":
            folder, own = os.path.realpath(folder or "/"), os.path.realpath(own)
        file = f"{own}/part-00000.parquet"
        is_below = file.startswith(f"{folder.rstrip('/')}/" if folder else "")
        return home == self._home and is_below and _is_listed(file, folder, pattern)

    def put(self, name: str, data: bytes) -> None:
        """Add a file, which appears when it is complete and permanent."""
        self._storage.put(f"{self._folder}/{name}", data)

    def delete(self, file: StoredFile) -> None:
        """Delete a file of the folder."""
        self._storage.delete(file.key)


def _split(address: str) -> tuple[str, str]:
    """Split an address into that of the bucket and the path in it."""
    scheme, _, path = address.partition("://")
    bucket, _, key = path.partition("/")
    if scheme == "file":
        return "file://", f"/{key}"
    if "@" in bucket or ":" in bucket:
        raise UsageError(
            f"'{redacted(address, '...')}' has credentials or a port",
            help="credentials and servers come from the environment: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL",
        )
    if not bucket:
        raise UsageError(f"'{address}' names no bucket", help=f"{scheme}://BUCKET/FOLDER")
    return f"{scheme}://{bucket}", key


@cache
def _storage(home: str) -> _Bucket | _Local:
    return _Local() if home == "file://" else _Bucket(home)


class _Bucket:
    """A bucket of S3, Google Cloud Storage or Azure, or of a server compatible with one of them."""

    def __init__(self, home: str) -> None:
        require_extra("cloud", f"{home.partition(':')[0]}://", "obstore")
        import obstore.store

        self._home = home
        is_plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http:")
        options: Any = {"client_options": {"allow_http": True}} if is_plain else {}
        with self._errors(home):
            self._store: Any = obstore.store.from_url(home, retry_config=RETRY, **options)

    def head(self, key: str) -> StoredFile | None:
        with suppress(FileNotFoundError), self._errors(f"{self._home}/{key}"):
            return self._file(self._store.head(key))
        return None

    def list(self, folder: str) -> Iterator[StoredFile]:
        with self._errors(f"{self._home}/{folder}"):
            for page in self._store.list(folder or None, chunk_size=1_000):
                yield from map(self._file, page)

    def read(self, file: StoredFile, start: int, end: int) -> bytes:
        options = {"range": (start, end), "if_match": file.version or None}
        try:
            with self._errors(str(file)):
                return bytes(self._store.get(file.key, options=options).bytes())
        except FileNotFoundError:
            raise _changed(str(file)) from None

    def put(self, key: str, data: bytes) -> None:
        with self._errors(f"{self._home}/{key}"):
            self._store.put(key, data, use_multipart=False)

    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError), self._errors(f"{self._home}/{key}"):
            self._store.delete(key)

    def _file(self, about: Any) -> StoredFile:
        return StoredFile(self._home, about["path"], about["size"], about["e_tag"] or "")

    @contextmanager
    def _errors(self, address: str) -> Iterator[None]:
        """Translate errors of obstore; later lines of their texts, which have the client's settings, are dropped."""
        from obstore.exceptions import BaseError, PreconditionError

        try:
            yield
        except PearlError:
            raise
        except PreconditionError:
            raise _changed(address) from None
        except (BaseError, OSError, ValueError) as error:
            text = str(error).partition("Debug source")[0]
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
                raise
            # The query of a request may have a signature.
            told = re.sub(r"\?\S*", "", text.partition("\n")[0])[:200]
            what = f"the storage answers with an error: {told}"
            help = "check the address and the environment"
            causes = (
                (what, help) for pattern, what, help in _CAUSES if re.search(pattern, text, re.I)
            )
            what, help = next(causes, (what, help))
            raise DataError(what, path=address, help=help) from None


class _Local:
    """The local file system."""

    def head(self, key: str) -> StoredFile | None:
        with suppress(OSError, ValueError):
            found = os.stat(key)  # noqa: PTH116 - of a million files
            if stat.S_ISREG(found.st_mode):
                return _local_file(key, found)
        return None

    def list(self, folder: str) -> Iterator[StoredFile]:
        if not Path(folder or "/").is_dir():
            return
        with _os_errors(folder), os.scandir(folder or "/") as entries:
            for entry in entries:
                if entry.is_dir():
                    if not entry.is_symlink():  # it may lead back
                        yield from self.list(entry.path)
                elif file := self.head(entry.path):
                    yield file

    def read(self, file: StoredFile, start: int, end: int) -> bytes:
        with _os_errors(file.key), Path(file.key).open("rb") as opened:
            if _local_file(file.key, os.fstat(opened.fileno())) != file:
                raise _changed(file.key)
            opened.seek(start)
            return opened.read(end - start)

    def put(self, key: str, data: bytes) -> None:
        from pearl.plugins.persistence import sync_folder  # late: SQLite

        path = Path(key)
        new = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        with _os_errors(key):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with new.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                new.replace(path)
            finally:
                new.unlink(missing_ok=True)
            sync_folder(path.parent)

    def delete(self, key: str) -> None:
        with _os_errors(key):
            Path(key).unlink(missing_ok=True)


def _local_file(key: str, found: os.stat_result) -> StoredFile:
    return StoredFile("file://", key, found.st_size, str(found.st_mtime_ns))


@contextmanager
def _os_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            str(error.strerror), path=path, help="check the path and its permissions"
        ) from None


def _no_file(address: str) -> DataError:
    return DataError("no such file", path=address, help="check the address")


def _changed(address: str) -> DataError:
    help = "give the same command again, which reads the new one"
    return DataError("the file has changed since it was listed", path=address, help=help)
