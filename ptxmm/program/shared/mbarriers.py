"""Which objects are mbarriers (PTX ISA 9.7.14.15)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.symbols import symbols
from ptxmm.program.test import MemoryObject, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read, names_written
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
                if any(name in states for name in names_read(op)):
                    states |= set(names_written(op))
            elif not isinstance(op, MbarrierWait | Store) and any(name in states for name in names_read(op)):
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

    Those are the ones that are declared as such; the ``.shared`` variables (9.7.14.15.1) that an instruction names as
    an mbarrier; the variables of the same name in other CTAs of one of those; and, where an instruction finds its
    mbarrier by a register, the ``.shared`` variables of 64-bit elements whose address is taken while no other
    instruction accesses them by name. A register that only ever holds the address of a variable counts as its name.
    Aliases of an mbarrier are in it too.
    ``certain``: only those that are declared or named.
    """
    found = {key for key, item in objects.items() if item.mbarrier}
    if not found and not any(True for thread in threads for op in thread.body for _ in operands(op)):
        return frozenset()
    seen = _Seen()
    for thread in threads:
        seen.look(thread, objects)
    found |= {key for key in seen.named & objects.keys() if objects[key].space == "shared"}
    if seen.indirect and not certain:
        used = {objects[key].name for key in seen.accessed & objects.keys()}
        words = {k for k, o in objects.items() if o.space == "shared" and o.type.bytes == MBARRIER_BYTES}
        found |= {key for key in seen.taken & words if objects[key].name not in used}
    return _with_others(found, objects)


def _with_others(found: set[str], objects: Mapping[str, MemoryObject]) -> frozenset[str]:
    """``found`` with their aliases, and with the variables of the same name in other CTAs."""
    names = {(objects[key].name, objects[key].type) for key in found if objects[key].space == "shared"}
    physical = {objects[key].physical for key in found}
    return frozenset(
        key
        for key, item in objects.items()
        if item.physical in physical or (item.space == "shared" and (item.name, item.type) in names)
    )


class _Seen(Struct):
    """The variables that instructions name as mbarriers, those that they access otherwise, and those whose address they
    take; ``indirect``: some find an mbarrier by a register."""

    named: set[str] = field(default_factory=set)
    accessed: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    indirect: bool = False

    def look(self, thread: Thread, objects: Mapping[str, MemoryObject]) -> None:
        known = known_addresses(thread, objects)
        for op in thread.body:
            self.note(op, known)
        self.taken |= {k for k, o in objects.items() if any(_lies_in(o, v) for v in thread.initial.values())}

    def note(self, op: Op, known: Mapping[str, Sym]) -> None:
        barriers = list(operands(op))
        rest = [touch.address for touch in ops.touched(op) if touch.address not in barriers]
        own = {_variable(place, known) for place in barriers}
        self.indirect = self.indirect or None in own
        (self.accessed if barriers or rest else self.taken).update({*symbols(op)} - own)
        self.named.update(name for name in own if name is not None)
        self.accessed.update(name for place in rest if (name := _variable(place, known)) is not None)


def _variable(place: Address, known: Mapping[str, Sym]) -> str | None:
    """The variable that an address operand names, itself or by a register that only ever holds its address."""
    base = known.get(place.base.name) if isinstance(place.base, Reg) else place.base
    return base.name if isinstance(base, Sym) else None


def _lies_in(item: MemoryObject, address: int) -> bool:
    low = 0 if address >> 32 or item.space != "shared" else item.address >> 32 << 32  # an address in the window
    return item.address <= address + low < item.address + item.size
