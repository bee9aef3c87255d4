"""From the paths of a command line to tests and the models to run them under."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from ptxmm.analysis.claims import HOLDS, assumed_of, claimed
from ptxmm.analysis.expectation import Expectation, expectation_for, expectations
from ptxmm.analysis.result import Error, Failure
from ptxmm.cat import Model, index, left_out_of, load, split_specification
from ptxmm.cli import stdin
from ptxmm.cli.memory import is_shortage
from ptxmm.cli.settings import Settings
from ptxmm.cli.stdin import DASH
from ptxmm.errors import PtxmmError
from ptxmm.files import bundled_folder, read_bytes
from ptxmm.program.test import Test

SUFFIXES = (".litmus", ".test")
SOURCES = (".cu", ".ptx")
"""Files with kernels: in a folder those count that say how they are launched."""


class Job(Struct, frozen=True):
    """One test under one model; ``several``: its file holds more than this test. ``claim``: what is to be decided of
    a kernel, None for its condition."""

    test: Test
    model: str
    expectation: Expectation | None
    several: bool
    claim: str | None = None


def collect(paths: list[Path] | None, bundled: bool) -> list[Path | Failure]:
    """The files to read: each path given (``-`` is standard input), folders searched for tests, in the order given and
    sorted inside folders; no file twice. A path that is not there becomes a ``Failure``. Raises ``PtxmmError`` (kind
    ``usage``) for none."""
    given = [*(paths or ()), *([bundled_folder()] if bundled else ())]
    if not given:
        raise PtxmmError("no file given", kind="usage", hint="give files or folders, or --bundled")
    found: dict[Path, Path | Failure] = {}
    for path in given:
        if path == DASH:
            found[path] = path
        elif path.is_dir():
            inside = _search(path)
            if not inside:
                message = "no litmus test in this folder"
                named = f"tests are files named *{' or *'.join(SUFFIXES)}, and kernels with a launch specification"
                found[path] = _failure(path, "io", message, named)
            found.update((p, p) for p in inside)
        elif not path.exists():
            hint = "the tests that come with ptxmm: --bundled" if path.parts[:1] == ("litmus",) else None
            found[path] = _failure(path, "io", "no such file or folder", hint)
        else:
            found[path] = path
    return list(found.values())


def jobs(entry: Path | Failure, settings: Settings, stated_models: bool) -> Iterator[Job | Failure]:
    """Read one file: its tests, each with every model it is to run under; what is wrong with it as a ``Failure``.

    Where the command line names no model: those of ``Expect=`` if ``stated_models``, else the default of the test.
    """
    tests = entry if isinstance(entry, Failure) else _read(entry, settings)
    if isinstance(tests, Failure):
        yield tests
        return
    known = index().models.keys()
    for test in tests:
        try:
            stated = expectations(test, known)
        except PtxmmError as error:
            yield failure(error, test.file, test.name)
            continue
        readings = dict(settings.readings)
        # Readings of the command line take the place of those that the test speaks of.
        models = {split_specification(m)[0]: None for m in stated} if readings else dict.fromkeys(stated)
        named = settings.models or (tuple(models) if stated_models else ())
        for model in named or (test.default_model,):
            expectation = expectation_for(test, model, stated, readings)
            try:
                model = assumed_of(test, model, readings)
            except PtxmmError as error:
                yield failure(error, test.file, test.name)
                break
            if settings.without:
                model = left_out_of(model, settings.without, strict=False)
            if test.claims is not None and expectation is not None:
                expectation = HOLDS
            wanted = claimed(test) if stated_models else (None,)
            several = len(tests) > 1 or len(wanted) > 1
            for claim in wanted:
                yield Job(test, model, expectation, several, claim)


def _read(file: Path, settings: Settings) -> list[Test] | Failure:
    """The tests in a file, or what is wrong with it."""
    name = stdin.name_of(file)
    try:
        return stdin.tests(file, settings)
    except PtxmmError as error:
        return failure(error, name)
    except OSError as error:
        return _failure(Path(name), "io", error.strerror or type(error).__name__, None)
    except RecursionError:
        return _failure(Path(name), "syntax", "the file is nested too deeply", None)
    except Exception as error:
        if is_shortage(error):
            raise
        return failure(bug(error), name)


@lru_cache(maxsize=64)
def model_named(name: str, readings: tuple[tuple[str, str], ...]) -> Model:
    """The model of this name or path with these readings, loaded once a process."""
    return load(name, dict(readings))


def failure(error: PtxmmError, file: str, test: str | None = None, model: str | None = None) -> Failure:
    """``error`` as an entry of the results."""
    error.file = error.file or file
    found = [Error(e.kind, e.message, e.line, e.column, e.hint) for e in (error, *error.more)]
    for other in error.more:
        other.file = other.file or file
    text = "\n".join(map(str, (error, *error.more)))
    return Failure(file, test, model, found[0], tuple(found) if error.more else (), text)


def bug(error: BaseException) -> PtxmmError:
    """An exception that should not have happened, as an error of kind ``internal``."""
    return PtxmmError(
        f"internal error: {type(error).__name__}: {error}",
        kind="internal",
        hint="this is a bug in ptxmm; please report it with the test",
    )


def _failure(path: Path, kind: str, message: str, hint: str | None) -> Failure:
    return failure(PtxmmError(message, kind=kind, hint=hint), str(path))


def _search(folder: Path) -> list[Path]:
    found: list[Path] = []
    for root, _, names in os.walk(folder):
        found += [Path(root, name) for name in names if name.endswith(SUFFIXES)]
        found += [p for p in (Path(root, name) for name in names if name.endswith(SOURCES)) if _launched(p)]
    return sorted(found)


def _launched(path: Path) -> bool:
    """Whether a source says how its kernel is launched; a module beside its source does not count."""
    from ptxmm.formats.modules.launch import has_comments

    if path.suffix == ".ptx" and path.with_suffix(".cu").exists():
        return False
    try:
        return path.with_suffix(".toml").is_file() or has_comments(read_bytes(path).decode("utf-8", "replace"))
    except PtxmmError:
        return True  # the error is told where it is read
