"""Asynchronous operations of the reference: copies, reductions, remote stores, their groups and the waits for them.

Each instruction leaves an ISS event in program order; what it does is not in program order (PTX ISA 8.9.1.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ptxmm.program.test import MemoryObject
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type
from tests import reference_products, reference_tensors
from tests.reference_accesses import placed, update
from tests.reference_events import Event, Later, Place, Run, Step
from tests.reference_expressions import Expr, Leaf, const, is_const, joined_bytes, reads

if TYPE_CHECKING:
    from tests.reference_threads import Walker

B64 = Type("b", 64)
U32 = Type("u", 32)

Where = tuple[MemoryObject, int]
"""An object and an offset in it."""


class Operation:
    """The events of one asynchronous operation, in the making."""

    def __init__(self, walker: Walker, run: Run, common: Event) -> None:
        self.run = run
        self.index, self.base, self.common = walker.index, len(run.events), replace(common, sync=False)
        self.events = [replace(common, kind="ISS")]

    def add(self, event: Event) -> Leaf:
        self.events.append(event)
        return (self.index, self.base + len(self.events) - 1)

    def copy_in(
        self, walker: Walker, source: Where, size: int, proxy: str, addr: frozenset[Leaf]
    ) -> list[tuple[Expr, int, int]]:
        """Reads of the source, one for each chunk; the value that they make."""
        item, offset = source
        found: list[tuple[Expr, int, int]] = []
        for at, length in walker.chunks.of(item.key, offset, size) if size else ():
            event = placed(replace(self.common, kind="R", proxy=proxy, addr=addr), item, at, length)
            found.append((("read", self.add(event)), 0, length))
        return found

    def copy_out(
        self, walker: Walker, target: Where, value: Expr, size: int, proxy: str, addr: frozenset[Leaf]
    ) -> None:
        """Writes of ``value`` to the target, one for each chunk."""
        item, offset = target
        for at, length in walker.chunks.of(item.key, offset, size):
            piece = joined_bytes((value, at - offset, length))
            event = replace(self.common, kind="W", proxy=proxy, addr=addr, value=piece, data=reads(piece))
            self.add(placed(event, item, at, length))

    def reduce(self, target: Where, value: Expr, size: int, name: str, kind: Type, event: Event) -> None:
        """A read and a write for each element of ``kind``; ``event`` says how strong they are."""
        item, offset = target
        for first in range(0, size, kind.bytes):
            here = placed(replace(event, amo=True), item, offset + first, kind.bytes)
            old = self.add(replace(here, kind="R", noret=True))
            new = update(name, kind, ("read", old), joined_bytes((value, first, kind.bytes)), item)
            self.add(replace(here, kind="W", read_half=old, value=new, data=reads(new)))

    def complete(self, place: Where, amount: Expr, addr: frozenset[Leaf]) -> Later:
        """The complete_tx operation on the mbarrier at ``place``; ``addr``: what places and sizes depend on."""
        item, offset = place
        mbarrier: Place = (item.physical, offset)
        event = replace(self.common, kind="MBA", scope="cluster", proxy="GEN", rel=True, place=mbarrier, addr=addr)
        return Later(self.add(replace(event, owner=item.owner))[1], mbarrier, amount)


def perform(walker: Walker, run: Run, op: ops.Op, common: Event) -> Iterator[Run]:
    match op:
        case ops.CopyAsync():
            yield from copy_async(walker, run, op, common)
        case ops.BulkCopy():
            yield from bulk(walker, run, op, common)
        case ops.AsyncStore():
            yield from async_store(walker, run, op, common)
        case ops.CopyAsyncArrive():
            for fork, item, offset, address in walker.places(run, op.address, 8, 8):
                place = (item.physical, offset)
                n = len(run.events)
                arrival = replace(common, kind="MBA", scope="cta", proxy="GEN", rel=True, sync=False, place=place)
                arrival = replace(arrival, fences="cp.async", addr=reads(address))
                later = (Later(n + 1, place, None),)
                step = Step(walker.index, "issue", op, place=None if op.noinc else place, later=later)
                new = replace(common, kind="ISS")
                yield replace(fork, pc=run.pc + 1, events=(*run.events, new, arrival), steps=(*run.steps, step))
        case ops.AsyncCommit(kind=kind) | ops.AsyncWait(kind=kind, pending=None):
            members = frozenset(step for k, step in run.loose if k == kind)
            loose = tuple(item for item in run.loose if item[0] != kind)
            if kind == "cp.async" and reference_products.clash(run.events, members):
                walker.strays.append(run)
            elif isinstance(op, ops.AsyncCommit):
                yield replace(run, pc=run.pc + 1, groups=(*run.groups, (kind, members)), loose=loose)
            else:
                made = (*run.groups, (kind, members))
                done = frozenset().union(*(steps for k, steps in made if k == kind))
                events = (*run.events, replace(common, kind="AW", done=done))
                yield replace(run, pc=run.pc + 1, events=events, groups=made, loose=loose)
        case ops.AsyncWait(kind=kind, pending=int(pending), read=read):
            groups = [members for k, members in run.groups if k == kind]
            done = frozenset().union(*groups[: len(groups) - pending] if pending else groups)
            complete = len(groups) - pending if kind == "wgmma" else -1
            waited = replace(common, kind="AW", done=done, read=read, group=complete)
            yield replace(run, pc=run.pc + 1, events=(*run.events, waited))
        case _:
            raise NotImplementedError(op)


def copy_async(walker: Walker, run: Run, op: ops.CopyAsync, common: Event) -> Iterator[Run]:
    """``cp.async``: weak generic accesses; what is not read is written as zeros."""
    given = const(op.size) if op.source_size is None else walker.operand(run, op.source_size, U32)
    if not is_const(given):
        raise NotImplementedError(op)
    size = min(given[1], op.size)
    if op.ignore is not None:
        ignored = run.registers[op.ignore.name]
        if not is_const(ignored):
            raise NotImplementedError(op)
        size = 0 if bool(ignored[1]) != op.ignore_negated else size
    for first, source, offset, src in walker.places(run, op.src, op.size, op.size):
        for last, target, at, dst in walker.places(first, op.dst, op.size, op.size):
            new = Operation(walker, run, common)
            found = new.copy_in(walker, (source, offset), size, "GEN", reads(src))
            value = joined_bytes(*found, (const(0), 0, op.size - size))
            new.copy_out(walker, (target, at), value, op.size, "GEN", reads(dst))
            loose = (*run.loose, ("cp.async", common.step))
            yield replace(last, pc=run.pc + 1, events=(*run.events, *new.events), loose=loose)


def bulk(walker: Walker, run: Run, op: ops.BulkCopy, common: Event) -> Iterator[Run]:
    """``cp.async.bulk``, ``cp.reduce.async.bulk`` and their tensor forms."""
    if op.tensormap is None:
        if op.size is None:
            raise NotImplementedError(op)
        size = walker.operand(run, op.size, U32)
        if not is_const(size):
            raise NotImplementedError(op)
        new = Operation(walker, run, common)
        yield from bulk_sides(walker, run, op, new, size[1], reads(size))
        return
    yield from reference_tensors.tensor(walker, run, op, common)


def bulk_sides(
    walker: Walker,
    run: Run,
    op: ops.BulkCopy,
    made: Operation,
    size: int,
    addr: frozenset[Leaf],
) -> Iterator[Run]:
    """The source, the destinations and the mbarrier."""
    events = list(made.events)
    assert op.src is not None and op.dst is not None
    for first, source, offset, src in walker.places(run, op.src, size, 16):
        for second, target, at, dst in walker.places(first, op.dst, size, 16):
            if op.mbarrier is None:
                made.events = list(events)
                bulk_events(walker, op, made, (source, offset), [(target, at)], size, addr | reads(src), reads(dst))
                loose = (*run.loose, ("bulk", made.common.step))
                yield replace(second, pc=run.pc + 1, events=(*run.events, *made.events), loose=loose)
                continue
            for last, item, place, barrier in walker.places(second, op.mbarrier, 8, 8):
                made.events = list(events)
                targets, mbarriers = multicast(walker, run, op, (target, at)), multicast(walker, run, op, (item, place))
                if targets is None or mbarriers is None:
                    walker.strays.append(last)  # a CTA of the mask has no such variable
                    continue
                bulk_events(walker, op, made, (source, offset), targets, size, addr | reads(src), addr | reads(dst))
                decided = addr | reads(src) | reads(dst) | reads(barrier)
                later = [made.complete(place, const(size), decided) for place in mbarriers]
                step = Step(walker.index, "issue", op, later=tuple(later))
                yield replace(last, pc=run.pc + 1, events=(*run.events, *made.events), steps=(*run.steps, step))


def multicast(walker: Walker, run: Run, op: ops.BulkCopy, place: Where) -> list[Where] | None:
    """The same place in each CTA of the mask; None if one of them has no such variable."""
    if op.mask is None:
        return [place]
    mask = walker.operand(run, op.mask, Type("u", 16))
    if not is_const(mask):
        raise NotImplementedError(op)
    found = []
    for rank in range(16):
        if mask[1] >> rank & 1:
            item = walker.sibling(place[0], rank)
            if item is None:
                return None
            found.append((item, place[1]))
    return found


def bulk_events(
    walker: Walker,
    op: ops.BulkCopy,
    made: Operation,
    source: Where,
    targets: list[Where],
    size: int,
    addr_src: frozenset[Leaf],
    addr_dst: frozenset[Leaf],
) -> None:
    bits: Expr = const(0xFFFF) if op.byte_mask is None else walker.operand(made.run, op.byte_mask, Type("u", 16))
    if not is_const(bits):
        raise NotImplementedError(op)
    whole = [at for at in range(size) if bits[1] >> at % 16 & 1] if op.byte_mask is not None else []
    runs = [[at for at in whole if at - whole.index(at) == key] for key in sorted({a - whole.index(a) for a in whole})]
    parts = [(0, size)] if op.byte_mask is None else [(own[0], len(own)) for own in runs]
    value = joined_bytes(*made.copy_in(walker, source, size, "ASY", addr_src))
    for target in targets:
        if op.reduction is None:
            for first, length in parts:
                there, piece = (target[0], target[1] + first), joined_bytes((value, first, length))
                made.copy_out(walker, there, piece, length, "ASY", addr_src | addr_dst)
        else:
            assert op.type is not None
            event = replace(made.common, proxy="ASY", scope="gpu", addr=addr_src | addr_dst)
            made.reduce(target, value, size, op.reduction, op.type, event)
    made.add(replace(made.common, kind="PF", fences="ASY", after="reads"))
    made.add(replace(made.common, kind="PF", fences="ASY", after="writes"))


def async_store(walker: Walker, run: Run, op: ops.AsyncStore, common: Event) -> Iterator[Run]:
    """``st.async`` and ``red.async``: generic accesses, then complete_tx of their bytes."""
    size = len(op.values) * op.type.bytes
    for first, target, at, dst in walker.places(run, op.address, size, size):
        for last, item, place, barrier in walker.places(first, op.mbarrier, 8, 8):
            if item.owner != target.owner:
                walker.strays.append(last)  # both have to be in one CTA (9.7.10.12, 9.7.14.7)
                continue
            new = Operation(walker, run, common)
            values = [(walker.operand(run, v, op.type), 0, op.type.bytes) for v in op.values]
            proxy = "GEN" if walker.readings["stasync"] == "generic" else "ASY"
            event = replace(new.common, proxy=proxy, addr=reads(dst))
            if op.reduction is None:
                for n, piece in enumerate(values):
                    begin = at + n * op.type.bytes
                    parts = (
                        walker.chunks.of(target.key, begin, op.type.bytes)
                        if len(values) > 1
                        else ((begin, op.type.bytes),)
                    )
                    for where, length in parts:
                        value = joined_bytes((piece[0], where - begin, length))
                        write = replace(event, kind="W", value=value, data=reads(value))
                        new.add(placed(write, target, where, length))
            else:
                strong = replace(event, scope="cluster")
                new.reduce((target, at), joined_bytes(*values), size, op.reduction, op.type, strong)
            later = new.complete((item, place), const(size), reads(dst) | reads(barrier))
            step = Step(walker.index, "issue", op, later=(later,))
            yield replace(last, pc=run.pc + 1, events=(*run.events, *new.events), steps=(*run.steps, step))
