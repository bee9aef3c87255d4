"""Many tests in batches, each checked by ``ptxmm check`` in a process of its own: here, or where an executor has it."""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ptxmm import __version__
from ptxmm.analysis.result import Error
from ptxmm.analysis.swept import Swept
from ptxmm.cat import specification, split_specification, texts_of
from ptxmm.cli.files import writing
from ptxmm.errors import PtxmmError
from ptxmm.files import read_bytes

ATTEMPTS = 3
"""So often a batch is tried whose process was killed; then the tests of it that have no result are errors."""
_MOST = 100
_LARGEST = 1 << 32
"""Bytes of a file of results."""
_PACKAGE = Path(__file__).parents[1]
_SOURCES = ("*.py", "*.cat", "*.toml", "*.lark")


class Options(Struct, frozen=True):
    """How tests are checked; all that a verdict follows from but test, model and program."""

    engine: str
    unroll: int
    timeout: float
    isa: str | None
    memory: int | None


class Unit(Struct, frozen=True):
    """A test under a model, by its text; ``file``: where it is from, empty where it was generated."""

    key: str
    file: str
    test: str
    text: str
    model: str


class Batch(Struct, frozen=True):
    """Tests under one model. It goes to other processes and machines, of which ``identity`` must be the same."""

    units: tuple[Unit, ...]
    options: Options
    identity: str


@cache
def program() -> str:
    """The version of the program, and a hash of all that it is made of."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _SOURCES for path in _PACKAGE.rglob(pattern)):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()[:16]}"


@cache
def identity(model: str) -> str:
    """The program and the texts of a model. Raises ``PtxmmError`` as ``load`` does."""
    name, readings = split_specification(model)
    own = "\0".join([specification("", readings), *texts_of(name)])
    return hashlib.sha256(f"{program()}\0{own}".encode()).hexdigest()


def unit(text: str, test: str, file: str, model: str, options: Options) -> Unit:
    """The unit with its key."""
    asked = "\0".join([identity(model), options.engine, str(options.unroll), options.isa or "", text])
    return Unit(hashlib.sha256(asked.encode()).hexdigest(), file, test, text, model)


def checked(batch: Batch, started: Callable[[subprocess.Popen[str]], object] | None = None) -> list[Swept]:
    """The results of a batch, those of tests whose process was killed left out. ``started`` is told of the process.

    Raises ``PtxmmError`` (kind ``killed``) where the whole process was, and ``usage`` where another version is here.
    """
    model, options = batch.units[0].model, batch.options
    if identity(model) != batch.identity:
        message = f"a worker has another version of ptxmm or of {model}"
        raise PtxmmError(message, kind="usage", hint="install the same on all machines, and start the workers anew")
    with tempfile.TemporaryDirectory(prefix="ptxmm-") as folder:
        for number, one in enumerate(batch.units):
            Path(folder, f"{number:04}.litmus").write_text(one.text, encoding="utf-8", newline="\n")
        command = [sys.executable, "-m", "ptxmm", "check", folder, "--json", "--jobs", "1", "--model", model]
        command += ["--engine", options.engine, "--unroll", str(options.unroll), "--timeout", str(options.timeout)]
        command += ["--isa", options.isa] if options.isa else []
        command += ["--memory", str(options.memory)] if options.memory else []
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as process:
            if started is not None:
                started(process)
            try:
                out, err = process.communicate()
            except BaseException:
                process.kill()
                raise
    try:
        found = json.loads(out)["results"]
    except ValueError:
        said = err.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise PtxmmError(f"the process that checked tests ended: {said[0]}", kind="killed") from None
    return [row for row in (_row(batch, item) for item in found) if row.error is None or row.error.kind != "killed"]


def _row(batch: Batch, item: dict[str, Any]) -> Swept:
    one = batch.units[int(Path(item["file"]).stem)]
    whole = Swept(one.key, one.file, one.test, one.model, batch.options.engine)
    if item["analysis"] == "error":
        return replace(whole, error=msgspec.convert(item["error"], Error))
    states = json.dumps(item["outcomes"], sort_keys=True)
    taken = ("engine", "quantifier", "observation", "holds", "status", "expected", "conclusion", "seconds", "flags")
    fields = msgspec.convert(msgspec.to_builtins(whole) | {name: item[name] for name in taken}, Swept)
    return replace(fields, states=len(item["outcomes"]), outcomes=hashlib.sha256(states.encode()).hexdigest()[:16])


# -- executors --


Submit = Callable[[Batch], "Future[list[Swept]]"]
"""What gives a batch away."""


@contextmanager
def local(jobs: int) -> Iterator[tuple[Submit, int]]:
    """What gives a batch to a process of this machine, and to how many at a time."""
    running: list[subprocess.Popen[str]] = []
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield partial(pool.submit, partial(checked, started=running.append)), jobs
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in running:
                with suppress(OSError):
                    process.kill()


@contextmanager
def cluster(address: str) -> Iterator[tuple[Submit, int]]:
    """The same for the workers of a Dask scheduler. Raises ``PtxmmError``: kind ``usage`` without ``distributed``,
    ``io`` where no scheduler or worker answers."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        message = f"--scheduler needs {error.name}, which is not installed"
        raise PtxmmError(message, kind="usage", hint="pip install 'ptxmm[dask]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, ValueError, TimeoutError):
        message = f"--scheduler {address}: no scheduler answers there"
        raise PtxmmError(message, kind="io", hint="its address is like tcp://host:8786") from None
    with client:
        slots = sum(client.nthreads().values())
        if not slots:
            raise PtxmmError(f"--scheduler {address}: it has no workers", kind="io", hint="dask worker ADDRESS")
        yield partial(client.get_executor(pure=False).submit, checked), slots


_CONNECT = "10s"


# -- the sweep --


def swept(
    units: Sequence[Unit],
    options: Options,
    submit: Submit,
    slots: int,
    save: Callable[[list[Swept]], None],
) -> Iterator[Swept]:
    """A result for each of ``units``, as they come; each batch is given to ``save`` first. A batch whose process was
    killed is tried again, at last each test for itself.

    Raises ``PtxmmError`` where workers have another version.
    """
    size = max(1, min(_MOST, len(units) // (2 * slots)))
    waiting: deque[tuple[Batch, int]] = deque()
    for model in dict.fromkeys(one.model for one in units):
        own = [one for one in units if one.model == model]
        for at in range(0, len(own), size):
            waiting.append((Batch(tuple(own[at : at + size]), options, identity(model)), 1))
    running: dict[Future[list[Swept]], tuple[Batch, int]] = {}
    while waiting or running:
        while waiting and len(running) < 2 * slots:
            batch, attempt = waiting.popleft()
            running[submit(batch)] = batch, attempt
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            batch, attempt = running.pop(future)
            rows, why = _rows(future)
            found = {row.key for row in rows}
            rest = [one for one in batch.units if one.key not in found]
            if rest and attempt < ATTEMPTS:
                waiting += [(replace(batch, units=(one,)), attempt + 1) for one in rest]
            elif rest:
                error = Error("killed", why or "the process that did this test was killed")
                rows += [Swept(one.key, one.file, one.test, one.model, options.engine, error=error) for one in rest]
            save(rows)
            yield from rows


def _rows(future: Future[list[Swept]]) -> tuple[list[Swept], str | None]:
    """What came of a batch, and why nothing did."""
    try:
        return list(future.result()), None
    except PtxmmError as error:
        if error.kind != "killed":
            raise
        return [], error.message
    except Exception as error:  # of the executor: the worker is lost
        return [], f"{type(error).__name__}: {error}"


# -- what is known --


class Known:
    """The results in a file of JSON lines, which earlier sweeps have left there and this one adds to."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: dict[str, Swept] = {}
        if path is None or not path.exists():
            return
        whole = read_bytes(path, _LARGEST)
        lines, end = whole.split(b"\n"), whole.rfind(b"\n") + 1
        for number, line in enumerate(lines[:-1], 1):
            try:
                row = msgspec.json.decode(line, type=Swept)
            except msgspec.MsgspecError:
                message = "this is no result of a sweep"
                raise PtxmmError(message, kind="format", file=str(path), line=number) from None
            if row.lasting:
                self.rows[row.key] = row
        if end < len(whole):  # the last sweep was ended while it wrote
            with open(path, "r+b") as stream:
                stream.truncate(end)

    def add(self, rows: Sequence[Swept]) -> None:
        """Write ``rows`` to the file. Raises ``PtxmmError`` (kind ``io``)."""
        if self.path is None or not rows:
            return
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab") as stream:
                stream.write(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
