"""Processes that do one task after the other, each within a limit of time and of memory.

A process that passes its limit is ended from outside and replaced: no code in it has to notice anything, and nothing of
its state outlives it. What it had sent before stands.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct, field

from ptxmm.cli.memory import bound_memory, is_shortage, peak, resident, unbound_memory

T = TypeVar("T")
M = TypeVar("M")

GRACE = 2.0
"""Seconds that a process has to notice a deadline by itself before it is ended."""

_TICK = 0.25
_PARTS = 256
"""So many parts are taken before they are handed on."""
_GATHER = 0.01
"""Seconds in which parts gather after the last ones, so that they are taken together: looking is dearer than taking."""
_PAUSE = 1.0
"""Seconds beyond a tick after which this process must have been stopped."""

Reason = Literal["time", "memory", "killed", "crashed"]
Step = Callable[[T, int], Generator[M | Sequence[Any], bool, None]]
"""What a process does with a task: yield a sequence as long as there are messages to come, then them, each after any
number of ``Part``. The second argument: so many of them to leave out. ``True`` sent back for a message asks for it once
more."""


class Part(Struct, Generic[T], frozen=True):
    """What a process tells ahead of a message, which is not counted. ``instead``: what stands for that message if the
    time is over before it comes, or None."""

    value: T
    instead: T | None = None


class Lost(Struct, frozen=True):
    """A process ended before it gave a message. ``reason``: why; ``detail``: in the words of the operating system."""

    reason: Reason
    detail: str = ""


class Bounds(Struct, frozen=True):
    """``seconds``: for each message of a process, None: any; ``memory``: bytes of a process, None: any."""

    seconds: float | None = None
    memory: int | None = None


class _Worker(Struct):
    process: BaseProcess
    connection: Connection
    task: int | None = None
    received: int = 0
    """Messages of the task that came, or were given up; the first, which says how many there are, is not counted."""
    since: float = 0.0
    resident: int = 0
    """Bytes of memory that it had when it was last looked at."""


class _Record(Struct, Generic[M]):
    """The events of a task that have not been handed on."""

    events: deque[tuple[int, M | Sequence[Any] | Lost]] = field(default_factory=deque)
    total: int | None = None
    ended: bool = False


def events(
    step: Step[T, M],
    tasks: Sequence[T],
    workers: int,
    bounds: Bounds,
    expired: Callable[[M], bool],
) -> Iterator[tuple[int, int, M | Sequence[Any] | Lost]]:
    """What ``step`` yields for each of ``tasks`` in up to ``workers`` processes, in order: (task, number of the message
    from 0, the message or why there is none). The message of number 0 is the sequence as long as there are others; a
    part has the number of the message to come.

    After a ``Lost`` one that is not the first, a new process goes on with the next. Where ``expired`` holds of a
    message and this process was stopped meanwhile (``SIGSTOP``, the terminal), the clock of the other ran on: it is
    asked for the message once more.
    """
    yield from _Team(step, tasks, workers, bounds, expired).run()


def never(message: object) -> bool:
    """What to give as ``expired`` where no message says that its time was over."""
    return False


class _Team(Generic[T, M]):
    def __init__(
        self, step: Step[T, M], tasks: Sequence[T], workers: int, bounds: Bounds, expired: Callable[[M], bool]
    ) -> None:
        self.step, self.tasks, self.size, self.bounds, self.expired = step, tasks, workers, bounds, expired
        self.waiting: deque[tuple[int, int]] = deque((number, 0) for number in range(len(tasks)))
        self.members: list[_Worker] = []
        self.records: dict[int, _Record[M]] = {number: _Record() for number in range(len(tasks))}
        self.seen = time.monotonic()
        """When this process last looked at the clock."""
        self.stopped = 0.0
        """When it last went on after it was stopped, if it ever was."""

    def run(self) -> Iterator[tuple[int, int, M | Sequence[Any] | Lost]]:
        parts = 0
        try:
            for number in range(len(self.tasks)):
                record = self.records[number]
                while True:
                    while record.events:
                        yield number, *record.events.popleft()
                    if record.ended:
                        break
                    self._assign()
                    if not self.members:
                        continue  # none could be started: what is to be said of that is in the records
                    if parts:
                        time.sleep(_GATHER)
                    ready = wait([member.connection for member in self.members], _TICK)
                    self._now()
                    parts = 0
                    for member in [m for m in self.members if m.connection in ready]:
                        for _ in range(_PARTS):
                            if not self._receive(member):
                                break
                            parts += 1
                            if not member.connection.poll():
                                break
                    self._look(self._now())
                del self.records[number]
        finally:
            for member in self.members:
                member.process.kill()
            for member in self.members:
                member.process.join()
                member.connection.close()

    def _now(self) -> float:
        """The time. A jump says that this process was stopped, and others may have been: their times begin anew."""
        now = time.monotonic()
        if now - self.seen > _TICK + _PAUSE:
            self.stopped = now
            for member in self.members:
                member.since = now
        self.seen = now
        return now

    def _assign(self) -> None:
        """Give every process something to do, and start those that are missing."""
        for member in [m for m in self.members if m.task is None]:
            if self.waiting:
                self._give(member)
        while self.waiting and len(self.members) < self.size:
            try:
                member = self._start()
            except OSError as error:  # no process can be started
                number, done = self.waiting.popleft()
                self._lose(number, done, Lost("memory" if is_shortage(error) else "crashed", str(error)))
                continue
            self.members.append(member)
            self._give(member)

    def _start(self) -> _Worker:
        # A fork has everything loaded; but of a process with threads it might have locks that nobody opens.
        forks = sys.platform == "linux" and threading.active_count() == 1
        context: Any = get_context("fork" if forks else "spawn")
        ours, theirs = context.Pipe()
        others = [ours, *(member.connection for member in self.members)] if forks else []
        arguments = (self.step, self.expired, theirs, others, self.bounds.memory, os.getpid())
        process = context.Process(target=_work, args=arguments, daemon=True)
        before = _held(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))  # until it knows what to do with them
        try:
            process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            _held(signal.SIG_SETMASK, before)
        return _Worker(process, ours)

    def _give(self, member: _Worker) -> None:
        number, done = self.waiting.popleft()
        member.task, member.received = number, done
        member.since = self._now()
        with suppress(OSError):  # it may have ended: that is seen when it is read from
            member.connection.send((self.tasks[number], done))

    def _receive(self, member: _Worker) -> bool:
        """Take what ``member`` has sent, or see that it has ended; whether it is a part."""
        try:
            kind, message, began = member.connection.recv()
        except (EOFError, OSError):
            self._dismiss(member, None)
            return False
        number = member.task
        assert number is not None
        record = self.records[number]
        if kind == "broken":
            self._dismiss(member, Lost(message[0], message[1]))
        elif kind == "end":
            record.ended = True
            member.task = None
            if message:  # it has used so much memory that the next task might not find enough
                self._dismiss(member, None)
        elif kind == "first":
            if record.total is None:
                record.total = len(message)
                record.events.append((0, message))
        elif kind == "part":
            record.events.append((member.received + 1, message))
            return True  # the time is that of the whole message
        else:
            again = False
            if self.expired(message):
                self._now()
                again = began < self.stopped
                with suppress(OSError):  # it may have ended: that is seen when it is read from
                    member.connection.send(again)
            if not again:
                member.received += 1
                record.events.append((member.received, message))
        member.since = self._now()
        return False

    def _look(self, now: float) -> None:
        """End the processes that have had their time, unless a message is there; see what memory they have."""
        for member in [m for m in self.members if m.task is not None]:
            if self.bounds.memory is not None:
                member.resident = resident(member.process.pid)
            late = self.bounds.seconds is not None and now - member.since > self.bounds.seconds + GRACE
            if late and not member.connection.poll():
                self._dismiss(member, Lost("time"))

    def _dismiss(self, member: _Worker, reason: Lost | None) -> None:
        """Part with a process; what it was doing is lost for ``reason``, None: for what its exit code says."""
        self.members.remove(member)
        if reason is None and member.task is not None:
            member.process.join(1.0)
        code = member.process.exitcode
        member.process.kill()
        member.process.join()
        member.connection.close()
        if member.task is not None:
            self._lose(member.task, member.received, reason or self._ended(code, member.resident))

    def _lose(self, number: int, received: int, reason: Lost) -> None:
        """The next message of a task is lost; another process may go on after it."""
        record = self.records[number]
        if record.total is None:
            record.events.append((0, reason))
        elif received < record.total:
            record.events.append((received + 1, reason))
        record.ended = record.total is None or received + 1 >= record.total
        if not record.ended:
            self.waiting.appendleft((number, received + 1))

    def _ended(self, code: int | None, size: int) -> Lost:
        """Why a process with this exit code, which last had ``size`` bytes, ended without a word."""
        if code is not None and -code in _SENT:
            return Lost("killed", f"signal {-code}")
        most = self.bounds.memory
        # C++ code that finds no memory ends in several ways.
        if code in (-signal.SIGABRT, _Z3_MEMOUT) or (most is not None and (size > most // 2 or most < _SMALL)):
            return Lost("memory")
        return Lost("crashed", f"exit code {code}" if code is None or code >= 0 else f"signal {-code}")


def _work(
    step: Step[T, M],
    expired: Callable[[M], bool],
    connection: Connection,
    others: Sequence[Connection],
    memory: int | None,
    parent: int,
) -> None:
    """The life of a process. ``others``: what it has from its parent and must not hold open."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent takes it and ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _held(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    for other in others:
        other.close()
    _end_with(parent)
    with suppress(OSError):  # only the parent prints: not, say, C++ code that finds no memory
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    if memory is not None:
        bound_memory(memory)
    try:
        while _one(step, expired, connection, memory):
            pass
    except (EOFError, OSError):
        pass  # the parent has gone


def _one(step: Step[T, M], expired: Callable[[M], bool], connection: Connection, memory: int | None) -> bool:
    """Do one task; whether there may be another. Raises ``EOFError`` or ``OSError`` where nobody listens."""
    task, done = connection.recv()
    try:
        messages = step(task, done)
        connection.send(("first", next(messages), 0.0))
        began = time.monotonic()
        message = next(messages, None)
        while message is not None:
            part = isinstance(message, Part)
            connection.send(("part" if part else "item", message, began))
            again = not part and expired(message) and connection.recv()  # type: ignore[arg-type]
            if not part:
                began = time.monotonic()
            message = messages.send(True) if again else next(messages, None)
    except Exception as error:
        reason: Reason = "memory" if is_shortage(error) else "crashed"
        unbound_memory()
        connection.send(("broken", (reason, f"{type(error).__name__}: {error}"), 0.0))
        return False
    large = memory is not None and peak() > memory * _KEEP
    connection.send(("end", large, 0.0))
    return not large


def _held(how: int, signals: Iterable[int]) -> Iterable[int]:
    """Change which signals wait for later, where the operating system lets them; those that did."""
    return signal.pthread_sigmask(how, signals) if hasattr(signal, "pthread_sigmask") else ()


def _end_with(parent: int) -> None:
    """Let this process be killed when ``parent`` ends, however it does, where the operating system can see to that."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(1)


_PR_SET_PDEATHSIG = 1
_KEEP = 0.25
"""Of its limit: a process that has had more is replaced, so that every task finds most of it free."""
_SMALL = 256 << 20
"""A limit so low that a crash has to do with it; of what a process had before, there may be no word yet."""
_Z3_MEMOUT = 101
_SENT = tuple(
    int(getattr(signal, name))
    for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGXCPU")
    if hasattr(signal, name)
)
"""Signals that come from outside."""
