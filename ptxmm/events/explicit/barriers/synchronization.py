"""Fences, and barriers of CTAs, warps and clusters, and mbarriers (PTX ISA 9.7.14; decisions A27 to A32).

Barriers give events and steps: the simulation of barriers (``barriers``) decides phases, and what waits return.
"""

from __future__ import annotations

from typing import Any

from ptxmm.events.explicit.machine import ADDRESS, U32, Effects, Machine
from ptxmm.events.explicit.values.node import Node
from ptxmm.program.identity import EventId
from ptxmm.ptx.ops import (
    Address,
    Barrier,
    BarrierReduction,
    ClusterBarrier,
    Fence,
    GenericToAsyncFence,
    GridControl,
    MbarrierArrive,
    MbarrierInit,
    MbarrierInitFence,
    MbarrierTx,
    MbarrierWait,
    Operand,
    ProxyFence,
    SetMaxRegisters,
    TensormapFence,
    Type,
    WarpBarrier,
)

_WORD = Type("b", 64)
_MAP_BYTES = 128
MAP_ALIGNMENT = 16


def fence(machine: Machine, op: Fence) -> None:
    """A memory fence."""
    machine.add("F")


def plain_fence(machine: Machine, op: ProxyFence | MbarrierInitFence | GenericToAsyncFence) -> None:
    """A proxy fence of one or both ways, or ``fence.mbarrier_init``."""
    machine.add("F")


def tensormap_fence(machine: Machine, op: TensormapFence) -> None:
    """A fence of the tensormap proxy; the acquire fence covers 128 bytes."""
    if op.address is None:
        machine.add("F")
        return
    spot, addr = machine.address(op.address, _MAP_BYTES, "address of this fence", alignment=MAP_ALIGNMENT, memory=False)
    if spot is not None:
        machine.add("F", place=spot.cells(0, _MAP_BYTES)[1], addr=addr)


def together(machine: Machine, *operands: int | None) -> tuple[object, ...] | None:
    """What an ``.aligned`` instruction is told from others by, where other threads of its warp are in the test."""
    where = machine.program.aligned.get(machine.pc)
    return None if where is None else (where, *operands)


def gather(machine: Machine) -> None:
    """An ``.aligned`` instruction that is no barrier: its thread waits until all of the warp execute it."""
    everyone = (1 << len(machine.program.lanes)) - 1
    machine.step("warp.exchange", number=everyone, operation="aligned", aligned=together(machine))


def barrier(machine: Machine, op: Barrier) -> None:
    """A barrier of the CTA: arrival and, for ``sync``, wait."""
    number, addr, count, data = barrier_operands(machine, op)
    aligned = together(machine, number, count)
    machine.step(f"bar.{op.kind}", number=number, count=count, instance=op.instance, aligned=aligned)
    machine.add("BA", barrier=(number, count), addr=addr, data=data)
    if op.kind == "sync":
        machine.add("BW", barrier=(number, count), stage=1)


def barrier_operands(machine: Machine, op: Barrier | BarrierReduction) -> tuple[int, int, int | None, int]:
    """The number of a barrier and how many threads it is for (None: all), each with the reads that it depends on."""
    number, addr = machine.number(op.barrier, U32, "number of this barrier")
    count, data = (None, 0) if op.count is None else machine.number(op.count, U32, "count of this barrier")
    return number, addr, count, data


def warp_barrier(machine: Machine, op: WarpBarrier) -> None:
    """``bar.warp.sync``."""
    mask, addr = machine.number(op.mask, U32, "mask of this barrier")
    machine.step("warp.sync", number=mask)
    machine.add("BA", barrier=(mask, None), addr=addr)
    machine.add("BW", barrier=(mask, None), stage=1)


def cluster_barrier(machine: Machine, op: ClusterBarrier) -> None:
    """``barrier.cluster.arrive`` or ``.wait``."""
    machine.step(f"cluster.{op.kind}", aligned=together(machine))
    machine.add("CA" if op.kind == "arrive" else "CW")


def set_max_registers(machine: Machine, op: SetMaxRegisters) -> None:
    """``setmaxnreg``: no event."""


def grid_control(machine: Machine, op: GridControl) -> None:
    """``griddepcontrol``: ``wait`` synchronizes with the end of earlier grids; since PTX 9.2, fences before
    ``launch_dependents`` do with the start of the next one."""
    if op.kind == "wait":
        machine.add("API")
    elif machine.program.api and op.triggers(machine.program.test.isa):
        machine.add("GD")


# mbarriers.


def place(machine: Machine, address: Address) -> tuple[tuple[str, int] | None, int]:
    """The mbarrier at ``address``, as physical object and offset (None: outside), and the reads it depends on."""
    spot, addr = machine.address(address, _WORD.bytes, "address of this mbarrier", role="mbarrier", memory=False)
    return (None if spot is None else (spot.item.physical, spot.offset)), addr


def mbarrier_init(machine: Machine, op: MbarrierInit) -> None:
    """``mbarrier.init`` and ``mbarrier.inval``."""
    here, addr = place(machine, op.address)
    count, data = (None, 0) if op.count is None else machine.number(op.count, U32, "count of this mbarrier")
    if here is None:
        return
    if count is None:
        machine.step("mb.inval", place=here)
        machine.add("MBV", mbarrier=here, addr=addr)
    else:
        machine.step("mb.init", place=here, number=count)
        machine.add("MBI", mbarrier=here, addr=addr, data=data)


def mbarrier_arrive(machine: Machine, op: MbarrierArrive) -> None:
    """``mbarrier.arrive`` and ``.arrive_drop``; what it returns is known only from the simulation."""
    here, addr = place(machine, op.address)
    count, data = (1, 0) if op.count is None else machine.number(op.count, U32, "count of this arrival")
    expect, bytes_ = (0, 0) if op.expect is None else machine.number(op.expect, U32, "number of bytes of this arrival")
    if here is None:
        if op.dst is not None:
            machine.assign(op.dst, machine.expressions.constant(0))
        return
    fields: dict[str, Any] = {"place": here, "expect": expect, "no_complete": op.no_complete}
    machine.step("mb.drop" if op.drop else "mb.arrive", number=count, **fields)
    event = machine.add("MBA", mbarrier=here, addr=addr, data=data | bytes_)
    if op.dst is not None:
        machine.assign(op.dst, machine.token(event))


def mbarrier_tx(machine: Machine, op: MbarrierTx) -> None:
    """``mbarrier.expect_tx`` and ``.complete_tx``."""
    here, addr = place(machine, op.address)
    amount, data = machine.number(op.amount, U32, "number of bytes of this operation")
    if here is not None:
        machine.step("mb.expect" if op.kind == "expect_tx" else "mb.complete", place=here, number=amount)
        machine.add("MBA", mbarrier=here, addr=addr, data=data)


def mbarrier_wait(machine: Machine, op: MbarrierWait) -> None:
    """``mbarrier.test_wait`` and ``.try_wait``: each path decides what it returns; what is
    false is a poll (``MBP``), which synchronizes with nothing."""
    here, addr = place(machine, op.address)
    state: EventId | int | None = None
    parity, data = None, 0
    if op.state is not None:
        state, data = _state(machine, op.state), machine.operand(op.state, ADDRESS).reads
    elif op.parity is not None:
        parity, data = machine.number(op.parity, U32, "parity of this wait")
    if here is None:
        machine.assign(op.dst, machine.expressions.constant(0))
        return
    result = machine.wait_result()
    machine.step("mb.wait", place=here, number=result, state=state, parity=parity)
    event = machine.add("MBW" if result else "MBP", mbarrier=here, addr=addr, data=data)
    machine.assign(op.dst, machine.returned_by(event, result))


def _state(machine: Machine, operand: Operand) -> EventId | int:
    """The arrival whose token ``operand`` holds on this path, or the value it has."""
    node: Node = machine.operand(operand, ADDRESS)
    while node.op in ("select", "joined"):
        if node.op == "joined":
            node = node.args[0]
            continue
        chosen = node.args[0].value
        if chosen is None:
            chosen = machine.decide(node.args[0], (0, 1))
        node = node.args[1] if chosen else node.args[2]
    if node.op == "leaf" and node.number >= 0 and machine.trace.reads[node.number].kind == "MBA":
        return machine.trace.reads[node.number].id
    return machine.decide(node, None, "state of this wait")


EFFECTS: Effects = {
    Fence: fence,
    ProxyFence: plain_fence,
    GenericToAsyncFence: plain_fence,
    MbarrierInitFence: plain_fence,
    TensormapFence: tensormap_fence,
    Barrier: barrier,
    WarpBarrier: warp_barrier,
    ClusterBarrier: cluster_barrier,
    GridControl: grid_control,
    MbarrierInit: mbarrier_init,
    MbarrierArrive: mbarrier_arrive,
    MbarrierTx: mbarrier_tx,
    MbarrierWait: mbarrier_wait,
    SetMaxRegisters: set_max_registers,
}
