"""Rows of the matrix instructions (PTX ISA 9.7.15.4.15, .16, 9.7.16)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.ops.basic import B64, PREDICATE
from ptxmm.ptx.qualified import Form, Names, Qualified, at, dotted
from ptxmm.ptx.tables.common import guard, made, numbered, source
from ptxmm.ptx.tables.copies import commit, wait
from ptxmm.ptx.tables.form import SHARED_CTA, SM90, V86, Version, words

_COLLECTIVE = {"sync": ("sync",), "aligned": ("aligned",)}
_EIGHTS = range(8, 257, 8)
# The n of integer and single-bit products (the table of 9.7.16.2).
INTEGER_COLUMNS = frozenset({8, 16, 24, 32, *range(48, 257, 16)})
# For the types of A and B the k of a dense product (that of a sparse one is twice as large) and the types of D.
PRODUCTS: Mapping[str, tuple[int, tuple[str, ...]]] = MappingProxyType(
    {
        "f16": (16, words("f16 f32")),
        "bf16": (16, ("f32",)),
        "tf32": (8, ("f32",)),
        **dict.fromkeys(("e4m3", "e5m2"), (32, words("f16 f32"))),
        **dict.fromkeys(("s8", "u8"), (32, ("s32",))),
        "b1": (256, ("s32",)),
    }
)
# Types of A that go with another type of B.
MIXED = (frozenset({"e4m3", "e5m2"}), frozenset({"s8", "u8"}))

_SHAPES = tuple(f"m64n{n}k{k}" for k in (8, 16, 32, 256) for n in _EIGHTS if k != 256 or n in INTEGER_COLUMNS)
_SPARSE_SHAPES = tuple(f"m64n{n}k{k}" for k in (16, 32, 64) for n in _EIGHTS)
_DENSE = tuple(PRODUCTS)
_SPARSE = tuple(name for name in PRODUCTS if name != "b1")
_OPERATION = {"bitop": ("and",), "popc": ("popc",)}
_MATRIX = {
    **_COLLECTIVE,
    "shape": ("m8n8",),
    "num": words("x1 x2 x4"),
    "trans": ("trans",),
    "space": SHARED_CTA,
    "type": ("b16",),
}
_REQUIRED = words("sync aligned shape num type")
_PRODUCT_REQUIRED = words("sync aligned shape dtype atype btype")
# Shapes and types of matrices since PTX ISA 8.6.
_LATER = dict.fromkeys(words("m16n16 m8n16 m16n8 b8 b8x16 b6x16_p32 b4x16_p64"), V86)


def _product_row(opcode: str, shapes: tuple[str, ...], types: tuple[str, ...], slots: str, since: Version) -> Form:
    groups = {
        **_COLLECTIVE,
        "shape": shapes,
        "satfinite": ("satfinite",),
        "dtype": words("f16 f32 s32"),
        "atype": types,
        "btype": types,
    }
    if "b1" in types:
        groups |= _OPERATION
    newer = {Version((8, 4), 90): "s8+u8"}
    return Form(opcode, _product, groups, words(slots), since, _PRODUCT_REQUIRED, rule=_check_product, newer=newer)


_B32 = Type("b", 32)
_ACCUMULATORS: Mapping[str, Type] = {"f16": _B32, "f32": Type("f", 32), "s32": Type("s", 32)}
_FRAGMENTS = 4  # how many registers hold a thread's part of A, for all types (9.7.16.5.1.1)
_TRANSPOSABLE = ("f16", "bf16")


def _load_matrix(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, place = q.instruction.operands
    targets = tuple(operands.destination_or_sink(names, item) for item in numbered(q, dst))
    if not any(targets):
        raise at(dst.span, "at least one element of the vector must be a register")
    address = operands.address(q, names, place)
    return ops.LoadMatrix(targets, address, q.get("space"), "trans" in q.chosen, source(q), guard(q, names))


def _store_matrix(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    place, stored = q.instruction.operands
    address = operands.address(q, names, place)
    values = tuple(operands.value(q, names, item, _B32) for item in numbered(q, stored))
    return ops.StoreMatrix(address, values, q.get("space"), "trans" in q.chosen, source(q), guard(q, names))


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


def _check_product(q: Qualified) -> None:
    """Types, shapes, ``.satfinite`` and ``.and.popc`` of ``wgmma.mma_async{.sp}`` (9.7.16.2, .3, .5.2, .6.4)."""
    opcode, a, b, shape = q.form.opcode, q.chosen["atype"], q.chosen["btype"], q.chosen["shape"]
    legal = next((tuple(sorted(pair)) for pair in MIXED if a in pair), (a,))
    if b not in legal:
        raise at(q.span("btype"), f"`{opcode}` multiplies .{a} by {dotted(legal)}, not by .{b}")
    depth, accumulators = PRODUCTS[a]
    if q.chosen["dtype"] not in accumulators:
        message = f"`{opcode}` of .{a} has no accumulator .{q.chosen['dtype']}"
        raise at(q.span("dtype"), message, hint=f"accumulators of .{a}: {dotted(accumulators)}")
    integer = q.chosen["dtype"] == "s32"
    depth *= 2 if opcode.endswith(".sp") else 1
    rows, _, found = shape.partition("k")
    if found != str(depth):
        message = f"`{opcode}` of .{a} has shapes with k{depth}, not .{shape}"
        raise at(q.span("shape"), message, hint=f"write .{rows}k{depth}")
    if integer and int(rows.rpartition("n")[2]) not in INTEGER_COLUMNS:
        hint = "n is 8, 16, 24, 32 or a multiple of 16"
        raise at(q.span("shape"), f"`{opcode}` of .{a} has no shape .{shape}", hint=hint)
    if "satfinite" in q.chosen and (not integer or a == "b1"):
        raise at(q.span("satfinite"), f"`{opcode}` of .{a} takes no `.satfinite`", hint="only .s8 and .u8 have it")
    for group, word in (("bitop", "and"), ("popc", "popc")):
        if a == "b1" and group not in q.chosen:
            raise at(q.instruction.opcode_span, f"`{opcode}` of .b1 needs `.{word}`", hint="write .b1.b1.and.popc")
        if a != "b1" and group in q.chosen:
            raise at(q.span(group), f"`{opcode}` of .{a} takes no `.{word}`", hint="only .b1 has .and.popc")


FORMS = (
    Form("ldmatrix", _load_matrix, _MATRIX, words("d [a]"), Version((6, 5), 75), _REQUIRED, later=_LATER),
    Form("stmatrix", _store_matrix, _MATRIX, words("[a] b"), Version((7, 8), 90), _REQUIRED, later=_LATER),
    Form("wgmma.fence", made(ops.WgmmaFence), _COLLECTIVE, (), SM90, ("sync", "aligned")),
    Form("wgmma.commit_group", commit, _COLLECTIVE, (), SM90, ("sync", "aligned")),
    Form("wgmma.wait_group", wait, _COLLECTIVE, ("pending",), SM90, ("sync", "aligned")),
    _product_row("wgmma.mma_async", _SHAPES, _DENSE, "d a b-desc scale-d", SM90),
    _product_row(
        "wgmma.mma_async.sp", _SPARSE_SHAPES, _SPARSE, "d a b-desc sp-meta sp-sel scale-d", Version((8, 2), 90)
    ),
)
