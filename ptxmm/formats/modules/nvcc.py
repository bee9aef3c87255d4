"""nvcc: from a CUDA source to PTX, without running anything that the source names."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

from ptxmm.errors import PtxmmError
from ptxmm.files import read_bytes
from ptxmm.formats.compiling import Compiling
from ptxmm.formats.text import decode

DEFAULT_ARCH = "sm_90"
_FLAGS = re.compile(r"^[ \t]*//[ \t]*nvcc:[ \t]*(.*)$", re.MULTILINE)
_ERROR = re.compile(r"^(?P<file>[^\s():]+)\((?P<line>\d+)\): (?:fatal )?error:? ?(?P<text>.*)$", re.MULTILINE)
_PLAIN = r"[\w.,=+/:@% -]*"
"""What values of options and names of files consist of: nvcc hands them to a shell, which would run ``$(...)``."""
_ALLOWED = re.compile(
    rf"(-arch|-code|-gencode|-std|--gpu-architecture|--gpu-code|--generate-code|--std)=[\w.,=+-]+"
    rf"|-[IDU]{_PLAIN}|--(include-path|define-macro|undefine-macro)={_PLAIN}"
    r"|--?(expt-relaxed-constexpr|expt-extended-lambda|extended-lambda|use_fast_math|extra-device-vectorization)"
    r"|--?(ftz|prec-div|prec-sqrt|fmad|rdc|relocatable-device-code)=(true|false)|-maxrregcount=[0-9]+"
    r"|-O[0-3]|--optimize=[0-3]|-G|--device-debug|-g|--debug|-lineinfo|--generate-line-info|-w|--disable-warnings"
)
"""Options that say what the source means and how it is optimized: those that a source may ask for. Others could run
programs, or read and write any file."""
_SEPARATE = {
    **dict.fromkeys(("-arch", "-code", "-gencode", "-std", "--std", "--gpu-architecture", "--generate-code"), "="),
    **dict.fromkeys(("-I", "-D", "-U", "-O"), ""),
}
"""Options whose value may be a word of its own, and what joins the two."""


def compiled(text: str, file: str, compiling: Compiling) -> tuple[str, str, tuple[str, ...]]:
    """The PTX of a source, the file to name for it, and what to say about where it is from. Raises ``PtxmmError``."""
    path = Path(file)
    printed = path.with_suffix(".ptx")
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        if printed.is_file():
            remark = f"nvcc was not found: {printed.name} was checked"
            return decode(read_bytes(printed), str(printed)), str(printed), (remark,)
        hint = f"put nvcc on the PATH, or compile it elsewhere: nvcc -ptx -lineinfo -arch={DEFAULT_ARCH} {path.name}"
        raise PtxmmError("nvcc was not found, and CUDA needs it", kind="io", file=file, hint=hint)
    if not re.fullmatch(_PLAIN, path.name):
        message = "nvcc would take a part of this name for a command: give the file another"
        raise PtxmmError(message, kind="usage", file=file, hint="letters, digits and . _ - + are fine")
    if (file, text) in compiling.printed:
        return compiling.printed[file, text], str(printed), ()
    options = [word for match in _FLAGS.finditer(text) for word in _words(match, text, file)]
    options += compiling.options
    if not any(word.startswith(("-arch", "--gpu-architecture", "-gencode", "--generate-code")) for word in options):
        options.insert(0, f"-arch={DEFAULT_ARCH}")
    with tempfile.TemporaryDirectory(prefix="ptxmm-") as folder:
        made = Path(folder) / "made.ptx"
        command = [nvcc, "-ptx", "-lineinfo", *options, "-o", str(made), f"./{path.name}"]
        code, said = _run(command, path.parent, compiling.seconds, file)
        if code != 0 or not made.is_file():
            raise _refused(said, file, text)
        compiling.printed[file, text] = decode(read_bytes(made), str(printed))
        return compiling.printed[file, text], str(printed), ()


def _run(command: list[str], folder: Path, seconds: float, file: str) -> tuple[int, str]:
    """The exit code of a compiler and what it said; all of its processes end with it."""
    posix = sys.platform != "win32"
    try:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8", errors="replace", start_new_session=posix,
            preexec_fn=partial(_bound, seconds) if posix else None,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PtxmmError(f"nvcc can't be run: {reason}", kind="io", file=file) from None
    with process:
        try:
            said, complaint = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise PtxmmError(f"nvcc took more than {seconds:g} s", kind="timeout", file=file) from None
        finally:
            with suppress(OSError):
                if posix:
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
    return process.returncode, complaint or said


def _bound(seconds: float) -> None:
    """End a process after ``seconds`` of work, should nobody be left to do so."""
    import resource

    most = int(min(seconds, 10**6)) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def _words(match: re.Match[str], text: str, file: str) -> list[str]:
    """The options in a comment for nvcc, as a shell reads them. Raises ``PtxmmError`` for one that is not allowed."""
    line = text.count("\n", 0, match.start(1)) + 1
    column = match.start(1) - text.rfind("\n", 0, match.start(1))
    try:
        words = shlex.split(match[1])
    except ValueError as error:
        message = f"these options of nvcc can't be read: {str(error).lower()}"
        raise PtxmmError(message, kind="format", line=line, column=column).place(file, text) from None
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _SEPARATE:
            word += _SEPARATE[word] + next(rest, "")
        if not _ALLOWED.fullmatch(word):
            message = f"a source may not ask nvcc for `{word}`"
            hint = f"if you trust it: --nvcc-option={shlex.quote(word)}"
            width = max(1, len(match[1].rstrip()))
            raise PtxmmError(
                message, kind="usage", line=line, column=column, width=width, hint=hint
            ).place(file, text)  # fmt: skip
        found.append(word)
    return found


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
