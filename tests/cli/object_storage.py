"""S3 on loopback: moto in a process of its own, behind a proxy that disturbs requests."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from typing import Any

Fault = tuple[int, str] | Callable[[], None] | None
"""Status and code of an error, or what is done before the connection is reset; None forwards the request."""


class ObjectStorage:
    """A server of object storage with one bucket, `reviews`."""

    def __init__(self, url: str, client: Any) -> None:
        self.url = url
        self.client = client
        self.requests: list[tuple[str, str]] = []
        """Method and path of every request."""
        self.fault: Callable[[str, str], Fault] = lambda method, path: None

    def write(self, key: str, data: bytes | str) -> None:
        """Write one file."""
        body = data if isinstance(data, bytes) else data.encode()
        self.client.put_object(Bucket="reviews", Key=key, Body=body)

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder."""
        found = self.client.list_objects_v2(Bucket="reviews", Prefix=f"{folder}/")
        return sorted(each["Key"].rpartition("/")[2] for each in found.get("Contents", ()))

    def read(self, key: str) -> bytes:
        """The content of a file."""
        body: bytes = self.client.get_object(Bucket="reviews", Key=key)["Body"].read()
        return body


@contextmanager
def object_storage() -> Iterator[ObjectStorage]:
    """Start both servers."""
    import boto3

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, "moto has ended"
            sleep(0.02)
        client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}")
        client.create_bucket(Bucket="reviews")
        proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        proxy.daemon_threads = True
        storage = ObjectStorage(f"http://127.0.0.1:{proxy.server_port}", client)
        proxy.storage, proxy.port = storage, port  # type: ignore[attr-defined]
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield storage
        proxy.shutdown()
        proxy.server_close()
    finally:
        process.terminate()
        process.wait()


class Proxy(BaseHTTPRequestHandler):
    """Forwards a request, or answers with a fault."""

    protocol_version = "HTTP/1.1"

    def forward(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server.storage.requests.append((self.command, self.path))
        fault = server.storage.fault(self.command, self.path)
        if callable(fault):
            fault()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if fault is not None:
            status, code = fault
            error = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
            self.answer(status, {}, error)
            return
        upstream = http.client.HTTPConnection("127.0.0.1", server.port)
        upstream.request(self.command, self.path, body, dict(self.headers))
        response = upstream.getresponse()
        self.answer(response.status, dict(response.getheaders()), response.read())
        upstream.close()

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        is_head = self.command == "HEAD"
        self.send_header(
            "Content-Length", headers.get("Content-Length", "0") if is_head else str(len(body))
        )
        self.end_headers()
        if not is_head:
            self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = forward  # noqa: N815
