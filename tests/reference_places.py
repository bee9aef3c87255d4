"""Which bytes the instructions of a test name, in the reference: mbarriers, division of what is accessed, and what is
written whose value is left open. All is read off the text of the instructions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ptxmm.program.condition import MemoryTerm, terms
from ptxmm.program.symbols import addresses, symbols
from ptxmm.program.test import MemoryObject, Test, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import Address, Imm, Op, Reg, Sym

Objects = Mapping[str, MemoryObject]
Span = tuple[int, int]
"""The first byte and the end."""

ARRIVING = (
    ops.MbarrierInit, ops.MbarrierArrive, ops.MbarrierTx, ops.MbarrierWait, ops.CopyAsyncArrive, ops.TensorCommit,
)  # fmt: skip


# -- registers that name a variable


class Names:
    """What the registers of ``thread`` name: those that hold the address of one variable, plus a constant, always."""

    def __init__(self, thread: Thread, objects: Objects) -> None:
        self.thread, self.objects = thread, objects
        self.makers: dict[str, list[Op]] = {}
        for op in thread.body:
            for name, _ in definitions(op):
                self.makers.setdefault(name, []).append(op)

    def of(self, name: str, asked: frozenset[str] = frozenset()) -> tuple[str, int] | None:
        """The variable that the register names, and the offset in it. One made of itself names none."""
        made, initial = self.makers.get(name, []), self.thread.initial
        if name in asked:
            return None
        if not made and name in initial and self.thread.registers[name].bits in (32, 64):
            return variable_at(initial[name], self.objects)
        if len(made) != 1 or name in initial or made[0].guard is not None:
            return None
        op, asked = made[0], asked | {name}
        if isinstance(op, ops.ConvertAddress) or (isinstance(op, ops.Convert) and op.to.bits in (32, 64)):
            return self.base(op.value, asked)
        if not isinstance(op, ops.Alu) or op.op not in ("mov", "add"):
            return None
        found = [place for s in op.sources if (place := self.base(s, asked)) is not None]
        others = [s.value for s in op.sources if isinstance(s, Imm)]
        if len(found) != 1 or len(others) != len(op.sources) - 1:
            return None
        return found[0][0], found[0][1] + sum(others)

    def base(self, item: object, asked: frozenset[str] = frozenset()) -> tuple[str, int] | None:
        if isinstance(item, Sym):
            return item.name, item.offset
        return self.of(item.name, asked) if isinstance(item, Reg) else None

    def place(self, address: Address) -> tuple[str, int] | None:
        """The variable and the offset of an address operand, None where that is not known."""
        found = self.base(address.base)
        return None if found is None else (found[0], found[1] + address.offset)


def variable_at(address: int, objects: Objects) -> tuple[str, int] | None:
    """The variable whose byte has this address, as a generic one or in a window."""
    own = [item for item in objects.values() if item.virtual == item.key]
    for item in own:
        for start in (item.window, item.mapped) if item.window else ():
            if start and 0 <= address - start < item.size:
                return item.key, address - start
    return next(((o.key, address - o.address) for o in own if 0 <= address - o.address < o.size), None)


# -- mbarriers


def written_at(op: Op) -> list[Address]:
    """The addresses where ``op`` changes memory, every operation on an mbarrier that one."""
    match op:
        case ops.Load() | ops.LoadMatrix() | ops.WmmaLoad() | ops.TensorLoad() | ops.TensormapFence():
            return []
        case ops.Multimem(kind="ld_reduce"):
            return []
        case ops.CopyAsync() | ops.TensormapCopyFence() | ops.TensorCopy() | ops.TensorProduct():
            return [op.dst]
        case ops.BulkCopy():
            return [address for address in (op.dst, op.mbarrier) if address is not None]
        case ops.AsyncStore():
            return [op.address, op.mbarrier]
    return addresses(op)


def barriers_of(op: Op) -> list[Address]:
    """The operands of ``op`` that are mbarriers."""
    if isinstance(op, ARRIVING):
        return [op.address]
    found = op.mbarrier if isinstance(op, ops.AsyncStore | ops.BulkCopy) else None
    return [] if found is None else [found]


def mbarriers(threads: Sequence[Thread], objects: Objects) -> set[str]:
    """The variables that are mbarriers: declared as such, or named as one by an instruction; where one is found by a
    register, also 64-bit ``.shared`` variables whose address is taken, and that are of no other use. With them those of
    the same name in other CTAs, and all aliases."""
    found = {key for key, item in objects.items() if item.mbarrier}
    hidden, taken, used = False, set[str](), set[str]()
    for thread in threads:
        names = Names(thread, objects)
        for op in thread.body:
            here = [names.place(place) for place in barriers_of(op)]
            hidden |= None in here
            own = {place[0] for place in here if place is not None}
            found |= {key for key in own & objects.keys() if objects[key].space == "shared"}
            fields = (getattr(op, word, None) for word in ("address", "dst", "src", "tensormap"))
            memory = any(isinstance(field, Address) for field in fields)
            (used if memory else taken).update(set(symbols(op)) - own)
            others = [names.place(place) for place in addresses(op) if place not in barriers_of(op)]
            used |= {place[0] for place in others if place is not None}
        for value in thread.initial.values():
            taken |= {key for key, item in objects.items() if begins_in(item, value)}
    if hidden:
        words = {objects[key].name for key in used & objects.keys()}
        for key in (taken - used) & objects.keys():
            item = objects[key]
            if item.space == "shared" and item.type.bits == 64 and item.name not in words:
                found.add(key)
    shared = {(objects[key].name, objects[key].type) for key in found if objects[key].space == "shared"}
    physical = {objects[key].physical for key in found}
    return {
        key
        for key, item in objects.items()
        if item.physical in physical or (item.space == "shared" and (item.name, item.type) in shared)
    }


def begins_in(item: MemoryObject, address: int) -> bool:
    """Whether a number is the address of a byte of ``item``; one of 32 bits is one in the window of its space."""
    if item.space == "shared" and address < 1 << 32:
        address += item.address >> 32 << 32
    return 0 <= address - item.address < item.size


def computes_with_states(threads: Sequence[Thread]) -> bool:
    """Whether some thread does more with the state that an arrival returns than move it, store it and wait for it."""
    for thread in threads:
        states = {op.dst.name for op in thread.body if isinstance(op, ops.MbarrierArrive) and op.dst is not None}
        moves = [op for op in thread.body if isinstance(op, ops.Select) or (isinstance(op, ops.Alu) and op.op == "mov")]
        for _ in thread.body:
            states |= {n for op in moves if states & {u for u, _ in uses(op)} for n, _ in definitions(op)}
        for op in thread.body:
            harmless = op in moves or isinstance(op, ops.MbarrierWait | ops.Store)
            if not harmless and states & {name for name, _ in uses(op)}:
                return True
    return False


# -- what is written whose value is left open


def made_up(threads: Sequence[Thread], objects: Objects) -> set[str]:
    """The physical objects that ``discard`` and ``wmma.store`` may write."""
    found: set[str] = set()
    for thread in threads:
        names = Names(thread, objects)
        for op in thread.body:
            if not isinstance(op, ops.Discard | ops.WmmaStore):
                continue
            base = names.base(op.address.base)
            if base is not None:
                found |= set(locations(objects[base[0]]))
                continue
            if isinstance(op, ops.Discard):
                spaces, size = {"global"}, op.size
            else:
                spaces = {"global", "shared"} if op.space is None else {op.space.partition("::")[0]}
                known = op.stride is None or isinstance(op.stride, Imm)
                size = op.tile.span(op.stride.value if isinstance(op.stride, Imm) else None) if known else 1
            found |= {item.physical for item in objects.values() if item.space in spaces and item.size >= size}
    return found


def locations(item: MemoryObject) -> tuple[str, ...]:
    return item.replicas or (item.physical,)


# -- division (decisions A12, A13)


class Division:
    """How accesses of more than one scalar are divided. ``split``: 16 bytes are two accesses of 8. ``whole``: what ld
    and st access of a vector is in one piece.

    Of an object: ``scalars`` are accessed at once, ``parts`` are elements of vectors, ``copied`` moved by copies,
    ``tiles`` lines of matrices with the bytes of an element, ``shown`` what the condition names.
    """

    def __init__(self, test: Test, split: bool = False, whole: bool = False) -> None:
        self.test, self.split, self.whole = test, split, whole
        self.scalars: dict[str, list[Span]] = {}
        self.parts: dict[str, list[Span]] = {}
        self.copied: dict[str, list[Span]] = {}
        self.tiles: dict[str, list[tuple[int, int, int]]] = {}
        self.shown: dict[str, list[Span]] = {}
        self.borders: dict[tuple[str, int], bool] = {}
        self.unnamed: list[tuple[int, str | None]] = []  # sizes of accesses by registers, with the space they name
        for thread in test.threads:
            self.names = Names(thread, test.objects)
            for op in thread.body:
                self.look(op)
        asked = [*test.locations]
        for part in (None if test.condition is None else test.condition.proposition, test.filter):
            asked += [] if part is None else list(terms(part))
        for term in asked:
            if isinstance(term, MemoryTerm):
                begin = term.index * term.type.bytes
                self.shown.setdefault(test.objects[term.key].physical, []).append((begin, begin + term.type.bytes))

    def of(self, key: str, offset: int, size: int, unit: int = 0) -> list[tuple[int, int]]:
        """Offset and size of each access to ``size`` bytes at ``offset``; ``unit``: of a line of a matrix, whose
        elements have as many bytes."""
        item = self.test.objects[self.test.objects[key].physical]
        inner = [p for p in range(offset + 1, offset + size) if self.border(item, p)]
        for point in range(offset + unit, offset + size, unit) if unit else ():
            if self.looked_at(item, point):
                inner.append(point)
        points = [offset, *sorted(set(inner)), offset + size]
        return [(a, b - a) for a, b in pairwise(points)]

    def border(self, item: MemoryObject, point: int) -> bool:
        """Whether no access of more than one scalar goes across ``point`` at once; it is worked out once."""
        found = self.borders.get((item.key, point))
        if found is None:
            found = self.borders[item.key, point] = self.divides(item, point)
        return found

    def divides(self, item: MemoryObject, point: int) -> bool:
        key = item.key
        scalars, parts, copied = (table.get(key, []) for table in (self.scalars, self.parts, self.copied))
        if ends(scalars, point):
            return True
        if not self.free(item, scalars, point):
            return False
        if ends([*parts, *copied], point):
            return True
        fine = self.tells_elements(item)
        for begin, length, unit in self.tiles.get(key, []):
            if begin <= point <= begin + length and (point - begin) % (unit if fine else length) == 0:
                return True
        width = self.width(item)
        return bool(width) and point % width == 0 and self.free(item, [*scalars, *parts], point)

    def free(self, item: MemoryObject, spans: Iterable[Span], point: int) -> bool:
        """Whether a byte beside ``point`` is in none of ``spans``."""
        beside = [byte for byte in (point - 1, point) if 0 <= byte < item.size]
        return any(not any(begin <= byte < end for begin, end in spans) for byte in beside)

    def width(self, item: MemoryObject) -> int:
        """The equal elements that accesses by registers divide ``item`` in; 0: there are none."""
        sizes = {n for n, space in self.unnamed if space is None or space.partition("::")[0] == item.space}
        return item.type.bytes if item.type.bytes in sizes else min(sizes, default=0)

    def looked_at(self, item: MemoryObject, point: int) -> bool:
        """Whether something looks at an element of a matrix that ends or begins at ``point``."""
        spans = [s for table in (self.scalars, self.parts, self.shown) for s in table.get(item.key, [])]
        return bool(self.width(item)) or any(begin <= point <= end for begin, end in spans)

    def tells_elements(self, item: MemoryObject) -> bool:
        """Whether a ``wmma.store`` to ``item`` may race with another write, and copies look at what comes of it."""
        if not self.tiles.get(item.key):
            return False
        everything = [op for thread in self.test.threads for op in thread.body]
        if not any(isinstance(op, ops.WmmaStore) for op in everything):
            return False
        writes = 0
        for op in everything:
            for address in written_at(op):
                base = address.base
                here = locations(self.test.objects[base.name]) if isinstance(base, Sym) else (item.key,)
                writes += item.key in here
        products = any(isinstance(op, ops.Wgmma | ops.TensorCopy | ops.TensorProduct) for op in everything)
        return writes > 1 and (bool(self.copied.get(item.key)) or (item.space == "shared" and products))

    def note(
        self, table: dict[str, list[Span]] | None, at: Address, offset: int, size: int, space: str | None,
        everywhere: bool = False, unit: int = 0,
    ) -> None:  # fmt: skip
        """Note ``size`` bytes at ``offset`` from the address; ``table`` None: the line of a matrix."""
        place = self.names.place(at)
        if place is None:
            if table is not None and table is not self.copied:
                self.unnamed.append((size, space))
            return
        named, begin = self.test.objects[place[0]], place[1] + offset
        for item in self.test.objects.values():
            if item.name == named.name and (everywhere or item is named):
                for key in locations(item):
                    if table is None:
                        self.tiles.setdefault(key, []).append((begin, size, unit))
                    else:
                        table.setdefault(key, []).append((begin, begin + size))

    def look(self, op: Op) -> None:
        """Note what ``op`` accesses."""
        for place in barriers_of(op):
            multicast = isinstance(op, ops.BulkCopy) and op.mask is not None
            self.note(self.scalars, place, 0, 8, "shared", multicast)
        match op:
            case ops.Load() | ops.Store() | ops.Atomic() | ops.Multimem():
                apart = ops.elements(op) if isinstance(op, ops.Multimem) else ops.elements(op, self.split, self.whole)
                one = len(apart if isinstance(op, ops.Multimem) else ops.elements(op)) == 1
                space = "global" if isinstance(op, ops.Multimem) else op.space
                for part in apart:
                    table = self.scalars if one or part.items > 1 else self.parts
                    self.note(table, op.address, part.offset, part.type.bytes, space)
            case ops.AsyncStore():
                table = self.scalars if len(op.values) == 1 else self.parts
                for i in range(len(op.values)):
                    self.note(table, op.address, i * op.type.bytes, op.type.bytes, "shared")
            case ops.TensormapFence() | ops.TensormapReplace() if op.address is not None:
                space = op.space if isinstance(op, ops.TensormapReplace) else None
                self.note(self.scalars, op.address, 0, 128, space)
            case ops.TensormapCopyFence():
                self.note(self.scalars, op.dst, 0, 128, "global")
                self.note(self.scalars, op.src, 0, 128, "shared")
            case ops.CopyAsync():
                self.note(self.copied, op.dst, 0, op.size, "shared")
                self.note(self.copied, op.src, 0, op.size, "global")
            case ops.Discard():
                self.note(self.copied, op.address, 0, op.size, "global")
            case ops.StoreBulk(size=Imm(size)):
                self.note(self.copied, op.address, 0, size, "shared")
            case ops.WmmaLoad() | ops.WmmaStore():
                tile = op.tile
                if op.stride is None or isinstance(op.stride, Imm):
                    stride = tile.length if op.stride is None else op.stride.value
                    for offset, size in tile.segments(stride) if stride >= tile.length else ():
                        self.note(None, op.address, offset, size, op.space, unit=tile.unit)
            case ops.BulkCopy():
                self.bulk(op)

    def bulk(self, op: ops.BulkCopy) -> None:
        everywhere = op.mask is not None
        if op.tensormap is not None:
            self.note(self.scalars, op.tensormap, 0, 128, None)
            if isinstance(op.tensormap.base, Sym):
                self.tensor(op, op.tensormap.base)
        elif isinstance(op.size, Imm) and op.src is not None and op.dst is not None:
            size = op.size.value
            mask = op.byte_mask.value if isinstance(op.byte_mask, Imm) else 0xFFFF
            self.note(self.copied, op.src, 0, size, op.src_space)
            for begin, end in rows([at for at in range(size) if mask >> at % 16 & 1], 1):
                self.note(self.copied, op.src, begin, end - begin, op.src_space)
                if op.reduction is None:
                    self.note(self.copied, op.dst, begin, end - begin, op.dst_space, everywhere)
            if op.reduction is None or op.type is None:
                return
            many = size if self.names.place(op.dst) is not None else op.type.bytes
            for offset in range(0, many, op.type.bytes):
                self.note(self.parts, op.dst, offset, op.type.bytes, op.dst_space)

    def tensor(self, op: ops.BulkCopy, name: Sym) -> None:
        """The two sides of a copy by the tensor map as it is at first."""
        tensor = self.test.objects[name.name].tensormap
        if tensor is None:
            return
        near, space = (op.src, op.src_space) if op.dst is None else (op.dst, op.dst_space)
        if near is not None:
            self.note(self.copied, near, 0, tensor.size, space, op.mask is not None)
        corner = [c.value for c in op.coordinates if isinstance(c, Imm)]
        if not len(corner) == len(op.coordinates) == len(tensor.box):
            return
        width, far = tensor.type.bytes, Address(Sym(tensor.target), 0)
        offsets = sorted(self.inside(tensor.box, tensor.dims, tensor.steps, (width, *tensor.strides), corner))
        if op.reduction is not None:
            for offset in offsets:
                self.note(self.parts, far, offset, width, "global")
            return
        for offset, end in rows(offsets, width):
            self.note(self.copied, far, offset, end - offset, "global")

    def inside(
        self, box: Sequence[int], dims: Sequence[int], steps: Sequence[int], strides: Sequence[int],
        corner: Sequence[int],
    ) -> Iterator[int]:  # fmt: skip
        """The offsets of the elements of a box that lie in its tensor."""
        if not box:
            yield 0
            return
        for outer in self.inside(box[1:], dims[1:], steps[1:], strides[1:], corner[1:]):
            for index in range(corner[0], corner[0] + box[0], steps[0]):
                if 0 <= index < dims[0]:
                    yield outer + index * strides[0]


def ends(spans: Iterable[Span], point: int) -> bool:
    return any(point in span for span in spans)


def rows(offsets: Collection[int], width: int) -> Iterator[Span]:
    """The items of ``width`` bytes at ``offsets``, those that lie side by side together."""
    there = set(offsets)
    for begin in offsets:
        if begin - width not in there:
            end = begin
            while end in there:
                end += width
            yield begin, end
