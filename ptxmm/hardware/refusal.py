"""What is not run on a GPU, said at its place in the test."""

from __future__ import annotations

import re

from ptxmm.errors import PtxmmError
from ptxmm.program.test import Test


def refused(test: Test, name: str, message: str) -> PtxmmError:
    """The error (kind ``unsupported``) at the first place where ``test`` has the ``name`` of a thread or a variable."""
    error = PtxmmError(message, kind="unsupported", file=test.file)
    for number, line in enumerate(test.text.split("\n"), 1):
        found = re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", line)
        if found is not None and number > 1 and "=" not in line[: found.start()] and '"' not in line[: found.start()]:
            error.line, error.column, error.width = number, found.start() + 1, len(name)
            break
    return error
