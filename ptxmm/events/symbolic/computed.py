"""Instructions without events: arithmetic, conversions, predicates, moves and addresses (PTX ISA 9.7.1 to 9.7.9)."""

from __future__ import annotations

from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.executor import ADDRESS, AMOUNT, PREDICATE, Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.mapping import cta_rank, in_space, mapped
from ptxmm.events.symbolic.values import Domain, Value, convert, extend
from ptxmm.ptx.ops import (
    Alu,
    Convert,
    CtaRank,
    GenericAddress,
    Imm,
    IsSpace,
    Mapa,
    Nothing,
    Op,
    Operand,
    Pack,
    PendingCount,
    Reg,
    Select,
    SetPredicate,
    Type,
    Unpack,
)

PENDING = (1 << 20) - 1
"""The part of an mbarrier's state token that is the pending count; the phase is above it."""


def computed(run: Executor, op: Op, state: State) -> list[tuple[str, Value]]:
    """The registers that an instruction without events writes, with their new values.

    Raises ``PtxmmError`` for an instruction that is not one.
    """
    match op:
        case Alu(name, type_, dst, sources):
            types = [type_] * len(sources)
            if name in ("shl", "shr"):
                types[1] = AMOUNT if isinstance(sources[1], Imm) else _register_type(run, sources[1], AMOUNT)
            if name == "mad.wide":
                types[2] = Type(type_.kind, 2 * type_.bits)
            values = [run.operand(state, s, t) for s, t in zip(sources, types, strict=True)]
            result = values[0] if name == "mov" else run.operation(name, type_, values)
            return [(dst.name, result)]
        case Convert(dst, source, to, frm, saturate):
            return [(dst.name, _converted(run, run.operand(state, source, frm), dst, to, frm, saturate))]
        case SetPredicate():
            return _set_predicate(run, op, state)
        case Select(type_, dst, a, b, predicate):
            arms = [run.operand(state, a, type_), run.operand(state, b, type_)]
            values = [*arms, state.registers[predicate.name]]
            known = run.machine.expressions.value_of(values[2].expression)
            result = run.operation("select", type_, values)
            if known is not None:
                arm = values[0] if known else values[1]
                result = Value(Domain(result.domain, arm.domain.support), arm.expression, arm.reads)
            return [(dst.name, result)]
        case Pack(dst, type_, parts):
            return [(dst.name, _packed(run, state, type_, parts))]
        case Unpack(targets, type_, source):
            return _unpacked(run, state, targets, type_, source)
        case PendingCount(dst, token):
            value = run.operand(state, token, ADDRESS)
            return [(dst.name, run.function(("pending_count",), lambda v: v & PENDING, [value]))]
        case Nothing(dst):
            return [] if dst is None else [(dst.name, run.constant(0))]
        case Mapa(dst, type_, _, rank):
            values = [_window_address(run, state, op), run.operand(state, rank, AMOUNT)]
            test, mask = run.machine.test, (1 << type_.bits) - 1
            return [(dst.name, run.function(("mapa", type_), lambda a, r: mapped(test, a, r) & mask, values))]
        case CtaRank(dst, type_):
            test = run.machine.test
            value = _window_address(run, state, op)
            return [(dst.name, run.function(("getctarank", type_), lambda a: cta_rank(test, a), [value]))]
        case GenericAddress(dst, type_, source):
            return [(dst.name, run.unwindowed(run.operand(state, source, type_)))]
        case IsSpace(dst, space, source):
            test, index = run.machine.test, run.index
            value = run.operand(state, source, ADDRESS)
            key = ("isspacep", space, index)
            return [(dst.name, run.function(key, lambda a: int(in_space(test, index, a, space)), [value]))]
    raise PtxmmError(f"the symbolic engine does not know {type(op).__name__}", kind="internal")


def _window_address(run: Executor, state: State, op: Mapa | CtaRank) -> Value:
    """The 64-bit address that ``op`` is about."""
    value = run.operand(state, op.value, op.type)
    in_window = op.type.bits < ADDRESS.bits or (op.space or "").startswith("shared")
    return run.unwindowed(value) if in_window else value


def _converted(run: Executor, value: Value, dst: Reg, to: Type, frm: Type, saturate: bool) -> Value:
    bits = max(to.bits, run.thread.registers[dst.name].bits)
    return run.function(("cvt", to, frm, saturate), lambda v: extend(convert(v, to, frm, saturate), to, bits), [value])


def _set_predicate(run: Executor, op: SetPredicate, state: State) -> list[tuple[str, Value]]:
    operands = [run.operand(state, operand, op.type) for operand in (op.a, op.b)]
    result = run.operation(op.cmp, op.type, operands)
    one = run.operand(state, Imm(1), PREDICATE)
    found = [(op.dst.name, result)]
    if op.complement is not None:
        found.append((op.complement.name, run.operation("xor", PREDICATE, [result, one])))
    if op.boolop is None or op.c is None:
        return found
    other = state.registers[op.c.name]
    if op.c_negated:
        other = run.operation("xor", PREDICATE, [other, one])
    return [(name, run.operation(op.boolop, PREDICATE, [value, other])) for name, value in found]


def _packed(run: Executor, state: State, type_: Type, parts: tuple[Operand, ...]) -> Value:
    width = type_.bits // len(parts)
    values = [run.operand(state, part, Type("b", width)) for part in parts]
    result = values[0]
    for i, value in enumerate(values[1:], 1):
        result = run.function(
            ("pack", i * width), lambda low, high, shift=i * width: low | high << shift, [result, value]
        )
    return result


def _unpacked(
    run: Executor, state: State, targets: tuple[Reg | None, ...], type_: Type, source: Operand
) -> list[tuple[str, Value]]:
    width = type_.bits // len(targets)
    value = run.operand(state, source, type_)
    return [
        (target.name, field(run, value, i * width, width)) for i, target in enumerate(targets) if target is not None
    ]


def field(run: Executor, value: Value, shift: int, width: int) -> Value:
    """The ``width`` bits of ``value`` from bit ``shift`` on."""
    mask = (1 << width) - 1
    if shift == 0 and all(v <= mask for v in value.domain):
        return value
    return run.function(("field", shift, width), lambda v: v >> shift & mask, [value])


def _register_type(run: Executor, operand: Operand, default: Type) -> Type:
    return run.thread.registers[operand.name] if isinstance(operand, Reg) else default


__all__ = ["computed", "field"]
