"""What the instructions of PTX (and of the untyped dialect) mean: from a parsed instruction to a resolved one.

The table of legal instructions is ``table.py``; every default (memory order, scope, type) is filled in here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import cast

from ptxmm.ptx import operands, ops, syntax
from ptxmm.ptx.operands import Names
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.qualifiers import Qualified, at, is_typed, qualify, requires

__all__ = ["ADDRESS", "PREDICATE", "S64", "definitions", "is_typed", "requires", "resolve", "uses"]

PREDICATE = Type("pred", 1)
ADDRESS = Type("b", 64)
S64 = Type("s", 64)
_U32 = Type("u", 32)
_UNSIGNED_COMPARISONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}


def resolve(
    instruction: syntax.Instruction, *, dialect: bool, variables: Container[str], labels: Mapping[str, int]
) -> Op:
    """The operation of ``instruction`` with every default filled in (PTX ISA 9.7, semantics section 3).

    ``variables`` are the names of memory locations (all other names are registers); ``labels`` maps labels to
    indices of instructions. Raises ``PtxmmError`` of kind ``isa``, ``name``, or ``unsupported`` for real PTX that is
    not supported yet.
    """
    q = qualify(instruction, dialect)
    return _MAKERS[q.form.kind](q, Names(variables, labels))


def definitions(op: Op) -> list[tuple[str, Type]]:
    """The registers that ``op`` writes, each with the type of the value: the instruction type (``ld`` may write a
    wider register, PTX ISA 9.4.1), twice as wide for ``mul.wide`` and ``mad.wide``."""
    match op:
        case ops.Load(dst, _, typ) | ops.Select(typ, dst):
            return [(dst.name, typ)]
        case ops.Atomic(dst, _, _, _, typ):
            return [] if dst is None else [(dst.name, typ)]
        case ops.Alu(name, typ, dst):
            return [(dst.name, _wide(typ) if name.endswith(".wide") else typ)]
        case ops.Convert(dst, _, to):
            return [(dst.name, to)]
        case ops.SetPredicate(dst=dst, complement=complement):
            return [(r.name, PREDICATE) for r in (dst, complement) if r is not None]
        case _:
            return []


def uses(op: Op) -> list[tuple[str, Type]]:
    """The registers that ``op`` reads, each with the type it is read as; guards and addresses included."""
    reads: list[tuple[ops.Operand | None, Type]] = []
    if op.guard is not None:
        reads.append((ops.Reg(op.guard.register), PREDICATE))
    match op:
        case ops.Load(_, address):
            reads.append((address.base, ADDRESS))
        case ops.Store(address, value, typ):
            reads += [(address.base, ADDRESS), (value, typ)]
        case ops.Atomic(_, _, address, values, typ):
            reads += [(address.base, ADDRESS), *((v, typ) for v in values)]
        case ops.Barrier(_, barrier, count, instance):
            typ = _U32 if instance is None else S64
            reads += [(barrier, typ), (count, typ)]
        case ops.Alu(name, typ, _, sources):
            reads += [(v, _source_type(name, typ, i)) for i, v in enumerate(sources)]
        case ops.Convert(_, value, _, frm):
            reads.append((value, frm))
        case ops.SetPredicate(_, typ, _, _, a, b, c=c):
            reads += [(a, typ), (b, typ), (c, PREDICATE)]
        case ops.Select(typ, _, a, b, p):
            reads += [(a, typ), (b, typ), (p, PREDICATE)]
        case ops.Branch(_, ops.Compare(_, typ, a, b)):
            reads += [(a, typ), (b, typ)]
    return [(operand.name, typ) for operand, typ in reads if isinstance(operand, ops.Reg)]


def _wide(typ: Type) -> Type:
    return Type(typ.kind, 2 * typ.bits)


def _source_type(name: str, typ: Type, index: int) -> Type:
    if name in ("shl", "shr") and index == 1:
        return _U32
    return _wide(typ) if name == "mad.wide" and index == 2 else typ


# -- one function per kind of row ----------------------------------------------------------------------------------


def _source(q: Qualified) -> ops.Source:
    return ops.Source(q.instruction.span, q.instruction.text)


def _guard(q: Qualified, names: Names) -> ops.Guard | None:
    guard = q.instruction.guard
    if guard is None:
        return None
    if q.dialect:
        raise at(guard.span, "the untyped dialect has no guard predicates", hint="branch around the instruction")
    return ops.Guard(operands.predicate(names, guard.name).name, guard.negated)


def _access(q: Qualified) -> tuple[Type, str, ops.Scope | None, bool, bool]:
    """Type, memory order, scope, volatile, mmio of a load or store (A23: volatile is relaxed.sys)."""
    typ = S64 if q.dialect else q.types[0]
    sem = q.get("sem") or "weak"
    if sem == "volatile":
        return typ, "relaxed", "sys", True, False
    return typ, sem, cast("ops.Scope | None", q.get("scope")), False, "mmio" in q.chosen


def _memory_operands(q: Qualified, names: Names, minimum: int, maximum: int) -> tuple[syntax.Operand, ...]:
    """The operands without the cache policy, which has no effect on the memory model and is only checked."""
    given = q.instruction.operands
    if "hint" not in q.chosen:
        operands.check_count(q, minimum, maximum)
        return given
    operands.check_count(q, minimum + 1, maximum + 1)
    operands.register(names, given[-1], "a cache policy register")
    return given[:-1]


def _proxy(q: Qualified) -> ops.Proxy:
    return cast("ops.Proxy", q.form.fixed.get("proxy", "generic"))


def _load(q: Qualified, names: Names) -> Op:
    dst, address = _memory_operands(q, names, 2, 2)
    typ, sem, scope, volatile, mmio = _access(q)
    if q.dialect and isinstance(address, syntax.Number):  # a constant is no location: the dialect's move
        constant = operands.value(q, names, address, typ)
        return ops.Alu("mov", typ, operands.destination(names, dst), (constant,), _source(q), _guard(q, names))
    target, place = operands.destination(names, dst), operands.address(q, names, address)
    guard = _guard(q, names)
    return ops.Load(
        target, place, typ, sem, scope, q.get("space"), _source(q), guard, _proxy(q), volatile=volatile, mmio=mmio
    )


def _store(q: Qualified, names: Names) -> Op:
    address, stored = _memory_operands(q, names, 2, 2)
    typ, sem, scope, volatile, mmio = _access(q)
    place, value = operands.address(q, names, address), operands.value(q, names, stored, typ)
    guard = _guard(q, names)
    return ops.Store(
        place, value, typ, sem, scope, q.get("space"), _source(q), guard, _proxy(q), volatile=volatile, mmio=mmio
    )


def _atomic(q: Qualified, names: Names) -> Op:
    returns = q.form.opcode in ("atom", "suatom")
    op = q.chosen["op"]
    count = (3 if op == "cas" else 2) + returns
    items = _memory_operands(q, names, count, count)
    typ = S64 if q.dialect else q.types[0]
    dst: ops.Reg | None = None
    if returns:
        sink = isinstance(items[0], syntax.Name) and items[0].name == "_"
        dst = None if sink else operands.destination(names, items[0])
        items = items[1:]
    address = operands.address(q, names, items[0])
    values = tuple(operands.value(q, names, item, typ) for item in items[1:])
    sem = q.get("sem") or "relaxed"
    scope = cast("ops.Scope", q.get("scope") or "gpu")
    guard = _guard(q, names)
    return ops.Atomic(
        dst, op, address, values, typ, sem, scope, q.get("space"), returns, _source(q), guard, _proxy(q)
    )


def _fence(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    sem = q.get("sem") or "acq_rel"
    return ops.Fence(sem, cast("ops.Scope", q.chosen["scope"]), _source(q), _guard(q, names))


def _membar(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    level = q.chosen["level"]
    scope = cast("ops.Scope", "gpu" if level == "gl" else level)
    return ops.Fence("sc", scope, _source(q), _guard(q, names))


def _proxy_fence(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    return ops.ProxyFence(q.chosen["kind"], _source(q), _guard(q, names))


def _barrier(q: Qualified, names: Names) -> Op:
    kind = q.chosen["kind"]
    operands.check_count(q, 2 if kind == "arrive" else 1, 2)
    items = q.instruction.operands
    barrier = operands.value(q, names, items[0], _U32)
    if isinstance(barrier, ops.Imm) and not 0 <= barrier.value <= 15:
        raise at(items[0].span, f"a CTA has the barriers 0 to 15, not {barrier.value}")
    count: ops.Operand | None = None
    if len(items) > 1:
        count = operands.value(q, names, items[1], _U32)
        if isinstance(count, ops.Imm) and (count.value <= 0 or count.value % 32):
            message = f"the number of threads at a barrier is a multiple of 32, not {count.value}"
            raise at(items[1].span, message, hint="every warp that arrives counts as 32 threads")
    return ops.Barrier("sync" if kind == "sync" else "arrive", barrier, count, None, _source(q), _guard(q, names))


def _dialect_barrier(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 3)
    items = q.instruction.operands
    instance = operands.constant(items[0], "the instance of a barrier")
    barrier = operands.value(q, names, items[1], S64) if len(items) > 1 else ops.Imm(instance)
    quorum = operands.value(q, names, items[2], S64) if len(items) > 2 else None
    for item, operand in zip(items[1:], (barrier, quorum), strict=False):
        if isinstance(operand, ops.Sym):
            raise at(item.span, f"expected a register or a constant, found the location `{operand.name}`")
    if isinstance(quorum, ops.Imm) and quorum.value <= 0:
        raise at(items[2].span, f"the quorum of a barrier is at least 1, not {quorum.value}")
    kind = q.chosen["kind"]
    return ops.Barrier("sync" if kind == "sync" else "arrive", barrier, quorum, instance, _source(q), _guard(q, names))


def _alu(q: Qualified, names: Names) -> Op:
    count = len(q.form.slots)
    operands.check_count(q, count, count)
    opcode = q.form.opcode
    if q.dialect and opcode in ("mul", "mad"):
        opcode += ".lo"
    return _make_alu(q, names, opcode, S64 if q.dialect else q.types[0])


def _wide_alu(q: Qualified, names: Names) -> Op:
    count = len(q.form.slots)
    operands.check_count(q, count, count)
    return _make_alu(q, names, f"{q.form.opcode}.{q.chosen['mode']}", q.types[0])


def _make_alu(q: Qualified, names: Names, opcode: str, typ: Type) -> Op:
    first, *rest = q.instruction.operands
    dst = operands.destination(names, first)
    if q.dialect and opcode in ("shl", "shr"):
        # A shift amount is 32 bits wide and the registers of the dialect are 64 bits wide.
        operands.constant(rest[1], "a shift amount of the untyped dialect")
    sources = tuple(operands.value(q, names, v, _source_type(opcode, typ, i)) for i, v in enumerate(rest))
    return ops.Alu(opcode, typ, dst, sources, _source(q), _guard(q, names))


def _convert(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 2, 2)
    to, frm = q.types
    dst, item = q.instruction.operands
    target, value = operands.destination(names, dst), operands.value(q, names, item, frm)
    return ops.Convert(target, value, to, frm, "sat" in q.chosen, _source(q), _guard(q, names))


def _set_predicate(q: Qualified, names: Names) -> Op:
    boolop = q.get("bool")
    count = 3 if boolop is None else 4
    operands.check_count(q, count, count)
    target, left, right, *rest = q.instruction.operands
    typ, cmp = q.types[0], q.chosen["cmp"]
    if cmp in _UNSIGNED_COMPARISONS:
        cmp, typ = _UNSIGNED_COMPARISONS[cmp], Type("u", typ.bits)
    complement: ops.Reg | None = None
    if isinstance(target, syntax.Pair):
        if target.first.name == "_":
            # Only the complement is wanted: setp.lt _|q is setp.ge q.
            cmp, target = _OPPOSITE[cmp], target.second
        else:
            if target.second.name != "_":
                complement = operands.destination(names, target.second)
                if target.second.name == target.first.name:
                    raise at(target.span, "the two destinations of `setp` must differ")
            target = target.first
    dst = operands.destination(names, target)
    a, b = operands.value(q, names, left, typ), operands.value(q, names, right, typ)
    c: ops.Reg | None = None
    negated = False
    if rest:
        negated = isinstance(rest[0], syntax.Negated)
        item = rest[0].name if isinstance(rest[0], syntax.Negated) else rest[0]
        c = operands.predicate(names, item)
    return ops.SetPredicate(cmp, typ, dst, complement, a, b, _source(q), _guard(q, names), boolop, c, negated)


def _select(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 4, 4)
    dst, left, right, p = q.instruction.operands
    typ = q.types[0]
    target = operands.destination(names, dst)
    a, b = operands.value(q, names, left, typ), operands.value(q, names, right, typ)
    return ops.Select(typ, target, a, b, operands.predicate(names, p), _source(q), _guard(q, names))


def _branch(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 1, 1)
    target = operands.label(names, q.instruction.operands[0])
    return ops.Branch(target, None, _source(q), _guard(q, names))


def _compare_branch(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 3, 3)
    left, right, label = q.instruction.operands
    a, b = operands.value(q, names, left, S64), operands.value(q, names, right, S64)
    condition = ops.Compare(q.form.fixed["cmp"], S64, a, b)
    return ops.Branch(operands.label(names, label), condition, _source(q), _guard(q, names))


def _exit(q: Qualified, names: Names) -> Op:
    operands.check_count(q, 0, 0)
    return ops.Exit(_source(q), _guard(q, names))


_MAKERS: Mapping[str, Callable[[Qualified, Names], Op]] = {
    "load": _load,
    "store": _store,
    "atomic": _atomic,
    "fence": _fence,
    "membar": _membar,
    "proxy_fence": _proxy_fence,
    "barrier": _barrier,
    "dialect_barrier": _dialect_barrier,
    "alu": _alu,
    "wide": _wide_alu,
    "setp": _set_predicate,
    "selp": _select,
    "cvt": _convert,
    "branch": _branch,
    "compare_branch": _compare_branch,
    "exit": _exit,
}
