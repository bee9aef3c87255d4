"""The events of the symbolic side: what a thread may do, and when."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxmm.events.symbolic.values import Domain, Reads
from ptxmm.program.test import EventId, MemoryObject
from ptxmm.ptx.ops import Barrier, Op
from ptxmm.relations.formula import Formula


@dataclass(frozen=True, slots=True)
class Place:
    """Where a memory event may act: the object by its virtual and physical key and the byte range in it."""

    when: Formula
    physical: str
    virtual: str
    offset: int
    size: int

    def contains(self, cell: tuple[str, int, int]) -> bool:
        """Whether all bytes of ``cell`` (physical key, offset, size) are of this place."""
        key, offset, size = cell
        return key == self.physical and self.offset <= offset and offset + size <= self.offset + self.size


@dataclass(slots=True)
class Event:
    """An event of a thread. ``kind``: R W F PF AF BA BW. ``value``: what a write writes (of the access's width).

    ``address``, ``data``, ``control`` are the reads it depends on.
    """

    number: int
    kind: str
    thread: int
    id: EventId
    presence: Formula
    op: Op
    places: list[Place] = field(default_factory=list)
    value: Domain = field(default_factory=lambda: Domain({}))
    address: Reads = field(default_factory=dict)
    data: Reads = field(default_factory=dict)
    control: Reads = field(default_factory=dict)


@dataclass(slots=True)
class BarrierEvent:
    """A barrier instruction on some path: its events and the possible barrier ids and counts."""

    id: EventId
    op: Barrier
    presence: Formula
    barrier: Domain
    count: Domain | None
    arrive: int


@dataclass(slots=True)
class ThreadEvents:
    """What one thread may do: when it ends (``completed``, or ``cut`` by the bound) and with which registers."""

    barriers: list[BarrierEvent]
    completed: Formula
    cut: Formula
    registers: dict[str, Domain]


def initial_values(item: MemoryObject) -> bytes:
    """The bytes of ``item`` before the program, little-endian."""
    return b"".join(v.to_bytes(item.type.bytes, "little") for v in item.initial)
