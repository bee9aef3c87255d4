"""NVIDIA's assembler as a judge of single instructions: which of them it refuses, and with which message."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from tests.ptxas_syntax import TAIL, Target, head

PACKAGES = ("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu13", "nvidia-cuda-nvcc-cu12")
CHUNK = 400
CRASH = "the assembler crashed"
_MESSAGE = re.compile(r"^ptxas \S+, line (\d+); (error|fatal)\s*: (.*)$", re.MULTILINE)


@cache
def assembler() -> str | None:
    """The path of ptxas: from PATH, or of an installed package."""
    found = shutil.which("ptxas")
    if found is not None:
        return found
    for package in PACKAGES:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name in ("ptxas", "ptxas.exe"):
                return str(file.locate())
    return None


@cache
def release() -> str:
    """The release of the assembler, such as ``13.0``."""
    path = assembler()
    assert path is not None
    text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    found = re.search(r"release (\d+\.\d+)", text)
    assert found is not None, text
    return found[1]


_INTERNAL = ("Unknown symbol '__cuda_", "Type of argument does not match formal parameter", "Parsing error near ','")
"""Messages about the function that an illegal wmma would call; the place is not right."""


def assemble(lines: Sequence[str], target: Target, folder: Path) -> dict[str, str]:
    """The refused ones of ``lines`` (instructions), each with the first message of ptxas.

    A syntax error ends the run of the assembler, so what follows it is assembled again; at the end all that was
    accepted is assembled as one program, as some errors come after parsing only.
    """
    chunks = [lines[i : i + CHUNK] for i in range(0, len(lines), CHUNK)]
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda i: _assemble_chunk(chunks[i], target, folder / f"{i}.ptx"), range(len(chunks))))
    return {text: message for part in parts for text, message in part.items()}


def _assemble_chunk(lines: Sequence[str], target: Target, file: Path) -> dict[str, str]:
    refused: dict[str, str] = {}
    rest = list(lines)
    while rest:
        found, stopped = _run(rest, target, file)
        if stopped is not None and len(found) == 1 < len(rest) and not _run([rest[stopped]], target, file)[0]:
            # The error is of a later phase, which expands some instructions, and the place is not the right one.
            return refused | _in_halves(rest, target, file)
        refused |= found
        rest = [] if stopped is None else rest[stopped + 1 :]
    accepted = [line for line in lines if line not in refused]
    while accepted:
        found, stopped = _run(accepted, target, file)
        if stopped is not None and len(accepted) > 1:
            return refused | _in_halves(accepted, target, file)
        refused |= found
        accepted = [line for line in accepted if line not in found] if found else []
    return refused


def _run(lines: Sequence[str], target: Target, file: Path) -> tuple[dict[str, str], int | None]:
    """The refused lines with their first message, and the index of the line that ended the run, if one did."""
    start = head(target)
    file.write_text(start + "\n".join(lines) + "\n" + TAIL, encoding="utf-8")
    path = assembler()
    assert path is not None
    # A virtual architecture: the text is judged, and no code is made of it, which would make sense of nothing here.
    arch = target.name.replace("sm_", "compute_")
    command = [path, "-w", "-c", f"-arch={arch}", str(file), "-o", str(file.with_suffix(".o"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    output = done.stdout + done.stderr
    first = start.count("\n") + 1
    messages = [(int(number) - first, severity, message) for number, severity, message in _MESSAGE.findall(output)]
    assert messages or done.returncode <= 0, f"ptxas failed without a place: {output[:2000]} ({file})"
    elsewhere = any(not 0 <= index < len(lines) or message.startswith(_INTERNAL) for index, _, message in messages)
    if done.returncode < 0 or elsewhere:
        # It crashes on some illegal instructions, or gives a wrong place in what it has made of them.
        if len(lines) == 1:
            return {lines[0]: messages[0][2] if messages else CRASH}, None
        return _in_halves(lines, target, file), None
    refused: dict[str, str] = {}
    stopped: int | None = None
    for index, severity, message in messages:
        refused.setdefault(lines[index], message)
        if severity == "fatal":
            stopped = index
    return refused, stopped


def _in_halves(lines: Sequence[str], target: Target, file: Path) -> dict[str, str]:
    """As ``assemble`` where the assembler does not say which of ``lines`` it is that it stops at."""
    middle = len(lines) // 2
    return _assemble_chunk(lines[:middle], target, file) | _assemble_chunk(lines[middle:], target, file)
