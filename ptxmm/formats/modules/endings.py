"""Loops that only compute: does each of them end?

Where nothing that matters is made of such a loop it may be left out, if it ends. That is known of one which counts by
one up to or down to a bound, or shifts a register to the right until that is 0; and of one that waits for time to pass.
Of any other one the launch decides it, which is tried, or memory, of which nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptxmm.formats.modules.flow import matters
from ptxmm.formats.modules.special import CLOCKS
from ptxmm.program.graph import Graph, dominates, dominators, makers, natural_loops, reach
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read

_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_TIME = frozenset(f"sreg {name}" for name in CLOCKS)


def doubtful(body: Sequence[ops.Op], graph: Graph) -> dict[int, bool]:
    """The branches by which loops are left that only compute, and of which it is not known that they end; whether
    that depends on more than the launch."""
    loops: dict[int, set[int]] = {}
    sources: dict[int, list[int]] = {}
    for source, header, nodes in natural_loops(graph):
        loops.setdefault(header, set()).update(nodes)
        sources.setdefault(header, []).append(source)
    loops = {h: nodes for h, nodes in loops.items() if not any(_matters(body[pc]) for pc in nodes)}
    if not loops:
        return {}
    made_by, dominator = makers(body), dominators(graph)
    given = [[maker for name in names_read(op) for maker in made_by.get(name, ())] for op in body]
    found: dict[int, bool] = {}
    for header, nodes in loops.items():
        inner = set[int]().union(*(other for h, other in loops.items() if h != header and h in nodes))
        every = {
            pc for pc in nodes - inner if all(dominates(dominator, pc, source) for source in sources[header])
        }  # what each round executes once
        leaving = [
            pc for pc in nodes if isinstance(body[pc], ops.Branch | ops.Exit) and not nodes.issuperset(graph.after[pc])
        ]
        if not any(pc in every and _ends(body, graph, pc, nodes, every, made_by) for pc in leaving):
            made = {pc: reach(given, [pc]) for pc in leaving}
            if not any(_TIME.intersection(names_read(body[at])) for pcs in made.values() for at in pcs):
                found |= {pc: any(matters(body[at]) for at in pcs if at != pc) for pc, pcs in made.items()}
    return found


def _matters(op: ops.Op) -> bool:
    return matters(op) and not isinstance(op, ops.Branch | ops.Exit)


def _ends(
    body: Sequence[ops.Op], graph: Graph, pc: int, nodes: set[int], every: set[int], made_by: Mapping[str, list[int]]
) -> bool:
    """Whether the branch at ``pc`` leaves a loop of ``nodes`` at last; ``every``: what is executed in each round."""
    guard = body[pc].guard
    inside = [] if guard is None else [at for at in made_by.get(guard.register, ()) if at in nodes]
    if guard is None or len(inside) != 1 or inside[0] not in every or not isinstance(body[pc], ops.Branch):
        return False
    test = body[inside[0]]
    if not isinstance(test, ops.SetPredicate) or test.guard or test.boolop or test.dst.name != guard.register:
        return False
    branch = body[pc]
    jumps = isinstance(branch, ops.Branch) and branch.target in nodes
    stays = test.cmp if jumps != guard.negated else _NEGATED.get(test.cmp, "")
    for counter, bound, relation in ((test.a, test.b, stays), (test.b, test.a, _MIRRORED.get(stays, stays))):
        if isinstance(bound, ops.Reg) and any(at in nodes for at in made_by.get(bound.name, ())):
            continue
        changes = [at for at in made_by.get(counter.name, ()) if at in nodes] if isinstance(counter, ops.Reg) else []
        if len(changes) == 1 and changes[0] in every and isinstance(counter, ops.Reg):
            step = _step(body[changes[0]], counter.name, test.type.bits)
            if (relation, step) in (("ne", 1), ("ne", -1), ("lt", 1), ("gt", -1)):
                return True
            zero = isinstance(bound, ops.Imm) and bound.value == 0
            unsigned = test.type.kind != "s"
            if step == 0 and zero and (relation == "ne" or (relation == "gt" and unsigned)):
                return True
    return False


def _step(op: ops.Op, name: str, bits: int) -> int | None:
    """By what an instruction changes a register: 0 if it shifts that to the right; None if it does something else."""
    if not isinstance(op, ops.Alu) or op.guard is not None or len(op.sources) != 2:
        return None
    if op.type.bits != bits or op.type.kind not in ("b", "s", "u"):
        return None
    one, other = op.sources
    if op.op == "add" and isinstance(one, ops.Imm):
        one, other = other, one
    if not isinstance(one, ops.Reg) or one.name != name or not isinstance(other, ops.Imm):
        return None
    value = other.value - (1 << bits) if other.value >> (bits - 1) == 1 else other.value
    match op.op:
        case "add" if value in (1, -1):
            return value
        case "sub" if value in (1, -1):
            return -value
        case "shr" if op.type.kind != "s" and value > 0:
            return 0
    return None
