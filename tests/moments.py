"""Commands that get a signal at a chosen moment: when a process of theirs has entered so many functions of ptxmm.

Such a moment is counted, not timed: it is the same on every machine, however busy.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tests.support import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}  # no half of it on a full disk
PTXMM = str(ROOT / "ptxmm")
SECONDS = 300.0
"""A command that takes longer hangs."""

_TRACED = """
import json, os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt of Python before ptxmm is no concern of ours
asked, command = json.loads(sys.argv.pop(1)), os.getpid()
process, entered = command, 0
def enter(frame, event, argument):
    global process, entered
    if not frame.f_code.co_filename.startswith(asked["of"]) or asked["name"] not in ("", frame.f_code.co_name):
        return
    if process != os.getpid():
        process, entered = os.getpid(), 0
    entered += 1
    if entered != asked["number"] or (process == command) != (asked["where"] == "command"):
        return
    try:
        os.read(asked["read"], 1)
    except BlockingIOError:
        return
    target = {"self": process, "command": command, "group": command}[asked["to"]]
    (os.killpg if asked["to"] == "group" else os.kill)(target, asked["signal"])
leave = os._exit
def told(code):
    if process == command == os.getpid() and not asked["number"]:
        os.write(asked["write"], b"%d" % entered)
    leave(code)
os._exit = told
sys.settrace(enter)
runpy.run_module("ptxmm", run_name="__main__", alter_sys=True)
"""
"""Traces the functions that are entered, also in what is forked. Of several processes one takes the letter in the pipe
and sends the signal."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When the command itself, or one of the processes it works with, enters its function with this number.

    ``of``: where functions count; ``name``: of what name, if only these; ``to``: who gets the ``signal``: the process
    itself, the command, or all of them.
    """

    where: Literal["command", "worker"]
    number: int
    signal: int
    to: Literal["self", "command", "group"] = "self"
    of: str = PTXMM
    name: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str
    told: str = ""

    @property
    def came(self) -> bool:
        """Whether its moment came."""
        return not self.told


def start(
    folder: Path, *arguments: str, code: tuple[str, ...] = ("-m", "ptxmm"), **options: Any
) -> subprocess.Popen[str]:
    """A command in a session of its own."""
    return subprocess.Popen(
        [sys.executable, *code, *arguments], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True, **options,
    )  # fmt: skip


def ended(child: subprocess.Popen[str]) -> Ended:
    """How a command ended; no process of its session is left."""
    out, err = child.communicate(timeout=SECONDS)
    left = list(wait_for(pid for pid, session in _sessions() if session == child.pid))
    assert not left, f"processes left: {left}"
    assert "Traceback" not in err and "internal error" not in err + out and "Exception ignored" not in err, err
    return Ended(child.returncode, out, err)


def at(moment: Moment, folder: Path, *arguments: str, meanwhile: Callable[[int], None] | None = None) -> Ended:
    """How a command ends that gets its signal then; ``meanwhile`` runs while it is stopped, if the signal does that."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.write(write, b"x")  # who takes it sends the signal: one process does
    try:
        asked = json.dumps({**asdict(moment), "read": read, "write": write})
        child = start(folder, asked, *arguments, code=("-c", _TRACED), pass_fds=(read, write))
        if meanwhile is not None:
            _, status = os.waitpid(child.pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                meanwhile(child.pid)
            else:
                child.returncode = os.waitstatus_to_exitcode(status)
        found = ended(child)
        os.write(write, b";")
        return replace(found, told=os.read(read, 99).decode()[:-1])
    finally:
        os.close(read)
        os.close(write)


def functions(folder: Path, *arguments: str, of: str = PTXMM) -> int:
    """How many functions the command itself enters when nothing disturbs it."""
    return int(at(Moment("command", 0, 0, of=of), folder, *arguments).told[1:])


def wait_for(processes: Iterable[int]) -> Iterator[int]:
    """Wait until each of ``processes`` has ended; those that do not in half a minute."""
    for pid in processes:
        with suppress(ProcessLookupError):
            file = os.pidfd_open(pid)
            try:
                if not select.select([file], [], [], 30)[0]:
                    yield pid
            finally:
                os.close(file)


def _sessions() -> Iterator[tuple[int, int]]:
    """Each process that runs, with its session."""
    for entry in os.listdir("/proc"):
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{int(entry)}/stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                yield int(entry), int(fields[3])
