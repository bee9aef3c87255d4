"""Rows of the integer, logic, comparison, conversion and control instructions (PTX ISA 9.7.1, 9.7.5 to .9, 9.7.13)."""

from __future__ import annotations

from ptxmm.ptx.tables.form import BITS, INTEGERS, SIGNED, UNSIGNED, V1, Form, words

_FLOATS = words("f16 f16x2 bf16 bf16x2 tf32 f32 f64")
_HALVES = words("f16 f16x2 bf16 bf16x2")
_ROUNDING = words("rn rz rm rp rni rzi rmi rpi rna ftz satfinite relu e4m3x2 e5m2x2 f32x2")
_WIDENING = {"lo": INTEGERS, "hi": INTEGERS, "wide": words("u16 u32 s16 s32")}
_COMPARISONS = {
    **dict.fromkeys(("eq", "ne"), (*BITS, *INTEGERS)),
    **dict.fromkeys(("lt", "le", "gt", "ge"), INTEGERS),
    **dict.fromkeys(("lo", "ls", "hi", "hs"), UNSIGNED),
}


def _alu(opcode: str, slots: str, types: tuple[str, ...], kind: str = "alu", later: tuple[str, ...] = ()) -> Form:
    return Form(opcode, kind, {"type": types}, words(slots), V1, ("type",), later=later)


FORMS = (
    _alu("mov", "d a", ("pred", *BITS, "b128", *INTEGERS, "f32", "f64"), "mov", _HALVES),
    _alu("add", "d a b", INTEGERS, later=(*_FLOATS, *_ROUNDING, *words("sat cc u16x2 s16x2"))),
    _alu("sub", "d a b", INTEGERS, later=(*_FLOATS, *_ROUNDING, *words("sat cc"))),
    Form("mul", "wide", {"mode": ("lo", "hi", "wide"), "type": INTEGERS}, words("d a b"), V1, ("mode", "type"),
         ("mode", _WIDENING), (*_FLOATS, *_ROUNDING, "sat")),
    Form("mad", "wide", {"mode": ("lo", "hi", "wide"), "type": INTEGERS}, words("d a b c"), V1, ("mode", "type"),
         ("mode", _WIDENING), (*_FLOATS, *_ROUNDING, "sat", "cc")),
    _alu("and", "d a b", ("pred", *BITS)),
    _alu("or", "d a b", ("pred", *BITS)),
    _alu("xor", "d a b", ("pred", *BITS)),
    _alu("not", "d a", ("pred", *BITS)),
    _alu("neg", "d a", SIGNED, later=(*_FLOATS, "ftz")),
    _alu("abs", "d a", SIGNED, later=(*_FLOATS, "ftz")),
    _alu("shl", "d a b", BITS),
    _alu("shr", "d a b", (*BITS, *INTEGERS)),
    _alu("min", "d a b", INTEGERS, later=(*_FLOATS, *_ROUNDING, *words("u16x2 s16x2 NaN xorsign abs"))),
    _alu("max", "d a b", INTEGERS, later=(*_FLOATS, *_ROUNDING, *words("u16x2 s16x2 NaN xorsign abs"))),
    Form("setp", "setp", {"cmp": tuple(_COMPARISONS), "bool": ("and", "or", "xor"), "type": (*BITS, *INTEGERS)},
         words("p a b c?"), V1, ("cmp", "type"), ("cmp", _COMPARISONS),
         (*_FLOATS, *words("ftz equ neu ltu leu gtu geu num nan"))),
    _alu("selp", "d a b p", (*BITS, *INTEGERS, "f32", "f64"), "selp", _HALVES),
    Form("cvt", "cvt", {"sat": ("sat",), "type": ("u8", *UNSIGNED, "s8", *SIGNED)}, ("d", "a"), V1, ("type",),
         later=(*_FLOATS, *_ROUNDING, "pack")),
    Form("bra", "branch", {"uni": ("uni",)}, ("label",), V1),
    Form("ret", "exit", {"uni": ("uni",)}, (), V1),
    Form("exit", "exit", {}, (), V1),
)  # fmt: skip
