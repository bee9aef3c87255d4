"""Instructions that few programs have: copies, matrices, exchanges of warps, multimem. See ``interpreter``."""

from __future__ import annotations

from ptxmm.events.explicit.accesses import multimem
from ptxmm.events.explicit.asynchronous import copies, tensors
from ptxmm.events.explicit.barriers import warps
from ptxmm.events.explicit.machine import Effects
from ptxmm.events.explicit.matrices import mma, tensorcore, wmma

EFFECTS: Effects = {
    **copies.EFFECTS,
    **tensors.EFFECTS,
    **multimem.EFFECTS,
    **warps.EFFECTS,
    **mma.EFFECTS,
    **wmma.EFFECTS,
    **tensorcore.EFFECTS,
}
