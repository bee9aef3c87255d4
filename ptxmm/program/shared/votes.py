"""Loops of a warp in which each lane goes round until it is done, and all leave by a vote when every one is.

``do { if (!done && try_lock()) { ...; done = 1; } } while (__ballot_sync(here, done) != here);`` keeps the lanes of a
warp together, so that none waits for a lane that the warp does not execute. With the flag told apart
(``formats.modules.flags``) it is two loops: in one a lane tries, votes no, and goes round whatever the others say; in
the other one it votes yes, and goes round until all say so. Apart from the votes both are spin loops
(``control.spin_loops``). A round of one lane can't be taken out alone, as others meet its vote, but all can be:

- All lanes of the mask have such loops, and are equally often at other exchanges of the warp before (``_Lane.alike``).
  So the k-th votes in the loops meet, or go without a lane that has exited. None comes to another exchange but by the
  yes-loop (``_apart``), which is left just if all have said yes, so by all of the mask in the same round.
- Let an execution be given. A lane that is done has said no some times, each time after a round that only looked:
  ``failing.fails`` says that no ``cas`` of it succeeded, and no exchange changed what it read. Take these rounds out,
  and all rounds but one of the yes-loops. Then each lane tries once, succeeds with the same reads, and says yes once;
  the votes all meet in one round, and give what those of the last round gave. A vote orders nothing (PTX ISA
  9.7.14.9), so all relations of what is left are as they were, or less. That holds for what depends on the votes too
  (8.10.4): what is behind the loop depends, before and now, on how each lane came to say yes, and what is before that
  on no vote.
- For a data race, or an access outside of every object, one round that looks may count, the a-th of its lane. Let all
  who are done in round a or before do so in the first round, and all others go through what was their round a, or
  a later one if theirs is to be kept; they are done in the second. A lane that is done never or is not seen to
  looks once more. What the second round depends on the votes of the first for, it depended on before. Two lanes of a
  warp do not race by two such rounds: what they write there is but by atomics, and their loads are strong
  (``_looks``) and in the same CTA.

So one round that goes on is enough of all of these loops; none of them is taken for short if one is not (``_group``).
That rests on the axioms forbidding cycles and pairs alone, and on a ``cas`` that fails being no write.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

from msgspec import Struct

from ptxmm.program.accesses import Range, overlap
from ptxmm.program.graph import Graph, dominates, dominators, graph_of, makers, natural_loops, reach, strong_components
from ptxmm.program.shared.collective import Rounds
from ptxmm.program.shared.control import NOTHING, spin_loops
from ptxmm.program.shared.failing import fails
from ptxmm.program.shared.idempotent import range_of
from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written

_EXCHANGES = (ops.WarpExchange, ops.WarpBarrier)
_VOTES = ("vote.all", "vote.any", "vote.ballot")


class _Lane(Struct, frozen=True):
    """A thread with such loops: the branches ``back`` that close them, the ``mask`` of their votes (None: that of an
    ``activemask``); ``alike``: what all lanes that meet have in common."""

    back: frozenset[int]
    mask: int | None
    alike: Hashable


class _Vote(Struct, frozen=True):
    """A vote at ``pc`` and the branch behind it: where a thread is ``on`` if it goes round, and ``out`` if not.
    ``form``: how all say yes; ``yes``: whether the thread does."""

    pc: int
    branch: int
    on: int
    out: int
    form: Hashable
    yes: bool


def short_votes(test: Test, idempotent: Sequence[frozenset[int]], spins: int) -> tuple[Rounds, ...]:
    """For each thread the branches back of such loops, of which ``spins`` rounds that go on are enough;
    ``idempotent``: the atomics of ``idempotent_atomics``."""
    found: list[Rounds] = [NOTHING for _ in test.threads]
    warps: dict[Hashable, list[int]] = {}
    for number, thread in enumerate(() if test.dialect else test.threads):
        p = thread.placement
        if any(isinstance(op, ops.WarpExchange) and op.op in _VOTES for op in thread.body):
            warps.setdefault(number if p.host or p.cta is None or p.warp is None else p, []).append(number)
    for members in warps.values():
        beside = [n for n, thread in enumerate(test.threads) if thread.placement == test.threads[members[0]].placement]
        if len(members) > 1 and beside == members:
            for number, lane in _group(test, members, idempotent):
                found[number] = dict.fromkeys(lane.back, spins)
    return tuple(found)


def _group(test: Test, members: list[int], idempotent: Sequence[frozenset[int]]) -> list[tuple[int, _Lane]]:
    """The lanes of a warp, if all have such loops and those of a mask have them alike; else none."""
    lanes: list[_Lane] = []
    for number in members:
        lane = _lane(test, number, idempotent[number])
        if lane is None:
            return []
        lanes.append(lane)
    for number, lane in enumerate(lanes):
        named = range(len(lanes)) if lane.mask is None else [n for n in range(len(lanes)) if lane.mask >> n & 1]
        if number not in named or any((lanes[n].mask, lanes[n].alike) != (lane.mask, lane.alike) for n in named):
            return []
    return list(zip(members, lanes, strict=True))


def _lane(test: Test, number: int, idempotent: frozenset[int]) -> _Lane | None:
    thread = test.threads[number]
    body, graph = thread.body, graph_of(thread.body)
    reached, component = reach(graph.after, [0]), strong_components(graph)
    sites = [pc for pc in sorted(reached - {graph.end}) if isinstance(body[pc], _EXCHANGES)]
    turning = [pc for pc in sites if pc in reach(graph.after, graph.after[pc])]
    votes = [_vote(body, graph, pc, component) for pc in turning]
    if not votes:
        return None
    met = [vote for vote in votes if vote is not None]
    kinds = {(_mask(body, body[vote.pc]), vote.form) for vote in met}
    if len(met) < len(votes) or len(kinds) != 1 or not _apart(body, graph, sites, met):
        return None
    ((mask, form),) = kinds
    before = tuple(
        (type(op), getattr(op, "op", None), _mask(body, op))
        for pc in sites
        if not reach(graph.after, [pc]).isdisjoint(turning) and pc not in turning and (op := body[pc])
    )
    if mask is None or any(of is None for *_, of in before):
        return None
    known, written = known_addresses(thread, test.objects), [frozenset(names_written(op)) for op in body]
    closed: set[int] = set()
    spins = spin_loops(thread, graph, written, idempotent.union(turning))
    for vote in met:
        inside = {pc for pc in reached if component[pc] == component[vote.pc]}
        loops = [(back, header, loop) for back, header, loop in natural_loops(graph) if vote.pc in loop]
        if {pc for *_, loop in loops for pc in loop} != inside or len({header for _, header, _ in loops}) != 1:
            return None
        header = loops[0][1]
        onward = inside - {vote.branch} if vote.yes else reach(graph.after, [vote.on], header)
        if not all(inside.issuperset(graph.after[pc]) for pc in onward):
            return None
        if vote.yes and not all(isinstance(body[pc], (*ops.COMPUTING, ops.Branch)) for pc in inside - {vote.pc}):
            return None
        returned = {
            pc: _changed(test, body[pc], known) for pc in inside & idempotent if isinstance(body[pc], ops.Atomic)
        }
        if not all(_looks(body[pc]) for pc in inside - {vote.pc, *returned}) or None in returned.values():
            return None
        changes = {pc: values for pc, values in returned.items() if values is not None}
        if not all(back in spins and fails(body, header, back, loop, changes) for back, _, loop in loops):
            return None
        closed.update(back for back, *_ in loops)
    return _Lane(frozenset(closed), mask if mask >= 0 else None, (form, before))


def _apart(body: Sequence[ops.Op], graph: Graph, sites: Sequence[int], votes: Sequence[_Vote]) -> bool:
    """Whether a thread comes to each of its other exchanges once before all of the ``votes``, or behind them by leaving
    a loop in which it says yes."""
    met, dominator = {vote.pc for vote in votes}, dominators(graph)
    leaving = {vote.branch: vote.on for vote in votes}
    staying = [(leaving[pc],) if pc in leaving else targets for pc, targets in enumerate(graph.after)]
    early = [pc for pc in sites if pc not in met and pc in reach(staying, [0])]
    return all(dominates(dominator, pc, vote) for pc in early for vote in met) and not (
        met & reach(graph.after, [vote.out for vote in votes if vote.yes])
    )


def _vote(body: Sequence[ops.Op], graph: Graph, pc: int, component: Sequence[int]) -> _Vote | None:
    """The vote at ``pc`` of a constant, which alone decides the branch behind it."""
    op = body[pc]
    if not (isinstance(op, ops.WarpExchange) and op.op in _VOTES) or op.guard or op.dst is None or op.absent:
        return None
    said, mask = op.operands
    at, way = pc + 1, [pc]
    while at < graph.end and not (isinstance(body[at], ops.Branch) and body[at].guard is not None):
        if not isinstance(body[at], (*ops.COMPUTING, ops.Branch)) or at in way:
            return None
        way.append(at)
        at = graph.after[at][0]
    branch = body[at] if at < graph.end else None
    if not isinstance(branch, ops.Branch) or branch.guard is None or branch.condition is not None:
        return None
    if not isinstance(said, ops.Imm):
        return None
    name = branch.guard.register
    made = [node for node in way if name in names_written(body[node])]
    given = bool(said.value) != op.negated
    if op.op != "vote.ballot":
        # All say yes: ``vote.all`` of what is true, ``vote.any`` of what is false.
        every = op.op == "vote.all"
        if made != [pc]:
            return None
        form: Hashable = op.op
        yes, taken = given == every, every == branch.guard.negated
    else:
        if len(made) != 1 or [node for node in way if op.dst.name in names_written(body[node])] != [pc]:
            return None
        match body[made[0]]:
            case ops.SetPredicate(cmp="eq" | "ne" as cmp, a=a, b=b, guard=None, boolop=None) as test if (
                test.dst.name == name and test.type.bits == 32 and test.type.kind in "bus" and op.dst in (a, b)
            ):
                other = b if a == op.dst else a
            case _:
                return None
        if other == ops.Imm(0):
            form, yes = "none", not given
        elif other == mask or _everyone(body, graph, other, op):
            form, yes = ("mask" if other == mask else "ballot"), given
        else:
            return None
        taken = (cmp == "ne") != branch.guard.negated
    on, out = (branch.target, at + 1) if taken else (at + 1, branch.target)
    if component[on] != component[pc] or component[out] == component[pc]:
        return None
    return _Vote(pc, at, on, out, form, yes)


def _everyone(body: Sequence[ops.Op], graph: Graph, operand: ops.Operand, vote: ops.WarpExchange) -> bool:
    """Whether ``operand`` is what a ballot before gave in which all lanes of the ``vote`` said yes."""
    made = makers(body).get(operand.name, []) if isinstance(operand, ops.Reg) else []
    if len(made) != 1 or made[0] in reach(graph.after, graph.after[made[0]]):
        return False
    op = body[made[0]]
    return (
        isinstance(op, ops.WarpExchange)
        and (op.op, op.guard, op.operands[1:]) == (vote.op, None, vote.operands[1:])
        and isinstance(op.operands[0], ops.Imm)
        and bool(op.operands[0].value) != op.negated
        and not op.absent
    )


def _mask(body: Sequence[ops.Op], op: ops.Op) -> int | None:
    """The mask of an exchange; -1: it is that of the only ``activemask``; None: it is not known."""
    active = [pc for pc, other in enumerate(body) if isinstance(other, ops.WarpExchange) and other.op == "activemask"]
    if isinstance(op, ops.WarpExchange) and op.op == "activemask":
        return -1 if [op] == [body[pc] for pc in active] and op.guard is None else None
    mask = op.mask if isinstance(op, ops.WarpBarrier) else op.operands[-1] if isinstance(op, ops.WarpExchange) else None
    if isinstance(mask, ops.Imm):
        return mask.value % (1 << 32)
    made = makers(body).get(mask.name) if isinstance(mask, ops.Reg) else None
    return -1 if made is not None and len(made) == 1 and made == active and body[made[0]].guard is None else None


def _looks(op: ops.Op) -> bool:
    """Whether ``op`` may be in a round: of loads the strong ones, and those of what nobody writes."""
    if isinstance(op, ops.Load):
        return op.proxy == "generic" and not op.mmio and (op.sem != "weak" or op.space in ("const", "param"))
    return isinstance(op, (*ops.COMPUTING, ops.Branch, ops.Fence)) or (isinstance(op, ops.Atomic) and op.op == "cas")


def _changed(test: Test, op: ops.Op, known: Mapping[str, ops.Sym]) -> Collection[int] | None:
    """What an atomic operation may return that it changes, as far as the constants tell that threads write there; None
    if that is not known."""
    where = range_of(op, known, test.objects)
    if where is None or not isinstance(op, ops.Atomic) or op.op != "exch" or op.packed != 1:
        return None
    values = _held(test, where)
    new = op.operands[0][0]
    if values is None or not isinstance(new, ops.Imm):
        return None
    return values - {new.value % (1 << op.type.bits)}


def _held(test: Test, where: Range) -> set[int] | None:
    """The values that the bytes ``where`` of an idempotent atomic, which all who access them access whole, may have:
    that at first, and what is stored; None if that is not known."""
    name, start, size = where
    item = test.objects[name]
    if item.unknown or item.tensormap is not None or item.type.bytes != size or start % size:
        return None
    found = {item.initial[start // size] if start // size < len(item.initial) else 0}
    for thread in test.threads:
        known = known_addresses(thread, test.objects)
        for op in thread.body:
            place = None if isinstance(op, ops.Load) else range_of(op, known, test.objects)
            if place is None or not overlap(place, where):
                continue
            match op:
                case (
                    ops.Store(values=(ops.Imm(value),))
                    | ops.Atomic(op="exch", packed=1, operands=((ops.Imm(value),),))
                    | ops.Atomic(op="cas", packed=1, operands=((_, ops.Imm(value)),))
                ):
                    found.add(value % (1 << 8 * size))
                case _:
                    return None
    return found
