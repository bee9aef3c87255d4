"""The control-flow graph of one thread: who follows whom, dominators, loops, live registers.

Nodes are the pcs and the end, ``len(body)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from ptxmm.ptx.isa import names_read, names_written
from ptxmm.ptx.ops import Branch, Exit, Op

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


def backward(body: Sequence[Op]) -> dict[int, int]:
    """The branches whose target is not after them, each with its target."""
    return {pc: op.target for pc, op in enumerate(body) if isinstance(op, Branch) and op.target <= pc}


def reach(edges: Sequence[Sequence[int]], starts: Iterable[int], stop: int | None = None) -> set[int]:
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
    """The immediate dominator of every node that is reached, but for the first one."""
    return _immediate(graph.after, graph.before, 0)


def post_dominators(graph: Graph) -> dict[int, int]:
    """The immediate post-dominator of every node but the end; those that can't reach it get an edge to it first."""
    stuck = set(range(graph.end)) - reach(graph.before, [graph.end])
    before = (*graph.before[:-1], (*graph.before[-1], *sorted(stuck)))
    after = tuple((*targets, graph.end) if pc in stuck else targets for pc, targets in enumerate(graph.after))
    return _immediate(before, after, graph.end)


def reverse_post_order(graph: Graph) -> dict[int, int]:
    """The place of every node that is reached: those that it leads to come later, but along branches back."""
    return {node: place for place, node in enumerate(reversed(_finished(graph.after, [0], set())))}


def _immediate(after: Edges, before: Edges, start: int) -> dict[int, int]:
    """The immediate dominator of every node that is reached from ``start``, by the equations of data flow."""
    order = [*reversed(_finished(after, [start], set()))]
    place = {node: i for i, node in enumerate(order)}
    # A bit for each dominator, by its place: the immediate one is the last of the others.
    found = [1, *(-1 for _ in order[1:])]
    stable = False
    while not stable:
        stable = True
        for i, node in enumerate(order[1:], 1):
            new = -1
            for other in before[node]:
                if other in place:
                    new &= found[place[other]]
            new |= 1 << i
            if new != found[i]:
                found[i], stable = new, False
    return {node: order[(found[i] ^ 1 << i).bit_length() - 1] for i, node in enumerate(order) if i}


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


def natural_loops(graph: Graph) -> Iterator[tuple[int, int, set[int]]]:
    """For each edge to a node that dominates its source, in order: the source, that node, the header, and the nodes of
    the loop. There may be several with one header."""
    dominator = dominators(graph)
    for pc, targets in enumerate(graph.after):
        for target in targets:
            if dominates(dominator, target, pc):
                yield pc, target, natural_loop(graph, target, pc)


def strong_components(graph: Graph) -> list[int]:
    """For each node the number of its strongly connected component, in topological order of control."""
    found = [0] * (graph.end + 1)
    seen: set[int] = set()
    number = 0
    for node in reversed(_finished(graph.after, range(graph.end + 1), set())):
        if members := _finished(graph.before, [node], seen):
            for pc in members:
                found[pc] = number
            number += 1
    return found


def _finished(edges: Edges, starts: Iterable[int], seen: set[int]) -> list[int]:
    """The nodes reached from ``starts`` and not ``seen`` yet, in the order in which a search in depth leaves them."""
    found: list[int] = []
    for start in starts:
        stack = [] if start in seen else [(start, iter(edges[start]))]
        seen.add(start)
        while stack:
            node, rest = stack[-1]
            following = next((target for target in rest if target not in seen), None)
            if following is None:
                found.append(node)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(edges[following])))
    return found


def makers(body: Sequence[Op]) -> dict[str, list[int]]:
    """The pcs that write each register, in order."""
    found: dict[str, list[int]] = {}
    for pc, op in enumerate(body):
        for name in names_written(op):
            found.setdefault(name, []).append(pc)
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


def live_at(body: Sequence[Op], graph: Graph, at_end: frozenset[str]) -> list[frozenset[str]]:
    """The registers that are live on entry to each pc and, last, ``at_end`` of the thread."""
    used = [frozenset(names_read(op)) for op in body]
    killed = [frozenset(names_written(op)) if op.guard is None else frozenset() for op in body]
    return live(graph, lambda pc, after: used[pc] | (after - killed[pc]), at_end)
