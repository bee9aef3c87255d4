"""Loops in which one thread of a CTA tells the others by shared memory whether all go round again.

``do { if (threadIdx.x == 0) told = atomicCAS(lock, 0, 1); __syncthreads(); old = told; __syncthreads(); }
while (old);`` spins as the loop of its first thread does. As with a barrier that reduces
(``program.shared.collective``) a round can be taken out of all threads of the CTA at once, for they go on together:

- Round k of each has the barrier n times, the same one, and there is no other way through it (``_row``). All come to
  their loops with equally many phases of it before, and don't come back (``_before``).
- The word is stored by one thread, at one place of its round, and loaded by each at one place of its own. A phase of
  the barrier is between the store and each load of a round, and between these and the store of the next one. So in
  base causality order (8.9.5: barriers synchronize, 8.9.4) each load comes after the store of its round and before that
  of the next one, as do all other accesses of these bytes: those before the loops have a phase between them and the
  first store, those after the loops one between them and the last loads (``_apart``). What a load reads from may
  neither come after it nor have a later write before it (Causality, 8.10.6): it reads the store of its round.
- So all have the same value, and each goes on where it is the same number, or where it is another one (``_again``).
- A round that goes on has but what looks, the store, and perhaps a ``cas`` that failed: one that succeeds returns a
  value with which all leave (``_silent``). No register counts that the loop writes.

Then the round can go, with its phases and the store, from which no load of another round reads; the word holds at the
end what the last round stored. No access of it races, so that one round that goes on shows all races, as in any loop
that spins (``control.spin_loops``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ptxmm.program.accesses import Range, overlap
from ptxmm.program.graph import Graph, conditional, dominators, graph_of, live_at, natural_loops, reach
from ptxmm.program.shared.collective import Rounds, before, collective, constant
from ptxmm.program.shared.control import NOTHING
from ptxmm.program.shared.idempotent import idempotent_atomics, range_of, touched
from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.shared.votes import short_votes
from ptxmm.program.symbols import addresses
from ptxmm.program.test import Test, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written
from ptxmm.ptx.ops import Imm, Reg, Sym

_LOOKS = (*ops.COMPUTING, ops.Fence, ops.Load)


class Quiet(Struct, frozen=True):
    """What a thread does in loops that others need not notice. ``accesses``: the atomics of ``idempotent_atomics``, and
    stores of the word by which others are told; ``rounds``: of those loops in which threads wait together."""

    accesses: frozenset[int]
    rounds: Rounds


def quiet(test: Test, spins: int, told: bool) -> tuple[Quiet, ...]:
    """What each thread of ``test`` does in loops that others need not notice; ``spins`` rounds that go on are enough of
    those in which all wait alike. ``told``: the axioms say what is said of them above, and a ``cas`` that fails is no
    write."""
    others = _told(test, spins) if told else [Quiet(frozenset(), {})] * len(test.threads)
    idempotent = idempotent_atomics(test)
    votes = short_votes(test, idempotent, spins) if told else [NOTHING] * len(test.threads)
    rows = zip(idempotent, collective(test, spins), votes, others, strict=True)
    return tuple(
        Quiet(atomics | told.accesses, {**rounds, **voted, **told.rounds}) for atomics, rounds, voted, told in rows
    )


class _Row(Struct, frozen=True):
    """A loop of a thread, from ``header`` to the branch ``back``, without other branches. ``met``: where it comes to
    the ``barrier``, ``phases`` times before the loop."""

    thread: int
    header: int
    back: int
    met: tuple[int, ...]
    barrier: object
    phases: int

    def segment(self, pc: int) -> int:
        """How many phases of its round are before ``pc``."""
        return sum(at < pc for at in self.met)


def _told(test: Test, spins: int) -> list[Quiet]:
    found = [Quiet(frozenset(), {}) for _ in test.threads]
    ctas: dict[object, list[int]] = {}
    for number, thread in enumerate(() if test.dialect else test.threads):
        p = thread.placement
        ctas.setdefault(number if p.host or p.cta is None else (p.gpu, p.grid, p.cluster, p.cta), []).append(number)
    for members in ctas.values():
        rows = [_row(test.threads[number], number) for number in members]
        known = [row for row in rows if row is not None]
        if len(known) == len(members) and len({(row.barrier, row.phases, len(row.met)) for row in known}) == 1:
            store = _store(test, known)
            if store is not None:
                for row in known:
                    stores = frozenset((store[1],) if row.thread == store[0] else ())
                    found[row.thread] = Quiet(stores, {row.back: spins})
    return found


def _row(thread: Thread, number: int) -> _Row | None:
    """The only loop of a thread with a barrier of a CTA, if that is a row of instructions, all of them executed."""
    body = thread.body
    sites = [pc for pc, op in enumerate(body) if isinstance(op, (ops.Barrier, ops.BarrierReduction))]
    if not sites or not all(constant(body[pc]) for pc in sites):
        return None
    graph = graph_of(body)
    for back, header, inside in natural_loops(graph):
        met = tuple(pc for pc in sites if pc in inside)
        if header <= back and met:
            break
    else:
        return None
    alone = all(graph.before[pc] == (pc - 1,) for pc in range(header + 1, back + 1))
    barriers = {op.barrier if isinstance(op := body[pc], ops.Barrier) else None for pc in met}
    if not alone or not conditional(body[back]) or inside != {*range(header, back + 1)} or len(barriers) != 1:
        return None
    (barrier,) = barriers
    if barrier is None:
        return None
    same = [pc for pc in sites if getattr(body[pc], "barrier", None) == barrier]
    phases = before(graph, dominators(graph), header, inside, same, ())
    written = {name for pc in inside for name in names_written(body[pc])}
    everything = frozenset(thread.registers).union(name for op in body for name in names_written(op))
    if phases is None or live_at(body, graph, everything)[header] & written:
        return None
    return _Row(number, header, back, met, barrier, phases)


def _store(test: Test, rows: Sequence[_Row]) -> tuple[int, int] | None:
    """The thread and the pc that store the word by which all threads of a CTA, with their loops ``rows``, are told
    whether they go round again, None if they are not."""
    stores = [
        (row, pc)
        for row in rows
        for pc in range(row.header, row.back)
        if isinstance(test.threads[row.thread].body[pc], ops.Store)
    ]
    if len(stores) != 1:
        return None
    (leader, pc), known = stores[0], [known_addresses(thread, test.objects) for thread in test.threads]
    op = test.threads[leader.thread].body[pc]
    word = range_of(op, known[leader.thread], test.objects)
    assert isinstance(op, ops.Store)
    if word is None or op.guard is not None:
        return None
    again: set[tuple[int, bool] | None] = set()
    for row in rows:
        load = _load(test, row, word, known[row.thread])
        if load is None or not leader.segment(pc) < row.segment(load) < leader.segment(pc) + len(row.met):
            return None
        again.add(_again(test.threads[row.thread].body, load, row.back))
    if len(again) != 1 or None in again or not _apart(test, rows, word, known, leader.segment(pc)):
        return None
    (told,) = again
    assert told is not None
    number, equal = told
    return (leader.thread, pc) if _silent(test, rows, leader, pc, number, equal) else None


def _load(test: Test, row: _Row, word: Range, known: Mapping[str, Sym]) -> int | None:
    """The only access of the ``word`` in a round but the store: a load of all of it."""
    body = test.threads[row.thread].body
    loads = [
        pc
        for pc in range(row.header, row.back)
        if isinstance(body[pc], ops.Load | ops.Atomic) and _may_touch(body[pc], word, known, test)
    ]
    if len(loads) != 1 or not isinstance(op := body[loads[0]], ops.Load) or op.guard is not None:
        return None
    return loads[0] if range_of(op, known, test.objects) == word else None


def _may_touch(op: ops.Op, word: Range, known: Mapping[str, Sym], test: Test) -> bool:
    where = range_of(op, known, test.objects)
    if where is not None:
        return overlap(where, word)
    objects = touched(op, known, test.objects)
    return objects is None or word[0] in objects


def _again(body: Sequence[ops.Op], load: int, back: int) -> tuple[int, bool] | None:
    """The number that the value loaded at ``load`` is, or (False) is not, if the thread goes round again."""
    branch, loaded = body[back], names_written(body[load])
    made = [pc for pc in range(load + 1, back) for name in names_written(body[pc]) if name in (*loaded, _guard(branch))]
    if len(made) != 1 or len(loaded) != 1 or getattr(branch, "condition", None) is not None:
        return None
    match body[made[0]], body[load]:
        case (
            ops.SetPredicate(cmp="eq" | "ne" as comparison, a=Reg(name), b=Imm(value), guard=None, boolop=None) as op,
            ops.Load(type=type_),
        ) if (
            name == loaded[0] and op.type.bits == type_.bits and op.type.kind in "bus" and op.dst.name == _guard(branch)
        ):
            assert branch.guard is not None
            return value % (1 << type_.bits), (comparison == "eq") != branch.guard.negated
    return None


def _guard(branch: ops.Op) -> str:
    return "" if branch.guard is None else branch.guard.register


def _silent(test: Test, rows: Sequence[_Row], leader: _Row, store: int, number: int, equal: bool) -> bool:
    """Whether a round that goes on leaves no trace but the store."""
    for row in rows:
        body = test.threads[row.thread].body
        for pc in range(row.header, row.back):
            op = body[pc]
            if pc in row.met or (row is leader and pc == store):
                continue
            if isinstance(op, ops.Load) and (op.proxy != "generic" or op.mmio):
                return False
            if isinstance(op, ops.Atomic) and op.op == "cas":
                if row is not leader or not _leaves(body, pc, store, number, equal):
                    return False
            elif not isinstance(op, _LOOKS):
                return False
    return True


def _leaves(body: Sequence[ops.Op], cas: int, store: int, number: int, equal: bool) -> bool:
    """Whether the ``cas`` returns what is stored, and threads leave with what it returns if it succeeds."""
    swap, told = body[cas], body[store]
    assert isinstance(swap, ops.Atomic) and isinstance(told, ops.Store)
    compared = swap.operands[0][0]
    made = [pc for pc in range(cas, store) if any(Reg(name) in told.values for name in names_written(body[pc]))]
    if made != [cas] or swap.guard is not None or swap.packed != 1 or swap.type.bits != told.type.bits:
        return False
    return isinstance(compared, Imm) and (compared.value % (1 << swap.type.bits) == number) != equal


def _apart(test: Test, rows: Sequence[_Row], word: Range, known: Sequence[Mapping[str, Sym]], store: int) -> bool:
    """Whether a phase of the barrier is between each access of the ``word`` outside of the loops and those in them;
    ``store``: how many phases of its round are before the store."""
    inside = {row.thread: row for row in rows}
    for number, thread in enumerate(test.threads):
        places = [
            pc for pc, op in enumerate(thread.body) if addresses(op) and _may_touch(op, word, known[number], test)
        ]
        row = inside.get(number)
        if row is None:
            if places:
                return False
            continue
        graph = graph_of(thread.body)
        for pc in places:
            if row.header <= pc < row.back:
                continue
            earlier = row.header in reach(graph.after, [pc])
            if earlier and not store:
                return False
            if not earlier and pc in _before_a_phase(thread, graph, row):
                return False
            if not isinstance(thread.body[pc], ops.Load | ops.Store | ops.Atomic):
                return False  # it may be done later than it is executed
    return True


def _before_a_phase(thread: Thread, graph: Graph, row: _Row) -> set[int]:
    """Where the thread may come to from the end of its loop without a phase of the barrier."""
    found: set[int] = set()
    waiting = [row.back + 1]
    while waiting:
        pc = waiting.pop()
        if pc in found or pc == graph.end:
            continue
        found.add(pc)
        if getattr(thread.body[pc], "barrier", None) != row.barrier:
            waiting += graph.after[pc]
    return found
