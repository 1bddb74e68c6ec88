"""Loopback servers with the Batch APIs of Anthropic and of Google, which refuse what these refuse."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

from tests.batch_server import (
    ID,
    SCHEMA,
    TEXT,
    BatchServer,
    Job,
    Row,
    check,
    lines_of,
)
from tests.server import Canned, Seen, error

ANTHROPIC = {
    "custom_id": ID,
    "params": {
        "model": TEXT,
        "messages": [{"role": re.compile("user|assistant"), "content": TEXT}],
        "max_tokens": int, "system?": TEXT, "temperature?": float,
        "output_config?": {"format": {"type": re.compile("json_schema"), "schema": SCHEMA}},
    },
}  # fmt: skip
PARTS = [{"text": TEXT}]
GEMINI = {
    "key": ID,
    "request": {
        "contents": [{"role": re.compile("user|model"), "parts": PARTS}],
        "systemInstruction?": {"parts": PARTS},
        "generationConfig": {
            "temperature?": float, "seed?": int, "maxOutputTokens?": int,
            "responseMimeType?": re.compile("application/json"), "responseJsonSchema?": SCHEMA,
        },
    },
}  # fmt: skip


class AnthropicServer(BatchServer):
    """Anthropic's Message Batches."""

    LIMITS = (100_000, 256_000_000)

    def _asked(self, seen: Seen) -> tuple[str, str]:
        pattern = r"/v1/messages/batches(?:/([^/?]+))?(/results)?(?:\?|$)"
        if (match := re.search(pattern, seen.path)) is None:
            return "", ""
        assert seen.headers["anthropic-version"] == "2023-06-01"
        id, results = match.groups()
        return f"/batches{'/' if id else ''}{'results' if results else ''}", id or ""

    def _answered(self, call: str, id: str, seen: Seen) -> Canned:
        if call != "GET /batches/results":
            return super()._answered(call, id, seen)
        job = next(job for job in self.jobs if job.id == id)
        return Canned(self.files[job.files["output"]], content_type="application/binary")

    def _create(self, seen: Seen) -> Canned:
        try:
            asked = json.loads(seen.data)
            check(asked, {"requests": [dict]})
            rows = self.checked(lines_of(asked["requests"]), lambda row: check(row, ANTHROPIC))
        except ValueError as wrong:
            return Canned(error(str(wrong), type="invalid_request_error"), 400)
        return Canned(self._described(self._new_job("", rows)))

    def _described(self, job: Job) -> Row:
        is_over, n = self._is_over(job), len(job.rows)
        age = timedelta(minutes=61 if job.file == "old" else 59)  # by its clock
        done = {"succeeded": n if is_over else 0, "processing": 0 if is_over else n}
        return {
            "id": job.id,
            "type": "message_batch",
            "processing_status": "ended" if is_over else "in_progress",
            "request_counts": {"errored": 0, "canceled": 0, "expired": 0, **done},
            "created_at": (datetime.now(UTC) - age).isoformat(),
            "results_url": f"https://elsewhere.invalid/{job.id}" if is_over else None,
        }

    def _finish(self, job: Job, rows: list[Row], left: list[Row]) -> None:
        result = {"type": "canceled" if job.end == "cancelled" else "expired"}
        rows += [{"custom_id": row["custom_id"], "result": result} for row in left]
        job.files["output"] = self._file(lines_of(self.edit(rows)))

    def _row(self, row: Row) -> Row:
        params = row["params"]
        made = self.line(row)
        if made is None:
            text = self.replied(params["messages"])
            usage = {
                "input_tokens": 90, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 10,
                "output_tokens": 7,
            }  # fmt: skip
            content = [{"type": "text", "text": text, "citations": None}]
            message = {
                "type": "message", "model": "claude", "content": content, "stop_reason": "end_turn", "usage": usage,
            }  # fmt: skip
            made = {"type": "succeeded", "message": message}
        return {"custom_id": row["custom_id"], "result": made}


class GeminiServer(BatchServer):
    """Google's Batch API for Gemini."""

    LIMITS = (10**9, 2_000_000_000)
    ID = "key"

    def _asked(self, seen: Seen) -> tuple[str, str]:
        path, _, query = seen.path.partition("?")
        if path.startswith("/v1beta/openai"):
            return "", ""
        assert seen.headers["x-goog-api-key"] == "none-1"
        if path.endswith(":batchGenerateContent"):
            return "/batches", ""
        if path == "/upload/v1beta/files":
            return "/files", ""
        match = re.fullmatch(r"/v1beta/(batches|files)(/[\w-]+)?(:download)?", path)
        assert match
        assert bool(match[3]) == (query == "alt=media")
        return f"/{match[1]}{'/' if match[2] else ''}", match[1] + (match[2] or "")

    def _listed(self, rows: list[Row]) -> Row:
        return {"operations": rows} if rows else {}

    def _upload(self, seen: Seen) -> Canned:
        query = seen.path.partition("?")[2]
        head = {name.removeprefix("x-goog-upload-"): text for name, text in seen.headers.items()}
        if head["command"] == "start":
            assert head["protocol"] == "resumable"
            assert head["header-content-type"] == "application/jsonl"
            info = seen.body["file"]
            check(info, {"displayName": TEXT, "mimeType": TEXT, "sizeBytes": int})
            assert str(info["sizeBytes"]) == head["header-content-length"]
            address = f"{self.url.removesuffix('/v1')}/upload/v1beta/files?upload_id=u1"
            return Canned({}, 200, {"x-goog-upload-url": address})
        assert (head["command"], head["offset"], query) == ("upload, finalize", "0", "upload_id=u1")
        told = {"file": {"name": self._file(seen.data), "state": "ACTIVE"}}
        return Canned(told, 200, {"x-goog-upload-status": "final"})

    def _file(self, data: bytes) -> str:
        id = f"files/f{len(self.files)}"
        self.files[id] = data
        return id

    def _create(self, seen: Seen) -> Canned:
        body = seen.body
        try:
            source = {"fileName": TEXT}
            check(body, {"batch": {"displayName": ID, "inputConfig": source}})
            file = body["batch"]["inputConfig"]["fileName"]
            rows = self.checked(self.files[file], lambda row: check(row, GEMINI))
        except (KeyError, ValueError) as wrong:
            return Canned(error(str(wrong), status="INVALID_ARGUMENT", code=400), 400)
        job = self._new_job(body["batch"]["displayName"], rows)
        job.id = f"batches/{job.id}"
        return Canned(self._described(job))

    def _described(self, job: Job) -> Row:
        is_over = self._is_over(job)
        state = {"completed": "SUCCEEDED"}.get(job.end, job.end.upper()) if is_over else "RUNNING"
        output = {"responsesFile": job.files["output"]} if job.files else None
        told: Row = {
            "name": job.id,
            "metadata": {
                "displayName": job.file,
                "state": f"BATCH_STATE_{state}",
                "batchStats": {
                    "requestCount": str(len(job.rows)),
                    **({"successfulRequestCount": str(len(job.rows))} if job.files else {}),
                },
                **({"output": output} if output else {}),
            },
        }
        if is_over:
            told["done"] = True
            if job.end == "failed":
                problem = job.problem or {}
                told["error"] = {"code": 3, "message": problem.get("message")}
        return told

    def _finish(self, job: Job, rows: list[Row], left: list[Row]) -> None:
        job.files["output"] = self._file(lines_of(self.edit(rows)))

    def _row(self, row: Row) -> Row:
        made = self.line(row)
        if made is None:
            asked = row["request"]
            messages = [
                {"role": each["role"], "content": each["parts"][0]["text"]}
                for each in asked["contents"]
            ]
            usage = {
                "promptTokenCount": 100, "cachedContentTokenCount": 10, "candidatesTokenCount": 4,
                "thoughtsTokenCount": 3, "totalTokenCount": 107,
            }  # fmt: skip
            content = {
                "parts": [{"text": "Hm.", "thought": True}, {"text": self.replied(messages)}],
                "role": "model",
            }
            made = {
                "response": {
                    "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
                    "usageMetadata": usage,
                    "modelVersion": "gemini",
                }
            }
        return {"key": row["key"], **made}


VENDORS: dict[str, type[BatchServer]] = {
    "openai": BatchServer,
    "anthropic": AnthropicServer,
    "gemini": GeminiServer,
}


def settings_of(vendor: str, server: BatchServer) -> tuple[str, str]:
    """The model and the address for a server."""
    address = server.url.removesuffix("/v1")
    urls = {"openai": server.url, "anthropic": server.url, "gemini": f"{address}/v1beta/openai"}
    return f"{vendor}:test-model", urls[vendor]
