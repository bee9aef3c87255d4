"""Command lines in this process: what they leave, and what of it changes from run to run."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct


class Ran(Struct, frozen=True):
    """What one run of the program left."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


def steady(text: str) -> str:
    """``text`` without what changes from run to run."""
    text = re.sub(r"^Time (.* )?[0-9.]+$", r"Time \1T", text, flags=re.MULTILINE)
    text = re.sub(r"in [0-9.]+ s:", "in T s:", text)
    text = re.sub(r"^Found after .*\n", "", text, flags=re.MULTILINE)  # in the order in which they are found
    text = re.sub(r": [0-9]+ a second", ": N a second", text)
    text = re.sub(r"compared in [0-9.]+ s", "compared in T s", text)
    return re.sub(r'"seconds": [0-9.e-]+', '"seconds": 0', text)
