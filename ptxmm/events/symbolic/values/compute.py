"""Instructions without events: arithmetic, conversions, predicates, moves and addresses (PTX ISA 9.7.1 to 9.7.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ptxmm.events.symbolic.executor import ADDRESS, AMOUNT, PREDICATE, Executor
from ptxmm.events.symbolic.values.arithmetic import convert, extend
from ptxmm.events.symbolic.values.domain import Domain, Value, only, supported
from ptxmm.events.symbolic.values.mapping import cta_rank, in_space, mapped
from ptxmm.program.shared.windows import converted
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Computing, Type
from ptxmm.ptx.ops.signatures import source_types
from ptxmm.relations.formula import FALSE

PENDING_BITS = 20
"""The part of an mbarrier's state token that is the pending count; the phase is above it."""

_LAST_BIT = 31


Eventless = Computing | ops.Wmma | ops.SetMaxRegisters


def computed(run: Executor, op: Eventless) -> list[tuple[str, Value]]:
    """The registers that an instruction without events writes, with their new values."""
    match op:
        case ops.Alu():
            return [(op.dst.name, _alu(run, op))]
        case ops.AluPair(name, second, type_, first, predicate, sources):
            types = source_types(second, type_)
            values = [run.operand(s, t) for s, t in zip(sources, types, strict=True)]
            found = [(predicate.name, run.operation(second, type_, values))]
            if first is not None:
                found.append((first.name, run.operation(name, type_, values[: len(source_types(name, type_))])))
            return found
        case ops.Convert():
            return [(op.dst.name, _converted(run, run.operand(op.value, op.frm), op))]
        case ops.SetPredicate():
            return _set_predicate(run, op)
        case ops.Select():
            return [(op.dst.name, _selected(run, op))]
        case ops.Pack(dst, type_, parts):
            width = type_.bits // len(parts)
            packed = ((i * width, run.operand(part, Type("b", width))) for i, part in enumerate(parts))
            return [(dst.name, run.join(packed))]
        case ops.Unpack(targets, type_, source):
            width, value = type_.bits // len(targets), run.operand(source, type_)
            return [(t.name, run.field(value, i * width, width)) for i, t in enumerate(targets) if t is not None]
        case ops.PendingCount(dst, token):
            return [(dst.name, run.cut(run.operand(token, ADDRESS), 0, PENDING_BITS))]
        case ops.Wmma():
            from ptxmm.events.symbolic.matrices import wmma  # few programs have one

            return wmma.product(run, op)
        case ops.Opaque():
            return _opaque(run, op)
        case ops.SetMaxRegisters():
            return []
        case ops.Nothing(dst):
            return [] if dst is None else [(dst.name, run.constant(0))]
        case ops.Mapa() | ops.CtaRank() | ops.ConvertAddress() | ops.IsSpace():
            return [(op.dst.name, _of_address(run, op))]
        case _:
            assert_never(op)


def _alu(run: Executor, op: ops.Alu) -> Value:
    values = [run.operand(s, t) for s, t in zip(op.sources, source_types(op.op, op.type), strict=True)]
    _check_defined(run, op, values)
    return values[0] if op.op == "mov" else run.operation(op.op, op.type, values)


def _opaque(run: Executor, op: ops.Opaque) -> list[tuple[str, Value]]:
    """A function that is not worked out: any value stands for its results, which nothing sees; or predicates that may
    be either."""
    assert run.blind or op.free, op
    values = [run.operand(source, type_) for source, type_ in zip(op.sources, op.given, strict=True)]
    reads = run.machine.all_reads(value.reads for value in values)
    made = [value.expression for value in values]
    return [
        (register.name, Value(_either(run, n) if op.free else only(0), _leaf(run, op, type_, n, made), reads))
        for n, (register, type_) in enumerate(((op.dst, op.result), (op.second, PREDICATE)))
        if register is not None
    ]


def _leaf(run: Executor, op: ops.Opaque, type_: ops.Type, number: int, made: Sequence[int]) -> int:
    """The expression of a result; of one that may be either each time another one."""
    own = (run.here,) if op.free else ()
    return run.machine.expressions.leaf(type_.bits, op.name, number, *own, *made)


def _either(run: Executor, number: int) -> Domain:
    """A predicate that may be true or false."""
    chosen, presence = run.formulas.variable(), run.formulas.both(run.state.guard, run.condition)
    if presence != FALSE:
        run.machine.chosen.append((run.here.at(0, number), presence, chosen))
    return Domain({1: chosen, 0: -chosen})


def _selected(run: Executor, op: ops.Select) -> Value:
    predicate = run.state.registers[op.predicate.name]
    arms = [run.operand(op.a, op.type), run.operand(op.b, op.type)]
    result = run.operation("select", op.type, [*arms, predicate])
    known = run.machine.expressions.value_of(predicate.expression)
    if known is None:
        return result
    arm = arms[0] if known else arms[1]
    return arm.holding(supported(result.domain, arm.domain))


def _of_address(run: Executor, op: ops.Mapa | ops.CtaRank | ops.ConvertAddress | ops.IsSpace) -> Value:
    """Functions of generic addresses (9.7.10.18, .20 to .23)."""
    test, index = run.machine.test, run.index
    match op:
        case ops.Mapa(_, type_, _, rank):
            values = [_window_address(run, op), run.operand(rank, AMOUNT)]
            mask, window = (1 << type_.bits) - 1, _in_window(op)
            tag: tuple[object, ...] = ("mapa", type_, window, index)
            return run.function(tag, lambda a, r: mapped(test, a, r, window) & mask, values)
        case ops.CtaRank(_, type_):
            tag = ("getctarank", type_, op.space, index)
            return run.function(tag, lambda a: cta_rank(test, a), [_window_address(run, op)])
        case ops.ConvertAddress(_, type_, source):
            place, tag = run.thread.placement, ("cvta", op.space, op.to, index)
            return run.function(
                tag, lambda a: converted(test.objects, place, index, op, a), [run.operand(source, type_)]
            )
        case ops.IsSpace(_, space, source):
            tag, value = ("isspacep", space, index), run.operand(source, ADDRESS)
            return run.function(tag, lambda a: int(in_space(test, index, a, space)), [value], "", PREDICATE)


def _window_address(run: Executor, op: ops.Mapa | ops.CtaRank) -> Value:
    """The 64-bit address that ``op`` is about."""
    return run.unwindowed(run.operand(op.value, op.type), "shared::cluster" if _in_window(op) else None)


def _in_window(op: ops.Mapa | ops.CtaRank) -> bool:
    """Whether ``op`` is about addresses in the window of shared memory, as all of 32 bits are."""
    return op.type.bits < ADDRESS.bits or op.space is not None


def _converted(run: Executor, value: Value, op: ops.Convert) -> Value:
    to, frm = op.to, op.frm
    bits = max(to.bits, run.thread.registers[op.dst.name].bits)
    modes = (op.saturate, op.rounding, op.flush)
    kind = "" if "f" in to.kind or "f" in frm.kind else "cvt"
    name = ("cvt", to, frm, *modes)
    result = run.function(name, lambda v: convert(v, to, frm, *modes), [value], kind, to, to, frm, op.saturate)
    if bits == to.bits or not to.signed:
        return result
    return run.function(("extend", to, bits), lambda v: extend(v, to, bits), [result], "extend", to, to, bits)


def _check_defined(run: Executor, op: ops.Alu, values: list[Value]) -> None:
    """Note a division by zero, whose value is unspecified (9.7.1.8), and fns beyond the mask, which is undefined
    (9.7.1.17)."""
    if op.op in ("div", "rem") and op.type.kind != "f":
        wrong, why = [values[1].domain.get(0, FALSE)], "division by zero"
    elif op.op == "fns":
        wrong, why = [when for v, when in values[1].domain.items() if v > _LAST_BIT], "fns with a base above 31"
    else:
        return
    presence = run.formulas.both(run.formulas.both(run.state.guard, run.formulas.any(wrong)), run.condition)
    if presence != FALSE:
        run.misuse(presence, why)


def _set_predicate(run: Executor, op: ops.SetPredicate) -> list[tuple[str, Value]]:
    result = run.operation(op.cmp, op.type, [run.operand(operand, op.type) for operand in (op.a, op.b)])
    found = [(op.dst.name, result)]
    if op.complement is not None:
        found.append((op.complement.name, run.negated(result)))
    if op.boolop is None or op.c is None:
        return found
    other = run.predicate(op.c, op.c_negated)
    return [(name, run.operation(op.boolop, PREDICATE, [value, other])) for name, value in found]
