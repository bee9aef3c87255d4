"""Instructions that only compute registers, and those that ask where an address lies (PTX ISA 9.7.1 to .3,
9.7.7, 9.7.9, 9.7.10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from ptxmm.events.explicit.machine import ADDRESS, PRED, U32, Effects, Machine
from ptxmm.events.explicit.values.node import Node
from ptxmm.program.shared.windows import converted
from ptxmm.program.test import MemoryObject, Placement
from ptxmm.ptx.ops import (
    Alu,
    AluPair,
    Convert,
    ConvertAddress,
    CtaRank,
    IsSpace,
    Mapa,
    Nothing,
    Opaque,
    Operand,
    Pack,
    PendingCount,
    Select,
    SetPredicate,
    Type,
    Unpack,
)
from ptxmm.ptx.ops.signatures import source_types

PENDING_BITS = 20
"""A state of an mbarrier holds the pending count in its low bits, and the phase above."""

_MOST_RANKS = 16
_PRODUCT_SUMS = ("mad.lo", "mad.hi", "mad.wide")

_DIVISIONS = ("div", "rem")
_LAST_BIT = 31

Assigning = Alu | AluPair | Convert | SetPredicate | Select | Pack | Unpack | PendingCount | Nothing | Opaque
"""Instructions that assign registers and do nothing else, so that an open guard needs no decision."""


def assign(machine: Machine, op: Assigning) -> None:
    """What ``op`` assigns."""
    match op:
        case Alu():
            alu(machine, op)
        case AluPair():
            alu_pair(machine, op)
        case Convert():
            convert(machine, op)
        case SetPredicate():
            set_predicate(machine, op)
        case Select():
            select(machine, op)
        case Pack():
            pack(machine, op)
        case Unpack():
            unpack(machine, op)
        case PendingCount():
            pending_count(machine, op)
        case Nothing():
            nothing(machine, op)
        case Opaque():
            opaque(machine, op)
        case _:
            assert_never(op)


def alu(machine: Machine, op: Alu) -> None:
    """Arithmetic and logic."""
    types = source_types(op.op, op.type)
    sources = [machine.operand(s, t) for s, t in zip(op.sources, types, strict=True)]
    if op.op == "mov":
        node = sources[0]
    elif op.op in _PRODUCT_SUMS:
        # In two steps, so that the rewrites see the product: r0 * 0 + 1 does not depend on r0.
        factors = machine.expressions.operation("mul" + op.op[3:], op.type, *sources[:2])
        node = machine.expressions.operation("add", types[2], factors, sources[2])
    else:
        node = machine.expressions.operation(op.op, op.type, *sources)
    _check_defined(machine, op, sources)
    machine.assign(op.dst, node)


def alu_pair(machine: Machine, op: AluPair) -> None:
    """Two results of the same sources: a carry, or the predicate of lop3."""
    types = source_types(op.second, op.type)
    sources = [machine.operand(s, t) for s, t in zip(op.sources, types, strict=True)]
    count = len(source_types(op.op, op.type))
    node = machine.expressions.operation(op.op, op.type, *sources[:count])
    second = machine.expressions.operation(op.second, op.type, *sources)
    if op.dst is not None:
        machine.assign(op.dst, node)
    machine.assign(op.predicate, second)


def _check_defined(machine: Machine, op: Alu, sources: list[Node]) -> None:
    """Division by zero gives an unspecified value (9.7.1.8), fns beyond the mask is undefined (9.7.1.17)."""
    expressions = machine.expressions
    if op.op in _DIVISIONS and op.type.kind != "f":
        wrong, what = expressions.operation("eq", op.type, sources[1], expressions.constant(0)), "division by zero"
    elif op.op == "fns":
        wrong = expressions.operation("gt", U32, sources[1], expressions.constant(_LAST_BIT))
        what = "fns with a base above 31"
    else:
        return
    if machine.guard is not None:
        wrong = expressions.operation("and", PRED, machine.guard, wrong)
    if machine.decide(wrong, (0, 1)):
        machine.undefined(what)


def convert(machine: Machine, op: Convert) -> None:
    """``cvt``."""
    value = machine.operand(op.value, op.frm)
    node = machine.expressions.convert(value, op.to, op.frm, op.saturate, op.rounding, op.flush)
    machine.assign(op.dst, node)


def set_predicate(machine: Machine, op: SetPredicate) -> None:
    """``setp``: one or two predicates."""
    expressions = machine.expressions
    node = expressions.operation(op.cmp, op.type, machine.operand(op.a, op.type), machine.operand(op.b, op.type))
    results = [node] if op.complement is None else [node, expressions.operation("not", PRED, node)]
    if op.boolop is not None and op.c is not None:
        c = machine.register(op.c.name)
        c = expressions.operation("not", PRED, c) if op.c_negated else c
        results = [expressions.operation(op.boolop, PRED, r, c) for r in results]
    machine.assign(op.dst, results[0])
    if op.complement is not None:
        machine.assign(op.complement, results[1])


def select(machine: Machine, op: Select) -> None:
    """``selp``."""
    a, b = machine.operand(op.a, op.type), machine.operand(op.b, op.type)
    machine.assign(op.dst, machine.expressions.select(machine.register(op.predicate.name), a, b))


def pack(machine: Machine, op: Pack) -> None:
    """``mov`` from a vector to a scalar."""
    width = op.type.bits // len(op.sources)
    parts = [(machine.operand(s, Type("b", width)), 0, width, i * width) for i, s in enumerate(op.sources)]
    machine.assign(op.dst, machine.expressions.fields(parts))


def unpack(machine: Machine, op: Unpack) -> None:
    """``mov`` from a scalar to a vector."""
    width = op.type.bits // len(op.dst)
    value = machine.operand(op.value, op.type)
    nodes = [machine.expressions.fields([(value, i * width, width, 0)]) for i in range(len(op.dst))]
    for register, node in zip(op.dst, nodes, strict=True):
        if register is not None:
            machine.assign(register, node)


def pending_count(machine: Machine, op: PendingCount) -> None:
    """``mbarrier.pending_count``: the pending count in a state."""
    machine.assign(op.dst, machine.expressions.fields([(machine.operand(op.state, ADDRESS), 0, PENDING_BITS, 0)]))


def nothing(machine: Machine, op: Nothing) -> None:
    """An instruction without effect on memory; what it gives has no meaning here."""
    if op.dst is not None:
        machine.assign(op.dst, machine.expressions.constant(0))


def opaque(machine: Machine, op: Opaque) -> None:
    """A function that is not worked out: 0 stands for its result, which nothing sees (``unseen.open_results``); or
    predicates that may be either."""
    reads = 0
    for source, type_ in zip(op.sources, op.given, strict=True):
        reads |= machine.expressions.settled(machine.operand(source, type_)).reads
    for number, register in enumerate((op.dst, op.second)):
        if register is not None:
            value = machine.either(machine.identity(0, number)) if op.free else 0
            result = machine.expressions.constant(value)
            machine.assign(register, machine.expressions.joined(result, reads, machine.width(register.name)))


# Where addresses lie.


def mapa(machine: Machine, op: Mapa) -> None:
    """``mapa``: the same variable in another CTA of the cluster; 0, outside every object, if there is none."""
    address, value = _known(machine, op.value, op.type, "address of this mapa")
    address = _virtual(machine, address, op)
    rank, number = _known(machine, op.rank, U32, "CTA of this mapa")
    found = machine.program.locate(address, 1)
    result = 0
    if found is not None:
        target = in_cta(machine.objects, found.item, rank)
        start = None if target is None else target.mapped if _takes_window(op) else target.address
        result = 0 if start is None else start + found.offset
    _given(machine, op, result & ((1 << op.type.bits) - 1), value, number)


def convert_address(machine: Machine, op: ConvertAddress) -> None:
    """``cvta``: the generic address for one in a window, or the other way round."""
    address, value = _known(machine, op.value, op.type, "address of this cvta")
    placement, thread = machine.thread.placement, machine.program.thread
    _given(machine, op, converted(machine.program.test.objects, placement, thread, op, address), value)


def cta_rank(machine: Machine, op: CtaRank) -> None:
    """``getctarank``: the rank of the CTA that a shared address lies in; 0 for any other address."""
    address, value = _known(machine, op.value, op.type, "address of this getctarank")
    address = _virtual(machine, address, op)
    found = machine.program.locate(address, 1)
    owner = None if found is None else found.item.owner
    _given(machine, op, 0 if owner is None else owner[3] or 0, value)


def is_space(machine: Machine, op: IsSpace) -> None:
    """``isspacep``: whether an address lies in a state space."""
    address, value = _known(machine, op.value, ADDRESS, "address of this isspacep")
    found = machine.program.locate(address, 1)
    result = found is not None and lies_in(found.item, op.space, machine.thread.placement)
    _given(machine, op, int(result), value)


def in_cta(objects: Mapping[str, MemoryObject], item: MemoryObject, rank: int) -> MemoryObject | None:
    """The object of the same name as the shared ``item`` in the CTA ``rank`` of its cluster, or None.

    The rank of a CTA is its number. A CTA that is no part of a named cluster is the only one of its own.
    """
    if item.owner is None:
        return None
    if item.owner[2] is None:
        return item if rank == (item.owner[3] or 0) else None
    for other in objects.values():
        if (
            other.name == item.name
            and other.virtual == other.key
            and other.owner == (*item.owner[:3], rank)
            and rank < _MOST_RANKS
        ):
            return other
    return None


def lies_in(item: MemoryObject, space: str, placement: Placement) -> bool:
    """Whether ``item`` lies in the state space ``space`` as a thread at ``placement`` sees it (PTX ISA 5.1)."""
    if not space.startswith("shared"):
        return item.space == space
    if item.space != "shared" or item.owner is None or placement.host:
        return False
    if placement.path == item.owner:
        return True
    return space == "shared::cluster" and placement.cluster is not None and placement.path[:3] == item.owner[:3]


def _virtual(machine: Machine, address: int, op: Mapa | CtaRank) -> int:
    """The virtual address that ``op`` is about."""
    return machine.program.from_window(address, "shared::cluster" if _takes_window(op) else None)


def _takes_window(op: Mapa | CtaRank) -> bool:
    """Whether ``op`` is about addresses in the window of shared memory: it says so, or they have 32 bits."""
    return op.space is not None or op.type.bits == U32.bits


def _known(machine: Machine, operand: Operand, type_: Type, what: str) -> tuple[int, Node]:
    node = machine.expressions.settled(machine.operand(operand, type_))
    return machine.decide(node, None, what), node


def _given(machine: Machine, op: Mapa | CtaRank | IsSpace | ConvertAddress, result: int, *sources: Node) -> None:
    """Assign a result that was found from the values of ``sources``; it depends on the reads in them."""
    expressions = machine.expressions
    node = expressions.constant(result)
    if not all(s.constant for s in sources):
        reads = 0
        for s in sources:
            reads |= s.reads
        node = expressions.joined(node, reads, machine.width(op.dst.name))
    machine.assign(op.dst, node)


EFFECTS: Effects = {
    Mapa: mapa,
    ConvertAddress: convert_address,
    CtaRank: cta_rank,
    IsSpace: is_space,
    Opaque: opaque,
}
