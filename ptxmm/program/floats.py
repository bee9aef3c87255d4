"""Floating-point constants of PTX as bit patterns (PTX ISA 4.5.2)."""

from __future__ import annotations

import math
import re
import struct

from ptxmm.ptx.ops import Type

_HEXADECIMAL = {"f": (re.compile(r"0[fF]([0-9a-fA-F]{8})"), ">f"), "d": (re.compile(r"0[dD]([0-9a-fA-F]{16})"), ">d")}
_DECIMAL = re.compile(r"[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+")
_FORMATS = {("f", 16): ">e", ("f", 32): ">f", ("f", 64): ">d", ("b", 32): ">f", ("b", 64): ">d"}


def is_real(text: str) -> bool:
    """Whether ``text`` (without a sign) is a floating-point constant: ``1.0``, ``0f3F800000``, ``0d...``."""
    return any(pattern.fullmatch(text) for pattern, _ in _HEXADECIMAL.values()) or bool(_DECIMAL.fullmatch(text))


def real_bits(text: str, type_: Type) -> int | None:
    """The bit pattern in ``type_`` of the constant ``text``, which may start with ``-``.

    A constant is a 64-bit number that is rounded to the nearest number of ``type_``; ``0f`` gives exactly its bits to
    a 32-bit type. Types are ``.f16 .f32 .f64`` and the untyped ``.b32 .b64``; None for every other type.
    """
    layout = _FORMATS.get((type_.kind, type_.bits))
    if layout is None:
        return None
    negative = text.startswith("-")
    digits = text.removeprefix("-")
    for pattern, source in _HEXADECIMAL.values():
        match = pattern.fullmatch(digits)
        if match is not None:
            bits = int(match[1], 16)
            if 4 * len(match[1]) == type_.bits:
                return bits ^ (int(negative) << (type_.bits - 1))
            value = struct.unpack(source, bits.to_bytes(len(match[1]) // 2, "big"))[0]
            break
    else:
        value = float(digits)
    return _pack(-value if negative else value, layout)


def real_text(bits: int, type_: Type) -> str:
    """A constant that stands for ``bits`` in ``type_`` (``.f16 .f32 .f64``): a short decimal number, or the bits."""
    layout = _FORMATS[type_.kind, type_.bits]
    bits &= (1 << type_.bits) - 1
    value = struct.unpack(layout, bits.to_bytes(type_.bits // 8, "big"))[0]
    if bits == 0:
        return "0"
    text = repr(value)
    if re.fullmatch(r"-?[0-9]{1,7}\.[0-9]{1,7}", text) and real_bits(text, type_) == bits:
        return text
    if type_.bits == 16:
        if math.isnan(value):
            return f"0x{bits:04X}"  # an integer with a base gives the bits of every floating-point type
        return "-1e999" if value == -math.inf else "1e999" if value == math.inf else text
    return f"0f{bits:08X}" if type_.bits == 32 else f"0d{bits:016X}"


def _pack(value: float, layout: str) -> int:
    """The bits of ``value`` rounded to the nearest number of ``layout``; too large a value is an infinity."""
    try:
        data = struct.pack(layout, value)
    except OverflowError:
        data = struct.pack(layout, math.copysign(math.inf, value))
    return int.from_bytes(data, "big")
