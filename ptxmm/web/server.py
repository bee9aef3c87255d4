"""The playground as a web application: the page, what it can choose from, and the answers to what it asks.

All that it serves is in memory before the first request; a request names nothing that is looked up elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath

import msgspec
from anyio import CapacityLimiter, fail_after, to_thread
from msgspec import Struct
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import ptxmm
from ptxmm.errors import PtxmmError
from ptxmm.web.assets import POLICY, page_files
from ptxmm.web.gallery import Catalog, models, tests
from ptxmm.web.rate import Rate
from ptxmm.web.requests import MOST_BYTES, refused

HEADERS = {
    "content-security-policy": f"{POLICY}; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Of every response: nothing but the page's own, and nothing that a browser guesses."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_BODY_SECONDS = 10.0
_WAITING = 8
"""So many requests may wait for each worker."""


class Serving(Struct, frozen=True):
    """``workers``: requests that are answered at a time. ``hosts``: the names under which the server may be asked, so
    that no other site's name leads to it. ``rate``: requests a minute for each address, None: any."""

    workers: int
    hosts: tuple[str, ...]
    rate: int | None = None


def application(ask: Callable[[bytes], bytes], litmus: Path, serving: Serving) -> Starlette:
    """The application. ``ask`` answers a request (``answers.answer``) in a process with limits, and takes as long as it
    takes; ``litmus``: the folder of the tests to choose from."""
    entries, texts = tests(litmus)
    catalog = msgspec.json.encode(Catalog(ptxmm.__version__, models(), entries))
    page = {name: (data, _TYPES[PurePath(name).suffix]) for name, data in page_files().items()}
    rate = None if serving.rate is None else Rate(serving.rate)
    limiter = CapacityLimiter(serving.workers)

    async def static(request: Request) -> Response:
        found = page.get(request.path_params.get("name", "index.html"))
        return _missing() if found is None else Response(found[0], media_type=found[1])

    async def choices(request: Request) -> Response:
        return _json(catalog)

    async def text(request: Request) -> Response:
        found = texts.get(f"{request.path_params['family']}/{request.path_params['name']}")
        return _missing() if found is None else Response(found, media_type=_TYPES[".txt"])

    async def api(request: Request) -> Response:
        if rate is not None and not rate.allows(request.client.host if request.client else ""):
            return _refusal(429, "too many requests: wait a minute")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return _refusal(415, "a request is application/json")
        try:
            with fail_after(_BODY_SECONDS):
                data = await _body(request)
        except TimeoutError:
            return _refusal(408, "the request did not come to its end")
        except ClientDisconnect:
            return _refusal(400, "the request did not come to its end")
        if data is None:
            return _refusal(413, f"the request has more than {MOST_BYTES} bytes")
        if limiter.statistics().tasks_waiting >= _WAITING * serving.workers:
            return _refusal(503, "the server is busy: try again")
        return _json(await to_thread.run_sync(ask, data, limiter=limiter))

    routes = [
        Route("/", static),
        Route("/page/{name:path}", static),
        Route("/catalog.json", choices),
        Route("/litmus/{family}/{name}", text),
        Route("/api", api, methods=["POST"]),
    ]
    middleware = [
        Middleware(_Headers),
        Middleware(TrustedHostMiddleware, allowed_hosts=list(serving.hosts), www_redirect=False),
    ]
    return Starlette(routes=routes, middleware=middleware)


async def _body(request: Request) -> bytes | None:
    """The body of a request; None if it is too long, which is seen before it is read."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MOST_BYTES:
            return None
    return data


def _json(data: bytes, status: int = 200) -> Response:
    return Response(data, status, {"cache-control": "no-store"}, "application/json")


def _refusal(status: int, message: str) -> Response:
    return _json(msgspec.json.encode(refused(PtxmmError(message, kind="request"))), status)


def _missing() -> Response:
    return _refusal(404, "there is no such page")


class _Headers:
    """Adds ``HEADERS`` to every response, also to those of other middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        await self.app(scope, receive, marked)
