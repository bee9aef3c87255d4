"""What makes the operations of the rows in ``arithmetic``, and the rules between their qualifiers (PTX ISA 9.7.1 to .3,
9.7.7, 9.7.9, 9.7.10.3, .4, .7, .20, .21, 9.7.13)."""

from __future__ import annotations

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.ops.basic import B32, PREDICATE, S64
from ptxmm.ptx.ops.signatures import CARRY, source_types
from ptxmm.ptx.qualified import Names, Qualified, at, dotted
from ptxmm.ptx.tables.common import guard, source, source_predicate

_UNSIGNED_COMPARISONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}
# Of floating-point numbers the opposite of an ordered comparison is an unordered one.
_REAL_OPPOSITE = {
    **{a: b for one, other in (("eq", "neu"), ("ne", "equ"), ("lt", "geu"), ("le", "gtu"), ("gt", "leu"), ("ge", "ltu"))
       for a, b in ((one, other), (other, one))},
    "num": "nan",
    "nan": "num",
}  # fmt: skip
_BYTE = range(256)
# How many elements the vector of a packing mov can have (9.7.10.4).
_PACKED = {16: (2,), 32: (2, 4), 64: (2, 4), 128: (2, 4)}


def mov(q: Qualified, names: Names) -> Op:
    """A move; with a vector on one side it packs or unpacks (9.7.10.4)."""
    operands.check_count(q, 2, 2)
    dst, item = q.instruction.operands
    typ = q.types[0]
    if not isinstance(dst, syntax.Vector) and not isinstance(item, syntax.Vector):
        if typ.bits == 128:
            hint = "move its halves: mov.b128 {a, b}, r"
            raise at(q.span("type"), "`mov.b128` packs or unpacks a vector", hint=hint)
        return alu(q, names)
    if isinstance(dst, syntax.Vector) and isinstance(item, syntax.Vector):
        raise at(item.span, "`mov` has a vector on one side only")
    vector = dst if isinstance(dst, syntax.Vector) else item
    assert isinstance(vector, syntax.Vector)
    if typ.kind != "b":
        message = f"`mov.{typ.name}` takes no vector"
        raise at(q.span("type"), message, hint="types that pack a vector: .b16 .b32 .b64 .b128")
    count = len(vector.items)
    if count not in _PACKED[typ.bits]:
        legal = " or ".join(str(n) for n in _PACKED[typ.bits])
        raise at(vector.span, f"`mov.{typ.name}` takes a vector of {legal}, {count} given")
    element = Type("b", typ.bits // count)
    if isinstance(dst, syntax.Vector):
        targets = tuple(operands.destination_or_sink(names, v) for v in dst.items)
        if not any(targets):
            raise at(dst.span, "at least one element of the vector must be a register")
        value = operands.value(q, names, item, typ)
        return ops.Unpack(targets, typ, value, source(q), guard(q, names))
    target = operands.destination(names, dst)
    values = tuple(operands.value(q, names, v, element) for v in vector.items)
    return ops.Pack(target, typ, values, source(q), guard(q, names))


def _name(q: Qualified) -> str:
    """The name of the operation: the words of the row and the qualifiers besides types, in the order of the row."""
    types = q.form.groups.get("type", ())
    row = [word for word in q.form.opcode.split(".") if word not in types]
    return ".".join((*row, *(q.chosen[group] for group in q.form.groups if group in q.chosen and group != "type")))


def alu(q: Qualified, names: Names) -> Op:
    """An operation with one destination, on sources whose types its name and its type give."""
    name = _name(q)
    if q.dialect:
        return _make_alu(q, names, f"{name}.lo" if name in ("mul", "mad") else name, S64)
    if q.packed == 2:
        return _make_alu(q, names, f"{name}.{q.chosen['type']}", B32)
    return _make_alu(q, names, name, q.types[0])


def _make_alu(q: Qualified, names: Names, opcode: str, typ: Type) -> Op:
    types = source_types(opcode, typ)
    operands.check_count(q, 1 + len(types), 1 + len(types))
    first, *rest = q.instruction.operands
    dst = operands.destination(names, first)
    if q.dialect and opcode in ("shl", "shr"):
        # A shift amount is 32 bits wide and the registers of the dialect are 64 bits wide.
        operands.constant(rest[1], "a shift amount of the untyped dialect")
    sources = tuple(operands.value(q, names, v, t) for v, t in zip(rest, types, strict=True))
    if opcode in ("bfe", "bfi"):
        for item in rest[-2:]:
            if isinstance(item, syntax.Number):
                operands.constant_of(item, f"the position or length of a field of `{opcode}`", _BYTE, "from 0 to 255")
    return ops.Alu(opcode, typ, dst, sources, source(q), guard(q, names))


def real(q: Qualified, names: Names) -> Op:
    """Floating-point arithmetic. Without a rounding mode it rounds to nearest; ``mad`` is ``fma`` (9.7.3.7)."""
    opcode = q.form.opcode.partition(".")[0]
    words = ["fma" if opcode == "mad" else opcode, q.get("round") or "rn", q.get("ftz"), q.get("sat")]
    return _make_alu(q, names, ".".join(word for word in words if word), q.types[0])


def by_second_type(q: Qualified, names: Names) -> Op:
    """``dp4a``, ``dp2a`` and ``slct``: the second type, of b or c, is in the name."""
    return _make_alu(q, names, f"{_name(q)}.{q.types[1].name}", q.types[0])


def carry(q: Qualified, names: Names) -> Op:
    """``add.cc`` and its like: a second result, the carry flag, and a source, if the opcode ends in c (9.7.2)."""
    opcode = q.form.opcode.partition(".")[0]
    name = opcode if "mode" not in q.chosen else f"{opcode}.{q.chosen['mode']}"
    typ, carry = q.types[0], ops.Reg(CARRY)
    types = source_types(name, typ)
    given = [t for t in types if t != PREDICATE]
    operands.check_count(q, 1 + len(given), 1 + len(given))
    first, *rest = q.instruction.operands
    dst = operands.destination(names, first)
    sources: tuple[ops.Operand, ...] = tuple(operands.value(q, names, v, t) for v, t in zip(rest, given, strict=True))
    if len(given) < len(types):
        sources = (*sources, carry)
    if "cc" not in q.chosen and not q.form.opcode.endswith(".cc"):
        return ops.Alu(name, typ, dst, sources, source(q), guard(q, names))
    return ops.AluPair(name, f"{name}.cc", typ, dst, carry, sources, source(q), guard(q, names))


def lop3(q: Qualified, names: Names) -> Op:
    """``lop3``, and with a Boolean operation its predicate ``(d != 0) op q`` (9.7.9.6)."""
    boolop = q.get("bool")
    count = 5 if boolop is None else 6
    operands.check_count(q, count, count)
    target, *rest = q.instruction.operands
    typ = q.types[0]
    operands.constant_of(rest[3], "the look-up table of lop3", _BYTE, "a number from 0 to 255")
    values = [operands.value(q, names, v, typ) for v in rest[:4]]
    if boolop is None:
        dst = operands.destination(names, target)
        return ops.Alu("lop3", typ, dst, tuple(values), source(q), guard(q, names))
    if not isinstance(target, syntax.Pair):
        raise at(target.span, f"`lop3.{boolop}` has two destinations", hint="write d|p, or _|p")
    pair = operands.destination_or_sink(names, target.first), operands.destination(names, target.second)
    last = operands.predicate(names, rest[4])
    where = source(q), guard(q, names)
    return ops.AluPair("lop3", f"lop3.{boolop}", typ, *pair, (*values, last), *where)


def set_(q: Qualified, names: Names) -> Op:
    """``set``: the type of the result is in the name, and so is the negation of the predicate (9.7.7.1)."""
    boolop = q.get("bool")
    count = 3 if boolop is None else 4
    operands.check_count(q, count, count)
    first, left, right, *rest = q.instruction.operands
    to, typ = q.types
    cmp = q.chosen["cmp"]
    if cmp in _UNSIGNED_COMPARISONS:
        cmp, typ = _UNSIGNED_COMPARISONS[cmp], Type("u", typ.bits)
    dst = operands.destination(names, first)
    sources = [operands.value(q, names, left, typ), operands.value(q, names, right, typ)]
    if rest:
        c, negated = source_predicate(names, rest[0])
        sources.append(c)
        boolop = f"{boolop}_not" if negated else boolop
    name = ".".join(word for word in ("set", cmp, boolop, q.get("ftz"), to.name) if word)
    return ops.Alu(name, typ, dst, tuple(sources), source(q), guard(q, names))


def pack_integers(q: Qualified, names: Names) -> Op:
    """``cvt.pack``: the type of the parts is in the name (9.7.10.21)."""
    return _make_alu(q, names, f"cvt.pack.{q.types[0].name}", B32)


def convert(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    to, frm = q.types
    dst, item = q.instruction.operands
    target, value = operands.destination(names, dst), operands.value(q, names, item, frm)
    where = source(q), guard(q, names)
    return ops.Convert(target, value, to, frm, "sat" in q.chosen, *where, q.get("round"), "ftz" in q.chosen)


def set_predicate(q: Qualified, names: Names) -> Op:
    boolop = q.get("bool")
    count = 3 if boolop is None else 4
    operands.check_count(q, count, count)
    target, left, right, *rest = q.instruction.operands
    typ, cmp = q.types[0], q.chosen["cmp"]
    opposite = _REAL_OPPOSITE if typ.kind == "f" else _OPPOSITE
    if cmp in _UNSIGNED_COMPARISONS:
        cmp, typ = _UNSIGNED_COMPARISONS[cmp], Type("u", typ.bits)
    complement: ops.Reg | None = None
    if isinstance(target, syntax.Pair):
        if target.first.name == "_":
            # Only the complement is wanted: setp.lt _|q is setp.ge q.
            cmp, target = opposite[cmp], target.second
        else:
            if target.second.name != "_":
                complement = operands.destination(names, target.second)
                if target.second.name == target.first.name:
                    raise at(target.span, "the two destinations of `setp` must differ")
            target = target.first
    dst = operands.destination(names, target)
    cmp += ".ftz" if "ftz" in q.chosen else ""
    a, b = operands.value(q, names, left, typ), operands.value(q, names, right, typ)
    c: ops.Reg | None = None
    negated = False
    if rest:
        c, negated = source_predicate(names, rest[0])
    return ops.SetPredicate(cmp, typ, dst, complement, a, b, source(q), guard(q, names), boolop, c, negated)


def select(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 4, 4)
    dst, left, right, p = q.instruction.operands
    typ = q.types[0]
    target = operands.destination(names, dst)
    a, b = operands.value(q, names, left, typ), operands.value(q, names, right, typ)
    return ops.Select(typ, target, a, b, operands.predicate(names, p), source(q), guard(q, names))


def branch(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    target = operands.label(names, q.instruction.operands[0])
    return ops.Branch(target, None, source(q), guard(q, names))


def compare_branch(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    left, right, label = q.instruction.operands
    a, b = operands.value(q, names, left, S64), operands.value(q, names, right, S64)
    condition = ops.Compare(q.form.fixed["cmp"], S64, a, b)
    return ops.Branch(operands.label(names, label), condition, source(q), guard(q, names))


# -- rules between qualifiers ---------------------------------------------------------------------------------------


_TO_INTEGRAL = ("rni", "rzi", "rmi", "rpi")
_TO_REAL = ("rn", "rz", "rm", "rp")
_PRECISION = {("f", 16): (5, 10), ("bf", 16): (8, 7), ("f", 32): (8, 23), ("f", 64): (11, 52)}
_SET_TYPES = ("u32", "s32", "f32")
_SIGN_TYPES = ("s32", "f32")
_PARTS = ("u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2")


def single_only(q: Qualified) -> None:
    """``.ftz`` and ``.sat`` are of single precision."""
    for group in ("ftz", "sat"):
        if group in q.chosen and q.types[-1] != Type("f", 32):
            message = f"`{q.form.opcode}` of .{q.types[-1].name} takes no `.{group}`"
            raise at(q.span(group), message, hint="only .f32 has it")


def check_set(q: Qualified) -> None:
    if q.types[0].name not in _SET_TYPES:
        message = f"the result of `set` is no .{q.types[0].name}"
        raise at(q.instruction.opcode_span, message, hint=f"types of the result: {dotted(_SET_TYPES)}")
    if "ftz" in q.chosen and q.types[1] != Type("f", 32):
        raise at(q.span("ftz"), f"`set` of .{q.types[1].name} takes no `.ftz`", hint="only .f32 has it")


def check_slct(q: Qualified) -> None:
    if q.types[1].name not in _SIGN_TYPES:
        message = f"`slct` chooses by the sign of .s32 or .f32, not of .{q.types[1].name}"
        raise at(q.span("type"), message)
    if "ftz" in q.chosen and q.types[1].name != "f32":
        raise at(q.span("ftz"), "`slct` by the sign of .s32 takes no `.ftz`", hint="only .f32 has it")


def check_pack(q: Qualified) -> None:
    part, source, *rest = q.types
    if part.name not in _PARTS:
        raise at(q.instruction.opcode_span, f"`cvt.pack` makes no .{part.name}", hint=f"types: {dotted(_PARTS)}")
    wanted = ["s32"] if part.bits == 16 else ["s32", "b32"]
    if [t.name for t in (source, *rest)] != wanted:
        raise at(q.span("type"), f"`cvt.pack.sat.{part.name}` takes {dotted(wanted)}")


def check_conversion(q: Qualified) -> None:
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
