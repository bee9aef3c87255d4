"""Rows of tcgen05 (PTX ISA 8.6, sm_100a; 9.7.16 of PTX ISA 9.0): what is modelled of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import COLUMN_BYTES, Op, Type
from ptxmm.ptx.ops.basic import B64, U32
from ptxmm.ptx.qualified import Form, Maker, Names, Qualified, at
from ptxmm.ptx.tables.common import guard, made, numbered, source, source_predicate
from ptxmm.ptx.tables.form import SM100, words

# The bytes that a lane gets.
COPY_SHAPES: Mapping[str, int] = MappingProxyType({"128x256b": 32, "4x256b": 32, "128x128b": 16})

_COLLECTIVE = {"sync": ("sync",), "aligned": ("aligned",)}
_SYNC = ("sync", "aligned")
_GROUP = {"group": ("cta_group::1",)}
_ACCESS = {
    **_COLLECTIVE, "shape": ("32x32b",), "num": words("x1 x2 x4 x8 x16 x32 x64 x128"), "type": ("b32",),
}  # fmt: skip
_ACCESS_REQUIRED = "sync aligned shape num type"
_SHAPES = "16x64b 16x128b 16x256b 16x32bx2"
_LATER = {
    "tcgen05.ld": f"{_SHAPES} pack::16b red min max abs NaN u32 s32 f32",
    "tcgen05.st": f"{_SHAPES} unpack::16b",
    "tcgen05.cp": "cta_group::2 64x128b 32x128b warpx2::02_13 warpx2::01_23 warpx4 b8x16 b6x16_p32 b4x16_p64",
    "tcgen05.mma": (
        "cta_group::2 sp ws block_scale scale_vec::1X scale_vec::2X scale_vec::4X kind::mxf8f6f4 kind::mxf4 "
        "kind::mxf4nvf4 ashift collector::a::fill collector::a::use collector::a::lastuse collector::a::discard"
    ),
    "tcgen05.commit": "cta_group::2 multicast::cluster",
}


def _form(opcode: str, make: Maker, groups: Mapping[str, tuple[str, ...]], slots: str, required: str) -> Form:
    later = dict.fromkeys(words(_LATER.get(opcode, "")), SM100)
    return Form(opcode, make, groups, words(slots), SM100, words(required), later=later)


_B32 = Type("b", 32)


def _column(q: Qualified, names: Names, place: syntax.Operand) -> ops.Address:
    """An address in tensor memory: a variable and a number of columns."""
    address = operands.address(q, names, place)
    if not isinstance(address.base, ops.Sym):
        hint = "name a variable: `.tmem .b32 t[4] @ cta 0;` and [t], [t+1]"
        message = "an address of tensor memory in a register is not supported yet"
        raise at(place.span, message, kind="unsupported", hint=hint)
    return replace(address, offset=COLUMN_BYTES * address.offset)


def _load(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, place = q.instruction.operands
    targets = tuple(operands.destination(names, item) for item in numbered(q, dst))
    return ops.TensorLoad(targets, _column(q, names, place), source(q), guard(q, names))


def _store(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    place, stored = q.instruction.operands
    values = tuple(operands.value(q, names, item, _B32) for item in numbered(q, stored))
    return ops.TensorStore(_column(q, names, place), values, source(q), guard(q, names))


def _copy(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    place, descriptor = q.instruction.operands
    shape = q.chosen["shape"]
    return ops.TensorCopy(
        _column(q, names, place), operands.value(q, names, descriptor, B64), COPY_SHAPES[shape], shape, source(q),
        guard(q, names),
    )  # fmt: skip


def _product(q: Qualified, names: Names) -> Op:
    """Five operands; a mask of the lanes that are left out, and a factor of D, are not supported."""
    given = q.instruction.operands
    if (len(given) in (6, 7) and isinstance(given[4], syntax.Vector)) or len(given) == 6:
        raise at(given[-1].span, "`tcgen05.mma` with more operands is not supported yet", kind="unsupported")
    operands.check_count(q, 5, 5)
    dst, a, b, descriptor, enable = given
    register, negated = source_predicate(names, enable)
    first = _column(q, names, a) if isinstance(a, syntax.Memory) else operands.value(q, names, a, B64)
    return ops.TensorProduct(
        _column(q, names, dst), first, operands.value(q, names, b, B64), operands.value(q, names, descriptor, U32),
        register, q.chosen["kind"], source(q), guard(q, names), negated,
    )  # fmt: skip


FORMS = (
    *(
        Form(f"tcgen05.fence::{kind}_thread_sync", made(ops.TensorFence), {}, (), SM100, fixed={"kind": kind})
        for kind in ("before", "after")
    ),
    *(
        Form(f"tcgen05.wait::{kind}", made(ops.TensorWait), _COLLECTIVE, (), SM100, _SYNC, fixed={"kind": kind})
        for kind in ("ld", "st")
    ),
    _form("tcgen05.ld", _load, _ACCESS, "r [taddr]", _ACCESS_REQUIRED),
    _form("tcgen05.st", _store, _ACCESS, "[taddr] r", _ACCESS_REQUIRED),
    _form("tcgen05.cp", _copy, {**_GROUP, "shape": tuple(COPY_SHAPES)}, "[taddr] s-desc", "group shape"),
    _form("tcgen05.mma", _product,
          {**_GROUP, "kind": words("kind::f16 kind::tf32 kind::f8f6f4 kind::i8")},
          "[d-tmem] a b-desc idesc enable-input-d", "group kind"),
    _form("tcgen05.commit", made(ops.TensorCommit),
          {**_GROUP, "arrival": ("mbarrier::arrive::one",), "space": ("shared::cluster",), "type": ("b64",)},
          "[mbar]", "group arrival type"),
)  # fmt: skip
