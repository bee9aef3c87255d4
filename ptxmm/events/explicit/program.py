"""A thread ready to run, and where its addresses lie."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ptxmm.events.explicit.trace import Cell
from ptxmm.program.shared.chunks import Chunks
from ptxmm.program.shared.control import ControlFlow
from ptxmm.program.shared.legality import refusal, rule
from ptxmm.program.shared.windows import described, entered, outside
from ptxmm.program.test import MemoryObject, Test
from ptxmm.ptx.ops import Op, Role


class Spot(Struct, frozen=True):
    """A byte of memory: its object (never a proxy alias), the object it physically lies in, and its offset there."""

    item: MemoryObject
    offset: int

    def cells(self, offset: int, size: int) -> tuple[Cell, Cell]:
        """The physical and the virtual cell of ``size`` bytes, ``offset`` bytes after this one."""
        first = self.offset + offset
        return (self.item.physical, first, size), (self.item.key, first, size)

    def replica(self, number: int, offset: int, size: int) -> tuple[Cell, Cell]:
        """The same at a location of a multimem address. Accesses of different ones don't overlap (PTX ISA 8.2.1)."""
        first = self.offset + offset
        return (self.item.replicas[number], first, size), (f"{self.item.key} at {number}", first, size)


class Program(Struct, frozen=True):
    """A thread ready to run: its number, its control flow (``around``: which backward branches are around each
    instruction), where addresses lie (``objects``: each after its first address and the one behind it), how copies are
    divided, and whether its start and its end are events of API synchronization (``api``), and its exit one that
    barriers may wait for (``exits``). ``lanes`` and ``mates``: the threads of its warp in order, and those of its CTA,
    each with the number of threads it counts as; ``mbarriers``: the keys of the objects that are mbarriers.
    ``products``: the thread has products of a warpgroup. ``aligned``: the instructions that the threads of its warp
    execute together, as in ``convergence.sites``.
    """

    test: Test
    thread: int
    control: ControlFlow
    around: list[tuple[int, ...]]
    objects: tuple[tuple[int, int, MemoryObject], ...]
    chunks: Chunks
    api: bool
    exits: bool
    lanes: tuple[int, ...] = ()
    mates: tuple[tuple[int, int], ...] = ()
    mbarriers: frozenset[str] = frozenset()
    products: bool = False
    aligned: Mapping[int, str] = field(default_factory=dict)

    def from_window(self, address: int, space: str | None) -> int:
        """The virtual address for one in the window of ``space``; ``NOWHERE`` is set in it if it lies in none."""
        return entered(self.test.objects, self.test.threads[self.thread].placement, self.thread, space, address)

    def from_descriptor(self, address: int) -> int:
        """The virtual address of the matrix of a descriptor."""
        return described(self.test.objects, self.test.threads[self.thread].placement, self.thread, address)

    def locate(self, address: int, size: int) -> Spot | None:
        """The spot of the virtual ``address`` if ``size`` bytes from it lie in one object, else None."""
        for first, end, item in self.objects:
            if first <= address and address + size <= end:
                return Spot(item, address - first)
        return None

    def spot(
        self, address: int, size: int, alignment: int, op: Op, role: Role, memory: bool, multimem: bool
    ) -> Spot | str:
        """Where ``size`` bytes at the virtual ``address`` are, or why an access of them has no meaning (6.4.1): see
        ``Machine.spot``."""
        found = self.locate(address, size)
        if found is None:
            return outside(self.test.objects, address)
        item = found.item
        if address % alignment:
            return f"misaligned access (address {address:#x})"
        refused = refusal(rule(op, role), self.test.threads[self.thread].placement, self.thread, item)
        if refused is not None:
            return refused
        if memory and size and item.key in self.mbarriers:
            return f"access to an mbarrier (address {address:#x})"
        if size and bool(item.replicas) != multimem:
            what = "multimem operation on another" if multimem else "access to a multimem"
            return f"{what} address (address {address:#x})"
        return found
