"""Rows of ``wmma``, and what its matrices are (PTX ISA 9.7.15.3)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType

from msgspec import Struct

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import Op, Tile, Type
from ptxmm.ptx.ops.basic import B32, U32
from ptxmm.ptx.qualified import Form, Names, Qualified, at, dotted
from ptxmm.ptx.tables.common import guard, source
from ptxmm.ptx.tables.form import SHARED_CTA, Version, words

_MULTIPLICANDS = words("f16 bf16 tf32 f64 s8 u8 s4 u4 b1")
_ACCUMULATORS = words("f16 f32 f64 s32")
_ELEMENTS = tuple(dict.fromkeys(_MULTIPLICANDS + _ACCUMULATORS))
LARGE = words("m16n16k16 m8n32k16 m32n8k16")
SHAPES = (*LARGE, "m16n16k8", "m8n8k4", "m8n8k32", "m8n8k128")


class Kind(Struct, frozen=True):
    """A type of the matrices A and B: the shapes it has, its size in bits, and the types of C and D."""

    shapes: tuple[str, ...]
    bits: int
    accumulators: tuple[str, ...]


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "f16": Kind(LARGE, 16, words("f16 f32")),
        "bf16": Kind(LARGE, 16, ("f32",)),
        "tf32": Kind(("m16n16k8",), 32, ("f32",)),
        "f64": Kind(("m8n8k4",), 64, ("f64",)),
        **dict.fromkeys(("s8", "u8"), Kind(LARGE, 8, ("s32",))),
        **dict.fromkeys(("s4", "u4"), Kind(("m8n8k32",), 4, ("s32",))),
        "b1": Kind(("m8n8k128",), 1, ("s32",)),
    }
)

_COLLECTIVE: Mapping[str, tuple[str, ...]] = {"sync": ("sync",), "aligned": ("aligned",)}
_LAYOUTS = ("row", "col")
_PLACE = {"layout": _LAYOUTS, "shape": SHAPES, "space": ("global", *SHARED_CTA)}
_REQUIRED = words("sync aligned matrix layout shape element")
_V60 = Version((6, 0), 70)
_NEWER = {
    Version((6, 1), 70): " ".join(LARGE[1:]),
    Version((6, 3), 72): "s8 u8 s32",
    Version((6, 3), 75): "m8n8k32 m8n8k128",
    Version((7, 0), 80): "bf16 tf32 f64 m16n16k8 m8n8k4",
}


_WARP = 32
_REGISTERS: Mapping[str, Type] = {"f32": Type("f", 32), "s32": Type("s", 32), "f64": Type("f", 64)}
_ACCUMULATOR_BITS: Mapping[str, int] = {"f16": 16, "f32": 32, "s32": 32, "f64": 64}
# The qualifiers of wmma.mma in the order of its lines of syntax.
_ORDER = (
    "bitop", "popc", "sync", "aligned", "alayout", "blayout", "shape", "round", "dtype", "atype", "btype", "ctype",
    "satfinite",
)  # fmt: skip


def _load(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 3)
    dst, place, *rest = q.instruction.operands
    _check_element(q)
    matrix, element = q.chosen["matrix"], q.chosen["element"]
    tile, count = _tile(matrix, q.chosen["layout"], q.chosen["shape"], element)
    items = operands.vector(dst, count, f"`wmma.load.{matrix}` of .{q.chosen['shape']}.{element}")
    targets = tuple(operands.destination_or_sink(names, item) for item in items)
    if not any(targets):
        raise at(dst.span, "at least one element of the vector must be a register")
    return ops.WmmaLoad(
        targets,
        operands.address(q, names, place),
        _REGISTERS.get(element, B32),
        tile,
        matrix,
        _stride(q, names, rest),
        q.get("space"),
        (q.chosen["layout"], q.chosen["shape"], element),
        source(q),
        guard(q, names),
    )


def _store(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 3)
    place, stored, *rest = q.instruction.operands
    _check_element(q)
    element = q.chosen["element"]
    tile, count = _tile("d", q.chosen["layout"], q.chosen["shape"], element)
    items = operands.vector(stored, count, f"`wmma.store.d` of .{q.chosen['shape']}.{element}")
    typ = _REGISTERS.get(element, B32)
    return ops.WmmaStore(
        operands.address(q, names, place),
        tuple(operands.value(q, names, item, typ) for item in items),
        typ,
        tile,
        _stride(q, names, rest),
        q.get("space"),
        (q.chosen["layout"], q.chosen["shape"], element),
        source(q),
        guard(q, names),
    )


def _stride(q: Qualified, names: Names, rest: list[syntax.Operand]) -> ops.Operand | None:
    return operands.value(q, names, rest[0], U32) if rest else None


def _check_element(q: Qualified) -> None:
    """Types and layouts that a shape has (9.7.15.3.3, .4)."""
    matrix, shape, element = q.chosen["matrix"], q.chosen["shape"], q.chosen["element"]
    kinds = {name: kind for name, kind in KINDS.items() if shape in kind.shapes}
    multiplied = matrix in ("a", "b")
    legal = tuple(kinds) if multiplied else tuple(dict.fromkeys(t for k in kinds.values() for t in k.accumulators))
    if element not in legal:
        message = f"`{q.form.opcode}.{matrix}` of .{shape} has no type .{element}"
        raise at(q.span("element"), message, hint=f"types: {dotted(legal)}")
    if multiplied and KINDS[element].bits < 8:
        _check_layout(q, "layout", element, matrix)


def _check_layout(q: Qualified, group: str, element: str, matrix: str) -> None:
    """Elements smaller than a byte are in rows of A and columns of B."""
    only = "row" if matrix == "a" else "col"
    if q.chosen[group] != only:
        message = f"a matrix {matrix.upper()} of .{element} is in .{only} order, not .{q.chosen[group]}"
        raise at(q.span(group), message)


def _tile(matrix: str, layout: str, shape: str, element: str) -> tuple[Tile, int]:
    """The matrix, and how many registers the part of each thread has (9.7.15.3.1)."""
    m, n, k = _sizes(shape)
    rows, columns = {"a": (m, k), "b": (k, n)}.get(matrix, (m, n))
    multiplied = matrix in ("a", "b")
    bits = KINDS[element].bits if multiplied else _ACCUMULATOR_BITS[element]
    register = _REGISTERS.get(element, B32).bits
    # Of A and B of type .f16 every element is held twice.
    count = 8 if multiplied and element == "f16" else rows * columns * bits // _WARP // register
    lines, length = (rows, columns) if layout == "row" else (columns, rows)
    return Tile(lines, length, bits, count * register // 8), count


def _sizes(shape: str) -> tuple[int, int, int]:
    m, _, rest = shape[1:].partition("n")
    n, _, k = rest.partition("k")
    return int(m), int(n), int(k)


def _product(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 4, 4)
    types = _types(q)
    _check_product(q, types)
    shape = q.chosen["shape"]
    registers: list[Type] = []
    vectors: list[tuple[syntax.Operand, ...]] = []
    for matrix, element, operand in zip("dabc", types, q.instruction.operands, strict=True):
        _, count = _tile(matrix, "row", shape, element)
        vectors.append(operands.vector(operand, count, f"the matrix {matrix.upper()} of .{shape}.{element}"))
        registers.append(_REGISTERS.get(element, B32))
    d, a, b, c = registers
    return ops.Wmma(
        tuple(operands.destination(names, item) for item in vectors[0]),
        tuple(operands.register(names, item) for item in vectors[1]),
        tuple(operands.register(names, item) for item in vectors[2]),
        tuple(operands.value(q, names, item, c) for item in vectors[3]),
        (d, a, b, c),
        tuple(q.chosen[group] for group in _ORDER if group in q.chosen),
        source(q),
        guard(q, names),
    )


def _types(q: Qualified) -> tuple[str, str, str, str]:
    """The types of D, A, B, C; where there are two only, they are those of D and C, and A and B are of .f16."""
    named = [q.spans[group] for group in ("dtype", "atype", "btype", "ctype") if group in q.chosen]
    for before, there in pairwise(named):
        if (there.line, there.column) < (before.line, before.column):
            raise at(there, "the types of `wmma.mma` are those of D, A, B and C, in this order")
    d, a = q.chosen["dtype"], q.chosen["atype"]
    if "btype" not in q.chosen:
        if "ctype" in q.chosen or a not in KINDS["f16"].accumulators or d not in KINDS["f16"].accumulators:
            message = "`wmma.mma` has the types of D and C, .f16 or .f32, or those of D, A, B and C"
            raise at(q.span("atype"), message)
        return d, "f16", "f16", a
    if "ctype" not in q.chosen:
        raise at(q.instruction.opcode_span, "`wmma.mma` needs the type of C after those of D, A and B")
    return d, a, q.chosen["btype"], q.chosen["ctype"]


def _check_product(q: Qualified, types: tuple[str, str, str, str]) -> None:
    """Types, shapes, layouts, and what belongs to some types only (9.7.15.3.5)."""
    d, a, b, c = types
    shape = q.chosen["shape"]
    if a not in KINDS or ("btype" in q.chosen and a == "f16"):
        raise at(q.span("atype"), f"`wmma.mma` with four types has no matrix A of .{a}")
    kind = KINDS[a]
    if b != a:
        raise at(q.span("btype"), f"`wmma.mma` multiplies .{a} by .{a}, not by .{b}")
    if shape not in kind.shapes:
        raise at(q.span("shape"), f"`wmma.mma` of .{a} has no shape .{shape}", hint=f"shapes: {dotted(kind.shapes)}")
    for group, typ in (("dtype", d), ("ctype", c)):
        if typ not in kind.accumulators:
            there = q.span(group) if group in q.chosen else q.instruction.opcode_span
            hint = f"types of C and D: {dotted(kind.accumulators)}"
            raise at(there, f"`wmma.mma` of .{a} has no accumulator .{typ}", hint=hint)
    if kind.bits < 8:
        _check_layout(q, "alayout", a, "a")
        _check_layout(q, "blayout", b, "b")
    for group in ("bitop", "popc"):
        if (a == "b1") != (group in q.chosen):
            if a == "b1":
                raise at(q.instruction.opcode_span, "`wmma.mma` of .b1 is .xor.popc or .and.popc")
            raise at(q.span(group), f"`wmma.mma` of .{a} takes no `.{q.chosen[group]}`", hint="only .b1 has it")
    if "satfinite" in q.chosen and (c != "s32" or a == "b1"):
        hint = "only .s8 .u8 .s4 .u4 have it"
        raise at(q.span("satfinite"), f"`wmma.mma` of .{a} takes no `.satfinite`", hint=hint)
    if "round" in q.chosen and a != "f64":
        raise at(q.span("round"), f"`wmma.mma` of .{a} takes no `.{q.chosen['round']}`", hint="only .f64 has one")


FORMS = (
    Form("wmma.load", _load,
         {**_COLLECTIVE, "matrix": words("a b c"), **_PLACE, "element": _ELEMENTS},
         words("r [p] stride?"), _V60, _REQUIRED, newer=_NEWER),
    Form("wmma.store", _store,
         {**_COLLECTIVE, "matrix": ("d",), **_PLACE, "element": _ACCUMULATORS},
         words("[p] r stride?"), _V60, _REQUIRED, newer=_NEWER),
    Form("wmma.mma", _product,
         {"bitop": words("xor and"), "popc": ("popc",), **_COLLECTIVE, "alayout": _LAYOUTS, "blayout": _LAYOUTS,
          "shape": SHAPES, "round": words("rn rz rm rp"), "dtype": _ACCUMULATORS, "atype": _ELEMENTS,
          "btype": _MULTIPLICANDS, "ctype": _ACCUMULATORS, "satfinite": ("satfinite",)},
         words("d a b c"), _V60, words("sync aligned alayout blayout shape dtype atype"),
         newer={**_NEWER, Version((7, 1), 80): "and"}),
)  # fmt: skip
