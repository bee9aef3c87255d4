"""What a thread of the host can do (PTX ISA 8.5: .sys scope contains the threads of the host program)."""

from __future__ import annotations

from ptxmm.program.naming import error
from ptxmm.program.test import Placement
from ptxmm.ptx.ops import FAMILIES, Op

_DEVICE_ONLY = tuple(kind for family in FAMILIES.values() for kind in family)


def check_host(op: Op, placement: Placement) -> None:
    """Refuse what only threads of a grid can do in a host thread. Raises ``PtxmmError``."""
    if placement.host and isinstance(op, _DEVICE_ONLY):
        message = f"`{op.source.text.partition(' ')[0]}` in a host thread"
        hint = "a host thread takes part in memory accesses and fences only"
        raise error(message, op.source.span, kind="type", hint=hint)
