"""What instructions compute on plain numbers (PTX ISA 9.7.1 to .3, 9.7.7, 9.7.9, 9.7.10.20, 9.7.14.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptxmm.ptx.ops import Type

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_BOOLEANS = ("and", "or", "xor")


def signed(value: int, bits: int) -> int:
    """``value`` of ``bits`` bits as a signed integer."""
    sign = 1 << (bits - 1)
    return ((value & ((1 << bits) - 1)) ^ sign) - sign


OPERATIONS: Mapping[str, Callable[[Any, Any, Any, int], Any]] = {
    "mov": lambda a, b, c, bits: a,
    "add": lambda a, b, c, bits: a + b,
    "sub": lambda a, b, c, bits: a - b,
    "mul.lo": lambda a, b, c, bits: a * b,
    "mul.hi": lambda a, b, c, bits: a * b >> bits,
    "mul.wide": lambda a, b, c, bits: a * b,
    "mad.lo": lambda a, b, c, bits: a * b + c,
    "mad.hi": lambda a, b, c, bits: (a * b >> bits) + c,
    "mad.wide": lambda a, b, c, bits: a * b + c,
    "and": lambda a, b, c, bits: a & b,
    "or": lambda a, b, c, bits: a | b,
    "xor": lambda a, b, c, bits: a ^ b,
    "not": lambda a, b, c, bits: ~a,
    "neg": lambda a, b, c, bits: -a,
    "abs": lambda a, b, c, bits: abs(signed(a, bits)),
    "min": lambda a, b, c, bits: min(a, b),
    "max": lambda a, b, c, bits: max(a, b),
    "eq": lambda a, b, c, bits: a == b,
    "ne": lambda a, b, c, bits: a != b,
    "lt": lambda a, b, c, bits: a < b,
    "le": lambda a, b, c, bits: a <= b,
    "gt": lambda a, b, c, bits: a > b,
    "ge": lambda a, b, c, bits: a >= b,
}
"""What of ``compute`` is taken in so many ``bits`` of two numbers of the type, and a third operand that is added."""


def compute(op: str, type_: Type, operands: list[int]) -> int:
    """The unsigned result of an instruction that computes (PTX ISA 9.7.1 to .3, 9.7.7, 9.7.9) on unsigned operands;
    those of floating-point types are bit patterns. What the ISA leaves unspecified has some value."""
    first = op.partition(".")[0]
    if first == "set":
        return _set(op.split(".")[1:], type_, operands)
    if first == "slct":
        return operands[0] if _not_negative(op.split(".")[1:], operands[2]) else operands[1]
    if op == "select":
        return operands[0] if operands[2] else operands[1]
    if type_.kind in ("f", "bf") and op != "mov":
        from ptxmm.events.symbolic.values.floats import compute_float

        return compute_float(op, type_, operands)
    bits = type_.bits
    mask = (1 << bits) - 1
    if op in ("shl", "shr"):
        amount = min(operands[1] & 0xFFFFFFFF, bits)
        a = operands[0] & mask
        return (a << amount if op == "shl" else (signed(a, bits) if type_.signed else a) >> amount) & mask
    operation = OPERATIONS.get(op)
    if operation is None:
        from ptxmm.events.symbolic.values.integers import compute_bits  # few programs have these

        return compute_bits(op, type_, operands)
    a, b, c = (*operands, 0, 0)[:3]
    a, b = (signed(a, bits), signed(b, bits)) if type_.signed else (a & mask, b & mask)
    return int(operation(a, b, c, bits)) & ((1 << 2 * bits) - 1 if op.endswith(".wide") else mask)


def _set(modes: list[str], type_: Type, operands: list[int]) -> int:
    """``set``: all ones or 1.0 if the comparison holds (9.7.7.1)."""
    flush = ".ftz" if "ftz" in modes else ""
    truth = compute(modes[0] + flush, type_, operands[:2])
    for mode in modes[1:-1]:
        name, _, negated = mode.partition("_")
        if name in _BOOLEANS:
            c = 1 - operands[2] if negated else operands[2]
            truth = {"and": truth & c, "or": truth | c, "xor": truth ^ c}[name]
    if not truth:
        return 0
    return 0x3F800000 if modes[-1] == "f32" else 0xFFFFFFFF


def _not_negative(modes: list[str], c: int) -> int:
    """Whether ``slct`` takes its first value (9.7.7.4)."""
    if modes[-1] == "s32":
        return int(c < 1 << 31)
    return compute("ge.ftz" if modes[0] == "ftz" else "ge", Type("f", 32), [c, 0])


def update(op: str, type_: Type, old: int, operand: int) -> int:
    """What an atomic operation other than cas writes (PTX ISA 9.7.14.5)."""
    mask = (1 << type_.bits) - 1
    match op:
        case "exch":
            return operand & mask
        case "inc":
            return 0 if old >= operand & mask else old + 1
        case "dec":
            return operand & mask if old == 0 or old > operand & mask else old - 1
    return compute(op, type_, [old, operand])


def bounds(type_: Type) -> tuple[int, int]:
    """The least and the greatest integer of ``type_``."""
    half = 1 << type_.bits - 1
    return (-half, half - 1) if type_.signed else (0, 2 * half - 1)


def convert(value: int, to: Type, frm: Type, saturate: bool, rounding: str | None = None, flush: bool = False) -> int:
    """``cvt.to.frm`` (PTX ISA 9.7.10.20)."""
    if to.kind in ("f", "bf") or frm.kind in ("f", "bf"):
        from ptxmm.events.symbolic.values.floats import convert_float

        return convert_float(value, to, frm, saturate, rounding, flush)
    number = signed(value, frm.bits) if frm.signed else value & ((1 << frm.bits) - 1)
    if saturate:
        low, high = bounds(to)
        number = max(low, min(high, number))
    return number & ((1 << to.bits) - 1)


def extend(value: int, frm: Type, bits: int) -> int:
    """A loaded value of type ``frm`` in a register of ``bits`` bits: sign- or zero-extended (PTX ISA 9.4.1)."""
    number = signed(value, frm.bits) if frm.signed else value & ((1 << frm.bits) - 1)
    return number & ((1 << bits) - 1)
