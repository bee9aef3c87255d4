"""What is said of how a CUDA source is compiled."""

from __future__ import annotations

from msgspec import Struct


class Compiling(Struct, frozen=True):
    """How nvcc compiles a CUDA source. ``options``: after those of the source; ``seconds``: its time."""

    options: tuple[str, ...] = ()
    seconds: float = 300.0
