"""Control flow of one thread: where branches join again, which loops spin, and which registers a branch decides.

A straight-line thread needs nothing of this and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct, field

from ptxmm.program.graph import (
    Graph,
    backward,
    conditional,
    graph_of,
    live,
    live_at,
    natural_loops,
    post_dominators,
    reach,
    strong_components,
)
from ptxmm.program.shared.failing import fails
from ptxmm.program.shared.twins import Alike, alike
from ptxmm.program.test import Test, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read, names_written

SPINS = 1
"""How often the branch of a spin loop is taken without a write, beside what the bound allows. No final state needs
it, but a data race or an access outside every object may happen in such a round only, and one round shows it."""

NOTHING: Mapping[int, int] = MappingProxyType({})

FENCES = (ops.Fence, ops.ProxyFence, ops.TensormapFence, ops.GenericToAsyncFence, ops.MbarrierInitFence)
"""Instructions that order, and do nothing else."""
_LOOKS = (*ops.COMPUTING, *FENCES, ops.Load, ops.MbarrierWait, ops.Branch, ops.Exit)

BARRIERS = (ops.Barrier, ops.BarrierReduction, ops.WarpBarrier, ops.ClusterBarrier)
"""Barriers that do not wait for threads which have exited."""


class ControlFlow(Struct, frozen=True):
    """What both event layers need to know of the branches of a thread; pcs are indices into its body.

    ``join``: for each conditional branch and each predicated ``exit``, its immediate post-dominator: the first pc
    that every path from it to the end passes (``len(body)`` is the end).
    ``assigned``: for the same pcs, the registers written on some path from it to its join.
    ``backward``: the branches whose target is not after them, reachable or not.
    ``spin``: for each backward branch that closes a spin loop (see ``spin_loops``), the header of that loop.
    ``idempotent``: atomics in these loops that count as writes only where they change what they read, and stores that
    don't (``program.shared.broadcasts``).
    ``leaving``: the conditional branches that decide whether a loop is left (see ``control_flow``).
    ``skipping``: those with one of ``BARRIERS`` on some path from them to their join.
    ``rounds``: of those loops in which threads wait together (``program.shared.collective``, ``broadcasts``,
    ``votes``), how many are needed; one that goes on writes nothing but what ``idempotent`` has.
    ``silent``: the branches of spin loops that are taken only if no ``cas`` of the round has succeeded (``failing``).
    ``twins``, ``same``: under dep=value what is the same whichever way a branch goes (see ``Alike``).
    """

    join: dict[int, int]
    assigned: dict[int, frozenset[str]]
    backward: frozenset[int]
    spin: dict[int, int]
    idempotent: frozenset[int] = frozenset()
    leaving: frozenset[int] = frozenset()
    skipping: frozenset[int] = frozenset()
    twins: Mapping[int, int] = field(default_factory=dict)
    same: Mapping[int, frozenset[str]] = field(default_factory=dict)
    rounds: Mapping[int, int] = field(default_factory=dict)
    silent: frozenset[int] = frozenset()

    def allowed(self, pc: int) -> int:
        """How often the branch at ``pc``, of a spin loop, need be taken without a write."""
        return self.rounds.get(pc, SPINS)

    def decided(self, pc: int) -> frozenset[str]:
        """The registers that depend from the join on on the way taken at ``pc``."""
        return self.assigned[pc] - self.same.get(pc, frozenset())


def exits_matter(test: Test) -> bool:
    """Whether a barrier of ``test`` may let threads pass because others have exited (PTX ISA 9.7.14.1 to .3). Those of
    the untyped dialect wait for all threads that have an instruction of their group."""
    return not test.dialect and any(isinstance(op, BARRIERS) for thread in test.threads for op in thread.body)


def control_flow(
    thread: Thread,
    idempotent: frozenset[int] = frozenset(),
    values: bool = False,
    together: Mapping[int, int] = NOTHING,
) -> ControlFlow:
    """The control flow of ``thread``; it raises nothing, whatever the branches look like. ``idempotent`` and
    ``together``: the accesses and rounds of its ``broadcasts.Quiet``; ``values``: under dep=value.

    A pc from which the end can't be reached (a loop without exit, and what leads only there) counts as if it might
    fall through to the end, so that every pc has a post-dominator.

    **Leaving a loop.** Control may come from some branches back to them again and again without passing their
    post-dominator, which is then reached only if they decide so at last. Such a branch, or an ``exit`` with a guard,
    decides whether a loop is left, and everything after the loop depends on it, for ever: nontermination-sensitive
    control dependence (Podgurski and Clarke 1990). All other branches are forward: whatever they decide, control comes
    to their post-dominator, also where one of their arms has a loop, which has branches of its own.
    """
    body = thread.body
    if not any(isinstance(op, ops.Branch | ops.Exit) for op in body):
        return ControlFlow({}, {}, frozenset(), {}, twins=alike(thread, graph_of(body), {}).twins if values else {})
    graph = graph_of(body)
    parent = post_dominators(graph)
    written = [frozenset(names_written(op)) for op in body]
    join: dict[int, int] = {}
    assigned: dict[int, frozenset[str]] = {}
    leaving: set[int] = set()
    skipping: set[int] = set()
    for pc in (pc for pc, op in enumerate(body) if conditional(op)):
        join[pc] = parent[pc]
        region = reach(graph.after, graph.after[pc], parent[pc]) - {graph.end}
        assigned[pc] = frozenset().union(*(written[i] for i in region))
        if pc in region:
            leaving.add(pc)
        if any(isinstance(body[i], BARRIERS) for i in region):
            skipping.add(pc)
    back = frozenset(backward(body))
    spin = spin_loops(thread, graph, written, idempotent) if back else {}
    silent = {pc for pc, header, loop in natural_loops(graph) if pc in spin and fails(body, header, pc, loop)}
    spin |= {pc: op.target for pc in together if isinstance(op := body[pc], ops.Branch)}
    quiet = idempotent if spin else frozenset()
    ways = alike(thread, graph, join) if values else Alike({}, {})
    parts = frozenset(leaving), frozenset(skipping), *ways, together, frozenset(silent)
    return ControlFlow(join, assigned, back, spin, quiet, *parts)


def around(thread: Thread) -> list[tuple[int, ...]]:
    """For each pc the backward branches at or after it that jump to it or before it and that control can come to from
    there and back again; none for the end.

    Whoever comes to a pc a second time has taken one of them in between, so how often they have been taken tells
    the executions of an instruction apart.
    """
    branches = backward(thread.body)
    component = components(thread)
    return [
        tuple(b for b, target in branches.items() if target <= pc <= b and component[b] == component[pc])
        for pc in range(len(thread.body) + 1)
    ]


def components(thread: Thread) -> list[int]:
    """For each pc and the end the number of its strongly connected component, in topological order of control."""
    body = thread.body
    if not backward(body):
        return list(range(len(body) + 1))
    return strong_components(graph_of(body))


def live_operands(thread: Thread) -> list[list[str]]:
    """For each pc, and the end, the registers that some instruction from there on uses before it is written.

    A predicated instruction uses what it may overwrite. Unlike in ``control_flow`` the end uses nothing.
    """
    body = thread.body
    written = [frozenset(names_written(op)) for op in body]
    used = [
        frozenset(names_read(op)) | (frozenset() if op.guard is None else written[pc]) for pc, op in enumerate(body)
    ]
    return [sorted(names) for names in live(graph_of(body), lambda pc, after: used[pc] | (after - written[pc]))]


def spin_loops(
    thread: Thread,
    graph: Graph,
    written: Sequence[frozenset[str]],
    idempotent: frozenset[int],
) -> dict[int, int]:
    """The backward branches that close a spin loop, with the loop's header; ``written``: what each instruction writes.

    A backward branch at ``t`` with target ``h`` closes a spin loop iff ``h`` dominates ``t`` and
    the natural loop of the edge (``h`` and every pc that reaches ``t`` without passing ``h``) has

    1. no instruction but those that read, order or compute (``_only_looks``): no store, no atomic but ``cas`` and
       the ``idempotent`` ones, no barrier, no arrival, no copy; ``mbarrier.test_wait`` and ``try_wait`` are among those
       that read;
    2. no register that is written in the loop and live on entry to ``h``, where all registers are live at the end
       of the thread, because the final state shows them. A predicated write does not end a live range.

    The engines then drop every execution that takes the branch at ``t`` more than ``SPINS`` times although no ``cas``
    has succeeded, and no idempotent atomic has changed what it read, since the thread was last at ``h``. This loses no
    final state and adds none:

    - It adds none, since it only drops executions.
    - It loses none. Take a consistent execution that ends, and the last part of some thread from ``h`` to ``t`` and
      back to ``h`` in which that did not happen. Since ``h`` dominates ``t``, and the part does not pass ``h`` in
      between, it lies within the natural loop (also if it contains whole rounds of an inner loop, and if other
      branches go back to ``h``: each of them ends a part of its own). So its events are reads, fences and waits of
      mbarriers, by (1), and atomics that write what they read, which ``program.shared.idempotent`` is about.
      Take them out. The thread is at ``h`` before and after; the registers that differ are written in the loop,
      so nobody reads them before they are written again, by (2), and the rest of the thread runs as before, with
      the same reads and the same final registers. No write and no barrier is lost, so all other threads and the
      final memory are as before. The relations of what is left are restrictions of the former ones (program order
      is transitive already; dependencies and synchronization through what was taken out only vanish), and the
      axioms of the models ask for the absence of cycles and pairs, so they still hold; those that ask for the
      presence of pairs (coherence and Fence-SC order relating what is morally strong) ask it of fewer events. Each
      step leaves fewer events, so the steps end at an execution that the engines keep, with the same final state.
    - A loop whose exit does not depend on what is read is left on its first round or never; the executions dropped
      would spin for ever and have no final state.

    The argument is about final states. A data race, or an access outside every object, may exist only in a round that
    is taken out (the first round reads a flag before its writer's weak store is ordered). One such round is enough to
    see it: take out all others, which only shrinks causality order. So a search for those must let each of these
    branches be taken once. A model of the user's own that asks for the presence of reads or fences may differ.
    """
    body = thread.body
    entering = live_at(body, graph, frozenset(thread.registers).union(*written))
    return {
        pc: header
        for pc, header, loop in natural_loops(graph)
        if header <= pc
        and all(i in idempotent or _only_looks(body[i]) for i in loop)
        and not any(entering[header] & written[i] for i in loop)
    }


def _only_looks(op: ops.Op) -> bool:
    """Whether ``op`` may be in a spin loop: nobody else notices that it has been executed (a ``cas`` may fail)."""
    if isinstance(op, ops.Multimem):
        return op.kind == "ld_reduce"
    return isinstance(op, _LOOKS) or (isinstance(op, ops.Atomic) and op.op == "cas")
