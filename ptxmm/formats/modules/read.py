"""``.ptx`` modules and ``.cu`` sources with what is said of their launches, as tests."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from ptxmm.errors import PtxmmError, Span
from ptxmm.formats.modules.launch import Launch, has_comments, parse_launches, with_threads
from ptxmm.formats.modules.module import launched
from ptxmm.formats.text import decode
from ptxmm.program.test import Test
from ptxmm.ptx.module import Place, parse_module

DEFAULT_ARCH = "sm_90"
_FLAGS = re.compile(r"^[ \t]*//[ \t]*nvcc:[ \t]*(.*)$", re.MULTILINE)
_SECONDS = 300
_ERROR = re.compile(r"^(?P<file>[^\s():]+)\((?P<line>\d+)\): (?:fatal )?error:? ?(?P<text>.*)$", re.MULTILINE)


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
        return [launched(module, item, file=file, text=text, locate=_here, isa=isa) for item in launches]
    except PtxmmError as error:
        raise error.place(file, text) from None


def _here(place: Place | None) -> tuple[Span | None, tuple[int, ...]]:
    """Results of a module name places in the module."""
    return None, ()


def parse_cuda(
    text: str, file: str, isa: tuple[int, int] | None = None, launch: str | None = None, threads: str | None = None
) -> list[Test]:
    """The tests of a CUDA source, one for each launch; its places are those of the source.

    It is compiled with nvcc (``-arch=sm_90 -lineinfo``, and what a comment ``// nvcc: FLAGS`` says); without nvcc,
    ``NAME.ptx`` beside it is taken for what nvcc would print. Raises ``PtxmmError``.
    """
    launches = _launches(text, file, launch, threads)
    compiled, ptx_file, remarks = _compiled(text, file)
    lines = text.replace("\r\n", "\n").split("\n")

    def locate(place: Place | None) -> tuple[Span | None, tuple[int, ...]]:
        inside: list[Place] = []
        while place is not None:
            if Path(place.file).name == Path(file).name and 0 < place.line <= len(lines):
                inside.append(place)
            place = place.inlined
        if not inside:
            return None, ()
        first, *calls = inside
        row = lines[first.line - 1]
        start = len(row) - len(row.lstrip()) + 1
        column = max(start, min(first.column, len(row)))
        return Span(first.line, column, max(column + 1, len(row.rstrip()) + 1)), tuple(call.line for call in calls)

    try:
        module = parse_module(compiled, ptx_file)
        found = [launched(module, item, file=file, text=text, locate=locate, isa=isa) for item in launches]
    except PtxmmError as error:
        raise _in_source(error, file, text, compiled, ptx_file) from None
    return [_with_remarks(test, remarks) for test in found]


def _with_remarks(test: Test, remarks: tuple[str, ...]) -> Test:
    from dataclasses import replace

    assert test.claims is not None
    return replace(test, claims=replace(test.claims, remarks=(*remarks, *test.claims.remarks)))


def _in_source(error: PtxmmError, file: str, text: str, compiled: str, ptx_file: str) -> PtxmmError:
    """An error of the PTX names the PTX; one that was given its place in the source is left as it is."""
    if error.file is None:
        error.place(ptx_file, compiled)
    return error.place(file, text)


def _launches(text: str, file: str, launch: str | None, threads: str | None) -> tuple[Launch, ...]:
    found = _specified(text, file, launch)
    return found if threads is None else tuple(with_threads(item, threads) for item in found)


def _specified(text: str, file: str, launch: str | None) -> tuple[Launch, ...]:
    path = Path(file)
    if launch is not None:
        return parse_launches(_read(Path(launch)), launch)
    if has_comments(text):
        return parse_launches(text, file)
    sidecar = path.with_suffix(".toml")
    if sidecar.is_file():
        return parse_launches(_read(sidecar), str(sidecar))
    source = path.with_suffix(".cu")
    if path.suffix == ".ptx" and source.is_file():
        other = _read(source)
        if has_comments(other):
            return parse_launches(other, str(source))
    hint = f"say how its kernel is launched: --launch FILE, {sidecar.name}, or comments `// ptxmm: grid = 2`"
    raise PtxmmError("nothing is said of a launch", kind="format", file=file, hint=hint)


def _read(path: Path) -> str:
    try:
        return decode(path.read_bytes(), str(path))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise PtxmmError(f"the file can't be read: {reason}", kind="io", file=str(path)) from None


def _compiled(text: str, file: str) -> tuple[str, str, tuple[str, ...]]:
    """The PTX of a source, the file to name for it, and what to say about where it is from."""
    path = Path(file)
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        printed = path.with_suffix(".ptx")
        if printed.is_file():
            return _read(printed), str(printed), (f"nvcc was not found: {printed.name} was checked",)
        hint = f"put nvcc on the PATH, or compile it elsewhere: nvcc -ptx -lineinfo -arch={DEFAULT_ARCH} {path.name}"
        raise PtxmmError("nvcc was not found, and CUDA needs it", kind="io", file=file, hint=hint)
    flags = [word for match in _FLAGS.finditer(text) for word in _words(match, text, file)]
    if not any(word.startswith(("-arch", "--gpu-architecture", "-gencode")) for word in flags):
        flags.insert(0, f"-arch={DEFAULT_ARCH}")
    with tempfile.TemporaryDirectory(prefix="ptxmm-") as folder:
        made = Path(folder) / path.with_suffix(".ptx").name
        command = [nvcc, "-ptx", "-lineinfo", *flags, "-o", str(made), path.name]
        try:
            done = subprocess.run(
                command, cwd=path.parent, capture_output=True, encoding="utf-8", errors="replace", timeout=_SECONDS,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise PtxmmError(f"nvcc took more than {_SECONDS} s", kind="timeout", file=file) from None
        except OSError as error:
            raise PtxmmError(f"nvcc can't be run: {error.strerror}", kind="io", file=file) from None
        if done.returncode != 0 or not made.is_file():
            raise _refused(done.stderr or done.stdout, file, text)
        return decode(made.read_bytes(), str(path.with_suffix(".ptx"))), str(path.with_suffix(".ptx")), ()


def _words(match: re.Match[str], text: str, file: str) -> list[str]:
    """The flags in a comment for nvcc, as a shell reads them."""
    try:
        return shlex.split(match[1])
    except ValueError as error:
        line = text.count("\n", 0, match.start(1)) + 1
        message = f"these flags of nvcc can't be read: {str(error).lower()}"
        raise PtxmmError(message, kind="format", line=line, column=1).place(file, text) from None


def _refused(output: str, file: str, text: str) -> PtxmmError:
    """The first error of nvcc."""
    match = _ERROR.search(output)
    if match is None:
        lines = [line for line in output.splitlines() if line.strip()]
        return PtxmmError(f"nvcc failed: {lines[0] if lines else 'no message'}", kind="syntax", file=file)
    if Path(match["file"]).name != Path(file).name:
        where = f"{match['file']}:{match['line']}"
        return PtxmmError(f"nvcc: {match['text']} ({where})", kind="syntax", file=file)
    error = PtxmmError(f"nvcc: {match['text']}", kind="syntax", file=file, line=int(match["line"]))
    return error.place(file, text)
