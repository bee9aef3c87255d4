"""Control flow of one thread: where branches join again, which loops spin, and which registers a branch decides.

A straight-line thread needs nothing of this and costs nothing: networkx is imported only once a branch is seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxmm.program.test import Thread
from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import (
    Alu,
    Atomic,
    Branch,
    Convert,
    CtaRank,
    Exit,
    Fence,
    GenericAddress,
    GenericToAsyncFence,
    IsSpace,
    Load,
    Mapa,
    MbarrierInitFence,
    MbarrierWait,
    Multimem,
    Nothing,
    Op,
    Pack,
    PendingCount,
    ProxyFence,
    Select,
    SetPredicate,
    TensormapFence,
    Unpack,
)

if TYPE_CHECKING:
    import networkx as nx


SPINS = 1
"""How often the branch of a spin loop is taken without a write, beside what the bound allows. No final state needs
it, but a data race or an access outside every object may happen in such a round only, and one round shows it."""

_LOOKS = (
    Load, Fence, ProxyFence, TensormapFence, GenericToAsyncFence, MbarrierInitFence, MbarrierWait, PendingCount,
    Mapa, CtaRank, IsSpace,
    GenericAddress,
    Alu, Convert, SetPredicate, Select, Pack, Unpack, Nothing, Branch, Exit,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """What both event layers need to know of the branches of a thread; pcs are indices into its body.

    ``join``: for each conditional branch and each predicated ``exit``, its immediate post-dominator: the first pc
    that every path from it to the end passes (``len(body)`` is the end).
    ``assigned``: for the same pcs, the registers written on some path from it to its join.
    ``backward``: the branches whose target is not after them, reachable or not.
    ``spin``: for each backward branch that closes a spin loop (see ``control_flow``), the header of that loop.
    """

    join: dict[int, int]
    assigned: dict[int, frozenset[str]]
    backward: frozenset[int]
    spin: dict[int, int]


def control_flow(thread: Thread) -> ControlFlow:
    """The control flow of ``thread``; it raises nothing, whatever the branches look like.

    A pc from which the end can't be reached (a loop without exit, and what leads only there) counts as if it might
    fall through to the end, so that every pc has a post-dominator.

    **Spin loops.** A backward branch at ``t`` with target ``h`` closes a spin loop iff ``h`` dominates ``t`` and
    the natural loop of the edge (``h`` and every pc that reaches ``t`` without passing ``h``) has

    1. no instruction but those that read, order or compute (``_only_looks``): no store, no atomic but ``cas``, no
       barrier, no arrival, no copy; ``mbarrier.test_wait`` and ``try_wait`` are among those that read;
    2. no register that is written in the loop and live on entry to ``h``, where all registers are live at the end
       of the thread, because the final state shows them. A predicated write does not end a live range.

    The engines then drop every execution that takes the branch at ``t`` more than ``SPINS`` times although no ``cas``
    has succeeded since the thread was last at ``h``. This loses no final state and adds none:

    - It adds none, since it only drops executions.
    - It loses none. Take a consistent execution that ends, and the last part of some thread from ``h`` to ``t`` and
      back to ``h`` in which no ``cas`` succeeded. Since ``h`` dominates ``t``, and the part does not pass ``h`` in
      between, it lies within the natural loop (also if it contains whole rounds of an inner loop, and if other
      branches go back to ``h``: each of them ends a part of its own). So its events are reads, fences and waits of
      mbarriers, by (1).
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
    if not any(isinstance(op, Branch | Exit) for op in body):
        return ControlFlow({}, {}, frozenset(), {})
    graph = _graph(body)
    parent = _post_dominators(graph, len(body))
    written = [frozenset(name for name, _ in definitions(op)) for op in body]
    join: dict[int, int] = {}
    assigned: dict[int, frozenset[str]] = {}
    for pc, op in enumerate(body):
        if _conditional(op):
            join[pc] = parent[pc]
            region = _reach(graph, graph.successors(pc), parent[pc])
            assigned[pc] = frozenset().union(*(written[i] for i in region if i < len(body)))
    backward = frozenset(pc for pc, op in enumerate(body) if isinstance(op, Branch) and op.target <= pc)
    return ControlFlow(join, assigned, backward, _spin_loops(thread, graph, backward, written) if backward else {})


def around(thread: Thread) -> list[tuple[int, ...]]:
    """For each pc the backward branches at or after it that jump to it or before it, and none for the end.

    Whoever comes to a pc a second time has taken one of them in between, so how often they have been taken tells
    the executions of an instruction apart.
    """
    backward = [(pc, op.target) for pc, op in enumerate(thread.body) if isinstance(op, Branch) and op.target <= pc]
    return [tuple(b for b, target in backward if target <= pc <= b) for pc in range(len(thread.body) + 1)]


def components(thread: Thread) -> list[int]:
    """For each pc and the end the number of its strongly connected component, in topological order of control."""
    body = thread.body
    if not any(isinstance(op, Branch) and op.target <= pc for pc, op in enumerate(body)):
        return list(range(len(body) + 1))
    import networkx as nx

    found = [0] * (len(body) + 1)
    condensed = nx.condensation(_graph(body))
    for number, component in enumerate(nx.topological_sort(condensed)):
        for pc in condensed.nodes[component]["members"]:
            found[pc] = number
    return found


def live_operands(thread: Thread) -> list[list[str]]:
    """For each pc, and the end, the registers that some instruction from there on uses before it is written.

    A predicated instruction uses what it may overwrite. Unlike in ``control_flow`` the end uses nothing.
    """
    body = thread.body
    written = [frozenset(name for name, _ in definitions(op)) for op in body]
    live = [{name for name, _ in uses(op)} for op in body] + [set()]
    for pc, op in enumerate(body):
        if op.guard is not None:
            live[pc] |= written[pc]
    graph = _graph(body)
    used = [frozenset(names) for names in live]
    changed = True
    while changed:
        changed = False
        for pc in reversed(range(len(body))):
            after = set().union(*(live[s] for s in graph.successors(pc)))
            new = used[pc] | (after - written[pc])
            if new != live[pc]:
                live[pc], changed = set(new), True
    return [sorted(names) for names in live]


def _conditional(op: Op) -> bool:
    """Whether control may go two ways after ``op``."""
    return (isinstance(op, Branch) and (op.guard is not None or op.condition is not None)) or (
        isinstance(op, Exit) and op.guard is not None
    )


def _graph(body: tuple[Op, ...]) -> nx.DiGraph:
    """The control-flow graph: the pcs and the end, ``len(body)``."""
    import networkx as nx

    end = len(body)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(end + 1))
    for pc, op in enumerate(body):
        if not isinstance(op, Branch | Exit) or _conditional(op):
            graph.add_edge(pc, pc + 1)
        if isinstance(op, Branch):
            graph.add_edge(pc, op.target)
        elif isinstance(op, Exit):
            graph.add_edge(pc, end)
    return graph


def _post_dominators(graph: nx.DiGraph, end: int) -> dict[int, int]:
    """The immediate post-dominator of every pc; pcs that can't reach the end get an edge to it first."""
    import networkx as nx

    backwards: nx.DiGraph = graph.reverse(copy=True)
    stuck = set(backwards) - {end} - nx.descendants(backwards, end)
    backwards.add_edges_from((end, pc) for pc in stuck)
    return dict(nx.immediate_dominators(backwards, end))


def _reach(graph: nx.DiGraph, starts: Iterable[int], stop: int) -> set[int]:
    """The nodes on paths from ``starts`` that do not pass ``stop``."""
    seen: set[int] = set()
    stack = list(starts)
    while stack:
        node = stack.pop()
        if node != stop and node not in seen:
            seen.add(node)
            stack.extend(graph.successors(node))
    return seen


def _spin_loops(
    thread: Thread, graph: nx.DiGraph, backward: frozenset[int], written: list[frozenset[str]]
) -> dict[int, int]:
    """The backward branches that close a spin loop, with the loop's header (see ``control_flow``)."""
    import networkx as nx

    body = thread.body
    dominator: dict[int, int] = dict(nx.immediate_dominators(graph, 0))
    live = _live_in(thread, graph, written)
    backwards: nx.DiGraph = graph.reverse(copy=False)
    spin: dict[int, int] = {}
    for pc in backward:
        op = body[pc]
        assert isinstance(op, Branch)
        if not _dominates(dominator, op.target, pc):
            continue
        loop = _reach(backwards, [pc], op.target) | {op.target}
        if not all(_only_looks(body[i]) for i in loop):
            continue
        if not any(live[op.target] & written[i] for i in loop):
            spin[pc] = op.target
    return spin


def _dominates(dominator: dict[int, int], header: int, pc: int) -> bool:
    """Whether ``header`` dominates ``pc``; false for a pc that is never reached."""
    if pc != 0 and pc not in dominator:
        return False
    while pc not in (header, 0):
        pc = dominator[pc]
    return pc == header


def _only_looks(op: Op) -> bool:
    """Whether ``op`` may be in a spin loop: nobody else notices that it has been executed (a ``cas`` may fail)."""
    if isinstance(op, Multimem):
        return op.kind == "ld_reduce"
    return isinstance(op, _LOOKS) or (isinstance(op, Atomic) and op.op == "cas")


def _live_in(thread: Thread, graph: nx.DiGraph, written: list[frozenset[str]]) -> list[set[str]]:
    """The registers live on entry to each pc and, last, at the end of the thread, where all of them are."""
    body = thread.body
    names = frozenset(thread.registers).union(*written)
    live: list[set[str]] = [{name for name, _ in uses(op)} for op in body] + [set(names)]
    killed = [w if op.guard is None else frozenset() for op, w in zip(body, written, strict=True)]
    backwards = graph.reverse(copy=False)
    work = list(range(len(body) + 1))
    while work:
        node = work.pop()
        for before in backwards.successors(node):
            new = live[node] - killed[before] - live[before]
            if new:
                live[before] |= new
                work.append(before)
    return live
