"""Instructions that all threads of a warp, or a warpgroup, have to execute together, ``.aligned``: facts of a test.

PTX ISA 8.5, 9.7.14.1, 9.7.14.3, 9.7.14.16, 9.7.15, 9.7.16, 9.7.19.5. Those that are no barriers are ``.sync`` as well:
a thread waits at one until all of the warp execute it. They order no memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from ptxmm.program.test import Test
from ptxmm.ptx import ops

_BARRIERS = (ops.Barrier, ops.BarrierReduction, ops.ClusterBarrier)
_WARPS = 4
"""The warps of a warpgroup (9.7.16.1 of PTX ISA 8.5)."""

_SECTIONS: dict[type, str] = {
    ops.Barrier: "9.7.14.1",
    ops.BarrierReduction: "9.7.14.1",
    ops.ClusterBarrier: "9.7.14.3",
    ops.TensormapCopyFence: "9.7.14.16",
    ops.WmmaLoad: "9.7.15.3.3",
    ops.WmmaStore: "9.7.15.3.4",
    ops.Wmma: "9.7.15.3.5",
    ops.LoadMatrix: "9.7.15.4.15",
    ops.StoreMatrix: "9.7.15.4.16",
    ops.Wgmma: "9.7.16.5.2",
    ops.WgmmaFence: "9.7.16.7.1",
    ops.AsyncCommit: "9.7.16.7.2",
    ops.AsyncWait: "9.7.16.7.3",
    ops.SetMaxRegisters: "9.7.19.5",
    ops.TensorLoad: "9.7.16.8 of PTX ISA 9.0",
    ops.TensorStore: "9.7.16.8 of PTX ISA 9.0",
    ops.TensorWait: "9.7.16.8 of PTX ISA 9.0",
}
"""Where each instruction is described that may be ``.aligned``."""


def gathers(op: ops.Op) -> bool:
    """Whether ``op`` is ``.sync.aligned`` and no barrier, which has steps of its own in the simulation of barriers."""
    return not isinstance(op, _BARRIERS) and aligned(op)


def sites(test: Test) -> tuple[dict[int, str], ...]:
    """For the ``.aligned`` instructions of each thread what tells them from others that a thread of its warp, or of its
    warpgroup, may execute; none where no other such thread is in the test.

    The threads of a kernel have the same code, so that it is the place in it: one instruction of a function is told
    apart by its calls. In a litmus test each has a text of its own: there the same instruction is one with the same
    qualifiers and constants; registers and addresses have names of their own in each thread.
    """
    named = Counter(t.placement for t in test.threads if t.placement.warp is not None and t.placement.cta is not None)
    beside = warpgroup_mates(test)
    found: list[dict[int, str]] = []
    for thread, rest in zip(test.threads, beside, strict=True):
        if test.dialect or thread.placement.host or not (named[thread.placement] > 1 or rest):
            found.append({})
            continue
        meets = aligned if named[thread.placement] > 1 else _wide
        found.append({pc: _site(test, op) for pc, op in enumerate(thread.body) if meets(op)})
    return tuple(found)


def warpgroups(test: Test) -> tuple[Hashable, ...]:
    """What tells the warpgroup of each thread, None for one that is in none; nothing at all unless ``test`` is a kernel
    with instructions of warpgroups. The warps of a litmus test have names, but no ranks."""
    if test.claims is None or not any(_wide(op) for thread in test.threads for op in thread.body):
        return ()
    places = [thread.placement for thread in test.threads]
    return tuple(
        None if place.warp is None else (place.gpu, place.grid, place.cluster, place.cta, place.warp // _WARPS)
        for place in places
    )


def warpgroup_mates(test: Test) -> tuple[tuple[int, ...], ...]:
    """The threads of the other warps of the warpgroup of each thread, in a kernel with instructions of warpgroups."""
    groups = warpgroups(test) or (None,) * len(test.threads)
    warps = [thread.placement.warp for thread in test.threads]
    return tuple(
        tuple(u for u, other in enumerate(groups) if group is not None and other == group and warps[u] != warps[t])
        for t, group in enumerate(groups)
    )


def wide(test: Test, thread: int, pc: int) -> bool:
    """Whether the instruction at ``pc`` is one that all threads of a warpgroup execute together."""
    return _wide(test.threads[thread].body[pc])


def _wide(op: ops.Op) -> bool:
    return isinstance(
        op, ops.Wgmma | ops.WgmmaFence | ops.SetMaxRegisters | ops.AsyncCommit | ops.AsyncWait
    ) and aligned(op)


def _site(test: Test, op: ops.Op) -> str:
    source = op.source
    return name(op) if test.claims is None else f"{source.span.line}:{source.span.column} {source.number}"


def name(op: ops.Op) -> str:
    """The qualifiers of an instruction, and those of its operands that are constants in every program."""
    from ptxmm.ptx.typed_text import mnemonic  # needed by few tests only

    constants: tuple[object, ...] = ()
    if isinstance(op, ops.AsyncWait):
        constants = (op.pending,)
    elif isinstance(op, ops.SetMaxRegisters):
        constants = (op.count,)
    elif isinstance(op, ops.Wgmma):
        constants = (isinstance(op.a, tuple), op.immediates, op.selector)
    return " ".join(map(str, (mnemonic(op), *constants)))


def aligned(op: ops.Op) -> bool:
    """Whether all threads of the warp have to execute ``op`` together."""
    if isinstance(op, _BARRIERS):
        return op.aligned
    if isinstance(op, ops.AsyncCommit | ops.AsyncWait):
        return op.kind == "wgmma"
    return type(op) in _SECTIONS


def divergent(test: Test, thread: int, pc: int, other: int) -> str:
    """Why the instruction at ``pc`` of ``thread`` is undefined: ``other``, of its warp or its warpgroup, does not do it
    with it."""
    me, op = test.threads[thread], test.threads[thread].body[pc]
    what = "a barrier" if isinstance(op, _BARRIERS) else "an instruction"
    whole = "a warp" if test.threads[other].placement == me.placement else "a warpgroup"
    return (
        f"{me.name} line {op.source.span.line}: {what} that all threads of {whole} execute together, but "
        f"{test.threads[other].name} does not (PTX ISA {_SECTIONS[type(op)]})"
    )
