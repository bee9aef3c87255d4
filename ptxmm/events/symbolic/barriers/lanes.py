"""Lanes of a warp: which one a shuffle takes its value from (PTX ISA 9.7.10.6)."""

from __future__ import annotations

LANES = 32
_FIVE = LANES - 1


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The lane that ``lane`` takes its value from, and whether it is in range; if not, that is its own.

    ``mode``: up down bfly idx; ``b``: a lane or how far it is off; ``c``: a clamp value and the mask of a segment.
    """
    offset, clamp, segment = b & _FIVE, c & _FIVE, c >> 8 & _FIVE
    low = lane & segment
    last = low | clamp & ~segment & _FIVE
    match mode:
        case "up":
            source = lane - offset
            inside = source >= last
        case "down":
            source = lane + offset
            inside = source <= last
        case "bfly":
            source = lane ^ offset
            inside = source <= last
        case _:
            source = low | offset & ~segment & _FIVE
            inside = source <= last
    return (source, True) if inside else (lane, False)
