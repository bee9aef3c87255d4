"""Instructions that few programs have: barriers, copies, matrices, exchanges, multimem. See ``instructions``."""

from __future__ import annotations

from ptxmm.events.symbolic.accesses import multimem
from ptxmm.events.symbolic.asynchronous import copies, groups, tensormaps, tensors
from ptxmm.events.symbolic.barriers import synchronization
from ptxmm.events.symbolic.executor import Effects
from ptxmm.events.symbolic.matrices import mma, tensorcore, wmma

EFFECTS: Effects = {
    **multimem.EFFECTS,
    **copies.EFFECTS,
    **groups.EFFECTS,
    **tensors.EFFECTS,
    **tensormaps.EFFECTS,
    **synchronization.EFFECTS,
    **mma.EFFECTS,
    **wmma.EFFECTS,
    **tensorcore.EFFECTS,
}
