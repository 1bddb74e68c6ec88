"""Named arrays in one file: written whole, checked, and mapped into memory.

The file is a preamble (mark, length and CRC-32 of the header), the header as JSON (what the file is
about; of each array its type, shape, offset and CRC-32), and the arrays, aligned to 64 bytes. A file
is untrusted input: nothing outside of it is read, whatever its header says.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MARK = b"PEARLIX1"
_PREAMBLE = struct.Struct("<8sII")
_ALIGNED = 64
_TYPES = ("<u1", "|u1", "<u2", "<u4", "<u8", "<i4", "<i8", "<f4")
_MOST_HEADER = 1 << 20

Stamp = tuple[int, int, int]
"""Size, time of the last change of the contents, and of the file's entry, in nanoseconds."""


class DamagedError(Exception):
    """A file of an index is not what was written; the index has to be made anew."""


@dataclass(frozen=True, slots=True)
class ArraysFile:
    """What is in a file."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def stamp_of(path: str | Path) -> Stamp:
    """The stamp of a file; a file that was changed since has another one."""
    found = os.stat(path)  # noqa: PTH116 - of thousands of files, and a Path takes ten times as long
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def private(path: str, flags: int) -> int:
    """An opener of files that only the user may read: they hold the text of documents."""
    return os.open(path, flags, 0o600)


def write_arrays(path: Path, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Stamp:
    """Write a file that is not there yet, down to the disk."""
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    described: list[dict[str, Any]] = []
    offset = 0
    for name, array in plain.items():
        described.append(
            {
                "name": name,
                "type": array.dtype.str,
                "shape": list(array.shape),
                "offset": offset,
                "crc": zlib.crc32(_bytes(array)),
            }
        )
        offset += _padded(array.nbytes)
    header = json.dumps({"about": about, "arrays": described}).encode()
    with open(path, "xb", opener=private) as file:
        file.write(_PREAMBLE.pack(_MARK, len(header), zlib.crc32(header)))
        file.write(header.ljust(_padded(_PREAMBLE.size + len(header)) - _PREAMBLE.size))
        for array in plain.values():
            file.write(_bytes(array))
            file.write(bytes(_padded(array.nbytes) - array.nbytes))
        file.flush()
        os.fsync(file.fileno())
    return stamp_of(path)


def read_arrays(path: Path, written: Stamp | None) -> ArraysFile:
    """Map a file into memory."""
    try:
        # No link is followed: a hostile index may point to files that are none of its business.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_size < _PREAMBLE.size:
                raise DamagedError(f"{path.name} is cut off, or no file")
            data = mmap.mmap(file, found.st_size, access=mmap.ACCESS_READ)
        finally:
            os.close(file)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(f"{path.name} cannot be read: {error.strerror}") from None
    is_as_written = written == (found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    try:
        return _parsed(data, is_as_written=is_as_written)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedError(f"{path.name} is damaged: {error}") from None


def _parsed(data: mmap.mmap, *, is_as_written: bool) -> ArraysFile:
    mark, length, crc = _PREAMBLE.unpack_from(data)
    if mark != _MARK or length > min(_MOST_HEADER, len(data) - _PREAMBLE.size):
        raise ValueError("no header")
    header = data[_PREAMBLE.size : _PREAMBLE.size + length]
    if zlib.crc32(header) != crc:
        raise ValueError("wrong checksum of the header")
    described = json.loads(header)
    start = _padded(_PREAMBLE.size + length)
    whole = np.frombuffer(data, np.uint8)
    arrays: dict[str, NDArray[Any]] = {}
    for each in described["arrays"]:
        name, shape, offset = each["name"], each["shape"], each["offset"]
        if each["type"] not in _TYPES:
            raise ValueError(f"'{name}' has an unknown type")
        numbers = [offset, *shape]
        if not all(isinstance(n, int) and 0 <= n < 1 << 48 for n in numbers) or len(shape) > 2:
            raise ValueError(f"'{name}' has no shape")
        dtype = np.dtype(each["type"])
        n_bytes = math.prod(shape) * dtype.itemsize
        begin = start + offset
        if begin % _ALIGNED or begin + n_bytes > len(data):
            raise ValueError(f"'{name}' is cut off")
        raw = whole[begin : begin + n_bytes]
        if not is_as_written and zlib.crc32(_bytes(raw)) != each["crc"]:
            raise ValueError(f"wrong checksum of '{name}'")
        arrays[name] = raw.view(dtype).reshape(shape)
    about = described["about"]
    if not isinstance(about, dict):
        raise TypeError("nothing is said about it")
    return ArraysFile(about, arrays)


def _padded(n: int) -> int:
    return -(-n // _ALIGNED) * _ALIGNED


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
