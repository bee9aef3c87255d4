"""Rows of instructions that exchange values between lanes, and of hints to the hardware (PTX ISA 9.7.10.6, .14 to .17,
9.7.14.9 to .14, 9.7.19)."""

from __future__ import annotations

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.ops.basic import B64, PREDICATE, U32
from ptxmm.ptx.qualified import Form, Names, Qualified, at
from ptxmm.ptx.tables.common import Limit, guard, made, source
from ptxmm.ptx.tables.form import SM90, V86, Version, words

_SYNC = {"sync": ("sync",)}
_V6 = Version((6, 0), 30)
_VOTES = {**dict.fromkeys(("all", "any", "uni"), ("pred",)), "ballot": ("b32",)}
_REDUCTIONS = {**dict.fromkeys(("add", "min", "max"), ("u32", "s32")), **dict.fromkeys(("and", "or", "xor"), ("b32",))}
_PRIORITIES = words("L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged")
_POLICY = {
    "primary": _PRIORITIES,
    "secondary": words("L2::evict_first L2::evict_unchanged"),
    "type": ("b64",),
}
_V74 = Version((7, 4), 80)


_F32 = Type("f", 32)
_ONE = 0x3F800000  # 1.0 as .f32


def _pair(names: Names, operand: syntax.Operand, *, sink: bool, what: str) -> tuple[ops.Reg | None, ops.Reg | None]:
    """The destinations ``d`` or ``d|p``; with ``sink`` the first may be ``_``."""
    if not isinstance(operand, syntax.Pair):
        return operands.destination(names, operand), None
    first = operand.first
    if operands.sink(first) and not sink:
        raise at(operand.span, f"the first destination of {what} can't be `_`")
    return operands.destination_or_sink(names, first), operands.destination(names, operand.second)


def _exchange(
    q: Qualified,
    names: Names,
    written: tuple[ops.Reg | None, ops.Reg | None],
    values: tuple[ops.Operand, ...],
    *,
    name: str,
    negated: bool = False,
) -> Op:
    typ = q.types[0] if q.types else PREDICATE
    return ops.WarpExchange(name, typ, *written, values, source(q), guard(q, names), negated)


def _shuffle(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 5, 5)
    dst, *rest = q.instruction.operands
    written = _pair(names, dst, sink=False, what="`shfl`")
    values = tuple(operands.value(q, names, item, U32) for item in rest)
    return _exchange(q, names, written, values, name=f"shfl.{q.chosen['op']}")


def _vote(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    dst, item, mask = q.instruction.operands
    negated = isinstance(item, syntax.Negated)
    vote = operands.value(q, names, item.name if isinstance(item, syntax.Negated) else item, PREDICATE)
    values = (vote, operands.value(q, names, mask, U32))
    written = (operands.destination(names, dst), None)
    return _exchange(q, names, written, values, name=f"vote.{q.chosen['op']}", negated=negated)


def _match(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    dst, item, mask = q.instruction.operands
    op = q.chosen["op"]
    if op == "any" and isinstance(dst, syntax.Pair):
        raise at(dst.span, "`match.any` writes no predicate", hint="match.all does")
    written = _pair(names, dst, sink=True, what="`match`")
    values = (operands.value(q, names, item, q.types[0]), operands.value(q, names, mask, U32))
    return _exchange(q, names, written, values, name=f"match.{op}")


def _active_mask(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    written = (operands.destination(names, q.instruction.operands[0]), None)
    return _exchange(q, names, written, (), name="activemask")


def _reduce(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    dst, item, mask = q.instruction.operands
    values = (operands.value(q, names, item, q.types[0]), operands.value(q, names, mask, U32))
    written = (operands.destination(names, dst), None)
    return _exchange(q, names, written, values, name=f"redux.{q.chosen['op']}")


def _elect(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, mask = q.instruction.operands
    if not isinstance(dst, syntax.Pair):
        raise at(dst.span, "`elect` writes a register and a predicate", hint="write d|p, or _|p")
    written = _pair(names, dst, sink=True, what="`elect`")
    return _exchange(q, names, written, (operands.value(q, names, mask, U32),), name="elect")


# -- hints ---------------------------------------------------------------------------------------------------------


def _nothing(q: Qualified, names: Names, dst: ops.Reg | None = None, typ: Type | None = None) -> Op:
    return ops.Nothing(dst, typ, source(q), guard(q, names))


def _prefetch(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    operands.address(q, names, q.instruction.operands[0])
    return _nothing(q, names)


def _apply_priority(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    place, size = q.instruction.operands
    operands.address(q, names, place)
    Limit("the size of `applypriority`", (128,), "128").constant(size)
    return _nothing(q, names)


def _policy_range(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 4, 4)
    dst, place, primary, total = q.instruction.operands
    operands.address(q, names, place)
    sizes = [operands.value(q, names, size, U32) for size in (primary, total)]
    for item, size in zip((primary, total), sizes, strict=True):
        if isinstance(size, ops.Imm) and not 0 <= size.value < 1 << 32:
            raise at(item.span, f"a size has 32 bits: {size.value}")
    first, last = sizes
    if isinstance(first, ops.Imm) and isinstance(last, ops.Imm) and first.value > last.value:
        raise at(primary.span, f"the primary range has at most the {last.value} bytes of all, not {first.value}")
    return _nothing(q, names, operands.destination(names, dst), B64)


def _policy_fraction(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 2)
    dst, *fraction = q.instruction.operands
    if fraction:
        value = operands.value(q, names, fraction[0], _F32)
        if isinstance(value, ops.Imm) and not 0 < value.value <= _ONE:
            raise at(fraction[0].span, "the fraction of a policy is more than 0.0 and at most 1.0")
    return _nothing(q, names, operands.destination(names, dst), B64)


def _policy_convert(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    dst, item = q.instruction.operands
    operands.value(q, names, item, B64)
    return _nothing(q, names, operands.destination(names, dst), B64)


def _nanosleep(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    operands.value(q, names, q.instruction.operands[0], U32)
    return _nothing(q, names)


def _check_prefetch(q: Qualified) -> None:
    """Levels and state spaces (9.7.10.14)."""
    level, space = q.chosen["level"], q.get("space")
    legal = {"tensormap": (None, "const", "param"), "L1": (None, "global", "local"), "L2": (None, "global", "local")}
    if space not in legal.get(level, ("global",)):
        if space is None:
            raise at(q.instruction.opcode_span, f"`prefetch.{level}` needs `.global`")
        raise at(q.span("space"), f"`prefetch.{space}` takes no `.{level}`")


FORMS = (
    Form("shfl", _shuffle, {**_SYNC, "op": words("up down bfly idx"), "type": ("b32",)}, words("d|p a b c mask"), _V6,
         ("sync", "op", "type")),
    Form("vote", _vote, {**_SYNC, "op": tuple(_VOTES), "type": ("pred", "b32")}, words("d vote mask"), _V6,
         ("sync", "op", "type"), ("op", _VOTES)),
    Form("match", _match, {"op": words("any all"), **_SYNC, "type": words("b32 b64")}, words("d|p a mask"),
         Version((6, 0), 70), ("op", "sync", "type")),
    Form("activemask", _active_mask, {"type": ("b32",)}, ("d",), Version((6, 2), 30), ("type",)),
    Form("redux", _reduce, {**_SYNC, "op": tuple(_REDUCTIONS), "type": words("u32 s32 b32")}, words("d a mask"),
         Version((7, 0), 80), ("sync", "op", "type"), ("op", _REDUCTIONS),
         dict.fromkeys(words("f32 abs NaN"), V86)),
    Form("elect", _elect, _SYNC, words("d|p mask"), Version((8, 0), 90), ("sync",)),
    Form("discard", made(ops.Discard, size=Limit("the size of `discard`", (128,), "128")),
         {"space": ("global",), "level": ("L2",)}, words("[a] size"), _V74, ("level",)),
    Form("prefetch", _prefetch,
         {"space": words("global local const param"),
          "level": words("L1 L2 L2::evict_last L2::evict_normal tensormap")},
         ("[a]",), Version((2, 0), 20), ("level",), rule=_check_prefetch,
         newer={_V74: "L2::evict_last L2::evict_normal", SM90: "tensormap"}),
    Form("prefetchu", _prefetch, {"level": ("L1",)}, ("[a]",), Version((2, 0), 20), ("level",), rule=_check_prefetch),
    Form("applypriority", _apply_priority, {"space": ("global",), "level": ("L2::evict_normal",)}, words("[a] size"),
         _V74, ("level",)),
    Form("createpolicy.range", _policy_range, {"space": ("global",), **_POLICY},
         words("policyreg [a] primary total"), _V74, ("primary", "type")),
    Form("createpolicy.fractional", _policy_fraction, _POLICY, words("policyreg fraction?"), _V74,
         ("primary", "type")),
    Form("createpolicy.cvt", _policy_convert, {"level": ("L2",), "type": ("b64",)}, words("policyreg property"),
         _V74, ("level", "type")),
    Form("nanosleep", _nanosleep, {"type": ("u32",)}, ("time",), Version((6, 3), 70), ("type",)),
)  # fmt: skip
