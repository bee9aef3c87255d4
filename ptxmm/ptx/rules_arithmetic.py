"""The rules between the qualifiers of instructions that compute (PTX ISA 9.7.3, 9.7.7, 9.7.10.20, .21)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ptxmm.ptx.ops import Type
from ptxmm.ptx.qualifiers import Qualified, at, dotted

_TO_INTEGRAL = ("rni", "rzi", "rmi", "rpi")
_TO_REAL = ("rn", "rz", "rm", "rp")
_PRECISION = {("f", 16): (5, 10), ("bf", 16): (8, 7), ("f", 32): (8, 23), ("f", 64): (11, 52)}
_SET_TYPES = ("u32", "s32", "f32")
_SIGN_TYPES = ("s32", "f32")
_PARTS = ("u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2")


def _single_only(q: Qualified) -> None:
    """``.ftz`` and ``.sat`` are of single precision."""
    for group in ("ftz", "sat"):
        if group in q.chosen and q.types[-1] != Type("f", 32):
            message = f"`{q.form.opcode}` of .{q.types[-1].name} takes no `.{group}`"
            raise at(q.span(group), message, hint="only .f32 has it")


def _check_extreme(q: Qualified) -> None:
    """``.xorsign.abs`` is one modifier (9.7.3.11)."""
    for one, other in (("xorsign", "abs"), ("abs", "xorsign")):
        if one in q.chosen and other not in q.chosen:
            raise at(q.span(one), f"`.{one}` needs `.{other}`", hint="write .xorsign.abs")


def _check_set(q: Qualified) -> None:
    if q.types[0].name not in _SET_TYPES:
        message = f"the result of `set` is no .{q.types[0].name}"
        raise at(q.instruction.opcode_span, message, hint=f"types of the result: {dotted(_SET_TYPES)}")
    if "ftz" in q.chosen and q.types[1] != Type("f", 32):
        raise at(q.span("ftz"), f"`set` of .{q.types[1].name} takes no `.ftz`", hint="only .f32 has it")


def _check_slct(q: Qualified) -> None:
    if q.types[1].name not in _SIGN_TYPES:
        message = f"`slct` chooses by the sign of .s32 or .f32, not of .{q.types[1].name}"
        raise at(q.span("type"), message)
    if "ftz" in q.chosen and q.types[1].name != "f32":
        raise at(q.span("ftz"), "`slct` by the sign of .s32 takes no `.ftz`", hint="only .f32 has it")


def _check_pack(q: Qualified) -> None:
    part, source, *rest = q.types
    if part.name not in _PARTS:
        raise at(q.instruction.opcode_span, f"`cvt.pack` makes no .{part.name}", hint=f"types: {dotted(_PARTS)}")
    wanted = ["s32"] if part.bits == 16 else ["s32", "b32"]
    if [t.name for t in (source, *rest)] != wanted:
        raise at(q.span("type"), f"`cvt.pack.sat.{part.name}` takes {dotted(wanted)}")


def _check_conversion(q: Qualified) -> None:
    """Rounding, ``.sat`` and ``.ftz`` (9.7.10.20)."""
    to, frm = q.types
    _check_rounding(q, to, frm)
    if "ftz" in q.chosen and Type("f", 32) not in (to, frm):
        message = f"`cvt.{to.name}.{frm.name}` takes no `.ftz`"
        raise at(q.span("ftz"), message, hint="only conversions from or to .f32 have it")
    if "sat" not in q.chosen:
        return
    if "bf" in (to.kind, frm.kind):
        raise at(q.span("sat"), f"`cvt.{to.name}.{frm.name}` takes no `.sat`", hint="no conversion of .bf16 has it")
    if "f" in (to.kind, frm.kind):
        return
    (low, high), (least, most) = _range(to), _range(frm)
    if low <= least and most <= high:
        message = f"`cvt.{to.name}.{frm.name}` takes no `.sat`"
        raise at(q.span("sat"), message, hint=f"every .{frm.name} value is one of .{to.name}")


def _check_rounding(q: Qualified, to: Type, frm: Type) -> None:
    """A conversion that can lose something says how it rounds, another one does not."""
    result, source = _PRECISION.get((to.kind, to.bits)), _PRECISION.get((frm.kind, frm.bits))
    needed: tuple[str, ...]
    if result is None:
        needed = () if source is None else _TO_INTEGRAL
    elif source is None or any(mine < its for mine, its in zip(result, source, strict=True)):
        needed = _TO_REAL
    else:
        needed = ()
    allowed = _TO_INTEGRAL if to == frm and result is not None else needed
    if frm.kind == "bf" and to.kind == "f" and not needed:
        allowed = _TO_REAL  # exact, and yet an example has one: cvt.f64.bf16.rp
    name, given = f"cvt.{to.name}.{frm.name}", q.get("round")
    if given is None and needed:
        raise at(q.instruction.opcode_span, f"`{name}` needs a rounding mode: {dotted(needed)}")
    if given is not None and given not in allowed:
        hint = f"rounding modes of `{name}`: {dotted(allowed)}" if allowed else "its result is exact"
        raise at(q.span("round"), f"`{name}` takes no `.{given}`", hint=hint)


def _range(typ: Type) -> tuple[int, int]:
    return (-(1 << typ.bits - 1), (1 << typ.bits - 1) - 1) if typ.signed else (0, (1 << typ.bits) - 1)


RULES: Mapping[str, Callable[[Qualified], None]] = {
    "real": _single_only,
    "extreme": _check_extreme,
    "set": _check_set,
    "slct": _check_slct,
    "cvt_pack": _check_pack,
    "cvt": _check_conversion,
}
