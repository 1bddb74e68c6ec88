"""Collectors on loopback: one that decodes spans, one that never answers."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Decodes OTLP over HTTP."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.paths: list[str] = []
        self.status = 200  # After the first requests
        self.n_accepted = 0
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    data = gzip.decompress(data)
                collector.paths.append(self.path)
                collector.requests.append(ExportTraceServiceRequest.FromString(data))
                is_accepted = len(collector.requests) <= collector.n_accepted
                self.send_response(200 if is_accepted else collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def names(self) -> list[str]:
        """The names of all spans."""
        return [
            span.name
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, str]:
        """Whose spans they are."""
        (resource, *_) = self.requests[0].resource_spans
        return {each.key: each.value.string_value for each in resource.resource.attributes}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector for the length of a block."""
    collector = Collector()
    collector.start()
    try:
        yield collector
    finally:
        collector.stop()


@contextmanager
def never_answering() -> Iterator[str]:
    """The address of one that takes connections and is silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def dead_address() -> str:
    """An address that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"
