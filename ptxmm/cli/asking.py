"""Processes that answer the requests of the playground, each request in one of its own with limits of time and memory.

A request is forked off a process that has everything loaded and has answered nothing: so it costs little, and nothing
that one request does is there for the next.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue

from ptxmm.cli.settings import Settings
from ptxmm.cli.tasks import once
from ptxmm.cli.workers import GRACE
from ptxmm.errors import PtxmmError
from ptxmm.web.answers import answer, encoded, prepare
from ptxmm.web.requests import refused

_SLACK = 10.0
"""Seconds beyond the limit of a request after which the process that watches it must be broken."""


class _Watcher:
    """A process that takes requests one after the other and sees to it that each is answered within its limits."""

    def __init__(self, settings: Settings) -> None:
        context = get_context("spawn")  # this process has threads, whose locks a fork would have for ever
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_watch, args=(theirs, settings))
        self.process.start()
        theirs.close()

    def ready(self) -> None:
        """Wait until it takes requests. Raises ``EOFError`` where it has ended."""
        self.connection.recv_bytes()

    def end(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.kill()
        self.process.join()


class Answering:
    """``workers`` requests at a time; ``settings``: their limits. To be closed, as a context."""

    def __init__(self, workers: int, settings: Settings) -> None:
        self._settings = settings
        self._free: SimpleQueue[_Watcher] = SimpleQueue()
        self._all = [_Watcher(settings) for _ in range(workers)]
        for watcher in self._all:
            watcher.ready()
            self._free.put(watcher)

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *unused: object) -> None:
        for watcher in self._all:
            watcher.end()

    def ask(self, data: bytes) -> bytes:
        """The answer to a request, which comes within the limits. May be called by several threads."""
        watcher = self._free.get()
        try:
            try:
                watcher.connection.send_bytes(data)
                if watcher.connection.poll(self._settings.timeout + GRACE + _SLACK):
                    return watcher.connection.recv_bytes()
            except (EOFError, OSError):
                pass
            watcher.end()
            self._all.remove(watcher)
            watcher = _Watcher(self._settings)
            self._all.append(watcher)
            watcher.ready()
            message = "internal error: the process that answers requests ended"
            return encoded(refused(PtxmmError(message, kind="internal")))
        finally:
            self._free.put(watcher)


def _watch(connection: Connection, settings: Settings) -> None:
    """The life of a watching process: it ends when nobody listens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server takes it
    prepare()
    with suppress(EOFError, OSError):
        connection.send_bytes(b"")
        while True:
            data = connection.recv_bytes()
            try:
                found = once(partial(answer, data, settings.timeout), "this request", settings)
            except PtxmmError as error:
                found = encoded(refused(_told(error)))
            connection.send_bytes(found)


def _told(error: PtxmmError) -> PtxmmError:
    """``error`` without what only the command line can do about it."""
    return PtxmmError(error.message, kind=error.kind)
