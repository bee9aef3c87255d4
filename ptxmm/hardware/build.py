"""nvcc: from the CUDA source of tests to a program that runs them, and its machine code. What was built is kept."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from ptxmm.errors import PtxmmError

_ARCH = re.compile(r"sm_\d{2,3}[af]?")


class Built(Struct, frozen=True):
    """A program, and its machine code as nvdisasm writes it (None: there is no nvdisasm)."""

    program: Path
    code: str | None


def build(source: str, arch: str = "sm_90", seconds: float = 600.0) -> Built:
    """The program of a CUDA ``source`` for GPUs of ``arch``; what was built before is taken as it is.

    Raises ``PtxmmError``: kind ``usage`` for what is no architecture, ``io`` where nvcc is not found or the file can't
    be written, ``timeout`` after ``seconds``, ``internal`` where nvcc refuses the source.
    """
    if not _ARCH.fullmatch(arch):
        raise PtxmmError(f"--arch {arch}: no architecture of a GPU", kind="usage", hint="e.g. --arch sm_90")
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        hint = "put nvcc on the PATH, or write the source with `ptxmm emit`, and build and run it elsewhere"
        raise PtxmmError("nvcc was not found", kind="io", hint=hint)
    version = _said([nvcc, "--version"], seconds)[1]
    key = hashlib.sha256("\0".join((source, arch, version)).encode()).hexdigest()[:32]
    folder = cache_folder() / key
    program, machine = folder / "tests", folder / "tests.cubin"
    if not machine.is_file():
        _compile(nvcc, source, arch, folder, seconds)
    return Built(program, _disassembled(machine, seconds))


def cache_folder() -> Path:
    """Where programs are kept: a folder of the user's cache."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root) / "ptxmm" / "hardware"


def _compile(nvcc: str, source: str, arch: str, folder: Path, seconds: float) -> None:
    """Build in a folder beside ``folder`` and rename it, so that no other process finds half a program."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            made = Path(name) / "made"
            made.mkdir()
            (made / "tests.cu").write_text(source, encoding="utf-8")
            options = ["-O3", "-std=c++17", "-lineinfo", f"-arch={arch}"]
            # The machine code that is looked at is the one in the program: both come from one run of ptxas.
            command = [
                nvcc,
                *options,
                "--keep",
                "--keep-dir",
                str(made),
                "-o",
                str(made / "tests"),
                str(made / "tests.cu"),
            ]
            code, said = _said(command, seconds)
            kept = sorted(made.glob(f"*{arch}.cubin")) or sorted(made.glob("*.cubin"))
            if code != 0 or not kept:
                line = next((line for line in said.splitlines() if "error" in line or "fatal" in line), said.strip())
                raise PtxmmError(f"nvcc refuses what was made of the tests: {line}", kind="internal")
            kept[0].rename(made / "tests.cubin")
            for path in made.iterdir():
                if path.name not in ("tests", "tests.cu", "tests.cubin"):
                    path.unlink()
            with suppress(OSError):  # another process was faster
                made.rename(folder)
    except OSError as error:
        message = f"the program can't be built: {error.strerror or type(error).__name__}"
        raise PtxmmError(message, kind="io", file=str(folder)) from error


def _disassembled(machine: Path, seconds: float) -> str | None:
    """The machine code with the lines of the source that it comes from."""
    tool = disassembler()
    if tool is None:
        return None
    code, said = _said([tool, "-g", "-c", str(machine)], seconds)
    return said if code == 0 else None


def disassembler() -> str | None:
    """nvdisasm, on the PATH or of the package ``nvidia-cuda-nvdisasm``."""
    found = shutil.which("nvdisasm")
    if found is not None:
        return found
    with suppress(ImportError, ValueError):
        spec = find_spec("nvidia")
        for root in (spec.submodule_search_locations or ()) if spec is not None else ():
            for path in sorted(Path(root).glob("*/bin/nvdisasm")):
                return str(path)
    return None


def _said(command: list[str], seconds: float) -> tuple[int, str]:
    """The exit code of a program and what it said."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
            encoding="utf-8", errors="replace", start_new_session=sys.platform != "win32",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        name = Path(command[0]).name
        raise PtxmmError(f"{name} took more than {seconds:g} s", kind="timeout", hint="--timeout takes more") from None
    return done.returncode, done.stdout
