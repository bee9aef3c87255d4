"""Where the variables of a launch lie, which the language leaves open (PTX ISA 5.1, 5.4): in one of several layouts.

Layouts come in pairs. In the second one of a pair each variable begins where all bits of its address are turned that
nothing aligns, so that a test of one of them goes both ways. In the first pair all variables begin at multiples of a
large number, in the others the low bits of where one begins are those of its number, so that differences of two
addresses have other low bits as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

PAIRS = 3
"""How many pairs of layouts there are."""


class Room(Struct, frozen=True):
    """Where variables of a state space may begin: their addresses have so many ``bits``, are at least ``first``, and
    multiples of ``step``, in the first layout of ``far``; ``gap``: so many bytes at least are between two of them."""

    bits: int
    first: int
    step: int
    far: int
    gap: int


ROOMS = {
    "global": Room(47, 1 << 45, 256, 1 << 24, 4096),
    "shared": Room(18, 1024, 1024, 1024, 1024),  # patterns of swizzled matrices begin so, and descriptors have 18 bits
    "local": Room(24, 1024, 256, 256, 4096),
    "const": Room(32, 4096, 256, 256, 4096),
    "param": Room(32, 4096, 256, 256, 4096),
}


def starts(space: str, sizes: Sequence[tuple[int, int]], layout: int) -> list[int]:
    """The addresses of variables of so many bytes, each with its alignment, that are in a state space. If there is no
    room to turn them they lie one after the other, elsewhere in each layout."""
    room, (pair, turned) = ROOMS[space], divmod(layout, 2)
    widest = max([room.step, *(alignment for _, alignment in sizes)])
    found, at, before = [], room.first, 0
    for number, (size, alignment) in enumerate(sizes):
        step, far = max(room.step, alignment), max(room.far, alignment)
        # Below is so much room as the variable needs, so that there is above if all bits are turned.
        low = max(at, before + size + room.gap + widest)
        start = -(-low // far) * far + _low(number, len(sizes), pair) * step
        found.append(start)
        at, before = start + size + room.gap + widest, start
    if any(start + size > 1 << room.bits for start, (size, _) in zip(found, sizes, strict=True)):
        return _close(room, sizes, layout)
    if not turned:
        return found
    ones = (1 << room.bits) - 1
    return [(start ^ ones) & -max(room.step, alignment) for start, (_, alignment) in zip(found, sizes, strict=True)]


def _low(number: int, count: int, pair: int) -> int:
    """The lowest bits of where a variable begins: those of its number, in another order in each pair but the first."""
    width = max(count - 1, 1).bit_length()
    turns = (pair - 1) % width
    return ((number >> turns) | (number << width - turns)) & (1 << width) - 1 if pair else 0


def _close(room: Room, sizes: Sequence[tuple[int, int]], layout: int) -> list[int]:
    """Addresses of variables that need most of the room."""
    found = [0] * len(sizes)
    free = (1 << room.bits) - room.first - sum(size + room.gap + max(room.step, aligned) for size, aligned in sizes)
    at = room.first + layout * min(11 * room.step, max(free, 0) // (2 * PAIRS) // room.step * room.step)
    for number in reversed(range(len(sizes))) if layout % 2 else range(len(sizes)):
        size, alignment = sizes[number]
        step = max(room.step, alignment)
        found[number] = at = -(-at // step) * step
        at += size + room.gap
    return found
