"""Rows of the functions whose results are not worked out: approximations, half precision,
conversions to and from packed and narrow formats (PTX ISA 9.7.3, 9.7.4, 9.7.8, 9.7.10.20)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.ops.basic import B32, PREDICATE
from ptxmm.ptx.qualified import NOTHING, Check, Form, Maker, Names, Qualified, at
from ptxmm.ptx.tables.common import guard, source, source_predicate
from ptxmm.ptx.tables.form import BITS, INTEGERS, SM80, V1, Version, words

_B16 = Type("b", 16)
_NARROW = words("e4m3x2 e5m2x2")
_REGISTERS: Mapping[str, Type] = MappingProxyType(
    {
        **dict.fromkeys(words("f16x2 bf16x2 tf32"), B32),
        **dict.fromkeys(_NARROW, _B16),
        "bf16": Type("bf", 16),
    }
)
"""The types of the registers for what is no fundamental type."""
_TYPE = re.compile(r"(?:tf|bf|[fbus])[0-9]+(?:x2)?|e[0-9]m[0-9]x2")

_FTZ = {"ftz": ("ftz",)}
_SAT = {"sat": ("sat",)}
_RELU = {"relu": ("relu",)}
_NEAREST = {"round": ("rn",)}
_NAN = {"nan": ("NaN",), "xorsign": ("xorsign",), "abs": ("abs",)}
_COMPARED = {"cmp": words("eq ne lt le gt ge equ neu ltu leu gtu geu num nan"), "bool": words("and or xor")}
_SM53 = Version((4, 2), 53)
_SM75 = Version((7, 0), 75)
_SM89 = Version((7, 8), 89)
_BF16 = Version((7, 8), 90)


def _named(shape: str) -> Maker:
    """What makes a function of this ``shape``: the letter of its result, and those of its operands; ``T`` is the first
    type that is written, ``S`` the last one, ``P`` a predicate; ``?``: one that may be there besides."""
    result, _, given = shape.partition(" ")
    letters = given.removesuffix("?")

    def make(q: Qualified, names: Names) -> Op:
        written = [name for name, _ in q.instruction.qualifiers if _TYPE.fullmatch(name)]
        types = {"T": _register(written[0]), "S": _register(written[-1]), "P": PREDICATE}
        least, first = 1 + len(letters), q.instruction.operands[0]
        operands.check_count(q, least, least + given.endswith("?"))
        second = None
        if isinstance(first, syntax.Pair):
            if q.form.opcode not in ("setp.f16x2", "setp.bf16x2"):
                raise at(first.span, f"`{q.form.opcode}` has one destination")
            second, first = operands.destination(names, first.second), first.first
        dst = operands.destination(names, first)
        rest = q.instruction.operands[1:]
        sources = [operands.value(q, names, item, types[c]) for item, c in zip(rest, letters, strict=False)]
        kinds, negated = [types[c] for c in letters], False
        if len(rest) > len(letters):
            held, negated = source_predicate(names, rest[-1])
            sources.append(held)
            kinds.append(PREDICATE)
        return ops.Opaque(
            q.instruction.mnemonic, types[result], tuple(kinds), dst, second, tuple(sources), source(q),
            guard(q, names), negated,
        )  # fmt: skip

    return make


def _register(name: str) -> Type:
    kind = name.rstrip("0123456789")
    return _REGISTERS.get(name) or Type(kind, int(name[len(kind) :]))


def _form(
    opcode: str,
    shape: str,
    groups: Mapping[str, tuple[str, ...]],
    since: Version,
    required: str = "",
    *,
    rule: Check | None = None,
    newer: Mapping[Version, str] = NOTHING,
    types: str = "1",
) -> Form:
    """A row; ``types``: how many there may be in the group of types."""
    _, _, given = shape.partition(" ")
    slots = ["d", *"abc"[: len(given.removesuffix("?"))], *(["c?"] if given.endswith("?") else [])]
    needed = (*words(required), *(["type"] if "type" in groups else []))
    return Form(
        opcode, _named(shape), groups, tuple(slots), since, needed, None, NOTHING, {"types": types}, rule, newer
    )


def _approximations() -> Iterator[Form]:
    """9.7.3."""
    f32 = {**_FTZ, "type": ("f32",)}
    for opcode in ("div.approx.f32", "div.full.f32"):
        yield _form(opcode, "T TT", f32, V1)
    for opcode in words("rcp sqrt rsqrt sin cos lg2 ex2"):
        yield _form(f"{opcode}.approx", "T T", f32, V1)
    yield _form("rcp.approx.f64", "T T", {**_FTZ, "type": ("f64",)}, Version((2, 1), 20), "ftz")
    yield _form("rsqrt.approx.f64", "T T", {**_FTZ, "type": ("f64",)}, V1, newer={Version((4, 0), 20): "ftz"})
    yield _form("tanh.approx", "T T", {"type": ("f32",)}, _SM75)


def _halves() -> Iterator[Form]:
    """9.7.4, 9.7.8."""
    for name in words("f16 f16x2 bf16 bf16x2"):
        typ, brain = {"type": (name,)}, name.startswith("b")
        ftz = {} if brain else _FTZ
        saturated = {} if brain else {**_FTZ, **_SAT}
        for opcode in ("add", "sub", "mul"):
            yield _form(f"{opcode}.{name}", "T TT", {**_NEAREST, **saturated, **typ}, _BF16 if brain else _SM53)
        yield _form(f"fma.{name}", "T TTT", {**_NEAREST, **saturated, **_RELU, "oob": ("oob",), **typ},
                    SM80 if brain else _SM53, "round", rule=_check_clamp,
                    newer={SM80: "relu", Version((8, 1), 90): "oob"})  # fmt: skip
        yield _form(f"neg.{name}", "T T", {**ftz, **typ}, SM80 if brain else Version((6, 0), 53))
        yield _form(f"abs.{name}", "T T", {**ftz, **typ}, SM80 if brain else Version((6, 5), 53))
        for opcode in ("min", "max"):
            yield _form(f"{opcode}.{name}", "T TT", {**ftz, **_NAN, **typ}, SM80, rule=_check_sign,
                        newer={Version((7, 2), 86): "xorsign"})  # fmt: skip
        yield _form(f"tanh.approx.{name}", "T T", typ, _BF16 if brain else _SM75)
        if brain:
            yield _form(f"ex2.approx.{name}", "T T", {**_FTZ, **typ}, _BF16, "ftz")
        else:
            yield _form(f"ex2.approx.{name}", "T T", typ, _SM75)
        yield _form(f"setp.{name}", "P TT?", {**_COMPARED, **ftz, **typ}, _BF16 if brain else _SM53, "cmp")
        others = (*BITS, *INTEGERS, "f16", "f32", "f64") if not name.endswith("x2") else words("u32 s32 f16x2 bf16x2")
        both = {"type": tuple(dict.fromkeys((name, *others)))}
        yield _form(f"set.{name}", "T SS?", {**_COMPARED, **ftz, **both}, _BF16 if brain else _SM53, "cmp",
                    types="2", rule=_check_set)  # fmt: skip


def _conversions() -> Iterator[Form]:
    """9.7.10.20."""
    rounded = {"round": words("rn rz")}
    finite = {"satfinite": ("satfinite",)}
    for name in ("f16", "bf16"):
        newer = {Version((8, 1), 80): "satfinite"}
        yield _form(f"cvt.relu.{name}.f32", "T S", {**rounded, **finite}, SM80, "round", newer=newer)
        yield _form(f"cvt.satfinite.{name}.f32", "T S", rounded, Version((8, 1), 80), "round")
        yield _form(f"cvt.{name}x2.f32", "T SS", {**rounded, **_RELU, **finite}, SM80, "round", newer=newer)
    yield _form("cvt.tf32.f32", "T S", {"round": words("rna rn rz"), **_RELU, **finite}, SM80, "round",
                newer={Version((7, 8), 90): "rn rz relu", Version((8, 1), 80): "satfinite"})  # fmt: skip
    for name in _NARROW:
        clamped = {**_NEAREST, **finite, **_RELU}
        yield _form(f"cvt.{name}.f32", "T SS", clamped, _SM89, "round satfinite")
        yield _form(f"cvt.{name}.f16x2", "T S", clamped, _SM89, "round")


def _check_clamp(q: Qualified) -> None:
    """``.sat`` and ``.relu`` are two ways to clamp; ``.oob`` goes with the latter (9.7.4.4)."""
    for one, other in (("relu", "sat"), ("oob", "sat"), ("oob", "ftz")):
        if one in q.chosen and other in q.chosen:
            raise at(q.span(one), f"`{q.form.opcode}` takes `.{one}` or `.{other}`: give one")


def _check_sign(q: Qualified) -> None:
    """``.xorsign.abs`` is one modifier (9.7.4.7)."""
    for one, other in (("xorsign", "abs"), ("abs", "xorsign")):
        if one in q.chosen and other not in q.chosen:
            raise at(q.span(one), f"`.{one}` needs `.{other}`", hint="write .xorsign.abs")


def _check_set(q: Qualified) -> None:
    """One of the two types is that of the row (9.7.8.1)."""
    written = [name for name, _ in q.instruction.qualifiers if _TYPE.fullmatch(name)]
    if len(written) != 2:
        raise at(q.instruction.opcode_span, "`set` has the type of the result and that of what is compared")


FORMS = (*_approximations(), *_halves(), *_conversions())
