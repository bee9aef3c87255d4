"""tcgen05: accesses of tensor memory, copies to it, products in it, and what orders them (9.7.16 of PTX ISA 9.0).

Each is issued in program order, but its accesses come after nothing of its thread but ``after_thread_sync`` fences
and what waits have completed; those to shared memory, in the async proxy, after ``fence.proxy.async`` as well. A
product is not computed: its column of D gets what it read of A in tensor memory, else the first bytes of B.
"""

from __future__ import annotations

from typing import Any

from ptxmm.events.explicit.asynchronous.copies import Sources, bytes_of
from ptxmm.events.explicit.barriers.synchronization import place
from ptxmm.events.explicit.machine import ADDRESS, Effects, Machine
from ptxmm.events.explicit.program import Spot
from ptxmm.events.explicit.values.node import Node
from ptxmm.ptx.ops import (
    COLUMN_BYTES,
    SHAPE_BITS,
    Address,
    Operand,
    ProxyFence,
    TensorCommit,
    TensorCopy,
    TensorFence,
    TensorLoad,
    TensorProduct,
    TensorStore,
    TensorWait,
    Type,
)

_COLUMN = Type("b", 8 * COLUMN_BYTES)
_ALIGNMENT = 16

_TRACKED = {"ld": TensorLoad, "st": TensorStore}


def tensor_fence(machine: Machine, op: TensorFence) -> None:
    """``tcgen05.fence``: an event in program order."""
    machine.add("F")


def tensor_wait(machine: Machine, op: TensorWait) -> None:
    """``tcgen05.wait``: after what earlier loads, or stores, access."""
    machine.add("AW", completes=_performed(machine, _TRACKED[op.kind]))


def _performed(machine: Machine, *kinds: type) -> tuple[int, ...]:
    """The positions of the asynchronous events of earlier operations of some kinds."""
    return tuple(i for i, e in enumerate(machine.trace.events) if e.asynchronous and isinstance(e.op, kinds))


def _fields(machine: Machine) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Issue an operation: what its events in tensor memory have in common, and the issuers of others."""
    events = machine.trace.events
    waited = {i for e in events if isinstance(e.op, TensorWait) for i in e.completes}
    fences = tuple(i for i, e in enumerate(events) if isinstance(e.op, TensorFence) and e.op.kind == "after")
    proxies = tuple(i for i, e in enumerate(events) if isinstance(e.op, ProxyFence) and e.op.kind == "async")
    issuer = len(events)
    machine.add("ISS")
    common = {"asynchronous": True, "issuer": issuer, "issuers": fences, "after": tuple(sorted(waited))}
    return common, (*fences, *proxies)


def tensor_load(machine: Machine, op: TensorLoad) -> None:
    """``tcgen05.ld``."""
    spot, addr = machine.address(op.address, COLUMN_BYTES * len(op.dst), alignment=COLUMN_BYTES)
    common, _ = _fields(machine)
    for i, register in enumerate(op.dst):
        offset = COLUMN_BYTES * i
        cells = None if spot is None else spot.cells(offset, COLUMN_BYTES)
        machine.returned(register, _COLUMN, machine.read(cells, addr, offset, **common))


def tensor_store(machine: Machine, op: TensorStore) -> None:
    """``tcgen05.st``."""
    spot, addr = machine.address(op.address, COLUMN_BYTES * len(op.values), alignment=COLUMN_BYTES)
    common, _ = _fields(machine)
    if spot is None:
        machine.lose()
        return
    for i, operand in enumerate(op.values):
        offset = COLUMN_BYTES * i
        machine.write(spot.cells(offset, COLUMN_BYTES), machine.stored(operand, _COLUMN), addr, offset, **common)


def _source(machine: Machine, descriptor: Operand, size: int | None) -> tuple[Spot | None, int]:
    """Where a matrix in shared memory is; ``size`` None: it reaches to the end of its object."""
    node = machine.expressions.settled(machine.operand(descriptor, ADDRESS))
    where = machine.program.from_descriptor(machine.decide(node, None, "descriptor of this operation"))
    return machine.spot(where, size or 1, _ALIGNMENT, role="matrix"), node.reads


def _read(
    machine: Machine, spot: Spot, size: int, addr: int, operand: int, common: dict[str, Any], reads: list[int]
) -> Sources:
    """Read ``size`` bytes of shared memory, chunk by chunk; ``reads`` gets the positions."""
    found: Sources = []
    for first, length in machine.program.chunks.of(spot.item.physical, spot.offset, size):
        offset = first - spot.offset
        reads.append(len(machine.trace.events))
        node = machine.read(spot.cells(offset, length), addr, offset, operand, **common)
        found.append((offset, length, node))
    return found


def _proxy_fence(machine: Machine, common: dict[str, Any], reads: list[int]) -> None:
    """The implicit fence at the end of an operation that reads shared memory."""
    after = (*common["after"], *reads)
    machine.add("PF", operand=1, **(common | {"after": after, "covers": tuple(reads)}))


def tensor_copy(machine: Machine, op: TensorCopy) -> None:
    """``tcgen05.cp``: from shared memory to the columns of the lane."""
    spot, addr = machine.address(op.dst, op.size, alignment=COLUMN_BYTES)
    source, sources = _source(machine, op.src, op.size)
    common, issuers = _fields(machine)
    reads: list[int] = []
    parts: Sources = []
    if source is not None:
        parts = _read(machine, source, op.size, sources, 0, common | {"issuers": issuers}, reads)
    _proxy_fence(machine, common | {"issuers": issuers}, reads)
    if spot is None:
        machine.lose()
        return
    later = common | {"after": (*common["after"], *reads)}
    for offset in range(0, op.size, COLUMN_BYTES):
        value = bytes_of(machine, parts, offset, COLUMN_BYTES)
        machine.write(spot.cells(offset, COLUMN_BYTES), value, addr, offset, 1, **later)


def tensor_product(machine: Machine, op: TensorProduct) -> None:
    """``tcgen05.mma``."""
    spot, addr = machine.address(op.dst, COLUMN_BYTES, alignment=COLUMN_BYTES)
    matrices = [op.b] if isinstance(op.a, Address) else [op.b, op.a]
    found = [_source(machine, matrix, None) for matrix in matrices]
    descriptor = machine.decide(machine.operand(op.descriptor, _COLUMN), None, "instruction descriptor of this product")
    common, issuers = _fields(machine)
    reads: list[int] = []
    values: list[Node] = []
    for k, (source, addresses) in enumerate(found):
        if source is not None:
            size = source.item.size - source.offset
            fields = common | {"issuers": issuers}
            parts = _read(machine, source, size, addresses, k, fields, reads)
            values.append(bytes_of(machine, parts, 0, COLUMN_BYTES))
    _proxy_fence(machine, common | {"issuers": issuers}, reads)
    before = list(reads)
    if spot is not None:
        common["accumulator"] = spot.cells(0, COLUMN_BYTES)[1], op.kind, descriptor & SHAPE_BITS
    if isinstance(op.a, Address):
        inside, where = machine.address(op.a, COLUMN_BYTES, alignment=COLUMN_BYTES)
        if inside is not None:
            before.append(len(machine.trace.events))
            values.insert(0, machine.read(inside.cells(0, COLUMN_BYTES), where, operand=1, **common))
    if spot is None:
        machine.lose()
        return
    value = values[0] if values else machine.expressions.constant(0)
    later = common | {"after": (*common["after"], *before)}
    machine.write(spot.cells(0, COLUMN_BYTES), value, addr, operand=2, **later)


def tensor_commit(machine: Machine, op: TensorCommit) -> None:
    """``tcgen05.commit``: an arrival after earlier products and copies of the thread."""
    here, addr = place(machine, op.address)
    if here is None:
        return
    done = _performed(machine, TensorCopy, TensorProduct)
    common, _ = _fields(machine)
    machine.step("mb.arrive", place=here, number=1, asynchronous=True)
    after = tuple(sorted({*common["after"], *done}))
    machine.add("MBA", mbarrier=here, addr=addr, **(common | {"after": after}))


EFFECTS: Effects = {
    TensorFence: tensor_fence,
    TensorWait: tensor_wait,
    TensorLoad: tensor_load,
    TensorStore: tensor_store,
    TensorCopy: tensor_copy,
    TensorProduct: tensor_product,
    TensorCommit: tensor_commit,
}
