"""Whether a model fits into memory, before it is loaded: else the machine stands still, or the process is killed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pearl.llm.backends.llamacpp.header import Header

_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")

_STEP = 1_024
"""Advised windows are multiples of it, in tokens."""


def memory_advice(header: Header, window: int, available: int) -> tuple[str, str] | None:
    """What is wrong with the memory that a model needs, and what to do; None if it fits.

    Example:
        >>> header = Header(131_072, True, 131_072, 4 * 2**30)
        >>> memory_advice(header, 16_384, 8 * 2**30) is None
        True
        >>> memory_advice(header, 16_384, 5 * 2**30)[1]
        'a smaller window needs less: --window 8192'
    """
    cache = window * header.bytes_a_token
    if header.n_bytes + cache <= available:
        return None
    what = f"it has {_gib(header.n_bytes)}"
    if cache:
        what += f", the window of {window:,} tokens takes {_gib(cache)} more"
    what += f", and {_gib(available)} are available"
    left = available - header.n_bytes
    smaller = left // header.bytes_a_token // _STEP * _STEP if header.bytes_a_token else 0
    if smaller > 0:
        return what, f"a smaller window needs less: --window {smaller}"
    return what, "use a smaller model, or one of fewer bits; or end other programs"


def available_bytes() -> int | None:
    """Memory that a new process may take, in bytes, without that of a GPU; None if unknown.

    The least of what the system has to spare and what the limits of this process's group leave.
    """
    found: list[int] = []
    with suppress(OSError, ValueError):
        lines = _MEMINFO.read_text().splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # "max" is no limit
        limit = int((_GROUP / "memory.max").read_text())
        used = int((_GROUP / "memory.current").read_text())
        found.append(max(0, limit - used + _reclaimable()))
    return min(found, default=None)


def has_gpu() -> bool:
    """Whether llama.cpp would use a GPU, whose memory is not counted here."""
    import xllamacpp

    return any(device["name"] != "CPU" for device in xllamacpp.get_device_info())


def _reclaimable() -> int:
    """Bytes of files that the group has in memory, which give way."""
    with suppress(OSError, ValueError):
        for line in (_GROUP / "memory.stat").read_text().splitlines():
            name, _, n = line.partition(" ")
            if name == "inactive_file":
                return int(n)
    return 0


def _gib(n: int) -> str:
    return f"{n / 2**30:,.1f} GiB"
