"""How a copy of many bytes, or an element of a vector, is divided into accesses (decisions A12, A13).

A bulk copy, a ``cp.async`` and a vector make one access for each cell that the other accesses of the test use, so that
they make no mixed-size race by themselves. What the other accesses use is read off the instructions:

1. Scalar accesses that name their variable (and those of mbarriers and tensor maps) set borders at both of their ends.
   A register that only ever holds the address of one variable names it too.
2. Where no such access covers a byte, elements of vectors, and copies, that name their variable set borders at both of
   their ends: two of them that meet partially are divided there.
3. What neither scalars nor vectors cover is divided into equal elements, from the begin of the object on, where other
   registers may lead scalar accesses to it: of the declared width if some of them have it, else of the smallest.

A matrix of ``wmma`` is accessed element by element where other accesses, or the condition, look at it; elsewhere whole
lines of it are one access, as nothing tells their elements apart. They set borders like copies do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, field

from ptxmm.program.accesses import touches
from ptxmm.program.condition import MemoryTerm
from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.test import MemoryObject, TensorMap, Test
from ptxmm.ptx.ops import (
    Address,
    AsyncStore,
    Atomic,
    BulkCopy,
    Division,
    Imm,
    Load,
    Multimem,
    Op,
    Reg,
    Store,
    Sym,
    TensorCopy,
    TensorProduct,
    Touch,
    Wgmma,
    WmmaStore,
    elements,
    touched,
)

Chunk = tuple[int, int]
"""(offset from the begin of the object, size), in bytes."""


class _Access(Struct, frozen=True):
    """One access of an instruction: ``[address + offset, + size)``; ``kind``: ``elements`` for one of several;
    ``everywhere``: in all CTAs that have the name; ``unit``: the bytes of an element of a matrix."""

    kind: Division
    address: Address
    offset: int
    size: int
    space: str | None
    everywhere: bool = False
    unit: int = 0


class _Object(Struct):
    """The accesses by name of one object: of ``tiles`` also the bytes of an element; ``shown``: elements that the
    condition names. ``borders`` is filled in when it is asked for."""

    scalar: list[Chunk] = field(default_factory=list)
    vector: list[Chunk] = field(default_factory=list)
    copies: list[Chunk] = field(default_factory=list)
    tiles: list[tuple[int, int, int]] = field(default_factory=list)
    shown: list[Chunk] = field(default_factory=list)
    borders: list[int] | None = None


class Chunks:
    """The division of the objects of one test, worked out once for each object, when it is first asked for.

    ``split``: a 16-byte scalar is two accesses of 8 bytes (reading ``b128=split``). ``whole``: what ld and st access of
    a vector is in one piece, as a scalar is (``vector=whole``).
    """

    __slots__ = ("_by_register", "_objects", "_readings", "_test")

    def __init__(self, test: Test, split: bool = False, whole: bool = False) -> None:
        self._test = test
        self._readings = split, whole
        self._objects: dict[str, _Object] | None = None
        self._by_register: list[tuple[int, str | None]] = []

    def _collect(self) -> None:
        """Find what accesses each object."""
        test, (split, whole) = self._test, self._readings
        self._objects = {}
        for thread in test.threads:
            known = known_addresses(thread, test.objects)
            for op in thread.body:
                for access in _accesses(test, op, split, whole, known):
                    self._add(access, known)
        for term in test.named:
            if isinstance(term, MemoryTerm):
                shown = self._find(test.objects[term.key].physical).shown
                shown.append((term.index * term.type.bytes, term.type.bytes))

    def of(self, key: str, offset: int, size: int, unit: int = 0) -> tuple[Chunk, ...]:
        """The chunks of the bytes ``[offset, offset + size)`` of the object ``key``, in ascending order.

        Offsets count from the begin of the object; what lies outside of the object is one chunk at either end.
        ``unit``: the bytes are a line of a matrix whose elements have as many.
        """
        base = self._test.objects[self._test.objects[key].physical]
        item = self._find(base.key)
        if item.borders is None:
            fine = any(unit for _, _, unit in item.tiles) and self._copied(base, item)
            item.borders = _borders(item, base.size, self._width(base), fine)
        inner = item.borders[bisect_right(item.borders, offset) : bisect_left(item.borders, offset + size)]
        if unit:
            looked = [(0, base.size)] if self._width(base) else [*item.scalar, *item.vector, *item.shown]
            elements_ = range(offset + unit, offset + size, unit)
            inner = sorted({*inner, *(p for p in elements_ if any(b <= p <= b + n for b, n in looked))})
        points = [offset, *inner, offset + size]
        return tuple((a, b - a) for a, b in pairwise(points))

    def _copied(self, base: MemoryObject, item: _Object) -> bool:
        """Whether a ``wmma.store`` to ``base`` may race with another write and copies look at what that gives."""
        test = self._test
        ops = [op for thread in test.threads for op in thread.body]
        if not any(isinstance(op, WmmaStore) for op in ops):
            return False
        products = base.space == "shared" and any(isinstance(op, Wgmma | TensorCopy | TensorProduct) for op in ops)
        writes = [
            touch
            for op in ops
            for touch in touches(op, test.objects)
            if touch.writes
            and (not isinstance(touch.address.base, Sym) or base.key in _physical(test, touch.address.base.name))
        ]
        return len(writes) > 1 and (bool(item.copies) or products)

    def _find(self, key: str) -> _Object:
        if self._objects is None:
            self._collect()
        assert self._objects is not None
        return self._objects.setdefault(key, _Object())

    def _width(self, item: MemoryObject) -> int:
        """The size of the equal elements that divide what no access by name covers; 0 if nothing does."""
        widths = {w for w, space in self._by_register if space is None or space.partition("::")[0] == item.space}
        return item.type.bytes if item.type.bytes in widths else min(widths, default=0)

    def _add(self, access: _Access, known: Mapping[str, Sym]) -> None:
        base = access.address.base
        if isinstance(base, Reg):
            base = known.get(base.name, base)
        if not isinstance(base, Sym):
            if access.kind not in ("copy", "tile"):
                self._by_register.append((access.size, access.space))
            return
        named = self._test.objects[base.name]
        begin = base.offset + access.address.offset + access.offset
        for item in self._test.objects.values() if access.everywhere else (named,):
            if item.name == named.name:
                for key in item.replicas or (item.physical,):
                    found = self._find(key)
                    if access.kind == "tile":
                        found.tiles.append((begin, access.size, access.unit))
                        continue
                    group = {"scalar": found.scalar, "elements": found.vector, "copy": found.copies}[access.kind]
                    group.append((begin, access.size))


def _physical(test: Test, key: str) -> tuple[str, ...]:
    item = test.objects[key]
    return item.replicas or (item.physical,)


def _borders(item: _Object, size: int, width: int, fine: bool = False) -> list[int]:
    """All borders in an object of ``size`` bytes, in order; ``width`` divides what nothing else does; ``fine``: the
    elements of matrices are apart for copies too."""
    found = {end for begin, length in item.scalar for end in (begin, begin + length)}
    free = _complement(item.scalar, size)
    for begin, length in (*item.vector, *item.copies):
        found |= {end for end in (begin, begin + length) if _inside(end, free)}
    for begin, length, unit in item.tiles:
        ends = range(begin, begin + length + 1, unit if fine else length)
        found |= {end for end in ends if _inside(end, free)}
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


def _accesses(test: Test, op: Op, split: bool, whole: bool, known: Mapping[str, Sym]) -> Iterator[_Access]:
    """The accesses of ``op`` that divide objects; ``known``: registers that name a variable."""
    for touch in touched(op):
        match touch.division:
            case "scalar" | "copy" if touch.size is not None:
                multicast = isinstance(op, BulkCopy) and op.mask is not None and touch.role == "mbarrier"
                yield _Access(touch.division, touch.address, 0, touch.size, touch.space, multicast)
            case "tile":
                for offset, size in touch.parts:
                    yield _Access("tile", touch.address, offset, size, touch.space, unit=touch.unit)
            case "elements":
                yield from _parts(op, touch, split, whole)
    if isinstance(op, BulkCopy):
        yield from _bulk(test, op, known)


def _parts(op: Op, touch: Touch, split: bool, whole: bool) -> Iterator[_Access]:
    """The accesses of a vector, or of the only element of one."""
    assert isinstance(op, Load | Store | Atomic | Multimem | AsyncStore)
    single = len(elements(op)) == 1
    for part in elements(op, split, whole):
        kind: Division = "scalar" if single or part.items > 1 else "elements"
        yield _Access(kind, touch.address, part.offset, part.type.bytes, touch.space)


def _bulk(test: Test, op: BulkCopy, known: Mapping[str, Sym]) -> Iterator[_Access]:
    """The two sides of a bulk copy whose size is known; a reduction accesses its destination element by element."""
    if op.tensormap is not None:
        yield from _tensor(test, op, op.tensormap)
        return
    size = op.size.value if isinstance(op.size, Imm) else None
    if size is None or op.src is None or op.dst is None:
        return
    yield _Access("copy", op.src, 0, size, op.src_space)
    for start, length in op.parts(size):
        yield _Access("copy", op.src, start, length, op.src_space)
        if op.reduction is None:
            yield _Access("copy", op.dst, start, length, op.dst_space, op.mask is not None)
    if op.reduction is not None and op.type is not None:
        dst, type_ = op.dst, op.type
        named = isinstance(dst.base, Sym) or (isinstance(dst.base, Reg) and dst.base.name in known)
        for offset in range(0, size if named else type_.bytes, type_.bytes):
            yield _Access("elements", dst, offset, type_.bytes, op.dst_space)


def _tensor(test: Test, op: BulkCopy, place: Address) -> Iterator[_Access]:
    """The sides of a tensor copy as the tensor map is at first."""
    tensor = test.objects[place.base.name].tensormap if isinstance(place.base, Sym) else None
    if tensor is None:
        return
    near = op.src if op.dst is None else op.dst
    if near is not None:
        space = op.src_space if op.dst is None else op.dst_space
        yield _Access("copy", near, 0, tensor.size, space, op.mask is not None)
    coordinates = [c.value for c in op.coordinates if isinstance(c, Imm)]
    if len(coordinates) == len(op.coordinates) == len(tensor.box):
        width = tensor.type.bytes
        far = Address(Sym(tensor.target), 0)
        for offset in _elements(tensor, coordinates):
            if op.reduction is not None:
                yield _Access("elements", far, offset, width, "global")
        if op.reduction is None:
            for offset, size in _joined(_elements(tensor, coordinates), width):
                yield _Access("copy", far, offset, size, "global")


def _elements(tensor: TensorMap, coordinates: Sequence[int]) -> list[int]:
    """The offsets of the elements of a box that lie in its tensor, the innermost dimension first (5.5.3)."""
    found = [0]
    for i in reversed(range(len(tensor.box))):
        stride = tensor.type.bytes if i == 0 else tensor.strides[i - 1]
        inside = [
            (coordinates[i] + position) * stride
            for position in range(0, tensor.box[i], tensor.steps[i])
            if 0 <= coordinates[i] + position < tensor.dims[i]
        ]
        found = [outer + offset for outer in found for offset in inside]
    return found


def _joined(offsets: Sequence[int], width: int) -> list[Chunk]:
    """Adjacent elements of ``width`` bytes as one chunk."""
    found: list[Chunk] = []
    for offset in offsets:
        if found and sum(found[-1]) == offset:
            found[-1] = (found[-1][0], found[-1][1] + width)
        else:
            found.append((offset, width))
    return found
