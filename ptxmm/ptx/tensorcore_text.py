"""tcgen05 instructions back to PTX (9.7.16 of PTX ISA 9.0)."""

from __future__ import annotations

from dataclasses import replace

from ptxmm.ptx import ops
from ptxmm.ptx.spelling import Spelling, dotted

TensorOp = (
    ops.TensorFence | ops.TensorWait | ops.TensorLoad | ops.TensorStore | ops.TensorCopy | ops.TensorProduct
    | ops.TensorCommit
)  # fmt: skip


def tensorcore_text(op: TensorOp, spell: Spelling) -> str:
    """``op`` as PTX. Addresses of tensor memory count columns."""

    def column(address: ops.Address) -> str:
        return spell.place(replace(address, offset=address.offset // ops.COLUMN_BYTES))

    match op:
        case ops.TensorFence(kind):
            return f"tcgen05.fence::{kind}_thread_sync"
        case ops.TensorWait(kind):
            return f"tcgen05.wait::{kind}.sync.aligned"
        case ops.TensorLoad(dst, address):
            items = ", ".join(spell.register(r) for r in dst)
            return f"tcgen05.ld.sync.aligned.32x32b.x{len(dst)}.b32 {{{items}}}, {column(address)}"
        case ops.TensorStore(address, values):
            items = ", ".join(spell.operand(v) for v in values)
            return f"tcgen05.st.sync.aligned.32x32b.x{len(values)}.b32 {column(address)}, {{{items}}}"
        case ops.TensorCopy(dst, src, _, shape):
            return f"tcgen05.cp.cta_group::1.{shape} {column(dst)}, {spell.operand(src)}"
        case ops.TensorProduct(dst, a, b, descriptor, enable, kind):
            first = column(a) if isinstance(a, ops.Address) else spell.operand(a)
            added = ("!" if op.enable_negated else "") + spell.register(enable)
            parts = (column(dst), first, spell.operand(b), spell.operand(descriptor), added)
            return f"tcgen05.mma.cta_group::1.{kind} {', '.join(parts)}"
        case ops.TensorCommit(address, space):
            name = dotted("tcgen05.commit.cta_group::1.mbarrier::arrive::one", space, "b64")
            return f"{name} {spell.place(address)}"
