"""The control-flow graph of one thread: who follows whom, dominators, loops, live registers.

Nodes are the pcs and the end, ``len(body)``. networkx is imported only where dominators or components are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ptxmm.ptx.ops import Branch, Exit, Op

if TYPE_CHECKING:
    import networkx as nx

Edges = tuple[tuple[int, ...], ...]
"""For each node those that it leads to."""


class Graph(Struct, frozen=True):
    """For each node those that may come right after it, and right ``before`` it; the end is the last node."""

    after: Edges
    before: Edges

    @property
    def end(self) -> int:
        """The end of the thread."""
        return len(self.after) - 1


def conditional(op: Op) -> bool:
    """Whether control may go two ways after ``op``."""
    return (isinstance(op, Branch) and (op.guard is not None or op.condition is not None)) or (
        isinstance(op, Exit) and op.guard is not None
    )


def graph_of(body: Sequence[Op]) -> Graph:
    """The graph of a thread's instructions."""
    end = len(body)
    after: list[tuple[int, ...]] = []
    before: list[list[int]] = [[] for _ in range(end + 1)]
    for pc, op in enumerate(body):
        targets = [pc + 1] if not isinstance(op, Branch | Exit) or conditional(op) else []
        if isinstance(op, Branch):
            targets.append(op.target)
        elif isinstance(op, Exit):
            targets.append(end)
        after.append(tuple(dict.fromkeys(targets)))
        for target in after[-1]:
            before[target].append(pc)
    return Graph((*after, ()), tuple(map(tuple, before)))


def reach(edges: Edges, starts: Iterable[int], stop: int | None = None) -> set[int]:
    """The nodes on paths from ``starts`` (these too) that do not pass ``stop``."""
    seen: set[int] = set()
    stack = list(starts)
    while stack:
        node = stack.pop()
        if node != stop and node not in seen:
            seen.add(node)
            stack.extend(edges[node])
    return seen


def dominators(graph: Graph) -> dict[int, int]:
    """The immediate dominator of every node that is reached; whether the first one has itself is left open."""
    import networkx as nx

    return dict(nx.immediate_dominators(_drawn(graph.after), 0))


def post_dominators(graph: Graph) -> dict[int, int]:
    """The immediate post-dominator of every node; those that can't reach the end get an edge to it first."""
    import networkx as nx

    backwards = _drawn(graph.before)
    stuck = set(range(graph.end + 1)) - reach(graph.before, [graph.end])
    backwards.add_edges_from((graph.end, pc) for pc in stuck)
    return dict(nx.immediate_dominators(backwards, graph.end))


def dominates(dominator: dict[int, int], header: int, pc: int) -> bool:
    """Whether ``header`` dominates ``pc``; false for a pc that is never reached."""
    if pc != 0 and pc not in dominator:
        return False
    while pc not in (header, 0):
        pc = dominator[pc]
    return pc == header


def natural_loop(graph: Graph, header: int, pc: int) -> set[int]:
    """The nodes from which control comes to ``pc`` without passing ``header``, and ``header``."""
    return reach(graph.before, [pc], header) | {header}


def strong_components(graph: Graph) -> list[int]:
    """For each node the number of its strongly connected component, in topological order of control."""
    import networkx as nx

    found = [0] * (graph.end + 1)
    condensed = nx.condensation(_drawn(graph.after))
    for number, component in enumerate(nx.topological_sort(condensed)):
        for pc in condensed.nodes[component]["members"]:
            found[pc] = number
    return found


def live(
    graph: Graph, used: Callable[[int, frozenset[str]], frozenset[str]], at_end: frozenset[str] = frozenset()
) -> list[frozenset[str]]:
    """The registers that are live on entry to each node, those ``at_end`` at the end.

    ``used`` gives those on entry to a pc from those after it; the more there are after it, the more it may give.
    """
    found: list[frozenset[str]] = [frozenset()] * graph.end + [at_end]
    work = list(range(graph.end))
    waiting = set(work)
    while work:
        pc = work.pop()
        waiting.remove(pc)
        new = used(pc, frozenset().union(*(found[node] for node in graph.after[pc])))
        if new != found[pc]:
            found[pc] = new
            more = [node for node in graph.before[pc] if node not in waiting]
            work += more
            waiting.update(more)
    return found


def _drawn(edges: Edges) -> nx.DiGraph:
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(edges)))
    graph.add_edges_from((node, target) for node, targets in enumerate(edges) for target in targets)
    return graph
