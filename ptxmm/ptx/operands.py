"""From parsed operands to resolved ones: registers, constants, addresses, predicates (PTX ISA 6)."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass

from ptxmm.errors import PtxmmError
from ptxmm.ptx import ops, syntax
from ptxmm.ptx.ops import Type
from ptxmm.ptx.qualifiers import Qualified, at, clip, close_match
from ptxmm.ptx.table import SPECIAL_REGISTERS

_NUMBERED = re.compile(r"pm[0-7](_64)?|envreg[0-9]{1,2}")
_OFFSETS = range(-(1 << 31), 1 << 31)


@dataclass(frozen=True, slots=True)
class Names:
    """The names an instruction may use besides registers."""

    variables: Container[str]
    labels: Mapping[str, int]


def check_count(q: Qualified, minimum: int, maximum: int) -> None:
    """Check the number of operands against the row of the table."""
    given = len(q.instruction.operands)
    if minimum <= given <= maximum:
        return
    slots = [s.removesuffix("?") for s in q.form.slots if not s.startswith("policy")]
    shape = ", ".join(slots[:maximum]) or "none"
    count = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
    noun = "operand" if maximum == 1 else "operands"
    text = f"takes no operands, {given} given" if maximum == 0 else f"takes {count} {noun} ({shape}), {given} given"
    span = q.instruction.operands[maximum].span if given > maximum else q.instruction.span
    raise at(span, f"`{_title(q)}` {text}")


def _title(q: Qualified) -> str:
    parts = (q.form.opcode, *(q.chosen[g] for g in ("op", "kind") if g in q.chosen))
    return ".".join(parts)


def register(names: Names, operand: syntax.Operand, what: str = "a register") -> ops.Reg:
    """``operand`` as a register. Raises ``PtxmmError`` if it is anything else."""
    if isinstance(operand, syntax.Vector):
        raise at(operand.span, "vector operands are not supported yet", kind="unsupported")
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


def predicate(names: Names, operand: syntax.Operand) -> ops.Reg:
    """A source predicate."""
    return register(names, operand, "a predicate register")


def value(q: Qualified, names: Names, operand: syntax.Operand, typ: Type) -> ops.Operand:
    """A source operand of ``typ``: a register, a constant or (``mov``, and the dialect) the address of a variable."""
    match operand:
        case syntax.Number(number):
            return ops.Imm(int(number != 0) if typ.kind == "pred" else number)
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


def _symbol(q: Qualified, name: str, offset: int, operand: syntax.Operand, typ: Type) -> ops.Sym:
    if q.dialect:
        return ops.Sym(name, offset)
    if q.form.opcode != "mov":
        hint = f"mov.u64 rd, {clip(name)} takes the address, ld reads the value"
        raise at(operand.span, f"`{q.form.opcode}` can't use the variable `{clip(name)}`", hint=hint)
    if typ.bits != 64 or typ.kind == "pred":
        raise at(operand.span, f"the address of `{clip(name)}` has 64 bits", hint=f"write mov.u64 rd, {clip(name)}")
    return ops.Sym(name, offset)


def address(q: Qualified, names: Names, operand: syntax.Operand) -> ops.Address:
    """The address operand of a memory instruction: ``[x]``, ``[x+4]``, ``[r]``, ``[r-4]``, ``[64]``; in the dialect
    also without brackets (PTX ISA 6.4.1)."""
    base: syntax.Operand
    match operand:
        case syntax.Memory(base, offset, span, extra):
            if extra is not None:
                text = f"`.{extra}`" if extra != "coordinates" else "an address with coordinates"
                raise at(span, f"{text} is not supported yet", kind="unsupported")
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
        raise _not_yet(operand, f"the special register `{clip(operand.text)}`")
    if dot:
        raise _not_yet(operand, f"the vector element `{clip(operand.text)}`")


def _not_yet(operand: syntax.Name, what: str) -> PtxmmError:
    return at(operand.span, f"{what} is not supported yet", kind="unsupported")
