"""Instructions of a warp in a launch of which not all lanes run.

A test numbers the lanes of a warp by its threads, so the lanes that run have to be the first ones; and what an
instruction gathers from its lanes is only known if all that its mask names run: else it is not worked out, as what
approximate functions give. A lane stands for its warp at barriers.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.ptx.ops import BarrierReduction, Imm, Op, WarpBarrier, WarpExchange
from ptxmm.ptx.spelling import refuse

_GATHERS = ("vote", "match", "redux", "activemask")
_EVERYONE = 0xFFFFFFFF


def with_lanes(body: Sequence[Op], lanes: Sequence[int], size: int, whole: bool) -> tuple[Op, ...]:
    """``body``, of a thread in whose warp ``lanes`` run. What gathers values of others too gathers those of the lanes
    that run, ``absent``: any value stands for what it gives.

    ``size``: how many lanes the warp has; ``whole``: every thread of the CTA runs.

    Raises ``PtxmmError`` (kind ``unsupported``) for instructions that need to know of the others.
    """
    first = list(lanes) == list(range(len(lanes)))
    running = sum(1 << lane for lane in lanes)
    found: list[Op] = []
    for op in body:
        if isinstance(op, WarpBarrier):
            named = op.mask.value & _EVERYONE if isinstance(op.mask, Imm) else None
            if not first and named != _EVERYONE:
                raise _refused(op, "the lanes that run are not the first ones of their warp")
        if isinstance(op, BarrierReduction) and op.op == "popc" and not whole:
            raise _refused(op, "not all threads of this CTA run, but this counts them")
        found.append(_exchange(op, first, running, size) if isinstance(op, WarpExchange) else op)
    return tuple(found)


def _exchange(op: WarpExchange, first: bool, running: int, size: int) -> WarpExchange:
    """``op`` among the lanes that are ``running``."""
    if not first:
        raise _refused(op, "the lanes that run are not the first ones of their warp")
    if op.op.partition(".")[0] not in _GATHERS or running.bit_count() >= size:
        return op
    mask = op.operands[-1] if op.operands else Imm(_EVERYONE)
    named = mask.value & ((1 << size) - 1) if isinstance(mask, Imm) else None
    if named is None or (op.op == "activemask" and named & ~running):
        raise _refused(op, f"{running.bit_count()} of the {size} lanes of this warp run, but this asks others too")
    if not named & ~running:
        return op
    return replace(op, operands=(*op.operands[:-1], Imm(named & running)), absent=True)


def _refused(op: Op, message: str) -> PtxmmError:
    hint = 'run whole warps (threads = "warp 0"), or launch with as few threads as run'
    return refuse(op, message, hint)
