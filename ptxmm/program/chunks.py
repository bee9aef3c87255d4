"""How a copy of many bytes, or an element of a vector, is divided into accesses (semantics 6.4, A12 and A13).

A bulk copy, a ``cp.async`` and a vector make one access for each cell that the other accesses of the test use, so that
they make no mixed-size race by themselves. What the other accesses use is read off the instructions:

1. Scalar accesses that name their variable (and those of mbarriers and tensor maps) set borders at both of their ends.
   A register that only ever holds the address of one variable names it too.
2. Where no such access covers a byte, elements of vectors, and copies, that name their variable set borders at both of
   their ends: two of them that meet partially are divided there.
3. What neither scalars nor vectors cover is divided into equal elements, from the begin of the object on, where other
   registers may lead scalar accesses to it: of the declared width if some of them have it, else of the smallest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from ptxmm.program.initial import TENSORMAP_BYTES
from ptxmm.program.mbarriers import MBARRIER_BYTES, operands
from ptxmm.program.test import MemoryObject, Test, Thread
from ptxmm.ptx.isa import definitions
from ptxmm.ptx.ops import (
    Address,
    Alu,
    AsyncStore,
    Atomic,
    BulkCopy,
    CopyAsync,
    Discard,
    Imm,
    Load,
    Op,
    Reg,
    Store,
    Sym,
    TensormapCopyFence,
    TensormapFence,
    TensormapReplace,
    Type,
    elements,
)

Chunk = tuple[int, int]
"""(offset from the begin of the object, size), in bytes."""

Kind = Literal["scalar", "element", "copy"]


@dataclass(frozen=True, slots=True)
class _Access:
    """One access of an instruction: ``[address + offset, + size)``; ``everywhere``: in all CTAs that have the name."""

    kind: Kind
    address: Address
    offset: int
    size: int
    space: str | None
    everywhere: bool = False


@dataclass(slots=True)
class _Object:
    """The accesses by name of one object; ``borders`` is filled in when it is asked for."""

    scalar: list[Chunk] = field(default_factory=list)
    vector: list[Chunk] = field(default_factory=list)
    copies: list[Chunk] = field(default_factory=list)
    borders: list[int] | None = None


class Chunks:
    """The division of the objects of one test, worked out once for each object.

    ``split``: a 16-byte scalar is two accesses of 8 bytes (reading ``b128=split``).
    """

    __slots__ = ("_by_register", "_objects", "_test")

    def __init__(self, test: Test, split: bool = False) -> None:
        self._test = test
        self._objects: dict[str, _Object] = {}
        self._by_register: list[tuple[int, str | None]] = []
        for thread in test.threads:
            known = _addresses(test, thread)
            for op in thread.body:
                for access in _accesses(test, op, split, known):
                    self._add(access, known)

    def of(self, key: str, offset: int, size: int) -> tuple[Chunk, ...]:
        """The chunks of the bytes ``[offset, offset + size)`` of the object ``key``, in ascending order.

        Offsets count from the begin of the object; what lies outside of the object is one chunk at either end.
        """
        item = self._find(self._test.objects[key])
        if item.borders is None:
            base = self._test.objects[self._test.objects[key].physical]
            item.borders = _borders(item, base.size, self._width(base))
        inner = item.borders[bisect_right(item.borders, offset) : bisect_left(item.borders, offset + size)]
        points = [offset, *inner, offset + size]
        return tuple((a, b - a) for a, b in pairwise(points))

    def _find(self, item: MemoryObject) -> _Object:
        return self._objects.setdefault(item.physical, _Object())

    def _width(self, item: MemoryObject) -> int:
        """The size of the equal elements that divide what no access by name covers; 0 if nothing does."""
        widths = {w for w, space in self._by_register if space is None or space.partition("::")[0] == item.space}
        return item.type.bytes if item.type.bytes in widths else min(widths, default=0)

    def _add(self, access: _Access, known: Mapping[str, Sym]) -> None:
        base = access.address.base
        if isinstance(base, Reg):
            base = known.get(base.name, base)
        if not isinstance(base, Sym):
            if access.kind != "copy":
                self._by_register.append((access.size, access.space))
            return
        named = self._test.objects[base.name]
        begin = base.offset + access.address.offset + access.offset
        for item in self._test.objects.values() if access.everywhere else (named,):
            if item.name == named.name:
                found = self._find(item)
                group = {"scalar": found.scalar, "element": found.vector, "copy": found.copies}[access.kind]
                group.append((begin, access.size))


def _addresses(test: Test, thread: Thread) -> dict[str, Sym]:
    """The registers of ``thread`` that only ever hold the address of one variable, plus a constant."""
    found: dict[str, Sym] = {}
    makers: dict[str, list[Op]] = {}
    for op in thread.body:
        for name, _ in definitions(op):
            makers.setdefault(name, []).append(op)
    for name, value in thread.initial.items():
        place = test.locate(value)
        if name not in makers and place is not None and thread.registers[name].bits == 64:
            found[name] = Sym(place[0].key, place[1])
    changed = True
    while changed:
        changed = False
        for name, ops in makers.items():
            if name not in found and len(ops) == 1 and name not in thread.initial:
                made = _moved(ops[0], found)
                if made is not None:
                    found[name], changed = made, True
    return found


def _moved(op: Op, known: Mapping[str, Sym]) -> Sym | None:
    """The address that ``op`` computes of one in ``known``, or None."""
    if not isinstance(op, Alu) or op.op not in ("mov", "add") or op.guard is not None:
        return None
    bases = [s if isinstance(s, Sym) else known.get(s.name) if isinstance(s, Reg) else None for s in op.sources]
    constants = [s.value for s in op.sources if isinstance(s, Imm)]
    places = [b for b in bases if b is not None]
    if len(places) != 1 or len(places) + len(constants) != len(op.sources):
        return None
    return Sym(places[0].name, places[0].offset + sum(constants))


def _borders(item: _Object, size: int, width: int) -> list[int]:
    """All borders in an object of ``size`` bytes, in order; ``width`` divides what nothing else does."""
    found = {end for begin, length in item.scalar for end in (begin, begin + length)}
    free = _complement(item.scalar, size)
    for begin, length in (*item.vector, *item.copies):
        found |= {end for end in (begin, begin + length) if _inside(end, free)}
    if width:
        for low, high in _complement([*item.scalar, *item.vector], size):
            found |= set(range(low + -low % width, high + 1, width))
    return sorted(found)


def _complement(covered: list[Chunk], size: int) -> list[tuple[int, int]]:
    """The parts of ``[0, size)`` that no item of ``covered`` covers, as (begin, end)."""
    found: list[tuple[int, int]] = []
    position = 0
    for begin, length in sorted(covered):
        if begin > position:
            found.append((position, min(begin, size)))
        position = max(position, begin + length)
    if position < size:
        found.append((position, size))
    return found


def _inside(point: int, parts: list[tuple[int, int]]) -> bool:
    """Whether a byte on either side of ``point`` lies in one of ``parts``."""
    return any(low <= point <= high for low, high in parts)


def _accesses(test: Test, op: Op, split: bool, known: Mapping[str, Sym]) -> Iterator[_Access]:
    """The accesses of ``op`` that divide objects; ``known``: registers that name a variable."""
    for place in operands(op):
        multicast = isinstance(op, BulkCopy) and op.mask is not None
        yield _Access("scalar", place, 0, MBARRIER_BYTES, "shared", multicast)
    match op:
        case Load() | Store() | Atomic():
            kind: Kind = "scalar" if len(elements(op)) == 1 else "element"
            for part in elements(op, split):
                yield _Access(kind, op.address, part.offset, part.type.bytes, op.space)
        case AsyncStore(address, values, type_):
            kind = "scalar" if len(values) == 1 else "element"
            for index in range(len(values)):
                yield _Access(kind, address, index * type_.bytes, type_.bytes, "shared")
        case TensormapFence(address=address) if address is not None:
            yield _Access("scalar", address, 0, TENSORMAP_BYTES, None)
        case TensormapReplace(address=address):
            yield _Access("scalar", address, 0, TENSORMAP_BYTES, op.space)
        case TensormapCopyFence(dst, src):
            yield _Access("scalar", dst, 0, TENSORMAP_BYTES, "global")
            yield _Access("scalar", src, 0, TENSORMAP_BYTES, "shared")
        case CopyAsync(dst, src, size):
            yield _Access("copy", dst, 0, size, "shared")
            yield _Access("copy", src, 0, size, "global")
        case Discard(address, size):
            yield _Access("copy", address, 0, size, "global")
        case BulkCopy():
            yield from _bulk(test, op, known)


def _bulk(test: Test, op: BulkCopy, known: Mapping[str, Sym]) -> Iterator[_Access]:
    """The two sides of a bulk copy whose size is known; a reduction accesses its destination element by element."""
    size = op.size.value if isinstance(op.size, Imm) else None
    type_ = op.type
    dst, src = op.dst, op.src
    if op.tensormap is not None:
        yield _Access("scalar", op.tensormap, 0, TENSORMAP_BYTES, None)
        base = op.tensormap.base
        tensor = test.objects[base.name].tensormap if isinstance(base, Sym) else None
        if tensor is not None:
            size, type_ = tensor.count * tensor.type.bytes, tensor.type
            side = _box(tensor.target, type_, op)
            dst, src = (side if dst is None else dst), (side if src is None else src)
    if size is None:
        return
    if src is not None:
        yield _Access("copy", src, 0, size, op.src_space)
    if dst is None:
        return
    if op.reduction is not None and type_ is not None:
        named = isinstance(dst.base, Sym) or (isinstance(dst.base, Reg) and dst.base.name in known)
        for offset in range(0, size if named else type_.bytes, type_.bytes):
            yield _Access("element", dst, offset, type_.bytes, op.dst_space)
    else:
        yield _Access("copy", dst, 0, size, op.dst_space, op.mask is not None)


def _box(target: str, type_: Type, op: BulkCopy) -> Address | None:
    """The global side of a tensor copy of rank 1, as the tensor map is at first; None for a run-time coordinate."""
    if len(op.coordinates) != 1 or not isinstance(op.coordinates[0], Imm):
        return None
    return Address(Sym(target), op.coordinates[0].value * type_.bytes)
