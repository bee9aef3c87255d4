"""``.ptx`` modules and ``.cu`` sources with what is said of their launches, as tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ptxmm.errors import PtxmmError, Span
from ptxmm.files import read_bytes
from ptxmm.formats.compiling import Compiling
from ptxmm.formats.modules.allowances import allowances
from ptxmm.formats.modules.kernel import Kernel, Reading
from ptxmm.formats.modules.launch import Launch, has_comments, parse_launches, with_threads
from ptxmm.formats.modules.module import launched
from ptxmm.formats.modules.nvcc import compiled
from ptxmm.formats.modules.prepare import prepared
from ptxmm.formats.text import decode
from ptxmm.program.test import Test
from ptxmm.ptx.module import parse_module
from ptxmm.ptx.module_syntax import Module, Place

T = TypeVar("T")


def parse_ptx(
    text: str, file: str, isa: tuple[int, int] | None = None, launch: str | None = None, threads: str | None = None
) -> list[Test]:
    """The tests of a ``.ptx`` module, one for each launch.

    ``launch``: a file with the launch specification; None: that in the comments of the module, ``NAME.toml`` or the
    comments of ``NAME.cu`` beside it. ``threads``: a selection of threads in place of that of the launch.

    Raises ``PtxmmError``.
    """
    launches = _launches(text, file, launch, threads)
    try:
        module = parse_module(text, file)
        allowed = allowances(text, file)
        how = Reading(_here, isa)
        return [launched(module, item, file=file, text=text, how=how, allowed=allowed) for item in launches]
    except PtxmmError as error:
        raise error.place(file, text) from None


def kernels(
    path: Path,
    isa: tuple[int, int] | None = None,
    launch: str | None = None,
    compiling: Compiling | None = None,
) -> list[tuple[Kernel, ...]]:
    """For each launch of a ``.ptx`` module or ``.cu`` source its kernels, one for each grid in the order of the
    launch (``Kernel.grid``), of which no threads are chosen.

    The arguments are those of ``parse_ptx`` and ``parse_cuda``. Raises ``PtxmmError``.
    """
    file, text = str(path), _read(path)
    launches, allowed = _specified(text, file, launch, whole=True), allowances(text, file)
    if path.suffix == ".ptx":
        try:
            module = parse_module(text, file)
            how = Reading(_here, isa)
            return [prepared(module, item, how, trapping=True, allowed=allowed) for item in launches]
        except PtxmmError as error:
            raise error.place(file, text) from None
    source = _Source(text, file, compiling)
    how = Reading(source.locate, isa, source.start)
    return source.made(
        lambda module: [prepared(module, item, how, trapping=True, allowed=allowed) for item in launches]
    )


def sizes(path: Path, launch: str | None = None) -> list[int]:
    """How many threads each launch of a file has, 0 where some are chosen. ``launch`` as of ``kernels``. Raises
    ``PtxmmError``."""
    grids = [item.grids for item in _specified(_read(path), str(path), launch, whole=True)]
    return [0 if any(grid.threads for grid in item) else sum(grid.ctas * grid.size for grid in item) for item in grids]


def _here(place: Place | None) -> tuple[Span | None, str]:
    """Results of a module name places in the module."""
    return None, ""


def parse_cuda(
    text: str,
    file: str,
    isa: tuple[int, int] | None = None,
    launch: str | None = None,
    threads: str | None = None,
    compiling: Compiling | None = None,
) -> list[Test]:
    """The tests of a CUDA source, one for each launch; its places are those of the source.

    It is compiled with nvcc (``-arch=sm_90 -lineinfo``, and what a comment ``// nvcc: OPTIONS`` and ``compiling`` say);
    without nvcc, ``NAME.ptx`` beside it is taken for what nvcc would print. Raises ``PtxmmError``.
    """
    launches = _launches(text, file, launch, threads)
    allowed = allowances(text, file)
    source = _Source(text, file, compiling)
    how = Reading(source.locate, isa, source.start)
    found = source.made(
        lambda module: [launched(module, item, file=file, text=text, how=how, allowed=allowed) for item in launches]
    )
    return [_with_remarks(test, source.remarks) for test in found]


class _Source:
    """A CUDA source and what the compiler prints for it. ``start``: the place of all without line information."""

    def __init__(self, text: str, file: str, compiling: Compiling | None) -> None:
        self.text, self.file = text, file
        self.printed, self.ptx_file, self.remarks = compiled(text, file, compiling or Compiling())
        self._lines = text.replace("\r\n", "\n").split("\n")
        kernel = next((number for number, row in enumerate(self._lines, 1) if "__global__" in row), 1)
        self.start = Span(kernel, 1, max(2, len(self._lines[kernel - 1]) + 1))

    def made(self, make: Callable[[Module], list[T]]) -> list[T]:
        """What ``make`` makes of the module. Raises ``PtxmmError`` with places in the source where they are known."""
        try:
            return make(parse_module(self.printed, self.ptx_file))
        except PtxmmError as error:
            raise _in_source(error, self.file, self.text, self.printed, self.ptx_file) from None

    def locate(self, place: Place | None) -> tuple[Span | None, str]:
        """See ``lower.Locate``."""
        every: list[Place] = []
        while place is not None:
            every.append(place)
            place = place.inlined
        inside = [each for each in every if self._mine(each)]
        if not inside:  # a kernel of another file, which this one includes
            there = [each for each in every if each.file == every[-1].file and each.line > 0]
            return None, f" (in {Path(there[0].file).name}:{there[0].line}{_calls(there[1:], ', ')})" if there else ""
        first, *calls = inside
        row = self._lines[first.line - 1]
        start = len(row) - len(row.lstrip()) + 1
        column = max(start, min(first.column, len(row)))
        said = f" ({_calls(calls)})" if calls else ""
        return Span(first.line, column, max(column + 1, len(row.rstrip()) + 1)), said

    def _mine(self, place: Place) -> bool:
        """Whether a place is one of this source."""
        return Path(place.file).name == Path(self.file).name and 0 < place.line <= len(self._lines)


def _calls(calls: Sequence[Place], before: str = "") -> str:
    """Where what was inlined is called."""
    return f"{before}called on line {', '.join(str(call.line) for call in calls)}" if calls else ""


def _with_remarks(test: Test, remarks: tuple[str, ...]) -> Test:
    from msgspec.structs import replace

    assert test.claims is not None
    return replace(test, claims=replace(test.claims, remarks=(*remarks, *test.claims.remarks)))


def _in_source(error: PtxmmError, file: str, text: str, printed: str, ptx_file: str) -> PtxmmError:
    """An error of the PTX names the PTX; one that was given its place in the source is left as it is."""
    if error.file is None:
        error.place(ptx_file, printed)
    return error.place(file, text)


def _launches(text: str, file: str, launch: str | None, threads: str | None) -> tuple[Launch, ...]:
    found = _specified(text, file, launch)
    return found if threads is None else tuple(with_threads(item, threads) for item in found)


def _specified(text: str, file: str, launch: str | None, whole: bool = False) -> tuple[Launch, ...]:
    path = Path(file)
    if launch is not None:
        return parse_launches(_read(Path(launch)), launch, whole)
    if has_comments(text):
        return parse_launches(text, file, whole)
    sidecar = path.with_suffix(".toml")
    if sidecar.is_file():
        return parse_launches(_read(sidecar), str(sidecar), whole)
    source = path.with_suffix(".cu")
    if path.suffix == ".ptx" and source.is_file():
        other = _read(source)
        if has_comments(other):
            return parse_launches(other, str(source), whole)
    beside = "" if file.startswith("<") else f" {sidecar.name},"
    hint = f"say how its kernel is launched: --launch FILE,{beside} or comments `// ptxmm: grid = 2`"
    raise PtxmmError("nothing is said of a launch", kind="format", file=file, hint=hint)


def _read(path: Path) -> str:
    return decode(read_bytes(path), str(path))
