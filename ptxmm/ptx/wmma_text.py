"""``wmma`` as canonical PTX."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type
from ptxmm.ptx.spelling import Spelling, dotted


def wmma_text(op: ops.WmmaLoad | ops.WmmaStore | ops.Wmma, spell: Spelling) -> str:
    """``op`` as PTX without its guard."""

    def vector(items: Sequence[ops.Operand], typ: Type) -> str:
        return _braced([spell.operand(v, typ) for v in items])

    if isinstance(op, ops.Wmma):
        d, a, b, c = op.types
        name = dotted("wmma.mma", *op.qualifiers)
        return _line(name, vector(op.dst, d), vector(op.a, a), vector(op.b, b), vector(op.c, c))
    layout, shape, element = op.qualifiers
    matrix = f"load.{op.matrix}" if isinstance(op, ops.WmmaLoad) else "store.d"
    name = dotted(f"wmma.{matrix}.sync.aligned", layout, shape, op.space, element)
    stride = [] if op.stride is None else [spell.operand(op.stride)]
    if isinstance(op, ops.WmmaLoad):
        return _line(name, _braced([spell.sink(r) for r in op.dst]), spell.place(op.address), *stride)
    return _line(name, spell.place(op.address), vector(op.values, op.type), *stride)


def _braced(items: Sequence[str]) -> str:
    return "{" + ", ".join(items) + "}"


def _line(name: str, *parts: str) -> str:
    return f"{name} {', '.join(parts)}"
