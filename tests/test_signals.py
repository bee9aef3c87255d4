"""Commands that are interrupted, stopped, short of memory or of disk: the exit code is right, what is printed is whole,
and no file is lost. A few runs of each here; ``-m slow`` makes 40 of each (20 under a limit of memory).
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection
from pathlib import Path
from typing import Literal

import pytest

from tests.benchmarks.programs import counter, ring
from tests.moments import ENVIRONMENT, Moment, at, ended, functions, start
from tests.support import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

FEW, MANY, LIMITED = 2, 40, 20
ENTRY = tuple[str, str | None, bool | None, str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that take different times."""
    made = tmp_path_factory.mktemp("signals")
    quick = sorted((ROOT / "litmus" / "mp").glob("*.litmus"))[:4]
    for number, path in enumerate(quick):
        shutil.copy(path, made / f"{number}-{path.name}")
    (made / "2-counter.litmus").write_text(counter(5).ptx())
    (made / "3-ring.litmus").write_text(ring(6).ptx())
    return made


CHECK = ("check", ".", "--json", "--jobs", "2", "--model", "ptx-8.5", "--timeout", "60")


def entries(out: str) -> list[ENTRY]:
    """What a document says of each test."""
    return [
        (r["file"], r.get("observation"), r.get("holds"), r["error"]["kind"] if "error" in r else r["status"])
        for r in json.loads(out)["results"]
    ]


@dataclass(frozen=True, slots=True)
class Whole:
    """What an undisturbed command does: how many functions it enters, in how many seconds, and what it says."""

    functions: int
    seconds: float
    entries: list[ENTRY]


@pytest.fixture(scope="module")
def whole(folder: Path) -> Whole:
    begin = time.monotonic()
    entered = functions(folder, *CHECK)
    seconds = time.monotonic() - begin
    found = ended(start(folder, *CHECK))
    assert found.code == 0
    return Whole(entered, seconds, entries(found.out))


def told(found: list[ENTRY], expected: list[ENTRY], kinds: set[str]) -> int:
    """How many entries are errors of ``kinds``; all others are as expected. A file that was not read has one entry."""
    lost = [entry for entry in found if entry[3] in kinds]
    assert {entry[0] for entry in found} == {entry[0] for entry in expected}
    assert [e for e in found if e not in lost] == [e for e in expected if e in found], found
    return len(lost)


both = pytest.mark.parametrize("runs", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
"""A few runs by default, and many that are slow."""


def moments(runs: int, number: int, to: Literal["command", "group"], most: int) -> Iterator[Moment]:
    """Some at the start, some anywhere; while the command runs, and while it waits for the processes that it started.
    ``most``: of how many functions the command enters."""
    rng = random.Random(f"{number}{to}{runs}")
    for run in range(runs):
        if run % 2:
            yield Moment("worker", rng.choice((1, rng.randint(1, 10_000))), number, to)
        else:
            yield Moment("command", rng.choice((rng.randint(1, 100), rng.randint(1, most))), number, to)


@both
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
@pytest.mark.parametrize("to", ["command", "group"])
def test_a_command_that_is_told_to_end(
    folder: Path, whole: Whole, number: signal.Signals, to: Literal["command", "group"], runs: int
) -> None:
    words = {signal.SIGINT: "interrupted\n", signal.SIGTERM: "terminated\n"}[number]
    for moment in moments(runs, number, to, whole.functions):
        found = at(moment, folder, *CHECK)
        assert found.came, moment
        if found.code == 0:  # at its very end
            assert entries(found.out) == whole.entries
        elif found.code == 3 and to == "group" and number == signal.SIGTERM:  # the workers were quicker to end
            told(entries(found.out), whole.entries, {"killed"})
        else:
            assert found.code in (128 + number, -number), (moment, found.code, found.err)
            assert found.err in (words, "")
            assert not found.out or found.out.startswith('{\n  "schema": "ptxmm/2"')  # what it was printing is cut


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_command_that_is_told_to_end_where_python_ignores_exceptions(folder: Path, number: signal.Signals) -> None:
    """As the connection to a worker that has ended is finalized."""
    finalizer = Moment("command", 1, number, of=connection.__file__, name="__del__")
    found = at(finalizer, folder, *CHECK)
    assert found.came and found.code == 128 + number, (found.code, found.err)
    assert found.err in ("interrupted\n", "terminated\n")


@both
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_command_that_is_told_to_end_at_its_start(folder: Path, number: signal.Signals, runs: int) -> None:
    """From the first function on that is entered, be it one of Python or of ptxmm."""
    rng = random.Random(runs)
    most = functions(folder, "check", "2-counter.litmus", of="") * 0.9
    for run in range(5 * runs):
        moment = Moment("command", rng.randint(1, int(most ** ((run + 1) / (5 * runs)))), number, of="")
        found = at(moment, folder, "check", "2-counter.litmus")
        assert found.came and found.code in (128 + number, -number), (moment, found.code, found.err)
        assert found.err in ("interrupted\n", "terminated\n", ""), (moment, found.err)


@both
def test_a_worker_that_is_killed(folder: Path, whole: Whole, runs: int) -> None:
    rng = random.Random(runs)
    for _ in range(runs):
        moment = Moment("worker", int(10_000 ** rng.random()), signal.SIGKILL)
        found = at(moment, folder, *CHECK)
        lost = told(entries(found.out), whole.entries, {"killed"})
        assert found.came and lost <= 1 and found.code == (3 if lost else 0), (moment, found.code, found.err)


def paused(everyone: bool, seconds: float, pid: int) -> None:
    """Continue after so many seconds."""
    time.sleep(seconds)
    (os.killpg if everyone else os.kill)(pid, signal.SIGCONT)


@both
@pytest.mark.parametrize("to", ["command", "group"])
def test_a_command_that_is_stopped_and_continued(
    folder: Path, whole: Whole, to: Literal["command", "group"], runs: int
) -> None:
    """The time limit is one that a pause would pass."""
    limit = max(4.0, 4 * whole.seconds)
    for number, moment in enumerate(moments(runs, signal.SIGSTOP, to, whole.functions)):
        pause = partial(paused, to == "group", 0.1 if number % 4 == 2 else limit + 2.5)
        found = at(moment, folder, *CHECK[:-1], f"{limit:.1f}", meanwhile=pause)
        assert found.came, moment
        assert (found.code, entries(found.out)) == (0, whole.entries), (moment, found.err)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_is_written_while_a_command_is_stopped_is_whole(folder: Path, unbuffered: str) -> None:
    """It stops in the middle of a write to a pipe that is full."""
    command = [sys.executable, "-m", "ptxmm", "models", "ptx-8.5"]
    expected = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, check=True).stdout
    ours, theirs = os.pipe()
    size = fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
    assert size < len(expected)
    environment = {**ENVIRONMENT, "PYTHONUNBUFFERED": unbuffered}
    child = subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs)
    os.close(theirs)
    while struct.unpack("i", fcntl.ioctl(ours, termios.FIONREAD, bytes(4)))[0] < size or not asleep(child.pid):
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)
    child.send_signal(signal.SIGCONT)
    with open(ours, "rb") as pipe:
        written = pipe.read()
    assert (child.wait(), written) == (0, expected)


def asleep(pid: int) -> bool:
    """Whether a process waits for something."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("runs", [FEW, pytest.param(LIMITED, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", ["--memory", "ulimit -v"])
def test_a_command_without_memory(folder: Path, whole: Whole, how: str, runs: int) -> None:
    rng = random.Random(f"{how}{runs}")
    for _ in range(runs):
        if how == "--memory":
            child = start(folder, *CHECK, "--memory", str(rng.choice((1, 20, *range(30, 130, 5)))))
        else:
            size = rng.randint(20, 150) << 20
            child = start(folder, *CHECK, preexec_fn=partial(resource.setrlimit, resource.RLIMIT_AS, (size, size)))
        found = ended(child)
        if not found.out:
            assert (found.code == 3 and "memory" in found.err) or "can't be loaded" in found.err, found.err
            continue
        lost = told(entries(found.out), whole.entries, {"memory"})
        assert found.code == (3 if lost else 0), (found.code, found.err)


# -- files ---------------------------------------------------------------------------------------------------------

SOURCE = 'void f(int *p) { asm("st.global.u32 [%0], 1;" :: "l"(p)); }\n'
OLD = "int old;\n"


def full(size: int) -> Callable[[], None]:
    """No file may grow beyond ``size``: a disk that is full."""
    return partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("size", [0, 50, 400])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, size: int) -> None:
    kernel = ROOT / "tests" / "cuda" / "mp_release_acquire_gpu.ptx"
    shutil.copy(kernel, tmp_path / "k.ptx")
    shutil.copy(kernel.with_suffix(".cu"), tmp_path / "k.cu")
    shutil.copy(ROOT / "litmus" / "mp" / "MP.litmus", tmp_path / "a.litmus")
    long = SOURCE * 20
    (tmp_path / "s.cu").write_text(long)
    for command, output in (
        (("convert", "a.litmus", "-o", "out.litmus"), "out.litmus"),
        (("extract", "k.ptx", "-o", "out.litmus"), "out.litmus"),
        (("lint", "--fix", "s.cu"), "s.cu"),
    ):
        before = OLD if output == "out.litmus" else long
        (tmp_path / output).write_text(before)
        found = ended(start(tmp_path, *command, preexec_fn=full(size)))
        assert found.code == 2 and "File too large" in found.err, found.err
        assert (tmp_path / output).read_text() == before
        assert not list(tmp_path.glob(".ptxmm-*"))


def test_a_full_disk_that_is_one(tmp_path: Path) -> None:
    """A file system of its own, where that can be had."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        old = disk / "s.cu"
        old.write_text(SOURCE * 20)
        with suppress(OSError), open(disk / "filler", "wb", buffering=0) as stream:
            while True:
                stream.write(b"x" * 4096)
        found = ended(start(disk, "lint", "--fix", "s.cu"))
        assert found.code == 2 and "No space left on device" in found.err
        assert old.read_text() == SOURCE * 20
        assert sorted(os.listdir(disk)) == ["filler", "s.cu"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_output_on_a_full_disk() -> None:
    for command in (("check", "litmus/mp/MP.litmus"), ("check", "litmus/mp/MP.litmus", "--json"), ("check", "--help")):
        with open("/dev/full", "w") as stream:
            done = subprocess.run(
                [sys.executable, "-m", "ptxmm", *command], cwd=ROOT, env=ENVIRONMENT, stdout=stream,
                stderr=subprocess.PIPE, text=True, check=False,
            )  # fmt: skip
        assert (done.returncode, done.stderr) == (2, "error: No space left on device\n"), command


@both
def test_a_file_is_whole_whenever_its_writer_is_ended(tmp_path: Path, runs: int) -> None:
    path = tmp_path / "s.cu"
    old, rng = SOURCE * 300, random.Random(3)
    path.write_text(old)
    total, new = functions(tmp_path, "lint", "--fix", "s.cu"), path.read_text()
    assert new != old
    for _ in range(runs):
        path.write_text(old)
        path.chmod(0o640)
        number = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        when = rng.choice((rng.randint(1, total), total - rng.randint(0, 100)))  # files are written at the end
        assert at(Moment("command", when, number), tmp_path, "lint", "--fix", "s.cu").came
        assert path.read_text() in (old, new)
        assert path.stat().st_mode & 0o777 == 0o640
        if number != signal.SIGKILL:
            assert os.listdir(tmp_path) == ["s.cu"]
        for rest in tmp_path.glob(".ptxmm-*"):
            rest.unlink()
