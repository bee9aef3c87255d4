"""What is said of how a CUDA source is compiled."""

from __future__ import annotations

from msgspec import Struct


class Compiling(Struct, frozen=True):
    """How nvcc compiles a CUDA source. ``options``: after those of the source; ``seconds``: its time; ``printed``: what
    it has printed for sources with these options, by their files and texts, so that none is compiled twice."""

    options: tuple[str, ...] = ()
    seconds: float = 300.0
    printed: dict[tuple[str, str], str] = {}
