"""From parsed operands to resolved ones: registers, constants, addresses, predicates (PTX ISA 6)."""

from __future__ import annotations

import re
import struct
from collections.abc import Container, Sequence

from ptxmm.ptx import ops, syntax
from ptxmm.ptx.ops import Type
from ptxmm.ptx.origin import clip
from ptxmm.ptx.qualified import Names, Qualified, at, close_match
from ptxmm.ptx.tables.form import words

SPECIAL_REGISTERS = frozenset(
    words("""
    tid ntid laneid warpid nwarpid ctaid nctaid smid nsmid gridid is_explicit_cluster clusterid nclusterid
    cluster_ctaid cluster_nctaid cluster_ctarank cluster_nctarank lanemask_eq lanemask_le lanemask_lt lanemask_ge
    lanemask_gt clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi total_smem_size aggr_smem_size
    dynamic_smem_size current_graph_exec reserved_smem_offset_begin reserved_smem_offset_end
    reserved_smem_offset_cap reserved_smem_offset_0 reserved_smem_offset_1""")
)

_NUMBERED = re.compile(r"pm[0-7](_64)?|envreg[0-9]{1,2}")
_OFFSETS = range(-(1 << 31), 1 << 31)
# Loads and stores: without a vector qualifier they take a vector of one.
_UNBRACED = frozenset(words("ld ld.nc ldu st suld tld cold sust"))
# Instructions that may name a variable where others have a value: they take its address.
_TAKES_ADDRESS = frozenset({"mov", "cvta", "mapa", "getctarank"})


def check_count(q: Qualified, minimum: int, maximum: int, slots: Sequence[str] | None = None) -> None:
    """Check the number of operands; ``slots`` are their names (those of the row of the table)."""
    given = len(q.instruction.operands)
    if minimum <= given <= maximum:
        return
    slots = [s.removesuffix("?") for s in slots or q.form.slots if s != "policy?"]
    shape = ", ".join(slots[:maximum]) or "none"
    count = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
    noun = "operand" if maximum == 1 else "operands"
    text = f"takes no operands, {given} given" if maximum == 0 else f"takes {count} {noun} ({shape}), {given} given"
    span = q.instruction.operands[maximum].span if given > maximum else q.instruction.span
    raise at(span, f"`{_title(q)}` {text}")


def _title(q: Qualified) -> str:
    parts = (q.form.opcode, *(q.chosen[g] for g in ("arrival", "parity", "field", "op", "kind") if g in q.chosen))
    return ".".join(parts)


def register(names: Names, operand: syntax.Operand, what: str = "a register") -> ops.Reg:
    """``operand`` as a register. Raises ``PtxmmError`` if it is anything else."""
    if isinstance(operand, syntax.Vector):
        raise at(operand.span, f"expected {what}, found a vector", hint="a vector needs .v2 or .v4")
    if not isinstance(operand, syntax.Name):
        raise at(operand.span, f"expected {what}, found {describe(operand)}")
    _plain_name(operand)
    if operand.name == "_":
        raise at(operand.span, f"expected {what}, found `_`")
    if operand.name in names.variables and not operand.percent:
        raise at(operand.span, f"expected {what}, found the variable `{clip(operand.name)}`")
    return ops.Reg(operand.name)


def destination(names: Names, operand: syntax.Operand) -> ops.Reg:
    """The register that an instruction writes."""
    return register(names, operand, "a destination register")


def sink(operand: syntax.Operand) -> bool:
    """Whether ``operand`` is ``_``, which discards a result."""
    return isinstance(operand, syntax.Name) and operand.name == "_"


def destination_or_sink(names: Names, operand: syntax.Operand) -> ops.Reg | None:
    """The register that an instruction writes; None for ``_``."""
    return None if sink(operand) else destination(names, operand)


def destinations(q: Qualified, names: Names, operand: syntax.Operand) -> tuple[ops.Reg | None, ...]:
    """The registers that an instruction writes, as many as its vector qualifier says; None for ``_`` in a vector."""
    if q.count == 1:
        return (destination(names, _single(q, operand)),)
    found = tuple(destination_or_sink(names, item) for item in elements(q, operand))
    if not any(found):
        raise at(operand.span, "at least one element of the vector must be a register")
    return found


def values(q: Qualified, names: Names, operand: syntax.Operand, typ: Type) -> tuple[ops.Operand, ...]:
    """The source operands of ``typ``, as many as the vector qualifier says."""
    if q.count == 1:
        return (value(q, names, _single(q, operand), typ),)
    return tuple(value(q, names, item, typ) for item in elements(q, operand))


def _single(q: Qualified, operand: syntax.Operand) -> syntax.Operand:
    """``{a}`` of a load or a store without a vector qualifier is ``a``, which ptxas takes."""
    alone = isinstance(operand, syntax.Vector) and len(operand.items) == 1 and q.form.opcode in _UNBRACED
    return operand.items[0] if alone and isinstance(operand, syntax.Vector) else operand


def elements(q: Qualified, operand: syntax.Operand) -> tuple[syntax.Operand, ...]:
    """The items of a vector of as many as the vector qualifier says."""
    if not isinstance(operand, syntax.Vector):
        message = f"`.v{q.count}` takes a vector of {q.count}, found {describe(operand)}"
        raise at(operand.span, message, hint="write {a, b}")
    return vector(operand, q.count, f"`.v{q.count}`")


def vector(operand: syntax.Operand, count: int, what: str) -> tuple[syntax.Operand, ...]:
    """The items of a vector operand of ``count`` items."""
    if not isinstance(operand, syntax.Vector):
        hint = "write {a}" if count == 1 else "write {a, b}"
        raise at(operand.span, f"expected a vector of {count}, found {describe(operand)}", hint=hint)
    if len(operand.items) != count:
        raise at(operand.span, f"{what} takes a vector of {count}, {len(operand.items)} given")
    return operand.items


def predicate(names: Names, operand: syntax.Operand) -> ops.Reg:
    """A source predicate."""
    return register(names, operand, "a predicate register")


def value(q: Qualified, names: Names, operand: syntax.Operand, typ: Type) -> ops.Operand:
    """A source operand of ``typ``: a register, a constant or (``mov``, and the dialect) the address of a variable."""
    match operand:
        case syntax.Number(number):
            return _integer(names, operand, number, typ)
        case syntax.Float():
            return _float(operand, typ)
        case syntax.Name(name, span, percent) if name in names.variables and not percent:
            return _symbol(q, name, 0, operand, typ)
        case syntax.Sum(base, offset, span):
            if base.name in names.variables and not base.percent:
                return _symbol(q, base.name, offset, operand, typ)
            raise at(span, f"{describe(operand)}: a register plus a constant is an address only, in [ ]")
        case syntax.AddressOf(base, offset, span):
            if not q.dialect:
                raise at(span, "`&` is not PTX", hint=f"mov.u64 rd, {clip(base.name)} takes the address")
            if base.name not in names.variables:
                raise at(base.span, f"no location is named `{clip(base.name)}`", kind="name")
            return ops.Sym(base.name, offset)
        case _:
            return register(names, operand, "a register or a constant")


def _integer(names: Names, operand: syntax.Operand, number: int, typ: Type) -> ops.Imm:
    if typ.kind in ("f", "bf"):
        if typ.bits == 16:
            raise at(operand.span, f"an .{typ.name} operand is a register, found `{number}`")
        hint = f"write {number}.0 or its bits, 0{'f' if typ.bits == 32 else 'd'}..."
        raise at(operand.span, f"an .{typ.name} constant has a decimal point, found `{number}`", hint=hint)
    if typ.bits == 128:
        raise at(operand.span, "a .b128 operand is a register: constants have 64 bits")
    if typ.kind == "pred":
        return ops.Imm(int(number != 0))
    if -(1 << (typ.bits - 1)) <= number < 1 << typ.bits:
        return ops.Imm(number)
    rest = number & ((1 << typ.bits) - 1)
    if typ.kind == "s" and rest >> (typ.bits - 1):
        rest -= 1 << typ.bits
    hint = f"ptxas takes its last {typ.bits} bits, {rest}, and says nothing: write that, or a wider type"
    error = at(operand.span, f"{number} does not fit in {typ.bits} bits (.{typ.name})", kind="type", hint=hint)
    if names.cuts is None:
        raise error
    names.cuts.append(error)
    return ops.Imm(rest)


def _float(constant: syntax.Float, typ: Type) -> ops.Imm:
    """A floating-point constant: rounded to .f32 if it is double; as bits only if it is written so (4.5.2)."""
    bits = 32 if constant.single else 64
    if typ.kind == "f" and typ.bits in (32, 64):
        return ops.Imm(_converted(constant.bits, bits, typ.bits))
    if typ.kind == "b" and typ.bits == bits and constant.exact:
        return ops.Imm(constant.bits)
    raise at(constant.span, f"a floating-point constant is no .{typ.name}")


def _converted(bits: int, frm: int, to: int) -> int:
    if frm == to:
        return bits
    if frm == 32:  # exact, signs and payloads of NaNs included
        number = struct.unpack("<f", struct.pack("<I", bits))[0]
        return int(struct.unpack("<Q", struct.pack("<d", number))[0])
    number = struct.unpack("<d", struct.pack("<Q", bits))[0]
    try:
        return int(struct.unpack("<I", struct.pack("<f", number))[0])
    except OverflowError:  # beyond the largest .f32: infinity, as rounding to nearest gives
        return 0xFF800000 if bits >> 63 else 0x7F800000


def _symbol(q: Qualified, name: str, offset: int, operand: syntax.Operand, typ: Type) -> ops.Sym:
    if q.dialect:
        return ops.Sym(name, offset)
    if q.form.opcode not in _TAKES_ADDRESS or "to" in q.chosen:
        hint = f"mov.u64 rd, {clip(name)} takes the address, ld reads the value"
        raise at(operand.span, f"`{q.form.opcode}` can't use the variable `{clip(name)}`", hint=hint)
    if typ.bits == 32 and typ.kind != "f" and q.form.opcode != "cvta":
        return ops.Sym(name, offset)  # the address in the window of .shared memory; program.accesses checks that
    if typ.bits != 64 or typ.kind == "pred":
        mnemonic = q.instruction.mnemonic.replace(f".{typ.name}", ".u64")
        hint = f"write {mnemonic} rd, {clip(name)}"
        raise at(operand.span, f"the address of `{clip(name)}` has 64 bits", hint=hint)
    return ops.Sym(name, offset)


def address(q: Qualified, names: Names, operand: syntax.Operand) -> ops.Address:
    """The address operand of a memory instruction: ``[x]``, ``[x+4]``, ``[r]``, ``[r-4]``, ``[64]``; in the dialect
    also without brackets (PTX ISA 6.4.1)."""
    if isinstance(operand, syntax.Memory) and (operand.coordinates is not None or operand.extra is not None):
        _check_extra(q, operand)
    return _plain_address(q, names, operand)


def tensor_address(
    q: Qualified, names: Names, operand: syntax.Operand, count: int
) -> tuple[ops.Address, tuple[ops.Operand, ...]]:
    """The operand ``[map, {c0, c1}]`` of a tensor copy: the address of the tensor map and the coordinates, which are
    of type .s32 (PTX ISA 9.7.10.24.9)."""
    if not isinstance(operand, syntax.Memory) or operand.coordinates is None or operand.extra is not None:
        shape = ", ".join(f"c{i}" for i in range(count))
        message = f"expected a tensor map with its coordinates, found {describe(operand)}"
        raise at(operand.span, message, hint=f"write [map, {{{shape}}}]")
    if operand.offset:
        raise at(operand.span, "the address of a tensor map takes no offset")
    items = vector(operand.coordinates, count, f"`.{count}d`")
    place = _plain_address(q, names, operand)
    return place, tuple(value(q, names, item, Type("s", 32)) for item in items)


def _check_extra(q: Qualified, operand: syntax.Memory) -> None:
    """``.unified`` belongs to addresses of weak loads from global memory (9.7.10.8)."""
    if operand.extra is None or operand.extra == "coordinates":
        raise at(operand.span, f"`{q.form.opcode}` takes no coordinates in an address")
    if operand.extra != "unified":
        raise at(operand.span, f"an address takes no `.{clip(operand.extra)}`")
    if q.form.opcode != "ld" or q.get("sem") not in (None, "weak") or q.get("space") not in (None, "global"):
        raise at(operand.span, "`.unified` belongs to the address of a weak ld from .global")


def _plain_address(q: Qualified, names: Names, operand: syntax.Operand) -> ops.Address:
    base: syntax.Operand
    match operand:
        case syntax.Memory(base, offset):
            pass
        case syntax.Sum(base, offset) if q.dialect:
            pass
        case syntax.Name() if q.dialect:
            base, offset = operand, 0
        case syntax.Name() | syntax.Sum():
            raise at(operand.span, f"expected an address, found {describe(operand)}", hint=f"write [{_spell(operand)}]")
        case syntax.AddressOf(target) if q.dialect:
            raise at(operand.span, "`&` is not used here", hint=f"the location is written {clip(target.name)}")
        case _:
            raise at(operand.span, f"expected an address, found {describe(operand)}")
    if offset not in _OFFSETS:
        raise at(operand.span, "the offset of an address has 32 bits")
    if isinstance(base, syntax.Number):
        return ops.Address(ops.Imm(base.value), offset)
    if base.name in names.variables and not base.percent:
        return ops.Address(ops.Sym(base.name), offset)
    return ops.Address(register(names, base), offset)


def label(names: Names, operand: syntax.Operand) -> int:
    """The index of the instruction that a branch target stands for."""
    if not isinstance(operand, syntax.Name) or operand.percent:
        raise at(operand.span, f"expected a label, found {describe(operand)}")
    if operand.name not in names.labels:
        match = close_match(operand.name, names.labels)
        hint = f"did you mean `{match}`?" if match else None
        raise at(operand.span, f"no label `{clip(operand.name)}` in this thread", kind="name", hint=hint)
    return names.labels[operand.name]


def constant(operand: syntax.Operand, what: str) -> int:
    """An operand that must be an integer constant."""
    if isinstance(operand, syntax.Number):
        return operand.value
    raise at(operand.span, f"{what} must be an integer constant, found {describe(operand)}")


def constant_of(operand: syntax.Operand, what: str, legal: Container[int], shape: str) -> int:
    """An operand that must be one of some integer constants; ``shape`` says which."""
    number = constant(operand, what)
    if number not in legal:
        raise at(operand.span, f"{what} is {shape}, not {number}")
    return number


def describe(operand: syntax.Operand) -> str:
    """How to call ``operand`` in an error."""
    match operand:
        case syntax.Memory():
            return "a memory operand"
        case syntax.Vector():
            return "a vector"
        case syntax.Pair():
            return "a pair of predicates"
        case _:
            return f"`{_spell(operand)}`"


def _spell(operand: syntax.Operand) -> str:
    match operand:
        case syntax.Name():
            return clip(operand.text)
        case syntax.Number(number):
            return str(number)
        case syntax.Float(bits, single):
            return f"0f{bits:08X}" if single else f"0d{bits:016X}"
        case syntax.Sum(base, offset):
            return f"{clip(base.text)}{offset:+d}"
        case syntax.AddressOf(base):
            return f"&{clip(base.text)}"
        case syntax.Negated(name):
            return f"!{clip(name.text)}"
        case _:
            return "..."


def _plain_name(operand: syntax.Name) -> None:
    """Refuse special registers and vector elements."""
    first, dot, _ = operand.name.partition(".")
    if operand.percent and (first in SPECIAL_REGISTERS or _NUMBERED.fullmatch(first)):
        message = f"a litmus test has no launch that gives `{clip(operand.text)}` a value"
        hint = "write the number itself: each thread has its own program; in kernels (.ptx, .cu) it is known"
        if first.startswith(("clock", "globaltimer", "pm")):
            hint = "time does not pass in a litmus test; give a register a value before the threads: `P0:r1 = 0;`"
        raise at(operand.span, message, kind="unsupported", hint=hint)
    if dot:
        raise at(operand.span, f"the vector element `{clip(operand.text)}` is not supported yet", kind="unsupported")
