"""The control flow of resolved instructions as specialising them needs it: an order, loops, live registers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from ptxmm.program.graph import Graph, graph_of, live, natural_loops, reverse_post_order
from ptxmm.ptx.isa import names_read, names_written
from ptxmm.ptx.ops import COMPUTING, Op


def matters(op: Op) -> bool:
    """Whether an instruction does more than give registers values."""
    return not isinstance(op, COMPUTING)


class Flow(Struct, frozen=True):
    """``after[pc]``: where control may go from an instruction: on, and then to the target of a branch. ``order[pc]``:
    its place in reverse post-order, for all that control ever reaches. ``loops[pc]``: the headers of the natural loops
    around it, outermost first. ``live[pc]``: the registers that are read from there on before they are written. The
    end is ``len(body)``."""

    after: tuple[tuple[int, ...], ...]
    order: dict[int, int]
    loops: dict[int, tuple[int, ...]]
    live: list[frozenset[str]]


def analyse(body: Sequence[Op], observed: Collection[str]) -> Flow:
    """The flow of ``body``; ``observed`` registers are live at the end."""
    graph = graph_of(body)
    order = reverse_post_order(graph)
    return Flow(graph.after, order, _loops(graph, order), live_registers(body, observed))


def _loops(graph: Graph, order: dict[int, int]) -> dict[int, tuple[int, ...]]:
    """The natural loops: of every edge back to an instruction that dominates its source."""
    found: dict[int, set[int]] = {}
    for _, header, nodes in natural_loops(graph):
        found.setdefault(header, set()).update(nodes & order.keys())
    inside: dict[int, list[int]] = {pc: [] for pc in order}
    for header, members in found.items():
        for pc in members:
            inside[pc].append(header)
    return {pc: tuple(sorted(headers, key=lambda h: (-len(found[h]), order[h]))) for pc, headers in inside.items()}


def live_registers(body: Sequence[Op], observed: Collection[str]) -> list[frozenset[str]]:
    """For each instruction, and the end, the registers that are read from there on before they are written. What an
    instruction reads that only computes counts only if what it gives is live."""
    written = [frozenset(names_written(op)) for op in body]
    read = [frozenset(names_read(op)) for op in body]

    def used(pc: int, after: frozenset[str]) -> frozenset[str]:
        op = body[pc]
        if not matters(op) and not written[pc] & after:
            return after
        return (after if op.guard is not None else after - written[pc]) | read[pc]

    return live(graph_of(body), used, frozenset(observed))
