"""Instructions without events: arithmetic, conversions, predicates, moves and addresses (PTX ISA 9.7.1 to 9.7.9)."""

from __future__ import annotations

from typing import assert_never

from ptxmm.events.symbolic.executor import ADDRESS, AMOUNT, PREDICATE, Executor
from ptxmm.events.symbolic.values.domain import Domain, Value, convert, extend
from ptxmm.events.symbolic.values.mapping import cta_rank, in_space, mapped
from ptxmm.program.shared.windows import converted
from ptxmm.ptx.ops import (
    Alu,
    AluPair,
    Computing,
    Convert,
    ConvertAddress,
    CtaRank,
    Imm,
    IsSpace,
    Mapa,
    Nothing,
    Operand,
    Pack,
    PendingCount,
    Reg,
    Select,
    SetMaxRegisters,
    SetPredicate,
    Type,
    Unpack,
    Wmma,
)
from ptxmm.ptx.ops.signatures import source_types
from ptxmm.relations.formula import FALSE

PENDING_BITS = 20
"""The part of an mbarrier's state token that is the pending count; the phase is above it."""

_LAST_BIT = 31


Eventless = Computing | Wmma | SetMaxRegisters


def computed(run: Executor, op: Eventless) -> list[tuple[str, Value]]:
    """The registers that an instruction without events writes, with their new values."""
    match op:
        case Alu(name, type_, dst, sources):
            values = [run.operand(s, t) for s, t in zip(sources, source_types(name, type_), strict=True)]
            _check_defined(run, op, values)
            result = values[0] if name == "mov" else run.operation(name, type_, values)
            return [(dst.name, result)]
        case AluPair(name, second, type_, first, predicate, sources):
            types = source_types(second, type_)
            values = [run.operand(s, t) for s, t in zip(sources, types, strict=True)]
            found = [(predicate.name, run.operation(second, type_, values))]
            if first is not None:
                found.append((first.name, run.operation(name, type_, values[: len(source_types(name, type_))])))
            return found
        case Convert():
            return [(op.dst.name, _converted(run, run.operand(op.value, op.frm), op))]
        case SetPredicate():
            return _set_predicate(run, op)
        case Select(type_, dst, a, b, predicate):
            arms = [run.operand(a, type_), run.operand(b, type_)]
            values = [*arms, run.state.registers[predicate.name]]
            known = run.machine.expressions.value_of(values[2].expression)
            result = run.operation("select", type_, values)
            if known is not None:
                arm = values[0] if known else values[1]
                result = arm.holding(Domain(result.domain, arm.domain.support))
            return [(dst.name, result)]
        case Pack(dst, type_, parts):
            return [(dst.name, _packed(run, type_, parts))]
        case Unpack(targets, type_, source):
            return _unpacked(run, targets, type_, source)
        case PendingCount(dst, token):
            value = run.operand(token, ADDRESS)
            return [(dst.name, run.cut(value, 0, PENDING_BITS))]
        case Wmma():
            from ptxmm.events.symbolic.matrices import wmma  # few programs have one

            return wmma.product(run, op)
        case SetMaxRegisters():
            return []
        case Nothing(dst):
            return [] if dst is None else [(dst.name, run.constant(0))]
        case Mapa(dst, type_, _, rank):
            values = [_window_address(run, op), run.operand(rank, AMOUNT)]
            test, mask, window = run.machine.test, (1 << type_.bits) - 1, _in_window(op)
            tag: tuple[object, ...] = ("mapa", type_, window, run.index)
            return [(dst.name, run.function(tag, lambda a, r: mapped(test, a, r, window) & mask, values))]
        case CtaRank(dst, type_):
            test = run.machine.test
            value = _window_address(run, op)
            tag = ("getctarank", type_, op.space, run.index)
            return [(dst.name, run.function(tag, lambda a: cta_rank(test, a), [value]))]
        case ConvertAddress(dst, type_, source):
            value = run.operand(source, type_)
            objects, place, index = run.machine.test.objects, run.thread.placement, run.index
            tag = ("cvta", op.space, op.to, index)
            return [(dst.name, run.function(tag, lambda a: converted(objects, place, index, op, a), [value]))]
        case IsSpace(dst, space, source):
            test, index = run.machine.test, run.index
            value = run.operand(source, ADDRESS)
            tag = ("isspacep", space, index)
            result = run.function(tag, lambda a: int(in_space(test, index, a, space)), [value], "", PREDICATE)
            return [(dst.name, result)]
        case _:
            assert_never(op)


def _window_address(run: Executor, op: Mapa | CtaRank) -> Value:
    """The 64-bit address that ``op`` is about."""
    return run.unwindowed(run.operand(op.value, op.type), "shared::cluster" if _in_window(op) else None)


def _in_window(op: Mapa | CtaRank) -> bool:
    """Whether ``op`` is about addresses in the window of shared memory, as all of 32 bits are."""
    return op.type.bits < ADDRESS.bits or op.space is not None


def _converted(run: Executor, value: Value, op: Convert) -> Value:
    to, frm = op.to, op.frm
    bits = max(to.bits, run.thread.registers[op.dst.name].bits)
    modes = (op.saturate, op.rounding, op.flush)
    kind = "" if "f" in to.kind or "f" in frm.kind else "cvt"
    name = ("cvt", to, frm, *modes)
    result = run.function(name, lambda v: convert(v, to, frm, *modes), [value], kind, to, to, frm, op.saturate)
    if bits == to.bits or not to.signed:
        return result
    return run.function(("extend", to, bits), lambda v: extend(v, to, bits), [result], "extend", to, to, bits)


def _check_defined(run: Executor, op: Alu, values: list[Value]) -> None:
    """Note a division by zero, whose value is unspecified (9.7.1.8), and fns beyond the mask, which is undefined
    (9.7.1.17)."""
    if op.op in ("div", "rem") and op.type.kind != "f":
        wrong, why = [when for v, when in values[1].domain.items() if v == 0], "division by zero"
    elif op.op == "fns":
        wrong = [when for v, when in values[1].domain.items() if v > _LAST_BIT]
        why = "fns with a base above 31"
    else:
        return
    presence = run.formulas.both(run.state.guard, run.formulas.any(wrong))
    if op.guard is not None:
        holds = run.state.registers[op.guard.register].domain
        presence = run.formulas.both(presence, holds.get(0 if op.guard.negated else 1, FALSE))
    if presence != FALSE:
        run.misuse(presence, why)


def _set_predicate(run: Executor, op: SetPredicate) -> list[tuple[str, Value]]:
    operands = [run.operand(operand, op.type) for operand in (op.a, op.b)]
    result = run.operation(op.cmp, op.type, operands)
    one = run.operand(Imm(1), PREDICATE)
    found = [(op.dst.name, result)]
    if op.complement is not None:
        found.append((op.complement.name, run.operation("xor", PREDICATE, [result, one])))
    if op.boolop is None or op.c is None:
        return found
    other = run.state.registers[op.c.name]
    if op.c_negated:
        other = run.operation("xor", PREDICATE, [other, one])
    return [(name, run.operation(op.boolop, PREDICATE, [value, other])) for name, value in found]


def _packed(run: Executor, type_: Type, parts: tuple[Operand, ...]) -> Value:
    width = type_.bits // len(parts)
    values = [run.operand(part, Type("b", width)) for part in parts]
    result = values[0]
    for i, value in enumerate(values[1:], 1):
        result = run.join(result, value, i * width)
    return result


def _unpacked(run: Executor, targets: tuple[Reg | None, ...], type_: Type, source: Operand) -> list[tuple[str, Value]]:
    width = type_.bits // len(targets)
    value = run.operand(source, type_)
    return [(target.name, run.field(value, i * width, width)) for i, target in enumerate(targets) if target is not None]
