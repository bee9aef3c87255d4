"""Typed tests in the untyped dialect, where that is exact: everything is 64 bits wide."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ptxmm.formats.rewrite import barriers, branches, refuse
from ptxmm.program.condition import MemoryTerm, Proposition, RegisterTerm, Term, comparison_type, comparisons, map_terms
from ptxmm.program.edit import retarget
from ptxmm.program.test import MemoryObject, Placement, Test, Thread
from ptxmm.ptx import ops

S64 = ops.Type("s", 64)
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}
_ORDERED_OPS = ("min", "max", "shr")
_REAL = ("f", "bf")
_WARP = 32


def to_dialect(test: Test) -> Test:
    """``test`` with the same executions in the untyped dialect.

    Raises ``PtxmmError`` (kind ``unsupported``), at the instruction where one is to blame, for values that are not
    64 bits wide, comparisons of unsigned values, predicates other than a ``setp`` right before its ``bra``, state
    spaces other than ``.global``, arrays, clusters, grids, warps, hosts, and barriers that mean something else there.
    """
    changed = _barriers(test)
    threads = tuple(_thread(i, t, changed) for i, t in enumerate(test.threads))
    condition = test.condition
    if condition is not None:
        condition = replace(condition, proposition=_proposition(condition.proposition))
    return replace(
        test,
        threads=threads,
        objects={key: _object(item) for key, item in test.objects.items()},
        condition=condition,
        locations=tuple(_term(t) for t in test.locations),
        filter=None if test.filter is None else _proposition(test.filter),
        dialect=True,
    )


def _object(item: MemoryObject) -> MemoryObject:
    """A location of the dialect: 8 bytes."""
    if item.type.bits != 64 or item.count != 1 or item.is_array:
        shape = f"{item.type.name}[{item.count}]" if item.is_array else item.type.name
        raise refuse(f"a location of the dialect holds one 64-bit integer, but `{item.name}` is .{shape}")
    if item.space != "global":
        raise refuse(f"locations of the dialect are .global, but `{item.name}` is .{item.space}")
    return replace(item, type=S64)


def _proposition(item: Proposition) -> Proposition:
    """A condition with signed terms."""
    for comparison in comparisons(item):
        type_ = comparison_type(comparison)
        if comparison.op not in ("==", "!=") and type_ is not None and type_ != S64:
            raise refuse(f"the dialect compares signed integers, but the condition has a `{comparison.op}` of others")
    return map_terms(item, _term)


def _term(term: Term) -> Term:
    """A term with the type of the dialect."""
    if isinstance(term, RegisterTerm) and term.type.kind == "pred":
        raise refuse(f"the dialect has no predicates, but the condition names `{term.register}`")
    return replace(term, type=S64) if isinstance(term, RegisterTerm | MemoryTerm) else term


def _thread(index: int, thread: Thread, changed: dict[tuple[int, int], ops.Barrier]) -> Thread:
    """One thread."""
    place = thread.placement
    if place != Placement(gpu=place.gpu, cta=place.cta):
        raise refuse(f"a thread of the dialect has a GPU and a CTA only, but {thread.name} has more of a placement")
    chunks = [_chunk(thread.body, pc, changed.get((index, pc))) for pc in range(len(thread.body))]
    for name, type_ in thread.registers.items():
        if type_.kind != "pred" and type_.bits != 64:
            raise refuse(f"registers of the dialect are 64 bits wide, but {thread.name}:{name} is .{type_.name}")
    registers = {name: S64 for name, type_ in thread.registers.items() if type_.kind != "pred"}
    initial = {name: value for name, value in thread.initial.items() if name in registers}
    return replace(thread, body=retarget(chunks), registers=registers, initial=initial)


def _chunk(body: Sequence[ops.Op], pc: int, barrier: ops.Barrier | None) -> list[ops.Op]:
    """What an instruction becomes: a ``setp`` and its ``bra`` are one compare-and-branch."""
    op, after = body[pc], body[pc + 1] if pc + 1 < len(body) else None
    before = body[pc - 1] if pc > 0 else None
    if isinstance(op, ops.SetPredicate):
        if not _fused(op, after) or any(isinstance(b, ops.Branch) and b.target == pc + 1 for b in body):
            hint = "put the `setp` right before the `bra` that uses it"
            raise refuse("the dialect has no predicates, only compare-and-branch", op, hint)
        return []
    if not isinstance(op, ops.Branch) or not isinstance(before, ops.SetPredicate) or not _fused(before, op):
        return [_instruction(op, barrier)]
    assert op.guard is not None
    cmp = _NEGATED[before.cmp] if op.guard.negated else before.cmp
    if before.type.kind in _REAL or (cmp not in ("eq", "ne") and before.type != S64):
        raise refuse(f"the dialect compares signed integers, not .{before.type.name}", before)
    return [ops.Branch(op.target, ops.Compare(cmp, S64, before.a, before.b), op.source)]


def _fused(setp: ops.SetPredicate, branch: ops.Op | None) -> bool:
    """Whether ``setp`` and the next instruction are one compare-and-branch."""
    return (
        isinstance(branch, ops.Branch)
        and branch.guard is not None
        and branch.guard.register == setp.dst.name
        and setp.complement is None
        and setp.boolop is None
        and setp.guard is None
        and setp.type.bits == 64
    )


def _instruction(op: ops.Op, barrier: ops.Barrier | None) -> ops.Op:
    """What ``op`` becomes; printing refuses what the dialect has no instruction for."""
    if op.guard is not None:
        raise refuse("the dialect has no predicated instructions", op, "branch around the instruction")
    if isinstance(op, ops.Load | ops.Store | ops.Atomic | ops.Fence) and op.scope == "cluster":
        raise refuse("the dialect has no clusters", op)
    match op:
        case ops.Load() | ops.Store() | ops.Atomic():
            if ops.access_bytes(op) != op.type.bytes:
                raise refuse("the dialect has no vectors", op)
            _check_type(op)
            if op.space not in (None, "global"):
                raise refuse(f"locations of the dialect are .global, not .{op.space}", op)
            return replace(op, type=S64, space=None)
        case ops.Alu():
            _check_type(op)
            return replace(op, type=S64)
        case ops.Barrier():
            assert barrier is not None
            return barrier
        case ops.Convert() | ops.Select():
            raise refuse("the dialect has no `cvt` and no `selp`", op)
        case ops.Fence(sem="sc" | "acq_rel") | ops.ProxyFence(kind="alias") | ops.Branch() | ops.Exit():
            return op
    raise refuse(f"the dialect has no `{op.source.text.split()[0]}`", op)


def _check_type(op: ops.Load | ops.Store | ops.Atomic | ops.Alu) -> None:
    """Refuse what does not compute with signed values of 64 bits."""
    if op.type.bits != 64:
        raise refuse(f"values of the dialect are 64 bits wide, not .{op.type.name}", op)
    name = op.op if isinstance(op, ops.Atomic | ops.Alu) else "mov"
    if name != "mov" and op.type.kind in _REAL:
        raise refuse("the dialect has no floating-point arithmetic", op)
    if name in _ORDERED_OPS and op.type != S64:
        raise refuse(f"`{name}` of the dialect is signed, not .{op.type.name}", op)


def _barriers(test: Test) -> dict[tuple[int, int], ops.Barrier]:
    """For each barrier, by (thread, pc), that of the dialect, whose instance is the id.

    They mean the same if the threads that have an instruction for it are as many as its count, or without a count all
    threads of the CTA, none of which can end before it comes there (PTX does not wait for those, the dialect does).
    """
    changed: dict[tuple[int, int], ops.Barrier] = {}
    for _, threads in barriers(test):
        members: dict[object, list[int]] = {}
        for index, found in threads:
            for item in found:
                if index in members.setdefault(item.barrier, []):
                    raise refuse("a thread that comes to one barrier twice can't be converted", item)
                members[item.barrier].append(index)
        for index, _ in threads:
            for pc, op in enumerate(test.threads[index].body):
                if not isinstance(op, ops.Barrier) or not isinstance(op.barrier, ops.Imm):
                    continue
                size = len(members[op.barrier])
                if op.count is None and (size < len(threads) or any(branches(test.threads[i]) for i, _ in threads)):
                    raise refuse("a barrier that some thread of its CTA may leave out can't be converted", op)
                if isinstance(op.count, ops.Imm) and op.count.value != _WARP * size:
                    message = f"the count is {op.count.value}, but the threads that have this barrier make"
                    raise refuse(f"{message} {_WARP * size}", op)
                changed[index, pc] = replace(op, count=None, instance=op.barrier.value, aligned=False)
    return changed
