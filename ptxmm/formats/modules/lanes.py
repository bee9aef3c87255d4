"""Instructions of a warp in a launch of which not all lanes run.

A test numbers the lanes of a warp by its threads, so the lanes that run have to be the first ones; and what an
instruction gathers from its lanes is only known if all that its mask names run. A lane stands for its warp at barriers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.errors import PtxmmError
from ptxmm.formats.text import at
from ptxmm.ptx.ops import BarrierReduction, Imm, Op, WarpBarrier, WarpExchange

_GATHERS = ("vote", "match", "redux", "activemask")
_EVERYONE = 0xFFFFFFFF


def check_lanes(body: Sequence[Op], lanes: Sequence[int], size: int, whole: bool) -> None:
    """Refuse the instructions of a thread that need other lanes of its warp than ``lanes``, those that run.

    ``size``: how many lanes the warp has; ``whole``: every thread of the CTA runs.

    Raises ``PtxmmError`` (kind ``unsupported``).
    """
    first = list(lanes) == list(range(len(lanes)))
    running = sum(1 << lane for lane in lanes)
    for op in body:
        if isinstance(op, WarpBarrier):
            named = op.mask.value & _EVERYONE if isinstance(op.mask, Imm) else None
            if not first and named != _EVERYONE:
                raise _refused(op, "the lanes that run are not the first ones of their warp")
        if isinstance(op, BarrierReduction) and op.op == "popc" and not whole:
            raise _refused(op, "not all threads of this CTA run, but this counts them")
        if not isinstance(op, WarpExchange):
            continue
        if not first:
            raise _refused(op, "the lanes that run are not the first ones of their warp")
        if op.op.partition(".")[0] in _GATHERS and len(lanes) < size:
            mask = op.operands[-1] if op.operands else Imm(_EVERYONE)
            named = mask.value & ((1 << size) - 1) if isinstance(mask, Imm) else None
            if named is None or named & ~running:
                raise _refused(op, f"{len(lanes)} of the {size} lanes of this warp run, but this asks others too")


def _refused(op: Op, message: str) -> PtxmmError:
    hint = 'run whole warps (threads = "warp 0"), or launch with as few threads as run'
    return at(message, op.source.span, kind="unsupported", hint=hint)
