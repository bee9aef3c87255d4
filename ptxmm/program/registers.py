"""The types of registers: declared, or taken from the first instruction that writes them (PTX ISA 9.4)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from ptxmm.errors import PtxmmError, Span
from ptxmm.program.naming import did_you_mean, error
from ptxmm.program.shared.mbarriers import operands
from ptxmm.program.shared.windows import BITS, window_operands
from ptxmm.program.source import RegisterEntry, ThreadSource
from ptxmm.program.symbols import addresses
from ptxmm.ptx.isa import ADDRESS, PREDICATE, S64, definitions, uses
from ptxmm.ptx.ops import Alu, AluPair, Convert, Load, Op, Reg, Source, Store, Type
from ptxmm.ptx.ops.record import slots
from ptxmm.ptx.ops.signatures import CARRY
from ptxmm.ptx.qualifiers import DEFAULT_ISA
from ptxmm.ptx.spelling import refuse


class _Known(Struct, frozen=True):
    """The types of registers: all, those that are ``declared``, and the first instructions that have the others."""

    types: dict[str, Type]
    declared: dict[str, Type]
    places: dict[str, Source]


class _Named(Struct, frozen=True):
    """The registers that an instruction writes and reads, and as what."""

    op: Op
    written: list[tuple[str, Type]]
    read: list[tuple[str, Type]]


def register_types(
    thread: ThreadSource,
    body: Sequence[Op],
    entries: Sequence[RegisterEntry],
    dialect: bool,
    variables: Collection[str] = (),
    isa: tuple[int, int] = DEFAULT_ISA,
) -> dict[str, Type]:
    """The type of every register that ``body`` uses or that has an initial value.

    ``entries`` are the declarations and initial values of this thread, ``variables`` the names of the test's. An
    undeclared register has the type of its first definition; one that only has an initial value that of its first use.
    In the dialect all are .s64.
    Raises ``PtxmmError`` (kind ``type`` or ``name``): two widths, a register without any value, two declarations.
    """
    declared, valued = _entries(entries)
    known = _Known(dict(declared), declared, {})
    found = known.types
    named = [_Named(op, definitions(op), uses(op)) for op in body]
    for item in named:
        for name, type_ in item.written:
            found.setdefault(name, S64 if dialect and type_ != PREDICATE else type_)
            known.places.setdefault(name, item.op.source)
    for item in named:
        for name, type_ in item.read:
            if name in found:
                continue
            if name not in valued:
                raise _never_written(thread, item.op, name, list(found) + list(valued), variables)
            found[name] = S64 if dialect and type_ != PREDICATE else type_
            known.places.setdefault(name, item.op.source)
    for name, span in valued.items():
        if name not in found:
            if not dialect:
                message = f"the type of {thread.name}:{name} is not known: no instruction of {thread.name} names it"
                raise error(message, span, kind="type", hint=f"declare it: `.reg .u32 {thread.name}:{name};`")
            found[name] = S64
    for item in named:
        _check(item, known, isa)
    _check_carry(body)
    return {name: found[name] for item in named for name, _ in (*item.written, *item.read)} | {
        name: found[name] for name in valued
    }


def _check_carry(body: Sequence[Op]) -> None:
    """Refuse ``addc`` after ``sub.cc`` and ``subc`` after ``add.cc`` (9.7.2).

    The text says that the one writes a borrow into CC.CF and the other adds CC.CF; an H200 adds 1 where there was no
    borrow. Raises ``PtxmmError`` (kind ``unsupported``).
    """
    last: str | None = None
    for op in body:
        if not isinstance(op, Alu | AluPair):
            continue
        subtracts = op.op.startswith("sub")
        if Reg(CARRY) in op.sources and last is not None and last.startswith("sub") != subtracts:
            flag = "carry" if subtracts else "borrow"
            message = f"`{op.op}` after `{last}.cc`: what a {flag} means for it is not said"
            hint = "addc and madc go with add.cc and mad.cc, subc with sub.cc"
            raise refuse(op, message, hint)
        if isinstance(op, AluPair) and op.predicate == Reg(CARRY):
            last = op.op


def _entries(entries: Sequence[RegisterEntry]) -> tuple[dict[str, Type], dict[str, Span]]:
    """Declared types, and the places of initial values; a register has at most one of each."""
    declared: dict[str, Type] = {}
    valued: dict[str, Span] = {}
    for entry in entries:
        register = f"{entry.thread}:{entry.name}"
        if entry.type is not None:
            if entry.name in declared:
                raise error(f"`{register}` is declared twice", entry.span)
            declared[entry.name] = entry.type
        if entry.initial is not None:
            if entry.name in valued:
                line = valued[entry.name].line
                raise error(f"`{register}` has two initial values; the first is on line {line}", entry.span)
            valued[entry.name] = entry.span
    return declared, valued


def _never_written(thread: ThreadSource, op: Op, name: str, known: list[str], variables: Collection[str]) -> PtxmmError:
    span = _place(op.source, name)
    if _is_base(op, name):
        message = f"`{name}` is neither a variable nor a register with a value"
        mbarrier = any(place.base == Reg(name) for place in operands(op))
        hint = did_you_mean(name, [*variables, *known])
        hint = hint or f"declare the variable: `{'.shared .b64' if mbarrier else '.global .u32'} {name} = 0;`"
    elif name == CARRY:
        message, hint = f"no instruction of {thread.name} writes the carry flag", "add.cc, sub.cc and mad.cc write it"
    else:
        message = f"the register `{name}` of {thread.name} never gets a value"
        hint = did_you_mean(name, known) or f"give it one before the threads: `{thread.name}:{name} = 0;`"
    return error(message, span, hint=hint)


def _place(source: Source, name: str) -> Span:
    """Where ``name`` stands in an instruction, or the whole of it if its text is not as it was written."""
    span = source.span
    found = re.search(rf"(?<![\w$%.])%?{re.escape(name)}(?![\w$])", source.text)
    if found is None or len(source.text) != span.end_column - span.column:
        return span
    return Span(span.line, span.column + found.start(), span.column + found.end())


def _check(item: _Named, known: _Known, isa: tuple[int, int]) -> None:
    """Operand widths must agree; ``ld``, ``st`` and ``cvt`` may have wider registers (PTX ISA 9.4.1)."""
    op, types, declared = item.op, known.types, known.declared
    for name, type_ in item.written:
        wider = isinstance(op, Load | Convert) and name in declared and types[name] != PREDICATE
        if not _fits(types[name], type_, wider):
            raise _mismatch(op, name, type_, known, "writes")
    for name, type_ in item.read:
        wider = isinstance(op, Store | Convert) and types[name] != PREDICATE and not _is_base(op, name)
        short = types[name].bits == BITS and (_in_window(op, name) or _is_short(op, name, isa))
        if not _fits(types[name], type_, wider) and not short:
            raise _mismatch(op, name, type_, known, "reads")
    for name, type_ in (*item.written, *item.read) if declared else ():
        if name in declared and not _compatible(types[name], type_):
            message = f"`{name}` is declared .{types[name].name}, but this instruction uses it as .{type_.name}"
            raise error(message, op.source.span, kind="type", hint=f"declare it .b{types[name].bits}")


def _is_base(op: Op, name: str) -> bool:
    """Whether the register is the base of an address of ``op``."""
    return any(place.base == Reg(name) for place in addresses(op))


def _in_window(op: Op, name: str) -> bool:
    """Whether all that ``op`` reads of the register in 64 bits is addresses in ``.shared`` memory (6.4.1)."""
    read = [type_ for used, type_ in uses(op) if used == name and type_.bits == ADDRESS.bits]
    return bool(read) and len(read) == sum(place.base == Reg(name) for place in window_operands(op))


def _is_short(op: Op, name: str, isa: tuple[int, int]) -> bool:
    """Whether the register is an operand that may also have 32 bits."""
    return any(slot.short and slot.short <= isa and slot.item(op) == Reg(name) for slot in slots(op.roles))


def _compatible(register: Type, used: Type) -> bool:
    """Integers and floating-point numbers do not mix, untyped bits are either (PTX ISA 9.4, table of operand types)."""
    return {register.kind, used.kind} not in ({"f", "s"}, {"f", "u"})


def _fits(register: Type, used: Type, wider: bool) -> bool:
    if (register == PREDICATE) != (used == PREDICATE):
        return False
    return register.bits == used.bits or (wider and register.bits > used.bits)


def _mismatch(op: Op, name: str, now: Type, known: _Known, verb: str) -> PtxmmError:
    was = known.types[name]
    if PREDICATE in (was, now):
        one, other = ("a predicate", f"a .{now.name}") if was == PREDICATE else (f"a .{was.name}", "a predicate")
    else:
        one, other = f"{was.bits} bits wide", f"{now.bits} bits"
    where = " as declared" if name in known.declared else f" since line {known.places[name].span.line}"
    message = f"`{name}` is {one}{where}, but this {verb} it as {other}"
    hint = "use another register, or cvt"
    inside = sum(place.base == Reg(name) for place in window_operands(op))
    generic = sum(place.base == Reg(name) for place in addresses(op)) > inside or was.bits != BITS
    if _is_base(op, name) and generic and verb == "reads" and now.bits == ADDRESS.bits:
        message = f"`{name}` is {one}{where}, but an address has 64 bits"
        hint = f"take the address with `mov.u64 {name}, x`"
        if was.bits == BITS:
            message = f"`{name}` is {one}{where}, but only an address in .shared memory has {BITS} bits"
    return error(message, op.source.span, kind="type", hint=hint)
