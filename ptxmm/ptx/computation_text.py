"""Operations that compute as canonical PTX: the name of ``ops.Alu`` with its types where the syntax has them."""

from __future__ import annotations

from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type
from ptxmm.ptx.signatures import CARRY, source_types
from ptxmm.ptx.spelling import Spelling, dotted, refuse
from ptxmm.ptx.table import FORMS

_S64 = Type("s", 64)
_PACKED = ("u16x2", "s16x2")


def computation_text(op: ops.Alu | ops.AluPair, spell: Spelling) -> str:
    """``op`` as PTX without its guard. Raises ``PtxmmError`` (kind ``unsupported``) for a type that PTX lacks."""
    sources = [(v, t) for v, t in zip(op.sources, _types(op), strict=True) if v != ops.Reg(CARRY)]
    values = [spell.operand(v, t) for v, t in sources]
    target = "_" if op.dst is None else spell.register(op.dst)
    if isinstance(op, ops.AluPair):
        if op.op == "lop3":
            target = f"{target}|{spell.register(op.predicate)}"
        name = f"{op.second}.{op.type.name}"
    else:
        name = _name(op)
    if op.op.startswith("set.") and len(values) == 3:
        values[2] = ("!" if "_not" in op.op else "") + values[2]
    return f"{name} {', '.join([target, *values])}"


def _types(op: ops.Alu | ops.AluPair) -> tuple[Type, ...]:
    return source_types(op.second if isinstance(op, ops.AluPair) else op.op, op.type)


def _name(op: ops.Alu) -> str:
    first, *words = op.op.split(".")
    match first:
        case "prmt":
            return dotted(first, op.type.name, *words)
        case "dp4a" | "dp2a":
            return dotted(first, *words[:-1], op.type.name, words[-1])
        case "slct":
            return dotted(first, *words[:-1], op.type.name, words[-1])
        case "set":
            return dotted(first, *(word.removesuffix("_not") for word in words), op.type.name)
        case "cvt":
            part = words[-1]
            return dotted("cvt.pack.sat", part, "s32", None if part.endswith("16") else "b32")
    if words and words[-1] in _PACKED:
        return op.op
    return f"{op.op}.{_legal(op).name}"


def _legal(op: ops.Alu) -> Type:
    """The type of ``op``, or for the dialect's s64 the 64-bit type with which the operation exists and gives the same
    bits."""
    first = op.op.partition(".")[0]
    row = FORMS.get(f"{first}.{op.type.name}") or FORMS[first]
    legal = row.groups["type"]
    candidates = [op.type, Type("b", 64), Type("u", 64)] if op.type == _S64 else [op.type]
    found = next((t for t in candidates if t.name in legal), None)
    if found is None:
        raise refuse(op, f"`{op.op}` has no type .{op.type.name}")
    return found


__all__ = ["computation_text"]
