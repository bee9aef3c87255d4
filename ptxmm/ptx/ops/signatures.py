"""The operands of the operations of ``ops.Alu`` and ``ops.AluPair``: how many, and the types of each and of the result.

One line per operation: the result, then the sources. ``T`` is the type of the operation, ``W`` that of twice the width,
``U S B F P`` are ``.u32 .s32 .b32 .f32 .pred``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from ptxmm.ptx.ops.basic import Type

CARRY = "CC.CF"
"""The carry flag of the condition code register (9.7.2), as the register that it is for the events."""

_FIXED: Mapping[str, Type] = MappingProxyType(
    {"U": Type("u", 32), "S": Type("s", 32), "B": Type("b", 32), "F": Type("f", 32), "P": Type("pred", 1)}
)

# By the whole name, or by its first words: the longest that is here counts. What follows are modifiers.
_SHAPES: Mapping[str, str] = MappingProxyType(
    {
        # 9.7.1 integers, 9.7.3 floating point (the names of both), 9.7.10.3 mov
        "mov": "T T", "add": "T TT", "sub": "T TT", "mul": "T TT", "mul.wide": "W TT",
        "mad": "T TTT", "mad.wide": "W TTW", "mul24": "T TT", "mad24": "T TTT", "sad": "T TTT",
        "div": "T TT", "rem": "T TT", "neg": "T T", "abs": "T T", "min": "T TT", "max": "T TT",
        "popc": "U T", "clz": "U T", "bfind": "U T", "fns": "T TUS", "brev": "T T",
        "bfe": "T TUU", "bfi": "T TTUU", "szext": "T TU", "bmsk": "T UU", "dp4a": "T TTT", "dp2a": "T TTT",
        "fma": "T TTT", "rcp": "T T", "sqrt": "T T", "copysign": "T TT", "testp": "P T",
        # 9.7.2 extended precision; .cc is the carry flag that the operation leaves
        "add.cc": "P TT", "sub.cc": "P TT", "mad.lo.cc": "P TTT", "mad.hi.cc": "P TTT",
        "addc": "T TTP", "subc": "T TTP", "madc": "T TTTP",
        "addc.cc": "P TTP", "subc.cc": "P TTP", "madc.lo.cc": "P TTTP", "madc.hi.cc": "P TTTP",
        # 9.7.7 comparisons of two values and of one with 0
        "set": "U TT", "set.float": "F TT", "slct.s32": "T TTS", "slct.f32": "T TTF", "slct.ftz.f32": "T TTF",
        # 9.7.9 logic and shifts
        "and": "T TT", "or": "T TT", "xor": "T TT", "not": "T T", "cnot": "T T",
        "lop3": "T TTTU", "lop3.and": "P TTTUP", "lop3.or": "P TTTUP",
        "shl": "T TU", "shr": "T TU", "shf": "T TTU",
        # 9.7.10.7 prmt, 9.7.10.21 cvt.pack
        "prmt": "T TTU", "cvt.pack": "U SSB", "cvt.pack.u16": "U SS", "cvt.pack.s16": "U SS",
    }
)  # fmt: skip
_BOOLEANS = ("and", "or", "xor", "and_not", "or_not", "xor_not")


@cache
def _shape(op: str) -> str:
    words = op.split(".")
    if words[0] == "set":
        shape = _SHAPES["set.float" if words[-1] == "f32" else "set"]
        return shape + "P" if any(word in _BOOLEANS for word in words) else shape
    for length in range(len(words), 0, -1):
        found = _SHAPES.get(".".join(words[:length]))
        if found is not None:
            return found
    raise KeyError(op)


def wide(typ: Type) -> Type:
    """The type of twice the width."""
    return Type(typ.kind, 2 * typ.bits)


def _type(letter: str, typ: Type) -> Type:
    return typ if letter == "T" else wide(typ) if letter == "W" else _FIXED[letter]


@cache
def source_types(op: str, typ: Type) -> tuple[Type, ...]:
    """The types of the sources of the operation ``op`` in ``typ``. Raises ``KeyError`` for one that does not exist."""
    return tuple(_type(letter, typ) for letter in _shape(op).partition(" ")[2])


@cache
def result_type(op: str, typ: Type) -> Type:
    """The type of the result of the operation ``op`` in ``typ``. Raises ``KeyError`` for one that does not exist."""
    return _type(_shape(op)[0], typ)
