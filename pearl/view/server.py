"""Serves pages of results on 127.0.0.1, for large and running runs.

Other users of the machine, and pages of other sites in the same browser, can reach the port: every path
begins with a secret, the header Host must name this server, and only GET is allowed.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pearl.errors import PearlError, UsageError
from pearl.errors.escaping import json_bytes
from pearl.errors.patterns import lazy_pattern
from pearl.llm.prices import read_prices
from pearl.view.listing import Totals, cells_of, details_of, served_index
from pearl.view.page import render_page
from pearl.view.sources import ResultRecord, ResultSource

if TYPE_CHECKING:
    from aiohttp import web

_LOG = logging.getLogger(__name__)

HOST = "127.0.0.1"

LINES_AT_ONCE = 500
"""Rows that are sent before the server handles other requests."""

_POLICY = lazy_pattern(r'http-equiv="Content-Security-Policy" content="([^"]*)"')

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class ResultServer:
    """Serves the pages of a source."""

    def __init__(
        self,
        opened: Callable[[], ResultSource],
        result_page: Callable[[ResultRecord], str],
    ) -> None:
        self.address = ""
        self._opened = opened
        self._source = opened()
        self._page = result_page
        self._prices = read_prices()
        self._secret = secrets.token_urlsafe(24)
        self._port = 0
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        """Start the server."""
        from aiohttp import web

        @web.middleware
        async def guarded(
            request: web.Request,
            handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
        ) -> web.StreamResponse:
            return await self._guarded(request, handler)

        app = web.Application(middlewares=[guarded])
        app.router.add_get("/{secret}/", self._index, allow_head=False)
        app.router.add_get("/{secret}/lines", self._lines, allow_head=False)
        app.router.add_get(r"/{secret}/row/{key:\d{1,18}}", self._row, allow_head=False)
        app.router.add_get(r"/{secret}/details/{key:\d{1,18}}", self._details, allow_head=False)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, HOST, port).start()
        except (OSError, OverflowError) as error:
            await self.stop()
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"port {port} of {HOST} cannot be used: {why}",
                help="omit --port to use a free port",
            ) from None
        self._port = self._runner.addresses[0][1]
        self.address = f"http://{HOST}:{self._port}/{self._secret}/"

    async def stop(self) -> None:
        """Stop the server."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _guarded(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        from aiohttp import web

        # DNS rebinding: a site whose name resolves to 127.0.0.1 still sends its own name.
        if request.headers.get("Host") not in (f"{HOST}:{self._port}", f"localhost:{self._port}"):
            return web.Response(status=421, text="not this server\n", headers=_HEADERS)
        # The path of `OPTIONS *` has no slash.
        said = request.path.removeprefix("/").partition("/")[0].encode()
        if not hmac.compare_digest(said, self._secret.encode()):
            return web.Response(status=404, text="not found\n", headers=_HEADERS)
        if request.method != "GET":
            return web.Response(status=405, text="only GET\n", headers={**_HEADERS, "Allow": "GET"})
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return self._trouble(404, "There is no such page.")
        except PearlError as error:
            return self._trouble(404, str(error.args[0]))
        except ConnectionError:  # the client has left
            raise
        except Exception as error:  # noqa: BLE001 - one row must not end the server
            _LOG.exception("%s cannot be shown", request.path.rpartition(self._secret)[2])
            return self._trouble(500, f"This cannot be shown: {type(error).__name__}: {error}")

    async def _index(self, _: web.Request) -> web.StreamResponse:
        self._source = self._opened()
        return self._html(served_index(self._source, self._prices))

    async def _lines(self, request: web.Request) -> web.StreamResponse:
        """All rows as JSON lines `[key, cells]`, then the totals: a reply without them is incomplete."""
        from aiohttp import web

        response = web.StreamResponse(
            headers={**_HEADERS, "Content-Type": "application/x-ndjson; charset=utf-8"}
        )
        await response.prepare(request)
        source, totals = self._source, Totals()
        waiting: list[bytes] = []
        for key, row in source.rows():
            cells = cells_of(row, self._prices)
            totals.add(cells)
            waiting.append(json_bytes([key, cells]))
            if len(waiting) >= LINES_AT_ONCE:
                await response.write(b"\n".join(waiting) + b"\n")
                waiting.clear()
                await asyncio.sleep(0)
        facts = totals.facts(status for status, _ in totals.by_status.most_common(8))
        facts += [(f"error {kind}", f"{n:,}") for kind, n in totals.by_error.most_common(12)]
        end = {"facts": facts, "problems": list(source.problems[:20])}
        await response.write(b"\n".join([*waiting, json_bytes(end)]) + b"\n")
        await response.write_eof()
        return response

    async def _row(self, request: web.Request) -> web.StreamResponse:
        return self._html(self._page(self._source.record(int(request.match_info["key"]))))

    async def _details(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        record = self._source.record(int(request.match_info["key"]))
        return web.Response(
            body=json_bytes(details_of(record.row)),
            content_type="application/json",
            headers=_HEADERS,
        )

    def _trouble(self, status: int, told: str) -> web.Response:
        return self._html(render_page("trouble", "Not shown", told=told), status)

    def _html(self, page: str, status: int = 200) -> web.Response:
        """A page with its policy as a header; the first match in the page is its own policy."""
        from aiohttp import web

        found = _POLICY.search(page)
        policy = found[1].replace("&#39;", "'") if found else "default-src 'none'"
        return web.Response(
            status=status,
            text=page,
            content_type="text/html",
            headers={
                **_HEADERS,
                "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
            },
        )


async def serve(
    opened: Callable[[], ResultSource],
    result_page: Callable[[ResultRecord], str],
    *,
    port: int = 0,
    told: Callable[[str], None],
) -> None:
    """Serve until it is cancelled."""
    server = ResultServer(opened, result_page)
    await server.start(port)
    try:
        told(server.address)
        await asyncio.Event().wait()
    finally:
        await server.stop()
