"""Instructions that only give registers values, in all threads that execute them together (PTX ISA 9.7.1 to 9.7.10)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions
from ptxmm.ptx.ops.signatures import source_types
from ptxmm.whole.arrays import Flags, Numbers, Words
from ptxmm.whole.execution.state import State
from ptxmm.whole.execution.values import Value, computed, converted, cut, unknown


def results(state: State, op: ops.Op, threads: Numbers) -> list[tuple[ops.Reg | None, Value]]:
    """The registers that ``op`` writes, each with its value."""
    match op:
        case ops.Alu():
            return [(op.dst, computed(op.op, op.type, _operands(state, op.sources, op.given, threads)))]
        case ops.AluPair():
            given = _operands(state, op.sources, op.given, threads)
            first = computed(op.op, op.type, given[: len(source_types(op.op, op.type))])
            return [(op.dst, first), (op.predicate, computed(op.second, op.type, given))]
        case ops.Convert():
            bits = state.bits(op.dst)
            value = state.operand(op.value, op.frm, threads)
            return [(op.dst, converted(value, op, bits))]
        case ops.SetPredicate():
            return _compared(state, op, threads)
        case ops.Select():
            a, b = (state.operand(item, op.type, threads) for item in (op.a, op.b))
            p = state.operand(op.predicate, ops.PREDICATE, threads)
            true = p.words != 0
            return [(op.dst, Value(np.where(true, a.words, b.words), np.where(true, a.known, b.known) & p.known))]
        case ops.Pack():
            return [
                (op.dst, _packed(_operands(state, op.sources, (op.part,) * len(op.sources), threads), op.part.bits))
            ]
        case ops.Unpack():
            value, bits = state.operand(op.value, op.type, threads), op.part.bits
            known = value.known & (op.type.bits <= 64)
            return [
                (dst, Value(cut(value.words >> np.uint64(min(n * bits, 63)), bits), known))
                for n, dst in enumerate(op.dst)
            ]
        case ops.ConvertAddress():
            value = state.operand(op.value, op.type, threads)
            if op.to:
                words = state.memory.special(value.words, op.space, threads)
            else:
                words, valid = state.memory.generic(value.words, op.space, threads)
                value = Value(words, value.known & valid)
            return [(op.dst, Value(cut(words, op.type.bits), value.known))]
        case ops.Mapa():
            return [(op.dst, _mapped(state, op, threads))]
        case ops.CtaRank():
            value = state.operand(op.value, op.type, threads)
            words, valid = _generic(state, value.words, op.space, threads)
            return [(op.dst, Value(state.memory.ranks(words), value.known & valid))]
        case ops.IsSpace():
            value = state.operand(op.value, ops.B64, threads)
            inside = state.memory.inside(op.space, value.words, threads)
            return [(op.dst, Value(inside.astype(np.uint64), value.known))]
        case _:
            return [(ops.Reg(name), unknown(len(threads))) for name, _ in definitions(op)]


def _generic(state: State, words: Words, space: str | None, threads: Numbers) -> tuple[Words, Flags]:
    """The generic addresses of shared memory that an operand names."""
    if space is None:
        return words, np.ones(len(words), np.bool_)
    return state.memory.generic(words, "shared::cluster", threads)


def _mapped(state: State, op: ops.Mapa, threads: Numbers) -> Value:
    value, rank = state.operand(op.value, op.type, threads), state.operand(op.rank, ops.U32, threads)
    words, valid = _generic(state, value.words, op.space, threads)
    words, inside = state.memory.mapped(words, rank.words, threads)
    if op.space is not None:
        words = state.memory.special(words, "shared::cluster", threads)
    return Value(cut(words, op.type.bits), value.known & rank.known & valid & inside)


def _operands(state: State, sources: Any, types: Any, threads: Numbers) -> list[Value]:
    return [state.operand(source, type_, threads) for source, type_ in zip(sources, types, strict=True)]


def _packed(parts: list[Value], bits: int) -> Value:
    if bits * len(parts) > 64:
        return unknown(len(parts[0].words))
    words = np.zeros(len(parts[0].words), np.uint64)
    for number, part in enumerate(parts):
        words |= part.words << np.uint64(number * bits)
    return Value(words, np.logical_and.reduce([part.known for part in parts]))


def _compared(state: State, op: ops.SetPredicate, threads: Numbers) -> list[tuple[ops.Reg | None, Value]]:
    given = _operands(state, (op.a, op.b), (op.type, op.type), threads)
    result = computed(op.cmp, op.type, given)
    found: list[tuple[ops.Reg | None, Value]] = [(op.dst, result)]
    if op.complement is not None:
        found.append((op.complement, Value(result.words ^ np.uint64(1), result.known)))
    if op.boolop is None or op.c is None:
        return found
    other = state.operand(op.c, ops.PREDICATE, threads)
    other = Value(other.words ^ np.uint64(op.c_negated), other.known)
    return [(register, computed(op.boolop, ops.PREDICATE, [value, other])) for register, value in found]
