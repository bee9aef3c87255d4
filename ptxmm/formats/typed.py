"""Tests of the untyped dialect as typed PTX."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain, count

from msgspec.structs import replace

from ptxmm.formats.rewrite import barriers, refuse
from ptxmm.program.edit import retarget
from ptxmm.program.symbols import symbols
from ptxmm.program.test import MemoryObject, Test, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.table import ATOMIC_TYPES, FORMS

_PREDICATE = ops.Type("pred", 1)
_BARRIERS = 16
_WARP = 32


def to_typed(test: Test) -> Test:
    """``test`` with the same executions in 64-bit PTX (``.s64``, or the type that the operation has in PTX).

    A compare-and-branch becomes ``setp`` and a predicated ``bra``; an atomic ``sub`` of a constant an ``add``; a
    barrier one with the number of its threads. Raises ``PtxmmError`` (kind ``unsupported``) for accesses through
    other proxies, other uses of barriers and atomics that PTX has not; printing the result refuses the rest.
    """
    changed = _barriers(test)
    threads = tuple(_thread(test, i, t, changed) for i, t in enumerate(test.threads))
    return replace(
        test,
        threads=threads,
        objects=_objects(test),
        info=tuple(i for i in test.info if i[0] != "Query"),
        dialect=False,
        default_model="ptx-8.5",
    )


def _thread(test: Test, index: int, thread: Thread, changed: dict[tuple[int, int], ops.Barrier]) -> Thread:
    """One thread."""
    predicate = next(name for name in chain("p", (f"p{n}" for n in count())) if name not in thread.registers)
    chunks = [_instruction(test, op, changed.get((index, pc)), predicate) for pc, op in enumerate(thread.body)]
    registers = dict(thread.registers)
    if any(isinstance(op, ops.SetPredicate) for chunk in chunks for op in chunk):
        registers[predicate] = _PREDICATE
    return replace(thread, body=retarget(chunks), registers=registers)


def _instruction(test: Test, op: ops.Op, barrier: ops.Barrier | None, predicate: str) -> list[ops.Op]:
    """What ``op`` becomes."""
    match op:
        case ops.Load() | ops.Store() | ops.Atomic():
            if op.proxy != "generic":
                raise refuse(f"typed PTX has no accesses through the {op.proxy} proxy here", op)
            base = op.address.base
            space = test.objects[base.name].space if isinstance(base, ops.Sym) and op.space is None else op.space
            if isinstance(op, ops.Atomic) and op.op == "sub":
                ((subtrahend,),) = op.operands
                if not isinstance(subtrahend, ops.Imm):
                    raise refuse("PTX has no atomic `sub`, and only a constant can be added negated", op)
                negated = ops.Imm(-subtrahend.value % (1 << 64))
                if negated.value >= 1 << 63:
                    negated = ops.Imm(negated.value - (1 << 64))
                op = replace(op, op="add", operands=((negated,),))
            if isinstance(op, ops.Atomic):
                return [replace(op, space=space, type=_legal(op, ATOMIC_TYPES.get(op.op, ())))]
            return [replace(op, space=space)]
        case ops.Alu():
            return [replace(op, type=_legal(op, FORMS[op.op.partition(".")[0]].groups["type"]))]
        case ops.ProxyFence(kind) if kind != "alias":
            raise refuse(f"typed PTX has no fence for the {kind} proxy here", op)
        case ops.Barrier():
            assert barrier is not None
            return [barrier]
        case ops.Branch(target, condition) if condition is not None:
            comparison = ops.SetPredicate(
                condition.cmp, condition.type, ops.Reg(predicate), None, condition.a, condition.b, op.source
            )
            return [comparison, ops.Branch(target, None, op.source, ops.Guard(predicate))]
    return [op]


def _legal(op: ops.Atomic | ops.Alu, legal: Collection[str]) -> ops.Type:
    """The 64-bit type in which PTX has the operation; all of those that it has give the same bits as ``.s64``."""
    for type_ in (op.type, ops.Type("b", 64), ops.Type("u", 64)):
        if type_.name in legal:
            return type_
    raise refuse(f"PTX has no 64-bit `{op.op}`", op)


def _objects(test: Test) -> dict[str, MemoryObject]:
    """The objects; aliases of other proxies, which typed accesses can't use, are left out unless their address is."""
    named = {name for thread in test.threads for op in thread.body for name in symbols(op)}
    return {k: o for k, o in test.objects.items() if o.proxy == "generic" or k in named}


def _barriers(test: Test) -> dict[tuple[int, int], ops.Barrier]:
    """For each barrier, by (thread, pc), the typed one: an id for each group of a CTA, and the number of its threads.

    A group is the barriers of a CTA with the same instance and id (docs/formats.md). With a count of the threads that
    have an instruction of it, and each arriving at most once, a phase completes iff all of them arrive, as it does in
    the dialect.
    """
    changed: dict[tuple[int, int], ops.Barrier] = {}
    for _, threads in barriers(test):
        groups: dict[tuple[int | None, object], list[int]] = {}
        for index, found in threads:
            for item in found:
                if item.count is not None:
                    raise refuse("a barrier with a quorum has no counterpart in PTX", item)
                members = groups.setdefault((item.instance, item.barrier), [])
                if index in members:
                    raise refuse("a thread that comes to one barrier twice can't be converted", item)
                members.append(index)
                if len(groups) > _BARRIERS:
                    raise refuse(f"a CTA has {_BARRIERS} barriers, and this is one more", item)
        ids = {group: number for number, group in enumerate(groups)}
        for index, _ in threads:
            for pc, op in enumerate(test.threads[index].body):
                if isinstance(op, ops.Barrier):
                    group = (op.instance, op.barrier)
                    size = ops.Imm(_WARP * len(groups[group]))
                    changed[index, pc] = replace(op, barrier=ops.Imm(ids[group]), count=size, instance=None)
    return changed
