"""Rows of the instructions that compute, and of control flow (PTX ISA 9.7.1 to .3, 9.7.7, 9.7.9, 9.7.10.3, .4, .7, .20,
.21, 9.7.13).

A row for some types of an instruction has the type in its name: ``add.f32`` beside ``add``. The name of an operation
(``ops.Alu``) is made of the words of the row and of the qualifiers in the order of the groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from ptxmm.ptx import ops
from ptxmm.ptx.qualified import NOTHING, Check, Form, Maker, TypesBy
from ptxmm.ptx.tables.common import check_sign, made
from ptxmm.ptx.tables.computation import (
    alu,
    branch,
    by_second_type,
    carry,
    check_conversion,
    check_pack,
    check_set,
    check_slct,
    convert,
    lop3,
    mov,
    pack_integers,
    real,
    select,
    set_,
    set_predicate,
    single_only,
)
from ptxmm.ptx.tables.form import BITS, INTEGERS, SIGNED, UNSIGNED, V1, Version, words

_HALVES = words("f16 f16x2 bf16 bf16x2")
_REALS = words("f32 f64")
_PAIRS = words("u16x2 s16x2")
_LATER = ("f32x2",)
_WIDENING = {"lo": INTEGERS, "hi": INTEGERS, "wide": words("u16 u32 s16 s32")}
_COMPARISONS = {
    **dict.fromkeys(("eq", "ne"), (*BITS, *INTEGERS)),
    **dict.fromkeys(("lt", "le", "gt", "ge"), INTEGERS),
    **dict.fromkeys(("lo", "ls", "hi", "hs"), UNSIGNED),
}
_REAL_COMPARISONS = words("eq ne lt le gt ge equ neu ltu leu gtu geu num nan")
_ANY_COMPARISON = {
    cmp: (*_COMPARISONS.get(cmp, ()), *(_REALS if cmp in _REAL_COMPARISONS else ()))
    for cmp in dict.fromkeys((*_COMPARISONS, *_REAL_COMPARISONS))
}
_BOOLEANS = words("and or xor")
_ROUND = {"round": words("rn rz rm rp")}
_FTZ = {"ftz": ("ftz",)}
_SAT = {"sat": ("sat",)}
_CLAMP = {"mode": words("clamp wrap")}
_CARRY_TYPES = words("u32 s32 u64 s64")
_CARRY_NEWER = {Version((4, 3), 20): "u64 s64"}
_PAIRS_NEWER = {Version((8, 0), 90): " ".join(_PAIRS)}
_F64 = Version((1, 0), 13)
_V20 = Version((2, 0), 20)
_DOT = Version((5, 0), 61)


def _alu(
    opcode: str,
    slots: str,
    types: tuple[str, ...],
    groups: Mapping[str, tuple[str, ...]] | None = None,
    *,
    make: Maker = alu,
    since: Version = V1,
    required: tuple[str, ...] = (),
    later: tuple[str, ...] = (),
    types_by: TypesBy | None = None,
    count: str = "1",
    rule: Check | None = None,
    newer: Mapping[Version, str] = NOTHING,
) -> Form:
    """A row. ``count``: how many types it has."""
    return Form(
        opcode, make, {**(groups or {}), "type": types}, words(slots), since, (*required, "type"), types_by,
        dict.fromkeys(later), {"types": count}, rule, newer,
    )  # fmt: skip


def _integers() -> Iterator[Form]:
    """9.7.1, 9.7.2."""
    v12, v30 = Version((1, 2)), Version((3, 0), 20)
    for opcode in ("add", "sub"):
        pairs, later = (_PAIRS, _LATER) if opcode == "add" else ((), (*_LATER, *_PAIRS))
        yield _alu(opcode, "d a b", (*INTEGERS, *pairs), later=later, newer=_PAIRS_NEWER)
        yield _alu(f"{opcode}.sat", "d a b", ("s32",))
        yield _alu(f"{opcode}.cc", "d a b", _CARRY_TYPES, make=carry, since=v12, newer=_CARRY_NEWER)
        cc = {"cc": ("cc",)}
        yield _alu(f"{opcode}c", "d a b", _CARRY_TYPES, cc, make=carry, since=v12, newer=_CARRY_NEWER)
    modes = {"mode": ("lo", "hi", "wide")}
    by = ("mode", _WIDENING)
    yield _alu("mul", "d a b", INTEGERS, modes, required=("mode",), later=_LATER, types_by=by)
    yield _alu("mad", "d a b c", INTEGERS, modes, required=("mode",), types_by=by)
    yield _alu("mad.hi.sat", "d a b c", ("s32",))
    halves = {"mode": ("lo", "hi")}
    with_carry = partial(_alu, make=carry, required=("mode",), since=v30, newer=_CARRY_NEWER)
    yield with_carry("mad.cc", "d a b c", _CARRY_TYPES, halves)
    yield with_carry("madc", "d a b c", _CARRY_TYPES, {**halves, "cc": ("cc",)})
    yield _alu("mul24", "d a b", words("u32 s32"), halves, required=("mode",))
    yield _alu("mad24", "d a b c", words("u32 s32"), halves, required=("mode",))
    yield _alu("mad24.hi.sat", "d a b c", ("s32",))
    yield _alu("sad", "d a b c", INTEGERS)
    yield _alu("div", "d a b", INTEGERS)
    yield _alu("rem", "d a b", INTEGERS)
    yield _alu("neg", "d a", SIGNED)
    yield _alu("abs", "d a", SIGNED)
    for opcode in ("min", "max"):
        yield _alu(opcode, "d a b", (*INTEGERS, *_PAIRS), newer=_PAIRS_NEWER)
        relu = Version((8, 0), 90)
        yield _alu(f"{opcode}.relu", "d a b", words("s32 s16x2"), since=relu)
    yield _alu("popc", "d a", words("b32 b64"), since=_V20)
    yield _alu("clz", "d a", words("b32 b64"), since=_V20)
    yield _alu("bfind", "d a", _CARRY_TYPES, {"shiftamt": ("shiftamt",)}, since=_V20)
    yield _alu("fns", "d a base offset", ("b32",), since=Version((6, 0), 30))
    yield _alu("brev", "d a", words("b32 b64"), since=_V20)
    yield _alu("bfe", "d a b c", _CARRY_TYPES, since=_V20)
    yield _alu("bfi", "f a b c d", words("b32 b64"), since=_V20)
    v76 = Version((7, 6), 70)
    yield _alu("szext", "d a b", words("u32 s32"), _CLAMP, required=("mode",), since=v76)
    yield _alu("bmsk", "d a b", ("b32",), _CLAMP, required=("mode",), since=v76)
    dot = partial(_alu, make=by_second_type, since=_DOT, count="2")
    yield dot("dp4a", "d a b c", words("u32 s32"))
    yield dot("dp2a", "d a b c", words("u32 s32"), halves, required=("mode",))


def _reals() -> Iterator[Form]:
    """9.7.3, of single and double precision."""
    single, quotient = {**_ROUND, **_FTZ, **_SAT}, {**_ROUND, **_FTZ}
    directed = {Version((1, 0), 20): "rm rp"}
    plain = partial(_alu, make=real, rule=single_only)
    for opcode in ("add", "sub", "mul"):
        yield plain(f"{opcode}.f32", "d a b", ("f32",), single, newer=directed)
        yield plain(f"{opcode}.f64", "d a b", ("f64",), _ROUND, since=_F64)
    rounded = partial(plain, required=("round",))
    v14, f32 = Version((1, 4), 13), {_V20: "f32"}
    yield rounded("fma", "d a b c", _REALS, single, since=v14, later=_LATER, newer=f32)
    yield rounded("mad.f32", "d a b c", ("f32",), single, since=Version((1, 0), 20))
    yield rounded("mad.f64", "d a b c", ("f64",), _ROUND, since=_F64)
    yield rounded("div.f32", "d a b", ("f32",), quotient, since=_V20)
    yield rounded("div.f64", "d a b", ("f64",), _ROUND, since=v14)
    for opcode in ("rcp", "sqrt"):
        yield rounded(opcode, "d a", _REALS, quotient, since=v14, newer=f32)
    for opcode in ("neg", "abs"):
        yield _alu(f"{opcode}.f32", "d a", ("f32",), _FTZ)
        yield _alu(f"{opcode}.f64", "d a", ("f64",), since=_F64)
    extreme = {**_FTZ, "nan": ("NaN",), "xorsign": ("xorsign",), "abs": ("abs",)}
    newer = {Version((7, 0), 80): "NaN", Version((7, 2), 86): "xorsign"}
    for opcode in ("min", "max"):
        yield _alu(f"{opcode}.f32", "d a b", ("f32",), extreme, rule=check_sign, newer=newer)
        yield _alu(f"{opcode}.f64", "d a b", ("f64",), since=_F64)
    yield _alu("copysign", "d a b", _REALS, since=_V20)
    properties = {"property": words("finite infinite number notanumber normal subnormal")}
    yield _alu("testp", "p a", _REALS, properties, required=("property",), since=_V20)


def _selections() -> Iterator[Form]:
    """9.7.7."""
    cmp = {"cmp": tuple(_COMPARISONS), "bool": _BOOLEANS}
    yield _alu("setp", "p a b c?", (*BITS, *INTEGERS), cmp, make=set_predicate, required=("cmp",),
               types_by=("cmp", _COMPARISONS))  # fmt: skip
    real = {"cmp": _REAL_COMPARISONS, "bool": _BOOLEANS}
    yield _alu("setp.f32", "p a b c?", ("f32",), {**real, **_FTZ}, make=set_predicate, required=("cmp",))
    yield _alu("setp.f64", "p a b c?", ("f64",), real, make=set_predicate, required=("cmp",), since=_F64)
    every = {"cmp": tuple(_ANY_COMPARISON), "bool": _BOOLEANS, **_FTZ}
    yield _alu("set", "d a b c?", (*BITS, *INTEGERS, *_REALS), every, make=set_, rule=check_set, required=("cmp",),
               types_by=("cmp", _ANY_COMPARISON), count="2")  # fmt: skip
    yield _alu("selp", "d a b p", (*BITS, *INTEGERS, *_REALS), make=select, later=_HALVES)
    yield _alu("slct", "d a b c", (*BITS, *INTEGERS, *_REALS), _FTZ, make=by_second_type, rule=check_slct, count="2")


def _logic() -> Iterator[Form]:
    """9.7.9, 9.7.10.7."""
    for opcode in ("and", "or", "xor"):
        yield _alu(opcode, "d a b", ("pred", *BITS))
    yield _alu("not", "d a", ("pred", *BITS))
    yield _alu("cnot", "d a", BITS)
    yield _alu("lop3", "d a b c immLut q?", ("b32",), {"bool": ("or", "and")}, make=lop3, since=Version((4, 3), 50),
               newer={Version((8, 2), 70): "or and"})  # fmt: skip
    yield _alu("shf", "d a b c", ("b32",), {"dir": ("l", "r"), **_CLAMP}, required=("dir", "mode"),
               since=Version((3, 1), 32))  # fmt: skip
    yield _alu("shl", "d a b", BITS)
    yield _alu("shr", "d a b", (*BITS, *INTEGERS))
    yield _alu("prmt", "d a b c", ("b32",), {"mode": words("f4e b4e rc8 ecl ecr rc16")}, since=_V20)


def _conversions() -> Iterator[Form]:
    """9.7.10.3, .4, .20, .21."""
    yield _alu("mov", "d a", ("pred", *BITS, "b128", *INTEGERS, *_REALS), make=mov, later=_HALVES)
    integers = ("u8", *UNSIGNED, "s8", *SIGNED)
    modes = {"round": words("rn rz rm rp rni rzi rmi rpi"), **_FTZ, **_SAT}
    bf16 = (*integers, "f16", "f64", *words("rni rzi rmi rpi"))
    later = words("rs ue8m0x2 e2m1x2 e2m3x2 e3m2x2")
    newer = {Version((7, 0), 80): "bf16", Version((7, 8), 90): " ".join(f"bf16+{word}" for word in bf16)}
    yield _alu("cvt", "d a", (*integers, "f16", "bf16", *_REALS), modes, make=convert, rule=check_conversion,
               count="2", later=later, newer=newer)  # fmt: skip
    packed = words("u16 s16 u8 s8 u4 s4 u2 s2 s32 b32")
    yield _alu("cvt.pack", "d a b c?", packed, _SAT, make=pack_integers, rule=check_pack, required=("sat",),
               since=Version((6, 5), 72), count="3", newer={Version((6, 5), 75): "u4 s4 u2 s2"})  # fmt: skip


FORMS = (
    *_reals(),
    *_integers(),
    *_selections(),
    *_logic(),
    *_conversions(),
    Form("bra", branch, {"uni": ("uni",)}, ("label",), V1),
    Form("ret", made(ops.Exit), {"uni": ("uni",)}, (), V1),
    Form("exit", made(ops.Exit), {}, (), V1),
)
