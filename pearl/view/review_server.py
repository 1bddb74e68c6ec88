"""Review what a run left undecided: the fields in order with a person's decisions, and the server of their pages."""

from __future__ import annotations

import dataclasses
import hmac
import json
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from pearl.documents.dates import find_dates
from pearl.documents.readers import reading
from pearl.errors import PearlError, UsageError
from pearl.errors.escaping import counted, json_bytes
from pearl.interpreter.row import Passage, read_as
from pearl.runs.decisions import Decision, Decisions, in_force, seen
from pearl.runs.extraction import PERSON
from pearl.runs.reviewing import Item, accepted, items_of, person_result, proposed, queue, report
from pearl.view.review_page import picked, review_page
from pearl.view.sources import ResultRecord, ResultSource, RunResults, with_document

MAX_BODY = 1_000_000  # Maximum bytes of a request with a decision
MAX_QUOTE = 5_000  # Maximum characters of a passage that a person selects
REFRESH_S = 5.0  # Seconds after which the rows of a running run are read again
SOCKET_S = 60  # Seconds after which a silent connection is closed


@dataclass
class Review:
    """The items that one person reviews, in order, and the decisions about them."""

    source: ResultSource
    decisions: Decisions
    person: str
    kinds: Sequence[str]
    folders: Sequence[Path]
    n_sampled: int | None = None
    seed: str = "0"
    items: dict[str, Item] = dataclasses.field(default_factory=dict)
    n_unreadable: int = 0
    _all: list[Item] = dataclasses.field(default_factory=list)
    _read_at: float = 0.0
    _may_grow: bool = True

    def __post_init__(self) -> None:
        self._record = lru_cache(maxsize=4)(self._loaded)
        self.refresh()

    @property
    def running(self) -> str:
        """The note on a run that is still running; "" for other sources."""
        if not isinstance(self.source, RunResults):
            return ""
        info = self.source.now()
        return f"the run still runs: {counted(info.n_results, 'row')} so far" if info.holder else ""

    def refresh(self) -> None:
        """Read the rows; again after some seconds if the run is still running."""
        is_fresh = time.monotonic() < self._read_at + REFRESH_S
        if self._read_at and (is_fresh or not self._may_grow):
            return
        self._may_grow = bool(self.running)  # Checked before its last rows are read
        self._all.clear()
        self.n_unreadable = 0
        for at, row in self.source.rows():
            try:
                self._all += items_of(at, row)
            except (KeyError, TypeError, AttributeError):  # A file of another program
                self.n_unreadable += 1
        queued = queue(self._all, self.kinds, self.n_sampled, self.seed)
        self.items = {item.key: item for item in queued}
        self._record.cache_clear()
        self._read_at = time.monotonic()

    def report(self) -> dict[str, Any]:
        """The decisions so far, and the measured precision."""
        of_source = report(self._all, self.decisions.all())
        return {"source": self.source.title, **of_source}

    def page(self, key: str | None) -> str:
        """The page of an item, or of the first undecided one."""
        self.refresh()
        decisions = self.decisions.all()
        item = self.items.get(self.next(None) if key is None else key)
        current = in_force(decisions)
        facts = {
            "source": self.source.title, "person": self.person, "running": self.running, "report": self.report(),
            "n_items": len(self.items), "n_done": sum(i.about in current for i in self.items.values()),
            "seed": None if self.n_sampled is None else self.seed,
        }  # fmt: skip
        if item is None:
            return review_page(None, None, (), **facts)
        history = [each for each in decisions if each.field == item.about]
        return review_page(item, self._record(item.at), history, **facts)

    def next(self, after: str | None) -> str:
        """The key of the next item without a decision, skipped ones last; "" if all are decided."""
        decisions = self.decisions.all()
        decided = in_force(decisions).keys()
        skipped = {each.field for each in decisions if each.what == "skipped"}
        keys = list(self.items)
        start = keys.index(after) + 1 if after in self.items else 0
        left = [k for k in (*keys[start:], *keys[:start]) if self.items[k].about not in decided]
        fresh = (key for key in left if self.items[key].about not in skipped)
        return next(fresh, left[0] if left else "")

    def decide(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Store a decision; return where to go next."""
        what: Any = said.get("what")
        if what == "undone":
            return self._undone()
        item = self._item(said)
        match what:
            case "skipped":
                result: dict[str, Any] = {}
            case "not_stated":
                result = {"state": "not_stated", "value": None, "basis": PERSON}
            case "corrected":
                result = person_result(item.field, str(said.get("value")).strip())
            case "accepted":
                result = self._accepted(item, said.get("choice"))
            case _:
                raise ValueError("no such decision")
        if result and (quote := said.get("quote")) is not None:
            result["evidence"] = [self._quoted(item, quote)]
        if what == "accepted" and result["state"] == "not_stated":
            what = "not_stated"
        self.decisions.add(Decision(
            row=item.row, path=item.path, entry=item.entry, what=what, was=seen(item.result), result=result,
            person=self.person, time=_now(), sample="" if self.n_sampled is None else self.seed,
        ))  # fmt: skip
        return {"next": f"?at={self.next(item.key)}"}

    def _accepted(self, item: Item, choice: Any) -> dict[str, Any]:
        if item.result["state"] == "not_stated":
            return {"state": "not_stated", "value": None, "basis": PERSON}
        values = proposed(item.result)
        if choice is None and item.result.get("entries"):  # A list that may be incomplete
            return {"state": "found", "value": None, "basis": PERSON}
        if not values:
            raise ValueError("Nothing is proposed: type the value, or press n.")
        if choice is None and len(values) > 1:
            raise ValueError("Several values are proposed: press the number of the right one.")
        if choice is not None and not (type(choice) is int and 0 < choice <= len(values)):
            raise ValueError("no such proposal")
        is_found = item.result["state"] == "found"
        return accepted(None if is_found else item.field, values[(choice or 1) - 1])

    def quote(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """The passage that a person selected, and its text as a value if it is one."""
        item = self._item(said)
        quote: Any = said.get("quote")
        passage = self._quoted(item, quote)
        words = [str(quote["text"]).strip(), passage["text"]]  # The latter includes a unit
        if item.field.type == "date":
            periods = [found.period for found in find_dates(passage["text"])]
            words += [str(each.first) for each in periods[:1] if each and len(periods) == 1]
        value = None
        for word in reversed(words):  # the first that is a value of the field
            with suppress(ValueError):
                person_result(item.field, word)
                value = word
        where = read_as(Passage, passage).short_place()
        return {"text": passage["text"], "where": where, "value": value}

    def _quoted(self, item: Item, quote: Any) -> dict[str, Any]:
        document = self._record(item.at).document
        match quote:
            case {"text": str(text), "near": int(near)} if 0 < len(text) <= MAX_QUOTE and document:
                if passage := picked(document, text, near):
                    return passage
        raise ValueError("The document has no such passage of whole words: mark it again.")

    def _undone(self) -> dict[str, Any]:
        decisions = self.decisions.all()
        undone = {each.undoes for each in decisions}
        for last in reversed(decisions):
            if last.person == self.person and last.what != "undone" and last.number not in undone:
                self.decisions.add(replace(
                    last, what="undone", undoes=last.number, result={}, time=_now(), sample="",
                ))  # fmt: skip
                key = next((k for k, i in self.items.items() if i.about == last.field), "")
                return {"next": f"?at={key}"}
        raise ValueError("Nothing to undo.")

    def _item(self, said: Mapping[str, Any]) -> Item:
        item = self.items.get(str(said.get("at")))
        if item is None:
            raise ValueError("This field is gone: the run has other rows now. Reload the page.")
        return item

    def _loaded(self, at: int) -> ResultRecord:
        record = replace(self.source.record(at), problems=())
        with reading(record.settings):  # With the settings with which the run read its documents
            return with_document(record, [*self.folders, self.source.folder])


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


class ReviewServer(ThreadingHTTPServer):
    """Serves a review to anyone who knows its address, one request at a time."""

    daemon_threads = True

    def __init__(self, review: Review, port: int) -> None:
        self.review = review
        self.lock = threading.Lock()
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            help = "choose another --port, or leave it out"
            raise UsageError(f"port {port} cannot be used: {error}", help=help) from None
        self.origin = f"http://127.0.0.1:{self.server_port}"

    @property
    def address(self) -> str:
        """The address of the first page."""
        return f"{self.origin}/{self.token}/"

    def handle_error(self, *about: Any) -> None:
        """Do nothing: browsers drop connections whenever they leave a page."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*about)


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "pearl", ""
    timeout = SOCKET_S

    def do_GET(self) -> None:
        """Send a page or the report."""
        asked = self._asked()
        if asked is None:
            return
        name, query = asked
        at = parse_qs(query, keep_blank_values=True).get("at", [None])[0]
        review = self.server.review
        if name == "":
            self._reply(lambda: ("text/html", review.page(at).encode()))
        elif name == "report.json":
            self._reply(lambda: ("application/json", json_bytes(review.report())))
        else:
            self._refuse(404)

    def do_POST(self) -> None:
        """Store a decision, or look up a passage."""
        # Requests that a browser sends for another site have another origin, or are not JSON.
        is_own = self.headers.get("Origin") == self.server.origin
        is_json = self.headers.get_content_type() == "application/json"
        length = self.headers.get("Content-Length", "")
        is_short = length.isdecimal() and len(length) < 10 and int(length) <= MAX_BODY
        if not (is_own and is_json and is_short):
            self._refuse(403)
            return
        body = self.rfile.read(int(length))
        asked = self._asked()
        review = self.server.review
        doing = {"decide": review.decide, "quote": review.quote}.get(asked[0] if asked else "")
        if doing is None:
            if asked is not None:
                self._refuse(404)
            return

        def reply() -> tuple[str, bytes]:
            try:
                said = json.loads(body.decode())
                done = doing(said if isinstance(said, dict) else {})
            except (ValueError, RecursionError) as error:
                done = {"problem": str(error)}
            return "application/json", json_bytes(done)

        self._reply(reply)

    def _asked(self) -> tuple[str, str] | None:
        """The path and query of a request for this server; None if it was refused."""
        address = urlsplit(self.path)
        token, _, name = address.path.removeprefix("/").partition("/")
        is_own = self.headers.get("Host") == self.server.origin.removeprefix("http://")
        origin = self.headers.get("Origin", self.server.origin)
        if not is_own or origin != self.server.origin:
            self._refuse(403)
        elif not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(404)
        else:
            return name, address.query
        return None

    def _reply(self, made: Callable[[], tuple[str, bytes]]) -> None:
        try:
            with self.server.lock:
                kind, body = made()
        except PearlError as error:
            kind, body = "application/json", json_bytes({"problem": error.message})
            if self.command == "GET":
                kind, body = "text/plain", str(error).encode()
            self._send(500, kind, body)
            return
        self._send(200, kind, body)

    def _refuse(self, code: int) -> None:
        self.close_connection = True  # The body was not read
        self._send(code, "text/plain", b"refused\n")

    def _send(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
            ("Content-Security-Policy", "frame-ancestors 'none'"), ("Cross-Origin-Resource-Policy", "same-origin"),
            *((("Connection", "close"),) if self.close_connection else ()),
        ):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Do nothing, because addresses contain the token."""
