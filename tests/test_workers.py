"""Processes with limits: what each gives, and what becomes of one that passes a limit or is killed."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from ptxmm.cli.memory import MEGABYTE, is_shortage, share
from ptxmm.cli.workers import Bounds, Lost, events
from tests.support import watched

Message = str | Sequence[None]


def work(task: str, done: int) -> Generator[Message, bool, None]:
    """Do what each word of ``task`` says, one message a word; `read:WORD` before any."""
    words = task.split()
    if words[0].startswith("read:"):
        act(words.pop(0)[5:])
    yield [None] * len(words)
    for word in words[done:]:
        answer = act(word)
        while (yield answer):
            answer = "again"
    if words[-1] == "last":
        os._exit(7)


def act(word: str) -> str:
    """One way to be a good or a bad worker."""
    if word == "wait":
        threading.Event().wait()
    elif word == "spin":
        while True:
            pass
    elif word == "native":
        ctypes.CDLL(None).sleep(1000)  # code that never comes back to Python
    elif word == "stop":
        os.kill(os.getppid(), signal.SIGSTOP)
        time.sleep(1.8)
    elif word == "eat":
        held = [bytearray(b"x" * MEGABYTE) for _ in range(2000)]
        return str(len(held))
    elif word == "raise":
        raise ValueError("no")
    elif word == "leave":
        os._exit(7)
    elif word.startswith("signal"):
        faulthandler.disable()
        os.kill(os.getpid(), int(word[6:]))
    elif word == "pid":
        return str(os.getpid())
    return word


def is_timeout(message: Message) -> bool:
    return message == "timeout"


def ask(*tasks: str, workers: int = 1, seconds: float | None = None, memory: int | None = None) -> list[list[object]]:
    """The messages of each task, the first (how many there are) left out."""
    found: list[list[object]] = [[] for _ in tasks]
    numbers: list[list[int]] = [[] for _ in tasks]
    bounds = Bounds(seconds, None if memory is None else memory * MEGABYTE)
    for task, number, message in events(work, tasks, workers, bounds, is_timeout):
        numbers[task].append(number)
        if number or isinstance(message, Lost):
            found[task].append(message)
    assert all(given == list(range(len(given))) for given in numbers)
    return found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxmm.cli.workers.GRACE", 0.0)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_messages_come_in_order(workers: int) -> None:
    assert ask("a b", "c", "d e f", workers=workers) == [["a", "b"], ["c"], ["d", "e", "f"]]


def test_a_process_does_several_tasks() -> None:
    (first,), (second,) = ask("pid", "pid")
    assert first == second != str(os.getpid())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("bad", ["wait", "spin", "native"])
def test_whatever_passes_its_time_is_ended_and_the_rest_goes_on(bad: str) -> None:
    with watched():
        assert ask(f"a {bad} b", "c", seconds=1.5) == [["a", Lost("time"), "b"], ["c"]]
        assert ask(f"read:{bad} a", "c", seconds=1.5) == [[Lost("time")], ["c"]]


def test_a_process_that_ends_after_its_last_message_costs_nothing() -> None:
    assert ask("a last", "c") == [["a", "last"], ["c"]]


def test_a_process_that_ends_costs_one_message() -> None:
    lost = {
        "leave": Lost("crashed", "exit code 7"),
        "raise": Lost("crashed", "ValueError: no"),
        f"signal{int(signal.SIGKILL)}": Lost("killed", "signal 9"),
        f"signal{int(signal.SIGTERM)}": Lost("killed", "signal 15"),
        f"signal{int(signal.SIGSEGV)}": Lost("crashed", "signal 11"),
        f"signal{int(signal.SIGABRT)}": Lost("memory"),
    }
    for bad, reason in lost.items():
        assert ask(f"a {bad} b", "c") == [["a", reason, "b"], ["c"]]
        assert ask(f"read:{bad} a", "c") == [[reason], ["c"]]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory that counts")
def test_a_process_without_memory_costs_one_message() -> None:
    assert [[m.reason if isinstance(m, Lost) else m for m in found] for found in ask("a eat b", "c", memory=300)] == [
        ["a", "memory", "b"],
        ["c"],
    ]


def test_an_interrupt_is_not_for_the_workers() -> None:
    assert ask(f"a signal{int(signal.SIGINT)} b") == [["a", f"signal{int(signal.SIGINT)}", "b"]]


def test_no_process_is_left() -> None:
    coming = events(work, ["pid wait"], 1, Bounds(), bool)
    assert next(coming)[2] == [None, None]
    pid = int(str(next(coming)[2]))
    assert isinstance(coming, Generator)
    coming.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_processes_of_a_process_with_threads() -> None:
    """It is not forked, as locks of the other threads would stay locked."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert ask("a", "b leave c", workers=2) == [["a"], ["b", Lost("crashed", "exit code 7"), "c"]]
    finally:
        done.set()
        thread.join()


SCRIPT = """
from tests.test_workers import ask
print(ask("stop b", "a", seconds={seconds}))
"""


@pytest.mark.parametrize("seconds", [None, 1.0])
def test_a_stopped_process_goes_on(seconds: float | None) -> None:
    """What is stopped for longer than a limit takes no message for late."""
    code = SCRIPT.format(seconds=seconds)
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True
    )
    os.waitpid(child.pid, os.WUNTRACED)
    time.sleep(4)
    os.kill(child.pid, signal.SIGCONT)
    out, _ = child.communicate(timeout=30)
    assert out.strip() == "[['stop', 'b'], ['a']]"


def asked_again(task: str, done: int) -> Generator[Message, bool, None]:
    """A message that says that time is over, for as long as it is asked again: it is there while the parent is stopped,
    or comes soon after it goes on."""
    parent = os.getppid()
    os.kill(parent, signal.SIGSTOP)
    yield [None]
    while task == "after" and state(parent) in "Tt":
        time.sleep(0.01)
    if task == "after":
        time.sleep(0.3)  # until it has read that there is one message
    answer = "timeout"
    while (yield answer):
        answer = "done"


def state(process: int) -> str:
    """What it does, as ``ps`` says it."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("when", ["meanwhile", "after"])
def test_what_ran_out_of_time_while_all_was_stopped_is_done_again(when: str) -> None:
    code = (
        "from ptxmm.cli.workers import *; from tests.test_workers import asked_again\n"
        f"print([m for _, n, m in events(asked_again, [{when!r}], 1, Bounds(60), lambda m: m == 'timeout') if n])"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True
    )
    os.waitpid(child.pid, os.WUNTRACED)
    time.sleep(2)
    os.kill(child.pid, signal.SIGCONT)
    out, _ = child.communicate(timeout=30)
    assert out.strip() == "['done']"


def test_words_for_a_shortage_of_memory() -> None:
    assert is_shortage(MemoryError())
    assert is_shortage(OSError(12, "Cannot allocate memory"))
    assert is_shortage(ImportError("libz3.so: failed to map segment from shared object"))
    assert not is_shortage(ValueError("no"))
    wrapped = ValueError("x")
    wrapped.__cause__ = MemoryError()
    assert is_shortage(wrapped)
    one, two = share(1), share(2)
    assert one is None or (two is not None and abs(one - 2 * two) <= 2)


def consume(items: Iterator[object]) -> None:
    for _ in items:
        pass


@pytest.mark.slow
def test_workers_killed_at_random() -> None:
    """A task whose worker is killed has a ``Lost`` in it; nothing else is lost, and nothing is there twice."""
    step = partial(work)
    for seed in range(20):
        tasks = [f"a{n} pid b{n}" for n in range(40)]
        found: list[list[object]] = [[] for _ in tasks]
        for task, number, message in events(step, tasks, 2, Bounds(20), bool):
            if number:
                found[task].append(message)
            if number == 2 and isinstance(message, str) and (task + seed) % 7 == 0:
                os.kill(int(message), signal.SIGKILL)
        for n, messages in enumerate(found):
            assert len(messages) in (0, 3), messages
            given = [m for m in messages if not isinstance(m, Lost)]
            assert [m for m in given if str(m)[0] in "ab"] in (
                [f"a{n}", f"b{n}"], [f"a{n}"], [f"b{n}"], []
            )  # fmt: skip
