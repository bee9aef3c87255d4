"""From a qualified instruction to its operation: one function for each kind of row, by family.

Every function takes the instruction and the names that it may use, and raises ``PtxmmError`` for operands that its
row does not allow. Every default is filled in here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ptxmm.ptx.makers import arithmetic, copies, matrices, memory, others, synchronization, tensorcore, wmma
from ptxmm.ptx.operands import Names
from ptxmm.ptx.ops import Op
from ptxmm.ptx.qualifiers import Qualified

MAKERS: Mapping[str, Callable[[Qualified, Names], Op]] = MappingProxyType(
    {
        **memory.MAKERS,
        **synchronization.MAKERS,
        **copies.MAKERS,
        **matrices.MAKERS,
        **wmma.MAKERS,
        **tensorcore.MAKERS,
        **others.MAKERS,
        **arithmetic.MAKERS,
    }
)
