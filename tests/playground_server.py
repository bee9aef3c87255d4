"""A real server of the playground, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support import ROOT


@contextmanager
def server(*options: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Its port and its process. It has to end when it is told to, and say nothing but where it was."""
    command = [sys.executable, "-m", "ptxmm", "serve", "--port", "0", *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found, (line, process.stderr.read() if process.stderr and process.poll() is not None else "")
        yield int(found[1]), process
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (143, "", "terminated\n")
    finally:
        process.kill()
        process.wait()
