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
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.programs import counter, ring
from tests.support import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}  # no half of it on a full disk
FEW, MANY, LIMITED = 2, 40, 20
ENTRY = tuple[str, str | None, bool | None, str]


def start(folder: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """A command in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ptxmm", *arguments], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True, **options,
    )  # fmt: skip


def ended(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    """How a command ended; no process of its session is left a moment later."""
    out, err = child.communicate(timeout=120)
    for _ in range(50):
        left = [pid for pid, session in sessions() if session == child.pid]
        if not left:
            break
        time.sleep(0.1)
    assert not left, f"processes left: {left}"
    own = "Traceback" in err and "/ptxmm/" not in err
    if not own:  # else Python was interrupted in its own start, before the first line of ptxmm ran
        assert "Traceback" not in err and "internal error" not in err + out and "Exception ignored" not in err, err
    return child.returncode, out, err


def sessions() -> Iterator[tuple[int, int]]:
    """Each process that runs, with its session."""
    for entry in os.listdir("/proc"):
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{int(entry)}/stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                yield int(entry), int(fields[3])


def workers(child: subprocess.Popen[str]) -> list[int]:
    """The processes that a command has started."""
    with suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()]
    return []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that take different times."""
    made = tmp_path_factory.mktemp("signals")
    quick = sorted((ROOT / "litmus" / "mp").glob("*.litmus"))[:4]
    for number, path in enumerate(quick):
        shutil.copy(path, made / f"{number}-{path.name}")
    (made / "2-counter.litmus").write_text(counter(6))
    (made / "3-ring.litmus").write_text(ring(8))
    return made


CHECK = ("check", ".", "--json", "--jobs", "2", "--model", "ptx-8.5", "--timeout", "60")


def entries(out: str) -> list[ENTRY]:
    """What a document says of each test."""
    return [
        (r["file"], r.get("observation"), r.get("holds"), r["error"]["kind"] if "error" in r else r["status"])
        for r in json.loads(out)["results"]
    ]


@pytest.fixture(scope="module")
def whole(folder: Path) -> tuple[float, list[ENTRY]]:
    """How long an undisturbed command takes, and what it says."""
    begin = time.monotonic()
    code, out, _ = ended(start(folder, *CHECK))
    assert code == 0
    return time.monotonic() - begin, entries(out)


def told(found: list[ENTRY], expected: list[ENTRY], kinds: set[str]) -> int:
    """How many entries are errors of ``kinds``; all others are as expected. A file that was not read has one entry."""
    lost = [entry for entry in found if entry[3] in kinds]
    assert {entry[0] for entry in found} == {entry[0] for entry in expected}
    assert [e for e in found if e not in lost] == [e for e in expected if e in found], found
    return len(lost)


def shares(runs: int) -> Iterator[float]:
    """Moments, as shares of the time of a run: the first of them are at its very start."""
    rng = random.Random(runs)
    yield from (0.02, 0.06)[: runs // 8]
    yield from (rng.random() for _ in range(runs - min(2, runs // 8)))


both = pytest.mark.parametrize("runs", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
"""A few runs by default, and many that are slow."""


@both
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
@pytest.mark.parametrize("everyone", [False, True], ids=["process", "group"])
def test_a_command_that_is_told_to_end(
    folder: Path, whole: tuple[float, list[ENTRY]], number: signal.Signals, everyone: bool, runs: int
) -> None:
    seconds, expected = whole
    words = {signal.SIGINT: "interrupted\n", signal.SIGTERM: "terminated\n"}[number]
    for share in shares(runs // 2 if runs > FEW else 1):
        child = start(folder, *CHECK)
        time.sleep(max(0.1, share * seconds))
        with suppress(ProcessLookupError):
            (os.killpg if everyone else os.kill)(child.pid, number)
        code, out, err = ended(child)
        if code == 0:
            assert entries(out) == expected
        elif code == 3 and everyone and number == signal.SIGTERM:  # the workers were quicker to end
            told(entries(out), expected, {"killed"})
        else:
            assert code in (128 + number, -number), (code, err)
            assert err in (words, "")
            assert not out or out.startswith('{\n  "schema": "ptxmm/1"')  # what it was printing is cut


@both
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_command_that_is_told_to_end_at_its_start(folder: Path, number: signal.Signals, runs: int) -> None:
    """From Python's first moment on; only what Python itself does before ptxmm runs may end in a traceback."""
    for moment in range(5 * runs):
        child = start(folder, "check", "2-counter.litmus")
        time.sleep(0.3 * moment / (5 * runs))
        child.send_signal(number)
        code, _, err = ended(child)
        if "Traceback" not in err and "Fatal Python error" not in err:
            assert code in (128 + number, -number, 0) or (code == 1 and not err), (code, err)
            assert err in ("interrupted\n", "terminated\n", ""), err


@both
def test_a_worker_that_is_killed(folder: Path, whole: tuple[float, list[ENTRY]], runs: int) -> None:
    seconds, expected = whole
    rng = random.Random(runs)
    for share in shares(runs):
        child = start(folder, *CHECK)
        time.sleep(0.1 if share < 0.1 else share * seconds)
        killed = 0
        for _ in range(100):
            if found := workers(child):
                with suppress(ProcessLookupError):
                    os.kill(rng.choice(found), signal.SIGKILL)
                    killed = 1
                break
            if child.poll() is not None:
                break
            time.sleep(0.01)
        code, out, err = ended(child)
        lost = told(entries(out), expected, {"killed"})
        assert lost <= killed and code == (3 if lost else 0), (code, err)


@both
@pytest.mark.parametrize("everyone", [False, True], ids=["process", "group"])
def test_a_command_that_is_stopped_and_continued(
    folder: Path, whole: tuple[float, list[ENTRY]], everyone: bool, runs: int
) -> None:
    """The time limit is one that a pause would pass."""
    seconds, expected = whole
    signalled = os.killpg if everyone else os.kill
    for share in shares(runs // 2 if runs > FEW else 1):
        child = start(folder, *CHECK[:-1], f"{max(2.0, 1.5 * seconds):.1f}")
        time.sleep(0.05 + share * seconds)
        with suppress(ProcessLookupError):
            signalled(child.pid, signal.SIGSTOP)
            time.sleep(max(4.5, 1.5 * seconds + 2.5) if share < 0.5 else 0.3)
            signalled(child.pid, signal.SIGCONT)
        code, out, err = ended(child)
        assert (code, entries(out)) == (0, expected), err


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
def test_a_command_without_memory(folder: Path, whole: tuple[float, list[ENTRY]], how: str, runs: int) -> None:
    rng = random.Random(f"{how}{runs}")
    _, expected = whole
    for _ in range(runs):
        if how == "--memory":
            child = start(folder, *CHECK, "--memory", str(rng.choice((1, 20, *range(30, 130, 5)))))
        else:
            size = rng.randint(20, 150) << 20
            child = start(folder, *CHECK, preexec_fn=partial(resource.setrlimit, resource.RLIMIT_AS, (size, size)))
        code, out, err = ended(child)
        if not out:
            assert (code == 3 and "memory" in err) or "can't be loaded" in err, err
            continue
        lost = told(entries(out), expected, {"memory"})
        assert code == (3 if lost else 0), (code, err)


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
        code, _, err = ended(start(tmp_path, *command, preexec_fn=full(size)))
        assert code == 2 and "File too large" in err, err
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
        code, _, err = ended(start(disk, "lint", "--fix", "s.cu"))
        assert code == 2 and "No space left on device" in err
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
    begin = time.monotonic()
    assert ended(start(tmp_path, "lint", "--fix", "s.cu"))[0] == 0
    seconds, new = time.monotonic() - begin, path.read_text()
    assert new != old
    for _ in range(runs):
        path.write_text(old)
        path.chmod(0o640)
        child = start(tmp_path, "lint", "--fix", "s.cu")
        time.sleep(rng.uniform(0.1, seconds))
        number = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        with suppress(ProcessLookupError):
            os.kill(child.pid, number)
        ended(child)
        assert path.read_text() in (old, new)
        assert path.stat().st_mode & 0o777 == 0o640
        if number != signal.SIGKILL:
            assert os.listdir(tmp_path) == ["s.cu"]
        for rest in tmp_path.glob(".ptxmm-*"):
            rest.unlink()
