"""A reviewed run: five letters of the docs' folder, its server in this process or a child, and a person who asks it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pearl.documents.digest import digest
from pearl.runs.decisions import Decisions
from pearl.runs.reviewing import KINDS
from pearl.view.review_server import Review, ReviewServer
from pearl.view.sources import ResultSource
from tests.root import ROOT

FIELDS = (
    "patient: str, age: int, seen: date, weight_kg: number?, smoker: yes|no|unknown, "
    "drugs: [{name: str, dose_mg: number?}]"
)


def letters(folder: Path) -> None:
    """The letters and the replies about them."""
    shutil.copytree(ROOT / "tests/docs/folder/clinic", folder / "clinic")
    shutil.copy(ROOT / "tests/docs/folder/clinic.json", folder)


class Person:
    """Asks a server as the script of its page does."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.origin = address[: address.index("/", 8)]

    def get(self, name: str = "", **headers: str) -> str:
        request = urllib.request.Request(self.address + name, headers=headers)
        with urllib.request.urlopen(request) as reply:
            return str(reply.read().decode())

    def post(self, name: str, data: Any, **headers: str) -> Any:
        said = {"Origin": self.origin, "Content-Type": "application/json", **headers}
        body = json.dumps(data).encode()
        request = urllib.request.Request(self.address + name, body, said)
        with urllib.request.urlopen(request) as reply:
            return json.loads(reply.read())

    def status(self, call: str, *args: Any, **headers: str) -> int:
        """The status of a refused request."""
        try:
            getattr(self, call)(*args, **headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        return 200

    @property
    def report(self) -> Any:
        return json.loads(self.get("report.json"))

    def item(self, at: str = "") -> tuple[str, str]:
        """The key of the item of a page, and its heading with its document."""
        page = self.get(at)
        key = re.search(r'data-at="(\w+)"', page)
        title = re.search(r"<title>(.*?)</title>", page)
        return key[1] if key else "", title[1] if title else ""

    def decide(self, what: str, at: str | None = None, **more: Any) -> Any:
        """Decide an item, else that which is shown first."""
        return self.post("decide", {"at": at or self.item()[0], "what": what, **more})


def key(document: str, path: str) -> str:
    """The key of a field."""
    return digest([document, path]).hex()[:20]


@contextmanager
def child(*args: str) -> Iterator[tuple[subprocess.Popen[str], Person]]:
    """`pearl review` in a process of its own."""
    line = [sys.executable, "-m", "pearl", "review", *args]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process, Person(process.stdout.readline().strip())
        finally:
            process.kill()


@contextmanager
def served(source: ResultSource, decisions: Decisions, **how: Any) -> Iterator[Person]:
    """A server in a thread."""
    said = {"person": "ada", "kinds": KINDS, "folders": [], **how}
    with ReviewServer(Review(source, decisions, **said), 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Person(server.address)
        finally:
            server.shutdown()
            thread.join()
