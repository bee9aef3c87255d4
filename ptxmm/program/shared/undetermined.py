"""What an instruction writes whose value the PTX ISA leaves open: ``discard`` (9.7.10.16), ``wmma.store`` (9.7.15.3.4).

Such a value is as unknown as that of memory without an initial value, and stands for itself in the same way (see
``unknown``): each byte that something may come to see gets a value of its own, the others share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ptxmm.program.condition import MemoryTerm, Term
from ptxmm.program.shared.chunks import Chunks
from ptxmm.program.shared.control import around
from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.test import MemoryObject, Test, Thread
from ptxmm.ptx.ops import (
    Address,
    BulkCopy,
    CopyAsync,
    Discard,
    Imm,
    Op,
    Reg,
    Sym,
    TensorCopy,
    TensorProduct,
    Wgmma,
    WmmaStore,
    touched,
)
from ptxmm.ptx.spelling import refuse

Place = tuple[str, int]
"""A byte: the key of its physical object and its offset there."""

WRITERS = (Discard, WmmaStore)
"""The operations that write undetermined values; each has them as its ``content``."""

_WORD = 8
"""An access of at most so many bytes sees one value; a longer part is told apart by the elements of its object."""


class Writer(Struct, frozen=True):
    """An instruction that writes undetermined values. ``thread`` and ``pc`` say which; ``name``: in results.

    ``ranges``: for each physical object that it may write, the first byte and the end; ``begin``: where its first byte
    is if that is known, so that offsets in results count from there.
    """

    thread: int
    pc: int
    name: str
    ranges: Mapping[str, tuple[int, int]]
    begin: int


def writers(threads: Sequence[Thread], objects: Mapping[str, MemoryObject]) -> list[Writer]:
    """The instructions that write undetermined values, in the order of the threads."""
    found: list[Writer] = []
    for number, thread in enumerate(threads):
        if not any(isinstance(op, WRITERS) for op in thread.body):
            continue
        known = known_addresses(thread, objects)
        for pc, op in enumerate(thread.body):
            if not isinstance(op, WRITERS):
                continue
            if isinstance(op, Discard):
                what = "discard"
                ranges, begin = _reach(op.address, op.size, ("global",), known, objects)
            else:
                what = "wmma.store"
                stride = op.stride.value if isinstance(op.stride, Imm) else op.tile.length
                size = op.tile.span(stride) if op.stride is None or isinstance(op.stride, Imm) else None
                ranges, begin = _reach(op.address, size, _spaces(op.space), known, objects)
            found.append(Writer(number, pc, f"{what}({thread.name} line {op.source.span.line})", ranges, begin))
    return found


def untorn_finals(test: Test) -> frozenset[str]:
    """The physical objects whose final values are not torn although values may be: those that an instruction may write
    undetermined values to. Of which of these a byte is that remains tells nothing."""
    return frozenset(key for writer in writers(test.threads, test.objects) for key in writer.ranges)


def _spaces(space: str | None) -> tuple[str, ...]:
    return ("global", "shared") if space is None else (space.partition("::")[0],)


def _reach(
    address: Address,
    size: int | None,
    spaces: Sequence[str],
    known: Mapping[str, Sym],
    objects: Mapping[str, MemoryObject],
) -> tuple[dict[str, tuple[int, int]], int]:
    """What ``size`` bytes (None: any number) at ``address`` in one of ``spaces`` may be, and where they begin if that
    is known (else 0)."""
    base = _named(address, known)
    if base is None:
        items = {o.physical: o for o in objects.values() if o.space in spaces and o.size >= (size or 1)}
        return {key: (0, item.size) for key, item in items.items()}, 0
    item = objects[base.name]
    begin = base.offset + address.offset
    end = item.size if size is None else begin + size
    return {key: (max(0, begin), min(end, item.size)) for key in locations(item)}, begin


def _named(address: Address, known: Mapping[str, Sym]) -> Sym | None:
    base = address.base
    if isinstance(base, Reg):
        base = known.get(base.name, base)
    return base if isinstance(base, Sym) else None


def refuse_loops(test: Test, found: Iterable[Writer]) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) for a writer that may be executed more than once: each time writes
    values of its own."""
    for writer in found:
        thread = test.threads[writer.thread]
        op = thread.body[writer.pc]
        if around(thread)[writer.pc]:
            what = op.source.text.partition(" ")[0]
            message = f"{what} in a loop is not supported: it writes other undetermined values each time"
            raise refuse(op, message)


def readable(test: Test, shown: Iterable[Term] = ()) -> set[Place]:
    """The bytes that an instruction, the condition, the filter, ``locations`` or ``shown`` may come to see.

    Of what is only copied from one named place to another, those that are seen at the destination.
    """
    ranges: dict[str, set[tuple[int, int]]] = {}
    copied: list[tuple[MemoryObject, int, MemoryObject, int, int]] = []

    def add(item: MemoryObject, first: int, end: int) -> None:
        for key in locations(item):
            ranges.setdefault(key, set()).add((max(0, first), min(end, test.objects[key].size)))

    def add_all(space: str | None = None) -> None:
        for item in test.objects.values():
            if space in (None, item.space):
                add(item, 0, item.size)

    for thread in test.threads:
        known = known_addresses(thread, test.objects)
        for op in thread.body:
            sides = _copy(op, known)
            if sides is not None:
                to, frm, size = sides
                copied.append((test.objects[frm.name], frm.offset, test.objects[to.name], to.offset, size))
                continue
            for address, size, space in _sources(op):
                if isinstance(address.base, Imm):
                    continue  # a number, where nothing is
                base = _named(address, known)
                if base is not None:
                    begin = base.offset + address.offset
                    add(test.objects[base.name], begin, begin + size)
                else:
                    add_all(None if space is None else space.partition("::")[0])
            if isinstance(op, BulkCopy) and op.tensormap is not None:
                add_all("global")  # its tensor map says which object it copies, and may change
            if isinstance(op, TensorCopy | TensorProduct) or (isinstance(op, Wgmma) and not op.matrices):
                add_all("shared")  # its descriptors say what it reads
    for term in (*test.named, *shown):
        if isinstance(term, MemoryTerm):
            add(test.objects[term.key], term.index * term.type.bytes, (term.index + 1) * term.type.bytes)
    found: set[Place] = set()
    for key, parts in ranges.items():
        reached = 0
        for first, end in sorted(parts):
            found.update((key, i) for i in range(max(first, reached), end))
            reached = max(reached, end)
    before = -1
    while before != len(found):
        before = len(found)
        for source, begin, target, at, size in copied:
            for i in range(size):
                if any((key, at + i) in found for key in locations(target)):
                    found.update(
                        (key, begin + i) for key in locations(source) if 0 <= begin + i < test.objects[key].size
                    )
    return found


def _copy(op: Op, known: Mapping[str, Sym]) -> tuple[Sym, Sym, int] | None:
    """Destination, source and size of a plain copy between two places that are named, else None."""
    match op:
        case CopyAsync(dst, src, size):
            pass
        case BulkCopy(tensormap=None, reduction=None, mask=None, partial=False, size=Imm(size)) if op.dst and op.src:
            dst, src = op.dst, op.src
        case _:
            return None
    to, frm = _named(dst, known), _named(src, known)
    if to is None or frm is None:
        return None
    return Sym(to.name, to.offset + dst.offset), Sym(frm.name, frm.offset + src.offset), size


def locations(item: MemoryObject) -> tuple[str, ...]:
    """The keys of the physical objects that ``item`` stands for."""
    return item.replicas or (item.physical,)


def _sources(op: Op) -> Iterator[tuple[Address, int, str | None]]:
    """What ``op`` reads: addresses, numbers of bytes, 2**32 where it is not known, and state spaces that it says."""
    for touch in touched(op):
        if touch.reads:
            size = touch.size if touch.division == "elements" else None
            yield touch.address, 1 << 32 if size is None else size, touch.rule.form


def elements(test: Test, writer: Writer, seen: set[Place], chunks: Chunks) -> Iterator[list[Place]]:
    """The parts of what ``writer`` may write that have bytes in ``seen``, as the accesses of the test divide them."""
    for key, (low, high) in writer.ranges.items():
        for first, size in chunks.of(key, low, high - low) if low < high else ():
            step = size if size <= _WORD else test.objects[key].type.bytes
            for begin in range(first, first + size, step):
                part = [(key, i) for i in range(begin, min(begin + step, first + size))]
                if not seen.isdisjoint(part):
                    yield part


__all__ = ["WRITERS", "Place", "Writer", "elements", "locations", "readable", "refuse_loops", "writers"]
