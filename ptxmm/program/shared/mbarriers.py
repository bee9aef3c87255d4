"""Which objects are mbarriers (PTX ISA 9.7.14.15)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.symbols import addresses, symbols
from ptxmm.program.test import MemoryObject, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import Address, Alu, MbarrierArrive, MbarrierInit, MbarrierWait, Op, Reg, Select, Store, Sym

MBARRIER_BYTES = ops.MBARRIER_BYTES


def operands(op: Op) -> Iterator[Address]:
    """The addresses of mbarriers among the operands of ``op``."""
    return (touch.address for touch in ops.touched(op) if touch.role == "mbarrier")


def counted(threads: Sequence[Thread]) -> bool:
    """Whether some thread computes with the state that an arrival returns, so with how many came before it."""
    return any(_computes_with_states(thread) for thread in threads)


def _computes_with_states(thread: Thread) -> bool:
    states = {op.dst.name for op in thread.body if isinstance(op, MbarrierArrive) and op.dst is not None}
    known = 0
    while known < len(states):
        known = len(states)
        for op in thread.body:
            if isinstance(op, Select) or (isinstance(op, Alu) and op.op == "mov"):
                if any(name in states for name, _ in uses(op)):
                    states |= {name for name, _ in definitions(op)}
            elif not isinstance(op, MbarrierWait | Store) and any(name in states for name, _ in uses(op)):
                return True
    return False


def opaque(threads: Sequence[Thread], objects: Mapping[str, MemoryObject]) -> frozenset[str]:
    """The keys of the objects whose bytes are of no other use than as mbarriers, wherever an address comes from.

    Those are the ones declared or named as mbarriers; none in a test with ``mbarrier.inval``, which frees the memory of
    one for other use (9.7.14.15.3).
    """
    if any(isinstance(op, MbarrierInit) and op.count is None for thread in threads for op in thread.body):
        return frozenset()
    return mbarriers(threads, objects, certain=True)


def mbarriers(threads: Sequence[Thread], objects: Mapping[str, MemoryObject], certain: bool = False) -> frozenset[str]:
    """The keys of the objects that are mbarriers.

    Those are the ones that are declared as such; that an instruction names as an mbarrier; that are the variable of
    the same name in another CTA of one of those; and, where an instruction finds its mbarrier by a register, the
    ``.shared`` variables of 64-bit elements whose address is taken while no other instruction accesses them by name.
    A register that only ever holds the address of a variable counts as its name. Aliases of an mbarrier are in it too.
    ``certain``: only those that are declared or named.
    """
    if not any(item.mbarrier for item in objects.values()) and not any(
        True for thread in threads for op in thread.body for _ in operands(op)
    ):
        return frozenset()
    named: set[str] = set()
    taken: set[str] = set()
    accessed: set[str] = set()
    indirect = False
    for thread in threads:
        known = known_addresses(thread, objects)
        for op in thread.body:
            found = list(operands(op))
            places = [_variable(place, known) for place in found]
            indirect = indirect or None in places
            own = {place for place in places if place is not None}
            named |= own
            others = set(symbols(op)) - own
            (accessed if _has_address(op) else taken).update(others)
            by_register = (_variable(place, known) for place in addresses(op) if place not in found)
            accessed.update(place for place in by_register if place is not None)
        taken |= {k for k, o in objects.items() if any(_lies_in(o, v) for v in thread.initial.values())}
    found_keys = {key for key, item in objects.items() if item.mbarrier} | (named & objects.keys())
    if indirect and not certain:
        used = {objects[key].name for key in accessed & objects.keys()}
        words = {k for k, o in objects.items() if o.space == "shared" and o.type.bytes == MBARRIER_BYTES}
        found_keys |= {key for key in taken & words if objects[key].name not in used}
    names = {(objects[key].name, objects[key].type) for key in found_keys if objects[key].space == "shared"}
    physical = {objects[key].physical for key in found_keys}
    return frozenset(
        key
        for key, item in objects.items()
        if item.physical in physical or (item.space == "shared" and (item.name, item.type) in names)
    )


def _variable(place: Address, known: Mapping[str, Sym]) -> str | None:
    """The variable that an address operand names, itself or by a register that only ever holds its address."""
    base = known.get(place.base.name) if isinstance(place.base, Reg) else place.base
    return base.name if isinstance(base, Sym) else None


def _lies_in(item: MemoryObject, address: int) -> bool:
    low = 0 if address >> 32 or item.space != "shared" else item.address >> 32 << 32  # an address in the window
    return item.address <= address + low < item.address + item.size


def _has_address(op: Op) -> bool:
    return any(isinstance(getattr(op, name, None), Address) for name in ("address", "dst", "src", "tensormap"))
