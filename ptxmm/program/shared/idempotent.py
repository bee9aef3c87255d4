"""Atomics of spin loops that may be left out where they write back what they read.

``while (atomicExch(&lock, 1) != 0);`` and ``while (atomicAdd(&flag, 0) == 0);`` write in every round, but a round that
writes the value it has read can be taken out of an execution like one that only reads (``control.spin_loops``), as
follows. Let u be the atomic of the round and w the write that it reads from. Without u, coherence order is what is
left of it, and who read from u now reads from w, which wrote the same bytes; u comes right after w in coherence order
(PTX ISA 8.10.3), so from-reads only loses pairs. Base causality order and the orders it is made of can get
a pair that they had not only by observation (8.9.2): that of w by a reader r of u, where w and r are morally strong
(8.7) although u is not with both of them, so that r did not observe w by way of u. To have none of that:

- every access that may touch these bytes is of all of them, by their own address, through the generic proxy;
- those that write are strong: a weak store may come between w and u in coherence order, so that u brings back the
  value of w;
- the scope of u, and of every other strong one among these accesses, includes every thread that has one of them.

Then w and r are morally strong only if they are with u too, and so are u and every other write of these bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxmm.program.accesses import Range, overlap
from ptxmm.program.placement import includes
from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.symbols import addresses, symbols
from ptxmm.program.test import MemoryObject, Test, Thread
from ptxmm.ptx.ops import Address, Atomic, Load, Op, Reg, Store, Sym, access_bytes

_INTEGER = ("b", "u", "s")
_NEVER = ("cas",)
"""A ``cas`` that fails writes nothing (or, by a reading, what it read); it has a rule of its own."""


def idempotent_atomics(test: Test) -> tuple[frozenset[int], ...]:
    """For each thread the indices of its atomics that may be left out where they write back what they read."""
    if not any(_may_be(op) for thread in test.threads for op in thread.body):
        return (frozenset(),) * len(test.threads)
    nothing = (frozenset[int](),) * len(test.threads)
    known = [known_addresses(thread, test.objects) for thread in test.threads]
    candidates: dict[tuple[int, int], Range] = {}
    accesses: list[tuple[Range, int, Op | None]] = []
    for number, thread in enumerate(test.threads):
        for pc, op in enumerate(thread.body):
            if not addresses(op):
                continue
            where = range_of(op, known[number], test.objects)
            if where is None:
                keys = touched(op, known[number], test.objects)
                if keys is None:
                    return nothing
                accesses += [((key, 0, test.objects[key].size), number, None) for key in keys]
                continue
            accesses.append((where, number, op))
            if _may_be(op):
                candidates[number, pc] = where
    found: list[set[int]] = [set() for _ in test.threads]
    places = dict.fromkeys(candidates.values())
    alike = {w for w in places if _alike([access for access in accesses if overlap(access[0], w)], w, test)}
    for (number, pc), where in candidates.items():
        if where in alike:
            found[number].add(pc)
    return tuple(map(frozenset, found))


def _may_be(op: Op) -> bool:
    return isinstance(op, Atomic) and op.op not in _NEVER and op.packed == 1 and op.type.kind in _INTEGER


def _alike(accesses: list[tuple[Range, int, Op | None]], where: Range, test: Test) -> bool:
    """Whether all of ``accesses`` are of the bytes ``where``, the strong ones in scopes that include all threads."""
    users = {number for _, number, _ in accesses}
    for found, number, op in accesses:
        if op is None or found != where:
            return False
        weak = isinstance(op, Load | Store) and op.sem == "weak"
        if weak and isinstance(op, Store):
            return False
        if not weak and not all(_includes(op, test.threads[number], test.threads[user]) for user in users):
            return False
    return True


def range_of(op: Op, known: Mapping[str, Sym], objects: Mapping[str, MemoryObject]) -> Range | None:
    """The bytes of a plain access of one register whose address is known and that is of no alias."""
    if not isinstance(op, Load | Store | Atomic) or op.proxy != "generic":
        return None
    count = len(op.values) if isinstance(op, Store) else max(1, len(op.dst))
    place = _place(op.address, known)
    if count != 1 or place is None:
        return None
    item = objects[place.name]
    if item.replicas or sum(other.physical == item.physical for other in objects.values()) > 1:
        return None
    return item.physical, place.offset, access_bytes(op)


def _place(address: Address, known: Mapping[str, Sym]) -> Sym | None:
    base = address.base
    if isinstance(base, Reg) and base.name in known:
        base = known[base.name]
    return Sym(base.name, base.offset + address.offset) if isinstance(base, Sym) else None


def touched(op: Op, known: Mapping[str, Sym], objects: Mapping[str, MemoryObject]) -> set[str] | None:
    """The physical objects that an operation with addresses may touch, None if that may be any."""
    found = {objects[name].physical for name in symbols(op)}
    for address in addresses(op):
        place = _place(address, known)
        if place is None:
            return None
        found.add(objects[place.name].physical)
    if any(objects[name].tensormap is not None for name in symbols(op)):
        return None
    return found


def _includes(op: Op, thread: Thread, other: Thread) -> bool:
    """Whether the scope of a strong operation of ``thread`` includes ``other``."""
    scope = getattr(op, "scope", None)
    return other is thread or (scope is not None and includes(scope, thread.placement, other.placement))
