"""Rows of the functions whose results are not worked out: approximations, half precision,
conversions to and from packed and narrow formats (PTX ISA 9.7.3, 9.7.4, 9.7.8, 9.7.10.20)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import Op, Reg, Type
from ptxmm.ptx.ops.basic import B32, PREDICATE
from ptxmm.ptx.qualified import NOTHING, Check, Form, Maker, Names, Qualified, at, dotted
from ptxmm.ptx.tables.common import check_sign, guard, source, source_predicate
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
_COMPARED_INTEGERS = {**dict.fromkeys(BITS, words("eq ne")), **dict.fromkeys(INTEGERS, words("eq ne lt le gt ge"))}
"""The comparisons of what is no floating-point number."""
_BESIDE = (*BITS, *INTEGERS, "f16", "f32", "f64")
_SET: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "bf16": (words("bf16 u16 s16 u32 s32"), (*_BESIDE, "bf16")),
        "bf16x2": (words("bf16x2 u32 s32"), ("bf16x2",)),
        "f16": (words("f16 u16 s16 u32 s32"), _BESIDE),
        "f16x2": (words("f16x2 u32 s32"), ("f16x2",)),
    }
)
"""For each type of ``set`` what the result may be if that is compared, and what may be compared if that is the
result."""
_SM53 = Version((4, 2), 53)
_SM75 = Version((7, 0), 75)
_SM89 = Version((7, 8), 89)
_BF16 = Version((7, 8), 90)


def _named(shape: str) -> Maker:
    """What makes a function of this ``shape``: the letter of its result, and those of its operands; ``T`` is the first
    type that is written, ``S`` the last one, ``P`` a predicate; ``?``: with a Boolean operation one more predicate."""
    result, _, given = shape.partition(" ")
    letters = given.removesuffix("?")

    def make(q: Qualified, names: Names) -> Op:
        written = _written(q)
        types = {"T": _register(written[0]), "S": _register(written[-1]), "P": PREDICATE}
        least = 1 + len(letters) + ("bool" in q.chosen)
        operands.check_count(q, least, least)
        first, *rest = q.instruction.operands
        dst, second = _destinations(q, names, first)
        sources = [operands.value(q, names, item, types[c]) for item, c in zip(rest, letters, strict=False)]
        kinds, negated = [types[c] for c in letters], False
        if "bool" in q.chosen:
            held, negated = source_predicate(names, rest[-1])
            sources.append(held)
            kinds.append(PREDICATE)
        return ops.Opaque(
            q.instruction.mnemonic, types[result], tuple(kinds), dst, second, tuple(sources), source(q),
            guard(q, names), negated,
        )  # fmt: skip

    return make


def _written(q: Qualified) -> list[str]:
    """The types, as they are written."""
    return [name for name, _ in q.instruction.qualifiers if _TYPE.fullmatch(name)]


def _destinations(q: Qualified, names: Names, operand: syntax.Operand) -> tuple[Reg | None, Reg | None]:
    """The register that is written, or both of ``p|q``."""
    if not isinstance(operand, syntax.Pair):
        return operands.destination(names, operand), None
    if q.form.opcode not in ("setp.f16x2", "setp.bf16x2"):
        raise at(operand.span, f"`{q.form.opcode}` has one destination")
    first, second = (operands.destination_or_sink(names, item) for item in (operand.first, operand.second))
    if first == second:
        raise at(operand.span, "the two destinations of `setp` must differ")
    return first, second


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
    result, _, given = shape.partition(" ")
    slots = [
        "p" if result == "P" else "d",
        *"abc"[: len(given.removesuffix("?"))],
        *(["c?"] if given.endswith("?") else []),
    ]
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
    for name in words("bf16 bf16x2 f16 f16x2"):  # set.bf16.f16 is of the first row
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
            yield _form(f"{opcode}.{name}", "T TT", {**ftz, **_NAN, **typ}, SM80, rule=check_sign,
                        newer={Version((7, 2), 86): "xorsign"})  # fmt: skip
        yield _form(f"tanh.approx.{name}", "T T", typ, _BF16 if brain else _SM75)
        if brain:
            yield _form(f"ex2.approx.{name}", "T T", {**_FTZ, **typ}, _BF16, "ftz")
        else:
            yield _form(f"ex2.approx.{name}", "T T", typ, _SM75)
        yield _form(f"setp.{name}", "P TT?", {**_COMPARED, **ftz, **typ}, _BF16 if brain else _SM53, "cmp")
        yield _form(f"set.{name}", "T SS?", {**_COMPARED, **ftz, "type": tuple(dict.fromkeys(sum(_SET[name], ())))},
                    _BF16 if brain else _SM53, "cmp", types="2", rule=_check_set,
                    newer={Version((6, 5), 53): "u32 s32"} if name == "f16x2" else NOTHING)  # fmt: skip


def _conversions() -> Iterator[Form]:
    """9.7.10.20."""
    rounded = {"round": words("rn rz")}
    finite = {"satfinite": ("satfinite",)}
    newer = {Version((8, 1), 80): "satfinite"}
    for name in ("f16", "bf16"):
        yield _conversion(f"cvt.relu.{name}.f32", "T S", {**rounded, **finite}, SM80, newer=newer)
        yield _conversion(f"cvt.satfinite.{name}.f32", "T S", rounded, Version((8, 1), 80 if name == "bf16" else 0))
        yield _conversion(f"cvt.{name}x2.f32", "T SS", {**rounded, **_RELU, **finite}, SM80, newer=newer)
    yield _conversion("cvt.tf32.f32", "T S", {"round": words("rna rn rz"), **_RELU, **finite}, SM80,
                      newer={Version((7, 8), 90): "rn rz relu", **newer})  # fmt: skip
    for name in _NARROW:
        clamped = {**_NEAREST, **finite, **_RELU}
        yield _conversion(f"cvt.{name}.f32", "T SS", clamped, _SM89)
        yield _conversion(f"cvt.{name}.f16x2", "T S", clamped, _SM89)


def _conversion(
    opcode: str,
    shape: str,
    groups: Mapping[str, tuple[str, ...]],
    since: Version,
    newer: Mapping[Version, str] = NOTHING,
) -> Form:
    return _form(opcode, shape, groups, since, "round", rule=_check_conversion, newer=newer)


def _check_clamp(q: Qualified) -> None:
    """``.sat`` and ``.relu`` are two ways to clamp; ``.oob`` goes with the latter (9.7.4.4)."""
    for one, other in (("relu", "sat"), ("oob", "sat"), ("oob", "ftz")):
        if one in q.chosen and other in q.chosen:
            raise at(q.span(one), f"`{q.form.opcode}` takes `.{one}` or `.{other}`: give one")


def _check_set(q: Qualified) -> None:
    """One of the two types is that of the row; what it may be beside, and the comparisons of what is compared
    (9.7.8.1)."""
    name = q.form.opcode.partition(".")[2]
    result, given = _written(q)
    results, compared = _SET[name]
    if given not in (compared if result == name else (name,)) or result not in results:
        hint = f"types of the result: {dotted(results)}" if given == name else f"types of a and b: {dotted(compared)}"
        raise at(q.instruction.opcode_span, f"there is no `set` to .{result} from .{given}", hint=hint)
    if "ftz" in q.chosen and given not in ("f16", "f16x2", "f32"):
        raise at(q.span("ftz"), f"`set` of .{given} takes no `.ftz`", hint="only .f16, .f16x2 and .f32 have it")
    comparisons = _COMPARED_INTEGERS.get(given)
    if comparisons is not None and q.chosen["cmp"] not in comparisons:
        hint = f"comparisons of .{given}: {dotted(comparisons)}"
        raise at(q.span("cmp"), f"`set` of .{given} takes no `.{q.chosen['cmp']}`", hint=hint)


def _check_conversion(q: Qualified) -> None:
    """The order of the two types, and what belongs to one of them only (9.7.10.20)."""
    result, given = _written(q)
    mine = [word for word in q.form.opcode.split(".") if _TYPE.fullmatch(word)]
    if given in _NARROW and [given, result] == mine:
        if "satfinite" in q.chosen:
            raise at(q.span("satfinite"), f"`cvt.{result}.{given}` takes no `.satfinite`", hint="its result is exact")
        return
    if [result, given] != mine:
        name = ".".join(word for word in q.form.opcode.split(".") if word not in mine)
        raise at(q.instruction.opcode_span, f"there is no `{name}` to .{result} from .{given}")
    if result in _NARROW and "satfinite" not in q.chosen:
        raise at(q.instruction.opcode_span, f"`cvt.{result}.{given}` needs `.satfinite`")
    nearest = q.chosen["round"] == "rna"
    for group, has in (("relu", not nearest), ("satfinite", nearest)):
        if result == "tf32" and group in q.chosen and not has:
            raise at(q.span(group), f"`cvt.{q.chosen['round']}.tf32.f32` takes no `.{group}`")


FORMS = (*_approximations(), *_halves(), *_conversions())
