"""Loops in which the threads of a CTA, or of a warp, wait together: in each round they meet at a barrier with a
reduction, or in a vote, and all go on by its result.

``while (__syncthreads_and(state != turn)) if (threadIdx.x == 0) state = load_acquire(flag);`` spins as ``while
(load_acquire(flag) != turn);`` does. A round can't be taken out of one thread, as the others meet it at the barrier,
but it can be taken out of all of them, with the phase of the barrier. Where they go on together, and a round has
nothing else but what may be in a round of a spin loop (``control.spin_loops``), what is left is an execution with the
same final state:

- All threads of the CTA come to the barrier of the first round equally often before (``before``), go round or leave
  by the same function of the same result (``_decides``), and don't come back. So the phases of the barrier are those of
  the rounds. A thread that has exited before takes no part in any (9.7.14.1). So it is with all the lanes of a warp,
  and whatever they exchange.
- Some threads have their first rounds before the loop (``_peeled``), as these differ in what is known of them. These
  rounds stay: one is taken out in which all threads are in their loops.
- The round is that from the header, or from the branch that goes on, back to there, where no register counts that the
  loop writes. With the phase go the arrivals and waits in it and the orders that they make, and axioms forbid less.
- A race has a write, which is not in such a round; so one round that goes on is enough to show one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from msgspec import Struct

from ptxmm.program.graph import Graph, conditional, dominates, dominators, graph_of, live_at, natural_loops, reach
from ptxmm.program.test import Test, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.isa import computation, names_read, names_written

_BARRIERS = (ops.Barrier, ops.BarrierReduction)
_EXCHANGES = (ops.WarpExchange, ops.WarpBarrier)
_Kinds = tuple[type, ...]
_VOTES = ("vote.all", "vote.any", "vote.uni", "vote.ballot")
_ALL_LANES = (1 << 32) - 1
_LOOKS = (*ops.COMPUTING, ops.Fence, ops.Load, ops.Branch)

Rounds = Mapping[int, int]
"""For the branch back of each loop in which a thread waits with others, how often it need be taken."""


class _Loop(Struct, frozen=True):
    """A loop closed by the branch ``back`` to ``header``; ``barrier``: what all threads that wait together have alike.
    ``whole``: no register that it writes counts at its header. ``peeled``: how many rounds come before it."""

    back: int
    header: int
    barrier: Hashable
    whole: bool
    peeled: int


def collective(test: Test, spins: int) -> tuple[Rounds, ...]:
    """For each thread its loops of this kind; ``spins`` rounds of theirs that go on are enough, or one more, where the
    last one begins with what the one before it has read, and those that other threads have before their loops."""
    nothing: tuple[Rounds, ...] = ({},) * len(test.threads)
    if test.dialect or not any(_reduces(op) for thread in test.threads for op in thread.body):
        return nothing
    found: list[dict[int, int]] = [{} for _ in test.threads]
    for kinds, members in _groups(test):
        loops = [_loop(test.threads[number], kinds) for number in members]
        first = loops[0]
        if first is None or any(loop is None or loop.barrier != first.barrier for loop in loops):
            continue
        known = [loop for loop in loops if loop is not None]
        rounds = spins if all(loop.whole for loop in known) else spins + 1
        most = max(loop.peeled for loop in known)
        for number, loop in zip(members, known, strict=True):
            found[number][loop.back] = rounds + most - loop.peeled
    return tuple(found)


def _groups(test: Test) -> Iterator[tuple[_Kinds, list[int]]]:
    """The threads of each CTA and of each warp, and in which instructions they come together."""
    groups: dict[tuple[_Kinds, Hashable], list[int]] = {}
    for number, thread in enumerate(test.threads):
        p = thread.placement
        cta = number if p.host or p.cta is None else p.path
        groups.setdefault((_BARRIERS, cta), []).append(number)
        groups.setdefault((_EXCHANGES, (cta, number if p.warp is None else p.warp, "warp")), []).append(number)
    return ((kinds, members) for (kinds, _), members in groups.items())


def _loop(thread: Thread, kinds: _Kinds) -> _Loop | None:
    """The only loop of a thread with an instruction of ``kinds``, if it is one in which threads may wait together."""
    body = thread.body
    sites = [pc for pc, op in enumerate(body) if isinstance(op, kinds)]
    if any(not constant(body[pc]) for pc in sites):
        return None
    graph = graph_of(body)
    for pc, header, inside in natural_loops(graph):
        if header <= pc and inside.intersection(sites):
            return _waits(thread, graph, dominators(graph), pc, header, inside, sites)
    return None


def constant(op: ops.Op) -> bool:
    """Whether all threads of the CTA, or of the warp, come together at ``op``."""
    if op.guard is not None:
        return False
    match op:
        case (
            ops.Barrier(kind="sync", barrier=ops.Imm(), count=None)
            | ops.BarrierReduction(barrier=ops.Imm(), count=None)
        ):
            return True
        case ops.WarpBarrier(mask=mask) | ops.WarpExchange(operands=(*_, mask)):
            return mask == ops.Imm(_ALL_LANES)
    return False


def _reduces(op: ops.Op) -> bool:
    """Whether all threads that come together at ``op`` get the same result."""
    return isinstance(op, ops.BarrierReduction) or (isinstance(op, ops.WarpExchange) and op.op in _VOTES)


def _only_looks(op: ops.Op) -> bool:
    """Whether ``op`` may be in a round beside the barrier."""
    return isinstance(op, _LOOKS) and not (isinstance(op, ops.Load) and (op.proxy != "generic" or op.mmio))


def _waits(
    thread: Thread,
    graph: Graph,
    dominator: dict[int, int],
    back: int,
    header: int,
    inside: set[int],
    sites: Sequence[int],
) -> _Loop | None:
    body = thread.body
    met = [pc for pc in sites if pc in inside]
    branches = [pc for pc in inside if conditional(body[pc])]
    if len(met) != 1 or len(branches) != 1 or not all(_only_looks(body[pc]) for pc in inside - {met[0]}):
        return None
    barrier, branch = body[met[0]], branches[0]
    going_on = [pc for pc in graph.after[branch] if pc in inside]
    decides = _decides(body, inside, met[0], branch, going_on)
    if not _reduces(barrier) or len(going_on) != 1 or decides is None:
        return None
    number, op = getattr(barrier, "barrier", None), getattr(barrier, "op", None)
    same = [pc for pc in sites if getattr(body[pc], "barrier", None) == number]
    first = _peeled(body, graph, dominator, header, same, (op, decides))
    phases = before(graph, dominator, header, inside, same, first)
    if phases is None:
        return None
    written = {name for pc in inside for name in names_written(body[pc])}
    everything = frozenset(thread.registers).union(name for op in body for name in names_written(op))
    entering = live_at(body, graph, everything)
    if entering[going_on[0]] & written:
        return None
    return _Loop(back, header, (op, number, phases, decides), not entering[header] & written, len(first))


def _peeled(
    body: Sequence[ops.Op],
    graph: Graph,
    dominator: dict[int, int],
    header: int,
    sites: Sequence[int],
    alike: tuple[Hashable, ...],
) -> list[int]:
    """The barriers of ``sites`` in rounds before the loop with ``header``, the first one first: after each a branch
    goes on to the next one, or the loop, or leaves, as in the loop (``alike``)."""
    found: list[int] = []
    pc = header
    while (pc := dominator.get(pc, -1)) >= 0:
        if pc not in sites:
            continue
        branch = next((at for at in range(pc + 1, len(body)) if isinstance(body[at], ops.Branch)), pc)
        alone = all(graph.before[at] == (at - 1,) for at in range(pc + 1, branch + 1))
        going_on = [at for at in graph.after[branch] if header in reach(graph.after, [at])]
        if not _reduces(body[pc]) or not alone or len(graph.after[branch]) != 2 or len(going_on) != 1:
            break
        decides = _decides(body, {*range(pc, branch + 1)}, pc, branch, going_on)
        if (getattr(body[pc], "op", None), decides) != alike:
            break
        found.insert(0, pc)
    return found


def before(
    graph: Graph, dominator: dict[int, int], header: int, inside: set[int], sites: Sequence[int], peeled: Sequence[int]
) -> int | None:
    """How often a thread passes the barrier of ``sites`` before the first round, some of which are ``peeled``; None if
    that is not the same each time, if it may come there twice, or to the barrier without it."""
    first = [*peeled, header][0]
    leaving = {pc for node in inside for pc in graph.after[node]} - inside
    if header in reach(graph.after, leaving):
        return None
    earlier = [pc for pc in sites if pc not in inside and pc not in peeled and header in reach(graph.after, [pc])]
    for pc in (*earlier, *peeled):
        if pc in reach(graph.after, graph.after[pc]) or not dominates(dominator, pc, header):
            return None
    if not all(dominates(dominator, pc, first) for pc in earlier):
        return None
    if not all(dominates(dominator, first, pc) for pc in sites if pc not in earlier):
        return None
    return len(earlier)


def _decides(
    body: Sequence[ops.Op], inside: set[int], barrier: int, branch: int, going_on: Sequence[int]
) -> Hashable | None:
    """How the result of the ``barrier`` decides the ``branch``: the instructions between them, in a row, that compute
    its guard, with numbers for the registers that they give, and of which value threads are ``going_on``; None if
    something else has a part in it."""
    numbers: dict[str, int] = dict.fromkeys(names_written(body[barrier]), 0)
    found: list[Hashable] = []
    if not branch > barrier or not inside.issuperset(range(barrier, branch + 1)):
        return None
    for op in body[barrier + 1 : branch]:
        if isinstance(op, ops.Branch):
            return None
        names = names_read(op)
        given = names_written(op)
        if isinstance(op, ops.Alu | ops.SetPredicate | ops.Select) and op.guard is None and numbers.keys() >= {*names}:
            numbers.update((name, len(found) + 1) for name in given)
            found.append((type(op), _parts(op, numbers), tuple(numbers[name] for name in given)))
        else:
            for name in given:
                numbers.pop(name, None)
    last = body[branch]
    guard = last.guard
    if guard is None or guard.register not in numbers or not isinstance(last, ops.Branch) or last.condition is not None:
        return None
    return tuple(found), numbers[guard.register], guard.negated != (last.target in going_on)


def _parts(item: object, numbers: Mapping[str, int]) -> Hashable:
    match item:
        case ops.Reg(name):
            return ("register", numbers.get(name))
        case tuple():
            return tuple(_parts(part, numbers) for part in item)
        case ops.Alu() | ops.SetPredicate() | ops.Select():
            return tuple(_parts(part, numbers) for part in computation(item))
    assert isinstance(item, Hashable)
    return item
