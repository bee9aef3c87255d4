"""Rows of tcgen05 (PTX ISA 8.6, sm_100a; 9.7.16 of PTX ISA 9.0): what is modelled of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import COLUMN_BYTES, Op, Type
from ptxmm.ptx.ops.basic import B64, U32
from ptxmm.ptx.qualified import Form, Maker, Names, Qualified, at
from ptxmm.ptx.tables.common import Limit, guard, made, numbered, source, source_predicate
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
    "tcgen05.commit": "cta_group::2",
    "tcgen05.shift": "cta_group::2",
    "tcgen05.alloc": "cta_group::2",
    "tcgen05.dealloc": "cta_group::2",
    "tcgen05.relinquish_alloc_permit": "cta_group::2",
}


def _form(opcode: str, make: Maker, groups: Mapping[str, tuple[str, ...]], slots: str, required: str) -> Form:
    later = dict.fromkeys(words(_LATER.get(opcode, "")), SM100)
    return Form(opcode, make, groups, words(slots), SM100, words(required), later=later)


_B32, _U16 = Type("b", 32), Type("u", 16)
_SCALE = Limit("the scale of D", range(16), "0 to 15")


def _column(q: Qualified, names: Names, place: syntax.Operand) -> ops.Address:
    """An address in tensor memory: a variable, or a register, and a number of columns."""
    address = operands.address(q, names, place)
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
    """Five operands, with a mask of the lanes that are left out before the last one, and a factor of D behind it."""
    operands.check_count(q, 5, 7)
    dst, a, b, descriptor, *more = q.instruction.operands
    disabled: tuple[ops.Operand, ...] = ()
    if isinstance(more[0], syntax.Vector):
        lanes = operands.vector(more.pop(0), 4, "`disable-output-lane`")
        disabled = tuple(operands.value(q, names, item, _B32) for item in lanes)
    if not 1 <= len(more) <= 2:
        operands.check_count(q, 5, 6 if disabled else 5)
    register, negated = source_predicate(names, more[0])
    scale = _SCALE.constant(more[1]) if len(more) > 1 else None
    if scale is not None and q.chosen["kind"] not in ("kind::f16", "kind::tf32"):
        raise at(more[1].span, f"`.{q.chosen['kind']}` takes no scale of D")
    first = _column(q, names, a) if isinstance(a, syntax.Memory) else operands.value(q, names, a, B64)
    return ops.TensorProduct(
        _column(q, names, dst), first, operands.value(q, names, b, B64), operands.value(q, names, descriptor, U32),
        register, q.chosen["kind"], source(q), guard(q, names), negated, disabled, scale,
    )  # fmt: skip


def _commit(q: Qualified, names: Names) -> Op:
    several = "multicast" in q.chosen
    operands.check_count(q, 1 + several, 1 + several)
    place, *mask = q.instruction.operands
    return ops.TensorCommit(
        operands.address(q, names, place), q.get("space"), source(q), guard(q, names),
        operands.value(q, names, mask[0], _U16) if mask else None,
    )  # fmt: skip


def _shift(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    return ops.TensorShift(_column(q, names, q.instruction.operands[0]), source(q), guard(q, names))


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
    _form("tcgen05.commit", _commit,
          {**_GROUP, "arrival": ("mbarrier::arrive::one",), "space": ("shared::cluster",),
           "multicast": ("multicast::cluster",), "type": ("b64",)},
          "[mbar] ctaMask?", "group arrival type"),
    _form("tcgen05.shift", _shift, {**_GROUP, "down": ("down",)}, "[taddr]", "group down"),
    _form("tcgen05.alloc", made(ops.TensorAlloc),
          {**_GROUP, **_COLLECTIVE, "space": ("shared::cta",), "type": ("b32",)}, "[dst] nCols",
          "group sync aligned type"),
    _form("tcgen05.dealloc", made(ops.TensorDealloc), {**_GROUP, **_COLLECTIVE, "type": ("b32",)}, "taddr nCols",
          "group sync aligned type"),
    _form("tcgen05.relinquish_alloc_permit", made(ops.TensorRelinquish), {**_GROUP, **_COLLECTIVE}, "",
          "group sync aligned"),
)  # fmt: skip
