"""``ptxmm serve``: the playground, a page in the browser."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Annotated

import typer

from ptxmm.errors import PtxmmError

LOCAL = ("localhost", "127.0.0.1", "[::1]")


def serve(
    *,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, metavar="N", help="The port; 0: a free one.")] = 8585,
    public: Annotated[
        bool, typer.Option("--public", help="Let other machines in; needs --rate and --workers.")
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST", help="With --public, answer only under this name; may be repeated."),
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option("--rate", min=1, max=10**6, metavar="N", help="Requests a minute for each address."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, max=256, metavar="N", help="Requests at a time. [default: 2]"),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=600, metavar="S", help="Seconds for each request.")
    ] = 10.0,
    memory: Annotated[
        int, typer.Option("--memory", min=64, max=1 << 20, metavar="MB", help="Megabytes for each request.")
    ] = 1024,
) -> None:
    """Serve the playground: edit a test in the browser, see its final states, and why a state is allowed or not.

    Each request is answered in a process of its own. Only this machine is let in, unless --public is given.
    """
    _check(host, public, name, rate, workers)
    try:
        import uvicorn

        from ptxmm.web.server import Serving, application
    except ImportError as error:
        message = f"the playground needs {error.name}, which is not installed"
        raise PtxmmError(message, kind="usage", hint="pip install 'ptxmm[serve]'") from None
    from ptxmm.cli.asking import Answering
    from ptxmm.cli.settings import Settings
    from ptxmm.files import bundled_folder

    hosts = tuple(name or ("*",)) if public else LOCAL
    serving = Serving(workers or 2, hosts, rate)
    listening = _listening(host, port)
    with listening, Answering(serving.workers, Settings(timeout=timeout, memory=memory)) as answering:
        app = application(answering.ask, bundled_folder(), serving)
        config = uvicorn.Config(
            app,
            log_level="warning",
            server_header=False,
            limit_concurrency=1000,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=2,
        )
        shown = f"[{host}]" if ":" in host else host
        print(f"ptxmm: the playground is at http://{shown}:{listening.getsockname()[1]}/ (Ctrl-C ends it)", flush=True)
        uvicorn.Server(config).run(sockets=[listening])


def _check(host: str, public: bool, name: list[str] | None, rate: int | None, workers: int | None) -> None:
    """Raises ``PtxmmError`` (kind ``usage``) for a server that would be open without limits."""
    if public:
        missing = [option for option, value in (("--rate", rate), ("--workers", workers)) if value is None]
        if missing:
            message = f"--public needs {' and '.join(missing)}"
            raise PtxmmError(message, kind="usage", hint="e.g. --public --rate 60 --workers 4")
        return
    if name:
        raise PtxmmError("--name is for --public", kind="usage")
    if host != "localhost" and not _is_loopback(host):
        message = f"--host {host} lets other machines in"
        raise PtxmmError(message, kind="usage", hint="add --public, with --rate and --workers")


def _listening(host: str, port: int) -> socket.socket:
    """Raises ``PtxmmError`` (kind ``io``) where that can't be listened at."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        hint = "another --port may be free; --port 0 takes one that is"
        raise PtxmmError(f"can't listen at {host}:{port}: {error.strerror}", kind="io", hint=hint) from None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
