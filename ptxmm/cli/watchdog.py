"""A deadline for code in this process that does not look at the clock itself."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ptxmm.errors import Timeout

INSISTENCE = 5.0
"""Seconds between interrupting Z3 and ending the whole process."""


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """Raise ``Timeout`` inside the block once ``seconds`` have passed.

    Python code gets it from an alarm signal. Code in Z3 does not see signals: a thread interrupts its solver, and if
    even that does not help, ends the process with exit code 3. Only the main thread can be watched, and only where
    there are alarm signals; elsewhere the block runs as it is.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_insist, args=(done, seconds), daemon=True)
    before = signal.signal(signal.SIGALRM, _raise)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    thread.start()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        done.set()


def _raise(number: int, frame: FrameType | None) -> None:
    raise Timeout


def _insist(done: threading.Event, seconds: float) -> None:
    if done.wait(seconds + 0.5):
        return
    if (z3 := sys.modules.get("z3")) is not None:
        z3.main_ctx().interrupt()
    if not done.wait(INSISTENCE):
        os.write(2, b"error: the time limit was reached and the search could not be stopped\n")
        os._exit(3)
