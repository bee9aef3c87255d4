"""Matrix instructions of warps and warpgroups (PTX ISA 9.7.15.4.15, .16, 9.7.16)."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.makers.common import B64, PREDICATE, Maker, guard, source
from ptxmm.ptx.operands import Names
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.qualifiers import Qualified, at

_B32 = Type("b", 32)
_ACCUMULATORS: Mapping[str, Type] = {"f16": _B32, "f32": Type("f", 32), "s32": Type("s", 32)}
_FRAGMENTS = 4  # how many registers hold a thread's part of A, for all types (9.7.16.5.1.1)
_TRANSPOSABLE = ("f16", "bf16")


def _load_matrix(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, place = q.instruction.operands
    targets = tuple(operands.destination_or_sink(names, item) for item in _registers(q, dst))
    if not any(targets):
        raise at(dst.span, "at least one element of the vector must be a register")
    address = operands.address(q, names, place)
    return ops.LoadMatrix(targets, address, q.get("space"), "trans" in q.chosen, source(q), guard(q, names))


def _store_matrix(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    place, stored = q.instruction.operands
    address = operands.address(q, names, place)
    values = tuple(operands.value(q, names, item, _B32) for item in _registers(q, stored))
    return ops.StoreMatrix(address, values, q.get("space"), "trans" in q.chosen, source(q), guard(q, names))


def _registers(q: Qualified, operand: syntax.Operand) -> tuple[syntax.Operand, ...]:
    """The vector with a register for each matrix."""
    num = q.chosen["num"]
    return operands.vector(operand, int(num[1:]), f"`{q.form.opcode}.{num}`")


def _fence(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    return ops.WgmmaFence(source(q), guard(q, names))


def _product(q: Qualified, names: Names) -> Op:
    """``wgmma.mma_async{.sp}``: how many operands there are depends on the types and on where A is."""
    given, sparse = q.instruction.operands, q.form.opcode.endswith(".sp")
    in_registers = len(given) > 1 and isinstance(given[1], syntax.Vector)
    slots = (*q.form.slots, *_immediate_slots(q, in_registers))
    operands.check_count(q, len(slots), len(slots), slots)
    dst, a, b, *rest = given
    metadata: ops.Reg | None = None
    selector = 0
    if sparse:
        metadata = operands.register(names, rest[0], "a register with the sparsity metadata")
        selector = _selector(q, rest[1])
        rest = rest[2:]
    scale, negated = _scale(q, names, rest[0])
    m, n, k = _shape(q)
    typ = _ACCUMULATORS[q.chosen["dtype"]]
    # Every thread of the 128 has as much of D: m*n/128 elements, two of type f16 in a register.
    count = n // 4 if q.chosen["dtype"] == "f16" else n // 2
    what = f"the accumulator of `.{q.chosen['shape']}.{q.chosen['dtype']}`"
    items = operands.vector(dst, count, what)
    return ops.Wgmma(
        dst=tuple(operands.destination(names, item) for item in items),
        a=_fragments(names, a) if in_registers else _descriptor(q, names, a),
        b=_descriptor(q, names, b),
        scale=scale,
        type=typ,
        shape=(m, n, k),
        multiplicands=(q.chosen["atype"], q.chosen["btype"]),
        source=source(q),
        guard=guard(q, names),
        scale_negated=negated,
        immediates=tuple(_immediate(*pair) for pair in zip(rest[1:], slots[len(q.form.slots) :], strict=True)),
        metadata=metadata,
        selector=selector,
        saturate="satfinite" in q.chosen,
    )


def _shape(q: Qualified) -> tuple[int, int, int]:
    m, _, rest = q.chosen["shape"][1:].partition("n")
    n, _, k = rest.partition("k")
    return int(m), int(n), int(k)


def _immediate_slots(q: Qualified, in_registers: bool) -> tuple[str, ...]:
    if q.chosen["dtype"] == "s32":
        return ()
    scales = ("imm-scale-a", "imm-scale-b")
    if q.chosen["atype"] not in _TRANSPOSABLE:
        return scales
    return (*scales, "imm-trans-b") if in_registers else (*scales, "imm-trans-a", "imm-trans-b")


def _immediate(operand: syntax.Operand, slot: str) -> int:
    if "scale" in slot:
        return operands.constant_of(operand, f"`{slot}`", (-1, 1), "-1 or 1")
    return operands.constant_of(operand, f"`{slot}`", (0, 1), "0 or 1")


def _fragments(names: Names, operand: syntax.Operand) -> tuple[ops.Reg, ...]:
    items = operands.vector(operand, _FRAGMENTS, "the matrix A in registers")
    return tuple(operands.register(names, item) for item in items)


def _descriptor(q: Qualified, names: Names, operand: syntax.Operand) -> ops.Operand:
    """The 64-bit descriptor of a matrix in shared memory: here its address (``ops.Wgmma``)."""
    return operands.value(q, names, operand, B64)


def _scale(q: Qualified, names: Names, operand: syntax.Operand) -> tuple[ops.Operand, bool]:
    if isinstance(operand, syntax.Negated):
        return operands.predicate(names, operand.name), True
    if isinstance(operand, syntax.Number):
        operands.constant_of(operand, "`scale-d`", (0, 1), "a predicate, 0 or 1")
    return operands.value(q, names, operand, PREDICATE), False


def _selector(q: Qualified, operand: syntax.Operand) -> int:
    """Which threads hold the metadata (the table of 9.7.16.6.4)."""
    if q.chosen["shape"].endswith("k64"):
        return operands.constant_of(operand, "`sp-sel` of .k64", (0,), "0")
    return operands.constant_of(operand, "`sp-sel`", (0, 1), "0 or 1")


MAKERS: Mapping[str, Maker] = {
    "load_matrix": _load_matrix,
    "store_matrix": _store_matrix,
    "wgmma_fence": _fence,
    "wgmma": _product,
}
