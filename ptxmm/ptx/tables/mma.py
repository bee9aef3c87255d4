"""Rows of ``mma``, the products of matrices that the threads of a warp hold in registers (PTX ISA 9.7.15.4.14)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from ptxmm.ptx import operands, ops
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.ops.basic import B32
from ptxmm.ptx.qualified import Form, Names, Qualified, at, dotted
from ptxmm.ptx.tables.common import guard, source
from ptxmm.ptx.tables.form import Version, words

_WARP = 32
_F64 = Type("f", 64)
_ACCUMULATORS: Mapping[str, tuple[Type, int]] = MappingProxyType(
    {"f16": (B32, 16), "f32": (Type("f", 32), 32), "s32": (Type("s", 32), 32), "f64": (_F64, 64)}
)
"""For each type of C and D that of a register, and the bits of an element."""


class _Kind(Struct, frozen=True):
    """A type of A and B: the bits of an element, the types that B may have beside it, those of C and D, and the
    versions of its shapes."""

    bits: int
    beside: tuple[str, ...]
    accumulators: tuple[str, ...]
    shapes: Mapping[str, Version]


def _kinds(
    names: str, bits: int, accumulators: str, shapes: Mapping[tuple[int, int], dict[int, str]]
) -> dict[str, _Kind]:
    """``shapes``: by version the shapes of each first target."""
    since = {
        shape: Version(version, sm)
        for version, by_target in shapes.items()
        for sm, text in by_target.items()
        for shape in words(text)
    }
    return dict.fromkeys(words(names), _Kind(bits, words(names), words(accumulators), since))


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        **_kinds("f16", 16, "f16 f32", {(6, 4): {70: "m8n8k4"}, (6, 5): {75: "m16n8k8"}, (7, 0): {80: "m16n8k16"}}),
        **_kinds("bf16", 16, "f32", {(7, 0): {80: "m16n8k8 m16n8k16"}}),
        **_kinds("tf32", 32, "f32", {(7, 0): {80: "m16n8k4 m16n8k8"}}),
        **_kinds("e4m3 e5m2", 8, "f32", {(8, 4): {89: "m16n8k32"}}),
        **_kinds("f64", 64, "f64", {(7, 0): {80: "m8n8k4"}, (7, 8): {90: "m16n8k4 m16n8k8 m16n8k16"}}),
        **_kinds("s8 u8", 8, "s32", {(6, 5): {75: "m8n8k16"}, (7, 0): {80: "m16n8k16 m16n8k32"}}),
        **_kinds("s4 u4", 4, "s32", {(6, 5): {75: "m8n8k32"}, (7, 0): {80: "m16n8k32 m16n8k64"}}),
        **_kinds("b1", 1, "s32", {(7, 0): {75: "m8n8k128", 80: "m16n8k128 m16n8k256"}}),
    }
)
_SHAPES = tuple(dict.fromkeys(shape for kind in _KINDS.values() for shape in kind.shapes))
_ORDER = (
    "sync", "aligned", "shape", "alayout", "blayout", "round", "satfinite", "dtype", "atype", "btype", "ctype", "bitop",
    "popc",
)  # fmt: skip
_LATER = words("sp sp::ordered_metadata kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4 kind::f8f6f4 block_scale")


def _product(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 4, 4)
    _check(q)
    a, shape = q.chosen["atype"], q.chosen["shape"]
    m, n, k = (int(size) for size in shape[1:].replace("n", " ").replace("k", " ").split())
    bits = _KINDS[a].bits
    sizes = {"a": m * k * bits, "b": k * n * bits}
    types: list[Type] = []
    items: list[tuple[ops.Operand, ...]] = []
    for matrix, operand in zip("dabc", q.instruction.operands, strict=True):
        if matrix in sizes:
            register, size = (_F64 if a == "f64" else B32), sizes[matrix]
        else:
            register, element = _ACCUMULATORS[q.chosen[f"{matrix}type"]]
            size = m * n * element
        # A warp computes four products of m8n8k4 of .f16 at once (9.7.15.4.1).
        count = (4 if shape == "m8n8k4" and a == "f16" else 1) * size // _WARP // register.bits
        vector = operands.vector(operand, count, f"the matrix {matrix.upper()} of .{shape}")
        types.append(register)
        items.append(tuple(operands.value(q, names, item, register) for item in vector))
    d = tuple(
        operands.destination(names, item) for item in operands.vector(q.instruction.operands[0], len(items[0]), "")
    )
    words_ = tuple(q.chosen[group] for group in _ORDER if group in q.chosen)
    kinds = (types[0], types[1], types[2], types[3])
    return ops.Wmma(d, items[1], items[2], items[3], kinds, words_, source(q), guard(q, names), "mma")


def _check(q: Qualified) -> None:
    """Types, shapes, layouts, and what belongs to some types only."""
    a, b, c, d = (q.chosen[f"{matrix}type"] for matrix in "abcd")
    kind, shape = _KINDS[a], q.chosen["shape"]
    if b not in kind.beside:
        raise at(q.span("btype"), f"`mma` multiplies .{a} by {dotted(kind.beside)}, not by .{b}")
    if shape not in kind.shapes:
        raise at(q.span("shape"), f"`mma` of .{a} has no shape .{shape}", hint=f"shapes: {dotted(kind.shapes)}")
    for group, typ in (("ctype", c), ("dtype", d)):
        if typ not in kind.accumulators:
            message = f"`mma` of .{a} has no accumulator .{typ}"
            raise at(q.span(group), message, hint=f"types of C and D: {dotted(kind.accumulators)}")
    if c != d and (shape != "m8n8k4" or c == "f32"):
        raise at(q.span("ctype"), f"the type of C is that of D, .{d}")
    for group, layout in (("alayout", "row"), ("blayout", "col")):
        if (shape, a) != ("m8n8k4", "f16") and q.chosen[group] != layout:
            raise at(q.span(group), f"`mma` of .{a} and .{shape} is .row.col")
    for group, has in (("bitop", ("b1",)), ("popc", ("b1",)), ("round", ("f64",)), ("satfinite", _INTEGERS)):
        if group in q.chosen and a not in has:
            raise at(q.span(group), f"`mma` of .{a} takes no `.{q.chosen[group]}`", hint=f"types: {dotted(has)}")
        if group in ("bitop", "popc") and a == "b1" and group not in q.chosen:
            raise at(q.instruction.opcode_span, "`mma` of .b1 is .xor.popc or .and.popc")


_INTEGERS = words("s8 u8 s4 u4")
_NEWER: Mapping[Version, str] = MappingProxyType(
    {
        version: " ".join(
            [f"{name}+{shape}" for name, kind in _KINDS.items() for shape, v in kind.shapes.items() if v == version]
        )
        for version in sorted({v for kind in _KINDS.values() for v in kind.shapes.values()})
    }
    | {Version((7, 1), 80): "and"}
)

FORMS = (
    Form("mma", _product,
         {"sync": ("sync",), "aligned": ("aligned",), "shape": _SHAPES, "alayout": ("row", "col"),
          "blayout": ("row", "col"), "round": words("rn rz rm rp"), "satfinite": ("satfinite",),
          "dtype": tuple(_ACCUMULATORS), "atype": tuple(_KINDS), "btype": tuple(_KINDS),
          "ctype": tuple(_ACCUMULATORS), "bitop": words("xor and"), "popc": ("popc",)},
         words("d a b c"), Version((6, 4), 70),
         words("sync aligned shape alayout blayout dtype atype btype ctype"),
         later=dict.fromkeys(_LATER), newer=_NEWER),
)  # fmt: skip
