"""Runs the program of the tests, on this machine or through a command, and reads what it says."""

from __future__ import annotations

import base64
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.hardware.measured import Gpu, Measured, read

STARTING = 120.0
"""Seconds that a machine may take to start the program, and ``EACH`` those that a test may take beyond its own."""
EACH = 12.0


class Campaign(Struct, frozen=True):
    """How tests run: ``seconds`` each, with what is drawn from ``seed``; ``via``: a command that runs ``sh`` elsewhere,
    such as ``ssh host``, or None."""

    seconds: float = 1.0
    seed: int = 1
    via: str | None = None


def launch(program: Path, tests: Sequence[str], campaign: Campaign) -> tuple[Gpu | None, list[Measured]]:
    """What ``program`` says of ``tests``, the identities of those to run, in its order.

    A test that ends the program, as one that the GPU stops does, costs no other: the program is started again for those
    after it. Raises ``PtxmmError``: kind ``usage`` for a command that can't be read, ``io`` where the program does not
    run, ``timeout`` where it does not end.
    """
    gpu: Gpu | None = None
    found: list[Measured] = []
    left = list(tests)
    while left:
        code, said = _run(program, left, campaign)
        first, rows = read(said.splitlines(), "the program of the tests")
        gpu = gpu or first
        found += rows
        done = {row.test for row in rows}
        rest = [name for name in left if name not in done]
        if code == 0 and rest:
            raise PtxmmError(f"the program of the tests left {len(rest)} of them out", kind="internal")
        if len(rest) == len(left):
            last = next((line for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
            last = next((row.error for row in rows if row.error is not None), last)
            hint = "a GPU of the architecture that --arch names is needed, here or --via a command"
            raise PtxmmError(f"the program of the tests does not run (exit code {code}): {last}", kind="io", hint=hint)
        left = rest
    return gpu, found


def _run(program: Path, tests: Sequence[str], campaign: Campaign) -> tuple[int, str]:
    options = ["--seconds", f"{campaign.seconds:g}", "--seed", str(campaign.seed)]
    options += [word for name in tests for word in ("--only", name)]
    limit = STARTING + len(tests) * (campaign.seconds + EACH)
    if campaign.via is None:
        return _said([str(program), *options], None, limit)
    try:
        command = shlex.split(campaign.via)
    except ValueError as error:
        raise PtxmmError(f"--via: {str(error).lower()}", kind="usage") from None
    if not command:
        raise PtxmmError("--via: no command", kind="usage", hint="e.g. --via 'ssh host'")
    return _said([*command, "sh"], script(program.read_bytes(), options), limit)


def script(program: bytes, options: Sequence[str]) -> bytes:
    """A shell script that holds ``program`` and runs it with ``options``; the folder that it needs goes with it."""
    text = base64.encodebytes(program).decode()
    lines = [
        "folder=$(mktemp -d) && trap 'rm -rf \"$folder\"' EXIT || exit 1",
        "base64 -d > \"$folder/tests\" <<'END_OF_PROGRAM' || exit 1",
        f"{text}END_OF_PROGRAM",
        'chmod +x "$folder/tests" || exit 1',
        f'"$folder/tests" {shlex.join(options)} </dev/null',
    ]
    return ("\n".join(lines) + "\n").encode()


def _said(command: list[str], given: bytes | None, limit: float) -> tuple[int, str]:
    """The exit code of a command, and what it said."""
    try:
        done = subprocess.run(
            command, input=given or b"", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        message = f"the program of the tests took more than {limit:.0f} s"
        raise PtxmmError(message, kind="timeout", hint="run fewer tests, or --seconds less") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PtxmmError(f"{command[0]} can't be run: {reason}", kind="io") from None
    return done.returncode, done.stdout.decode("utf-8", "replace")
