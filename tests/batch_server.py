"""A loopback server with a Batch API: `/files` and `/batches`, and everything that goes wrong there.

It answers single calls as `tests.server` does, and the lines of a batch by the same rules.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.server import FAULTS, Canned, Seen, Server, completion, error, send

Row = dict[str, Any]
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TEXT = re.compile(r".+", re.DOTALL)
MESSAGES = [{"role": re.compile("system|user|assistant"), "content": TEXT}]
SCHEMA = {
    "type": re.compile("object"),
    "properties": dict,
    "required": list,
    "additionalProperties": bool,
    "$defs?": dict,
}
CHAT = {
    "model": TEXT, "messages": MESSAGES, "temperature?": float, "seed?": int, "top_p?": float, "max_tokens?": int,
    "max_completion_tokens?": int, "structured_outputs?": {"json": SCHEMA},  # of vLLM
    "response_format?": {"type": re.compile("json_schema"), "json_schema": {"name": ID, "strict": bool, "schema": SCHEMA}},
}  # fmt: skip
PATHS = {"/v1/chat/completions": CHAT}


def check(value: Any, form: Any, at: str = "") -> None:
    """Refuse a value of another form: a type, a pattern, a list, or fields, of which those with ? may be missing."""
    if isinstance(form, dict) and isinstance(value, dict):
        fields = {name.rstrip("?"): part for name, part in form.items()}
        missing = {name for name in form if not name.endswith("?")} - value.keys()
        if missing or value.keys() - fields.keys():
            raise ValueError(f"{at}: {missing} missing, {value.keys() - fields.keys()} unknown")
        for name, part in value.items():
            check(part, fields[name], f"{at}.{name}")
    elif isinstance(form, list) and isinstance(value, list) and value:
        for part in value:
            check(part, form[0], at)
    elif isinstance(form, re.Pattern):
        if not isinstance(value, str) or not form.fullmatch(value):
            raise ValueError(f"{at}: {value!r} is not {form.pattern}")
    elif not isinstance(form, type) or not isinstance(value, form):
        raise ValueError(f"{at}: {value!r} is not {form}")


def check_line(row: Row) -> None:
    """Refuse a line of a file of requests that is not of OpenAI's form."""
    url = row.get("url", "")
    check(row, {"custom_id": ID, "method": re.compile("POST"), "url": TEXT, "body": PATHS[url]})


@dataclass
class Job:
    """A batch as the server has it."""

    id: str
    file: str
    rows: list[Row]  # its requests
    end: str  # completed, expired, failed or cancelled
    problem: Row | None = None
    n_looks: int = 0  # how often it was asked for
    files: dict[str, str] = field(default_factory=dict)


class BatchServer(Server):
    """Carries out batches as soon as they have been looked at often enough."""

    LIMITS = (50_000, 200_000_000)  # maximum requests and bytes of a batch
    ID = "custom_id"

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Job] = []
        self.files: dict[str, bytes] = {}  # by id
        self.n_looks = 2  # looks at a batch until it is over
        self.is_held = False  # no batch gets on
        self.ends: deque[str] = deque()  # of the next batches; `completed` afterwards
        self.n_served = 1  # requests of a batch with another end that have a reply
        self.most: int | None = None  # requests that may wait in one batch; one with more fails
        self.edit: Callable[[list[Row]], list[Any]] = list  # rows of an output → its lines
        # Row of a request, by the rules if None
        self.line: Callable[[Row], Row | None] = lambda row: None
        # What to answer next, by `POST /batches` and the like
        self.faults: dict[str, deque[Canned]] = {}
        self.drops_answers = 0  # creations whose answer gets lost

    def always(self, reply: str) -> None:
        """Give this reply to every request, whatever the rules said before."""
        self._rules.clear()
        self.on(".", reply)

    @property
    def submitted(self) -> list[str]:
        """Every `custom_id` that was submitted, as often as it was."""
        return [row["custom_id"] for job in self.jobs for row in job.rows]

    def fail(self, call: str, *answers: str | Canned) -> None:
        """Give these answers to the next calls of a kind, as `POST /batches` or `GET /batches/`."""
        queue = self.faults.setdefault(call, deque())
        queue += [FAULTS[a] if isinstance(a, str) else a for a in answers]

    def checked(self, data: bytes, check_line: Callable[[Row], None]) -> list[Row]:
        """The requests of a file; raises `ValueError` for those that the vendor refuses."""
        most, most_bytes = self.LIMITS
        if len(data) > most_bytes:
            raise ValueError("the file is too large")
        rows: list[Row] = [json.loads(line) for line in data.splitlines()]
        if not 0 < len(rows) <= most:
            raise ValueError(f"{len(rows)} requests")
        for row in rows:
            check_line(row)
        if len({row[self.ID] for row in rows}) < len(rows):
            raise ValueError("two requests have one id")
        return rows

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        kind, id = self._asked(seen)
        call = f"{seen.method} {kind}"
        if not kind:
            await super()._answer(seen, writer)
        elif queue := self.faults.get(call):
            await send(queue.popleft(), writer)
        else:
            answer = self._answered(call, id, seen)
            if call == "POST /batches" and self.drops_answers:
                self.drops_answers -= 1
                answer = FAULTS["reset"]
            await send(answer, writer)

    def _asked(self, seen: Seen) -> tuple[str, str]:
        """What a call asks for (`/batches`, `/files/`), and its id; "" if for neither."""
        match = re.search(r"(/(?:files|batches)/?)([^/?]*)(/content)?(?:\?|$)", seen.path)
        return (match[1], match[2]) if match else ("", "")

    def _answered(self, call: str, id: str, seen: Seen) -> Canned:
        match call:
            case "POST /files":
                return self._upload(seen)
            case "GET /files/":
                return self._content(id)
            case "POST /batches":
                return self._create(seen)
            case "GET /batches":
                return Canned(self._listed([self._described(job) for job in reversed(self.jobs)]))
            case "GET /batches/":
                return self._look(id)
        return FAULTS["404"]

    def _listed(self, rows: list[Row]) -> Row:
        return {"object": "list", "data": rows, "has_more": False}

    def _upload(self, seen: Seen) -> Canned:
        boundary = seen.headers["content-type"].partition("boundary=")[2].encode()
        parts = seen.data.split(b"--" + boundary)
        assert any(b'name="purpose"' in part and b"batch" in part for part in parts)
        (file,) = [part for part in parts if b"filename=" in part[:200]]
        return Canned({"id": self._file(file.partition(b"\r\n\r\n")[2][:-2]), "object": "file"})

    def _file(self, data: bytes) -> str:
        id = f"file-{len(self.files)}"
        self.files[id] = data
        return id

    def _content(self, id: str) -> Canned:
        if id not in self.files:
            return Canned(error("No such File object"), 404)
        return Canned(self.files[id], content_type="application/octet-stream")

    def _create(self, seen: Seen) -> Canned:
        body = seen.body
        try:
            window = re.compile("24h")
            check(body, {"input_file_id": ID, "endpoint": TEXT, "completion_window": window})
            file = body["input_file_id"]
            rows = self.checked(self.files[file], check_line)
            if any(row["url"] != body["endpoint"] for row in rows):
                raise ValueError("a request of another path")
        except (KeyError, ValueError) as wrong:
            return Canned(error(str(wrong)), 400)
        return Canned(self._described(self._new_job(file, rows)))

    def _new_job(self, file: str, rows: list[Row]) -> Job:
        job = Job(f"batch_{len(self.jobs)}", file, rows, "completed")
        if self.ends:
            job.end, _, code = self.ends.popleft().partition(":")
            job.problem = {"code": code, "message": f"{code} it is", "line": 1} if code else None
        if self.most is not None and len(rows) > self.most:
            job.end = "failed"
            job.problem = {
                "code": "token_limit_exceeded",
                "message": "Enqueued token limit reached",
            }
        self.jobs.append(job)
        return job

    def _look(self, id: str) -> Canned:
        job = next((job for job in self.jobs if job.id == id), None)
        if job is None:
            return Canned(error(f"No batch found with id '{id}'."), 404)
        job.n_looks += not self.is_held
        return Canned(self._described(job))

    def _is_over(self, job: Job) -> bool:
        is_over = job.n_looks >= self.n_looks
        if is_over and not job.files and job.end != "failed":
            n = len(job.rows) if job.end == "completed" else self.n_served
            self._finish(job, [self._row(row) for row in job.rows[:n]], job.rows[n:])
        return is_over

    def _described(self, job: Job) -> Row:
        is_over = self._is_over(job)
        return {
            "id": job.id,
            "object": "batch",
            "input_file_id": job.file,
            "status": job.end if is_over else ("in_progress" if job.n_looks else "validating"),
            "output_file_id": job.files.get("output"),
            "error_file_id": job.files.get("errors"),
            "errors": {"data": [job.problem]} if is_over and job.problem else None,
            "request_counts": {"completed": len(job.rows) if job.files else 0, "failed": 0},
        }

    def _finish(self, job: Job, rows: list[Row], left: list[Row]) -> None:
        late = {"code": "batch_expired", "message": "This request could not be executed in time."}
        failed = [row for row in rows if "'status_code': 200" not in str(row["response"])]
        if job.end == "expired":
            failed += [{"custom_id": r["custom_id"], "response": None, "error": late} for r in left]
        done = [row for row in rows if row not in failed]
        job.files["output"] = self._file(lines_of(self.edit(done)))
        if failed:
            job.files["errors"] = self._file(lines_of(failed))

    def _row(self, row: Row) -> Row:
        made = self.line(row)
        if made is None:
            body = row["body"]
            made = answered(completion(self.replied(body["messages"])))
        return {"id": "batch_req_1", "custom_id": row["custom_id"], "error": None, **made}

    def replied(self, messages: list[Row]) -> str:
        """The reply to a request by the rules."""
        return self._reply(Seen("POST", "", {}, {"messages": messages}))


def answered(body: Any, status: int = 200) -> Row:
    """What a line says of an answer."""
    return {"response": {"status_code": status, "request_id": "req_1", "body": body}}


def lines_of(rows: list[Any]) -> bytes:
    """JSON lines; what is no object goes in as it is."""
    return b"".join(
        row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows
    )


@contextmanager
def serving_batches() -> Iterator[BatchServer]:
    """A server for the length of a block."""
    server = BatchServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()
