"""Read the text of bytes by a plug-in in a child process with time and memory limits.

Within this process, parsing a hostile file cannot be limited: libraries lay out, unpack and recurse in C,
and may crash. The operating system limits the child (`RLIMIT_AS`, `RLIMIT_CPU`), and the parent kills
it if it does not end. One child serves many documents, because starting it costs more than reading
most files; it exits after a large one, because freed memory is seldom returned to the system.

Windows has no `resource` module: no memory limit, and the time limit is wall-clock time. macOS does
not enforce the memory limit.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from time import process_time
from typing import IO, Any

from msgspec import Struct
from msgspec.structs import asdict

from pearl import plugins
from pearl.documents.readers import OPTIONS, ReaderOptions, ReaderText, damaged
from pearl.errors import DataError
from pearl.plugins.extras import install_hint

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_CLOCK_PER_PROCESSOR = 10
"""Wall-clock seconds allowed per second of CPU limit before a child is killed."""

_SHARE_TO_END = 0.25  # fraction of the memory limit; a child that uses more after its reply exits

_STATM = Path("/proc/self/statm")

_MAX_DEPTH = 10_000
"""Recursion limit: readers recurse once or twice per nesting level, of which libxml2 allows
2,048."""

_PROGRAM = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
    "from pearl.documents.confinement import serve; serve(json.loads(sys.argv[2]))"
)


class ReaderLimits(Struct, frozen=True):
    """Resource limits for reading one document."""

    seconds: int
    memory_bytes: int
    text_bytes: int


def read(
    package: str,
    plugin: str,
    data: bytes,
    path: str,
    limits: ReaderLimits,
    function: str = "read",
    arguments: Mapping[str, Any] | None = None,
) -> ReaderText:
    """Call `plugin.read(data, path)`, or another function of it, in a child process."""
    child = _idle_child(limits) or _Reader(limits)
    try:
        request: dict[str, Any] = {"package": package, "plugin": plugin, "path": path}
        request |= {"function": function, "arguments": arguments or {}}
        request["options"] = asdict(OPTIONS.get())
        reply, text = child.read(request, data)
    except BaseException:
        child.end()
        raise
    if reply.get("is_last"):
        child.end()
    else:
        _idle.append(child)
    match reply:
        case {"exceeded": what}:
            limit, setting = {
                "seconds": (f"{limits.seconds} s", "PEARL_MAX_READER_SECONDS"),
                "memory": (
                    f"{limits.memory_bytes / 1_000_000:g} MB of memory",
                    "PEARL_MAX_READER_MB",
                ),
                "text": (f"{limits.text_bytes / 1_000_000:g} MB of text", "PEARL_MAX_DOCUMENT_MB"),
            }[what]
            raise DataError(
                f"reading it exceeds the limit of {limit}",
                path=path,
                help=f"split it, convert it to plain text, or set {setting} to a larger number",
            )
        case {"error": message}:
            raise DataError(message, path=path, help=reply["help"])
    ocr = {int(page): confidence for page, confidence in reply["ocr"].items()}
    return ReaderText(text.decode("utf-8", "surrogatepass"), ocr, reply["notes"])


# ---------------------------------------------------------------------------------------------
# The parent's side

_idle: deque[_Reader] = deque()


def _idle_child(limits: ReaderLimits) -> _Reader | None:
    """An idle child with the same limits and module search path, or None."""
    while True:
        try:
            child = _idle.pop()  # atomic, because several threads read documents
        except IndexError:
            return None
        if child.fits(limits):
            return child
        child.end()


@atexit.register
def _end_idle() -> None:
    while _idle:
        _idle.pop().end()


if hasattr(os, "register_at_fork"):  # two processes must not share a child
    os.register_at_fork(after_in_child=_idle.clear)


class _Reader:
    """A Python process that reads documents, one at a time."""

    def __init__(self, limits: ReaderLimits) -> None:
        self.is_late = False
        self._limits = limits
        self._path = _module_path()
        settings = json.dumps(self._path), json.dumps(asdict(limits))
        self._errors: IO[bytes] = TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=os.path.abspath(os.sep),  # noqa: PTH100 - the root of any system
        )

    def fits(self, limits: ReaderLimits) -> bool:
        is_running = self._process.poll() is None
        return is_running and (limits, _module_path()) == (self._limits, self._path)

    def read(self, request: Mapping[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
        """Send a request; return the reply and its payload, or the reason why the child ended without a reply."""
        seconds = self._limits.seconds * (_CLOCK_PER_PROCESSOR if resource else 1)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        timer = Timer(seconds, self._kill)
        timer.start()
        try:
            with suppress(OSError):  # the child has exited; its stderr is read below
                stdin.write(json.dumps({**request, "n_bytes": len(data)}).encode() + b"\n")
                stdin.write(data)
                stdin.flush()
            header = stdout.readline()
            reply = json.loads(header) if header.endswith(b"\n") else {}
            payload = stdout.read(reply.get("n_bytes", 0))
        finally:
            timer.cancel()
        is_whole = reply and len(payload) == reply.get("n_bytes", 0)
        return (reply, payload) if is_whole else (self._failure(), b"")

    def _kill(self) -> None:
        self.is_late = True
        self._process.kill()

    def end(self) -> None:
        """Kill the child and release its resources; it has no state to lose."""
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._errors):
            with suppress(OSError):  # closing flushes again
                file.close()  # type: ignore[union-attr]

    def _failure(self) -> dict[str, Any]:
        """The error that the exit status implies."""
        status = self._process.wait()
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace").strip()
        if self.is_late or (resource and status == -signal.SIGXCPU):
            return {"exceeded": "seconds", "is_last": True}
        reason = errors.rpartition("\n")[2]
        if status < 0:
            reason = f"{signal.Signals(-status).name}: out of memory, or on a damaged file"
        return {
            "error": f"its reader failed ({reason[:200] or f'exit status {status}'})",
            "help": "convert it to plain text, or download it again",
            "is_last": True,
        }


def _module_path() -> list[str]:
    return [folder or os.getcwd() for folder in sys.path]  # noqa: PTH109 - as Python does


# ---------------------------------------------------------------------------------------------
# The child's side


def serve(limits: Mapping[str, int]) -> None:
    """Serve the requests of a parent until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    requests = sys.stdin.buffer
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep library output out of the replies
    bounds = ReaderLimits(**limits)
    sys.setrecursionlimit(_MAX_DEPTH)
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_AS", bounds.memory_bytes)
    is_last = False
    while not is_last and (line := requests.readline()):
        request = json.loads(line)
        data = requests.read(request["n_bytes"])
        _limit("RLIMIT_CPU", int(process_time()) + 1 + bounds.seconds)
        reply, text = _reply(request, data, bounds.text_bytes)
        is_last = "exceeded" in reply or _memory() > _SHARE_TO_END * bounds.memory_bytes
        header = {**reply, "n_bytes": len(text), "is_last": is_last}
        replies.write(json.dumps(header).encode() + b"\n")
        replies.write(text)
        replies.flush()


def _reply(request: Mapping[str, Any], data: bytes, most: int) -> tuple[dict[str, Any], bytes]:
    path = request["path"]
    try:
        reader = plugins.load(request["package"], request["plugin"])
        OPTIONS.set(ReaderOptions(**request["options"]))
        read = getattr(reader, request["function"])(data, path, **request["arguments"])
        text = read.encode("utf-8", "surrogatepass")
    except DataError as error:
        return {"error": error.message.removeprefix(f"{path}: "), "help": error.help}, b""
    except MemoryError:
        return {"exceeded": "memory"}, b""
    except RecursionError:
        message = "it is nested too deeply to be read"
        return {"error": message, "help": "convert it to plain text"}, b""
    except ModuleNotFoundError as error:
        message = f"reading it needs {error.name}, which is not installed"
        extra = getattr(reader, "EXTRA", None)
        return {"error": message, "help": install_hint(extra) if extra else "install it"}, b""
    except Exception as error:  # noqa: BLE001 - libraries fail in many ways
        told = damaged(error, path)
        return {"error": told.message.removeprefix(f"{path}: "), "help": told.help}, b""
    if len(text) > most:
        return {"exceeded": "text"}, b""
    return {"ocr": getattr(read, "ocr", {}), "notes": getattr(read, "notes", ())}, text


def _limit(name: str, most: int) -> None:
    """Set a limit of this process if the system supports it."""
    if resource is None:
        return
    kind = getattr(resource, name)
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    with suppress(ValueError, OSError):  # macOS has RLIMIT_AS and refuses it
        resource.setrlimit(kind, (most, hard))


def _memory() -> int:
    """Address space of this process in bytes, as `RLIMIT_AS` counts it; 0 if unknown."""
    try:
        n_pages = int(_STATM.read_text().split()[0])
    except OSError:
        return 0
    return n_pages * os.sysconf("SC_PAGE_SIZE")
