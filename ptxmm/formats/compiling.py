"""What is said of how a CUDA source is compiled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compiling:
    """How nvcc compiles a CUDA source. ``options``: after those of the source; ``seconds``: its time."""

    options: tuple[str, ...] = ()
    seconds: float = 300.0
