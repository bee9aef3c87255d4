"""Instructions that make no difference to memory: left out, with the branches that only they depend on.

Polling loops count their rounds to decide how long to sleep; what is left without that is a spin loop. This is dead
code elimination with control dependence (Cytron et al. 1991, section 7.1): an instruction is needed if it does more
than give registers values, if it gives one that something needed reads, or if it is a branch that decides whether
something needed is executed. A loop that is left out is taken to end (``taken_to_end`` tells of those of which that is
not known), so one stays that ends or not by a result that nobody works out, or by what the launch says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from ptxmm.formats.modules.endings import doubtful
from ptxmm.formats.modules.flow import matters
from ptxmm.formats.modules.lower import Code
from ptxmm.program.edit import retarget
from ptxmm.program.graph import Graph, graph_of, makers, post_dominators, reach
from ptxmm.program.shared.flows import is_open
from ptxmm.ptx.isa import names_read
from ptxmm.ptx.ops import Branch, Exit, Op


def pruned(code: Code, observed: Collection[str]) -> Code:
    """``code`` without what is not needed; ``observed``: the registers whose final values count."""
    body = code.body
    if not body:
        return code
    graph = graph_of(body)
    join = post_dominators(graph)
    needed = _needed(code, observed, graph, join)[0]
    chunks: list[list[Op]] = []
    for pc, op in enumerate(body):
        if pc in needed or (isinstance(op, Branch | Exit) and op.guard is None):
            chunks.append([op])
        elif isinstance(op, Branch | Exit) and join[pc] != pc + 1:
            chunks.append([Branch(join[pc], None, op.source)])
        else:
            chunks.append([])
    origin = [pc for pc, chunk in enumerate(chunks) for _ in chunk]
    refused = {number: code.refused[pc] for number, pc in enumerate(origin) if pc in code.refused}
    return replace(code, body=retarget([*chunks, []]), refused=refused)


def taken_to_end(code: Code, observed: Collection[str]) -> list[int]:
    """The branches by which loops are left, of those that ``pruned`` leaves out, of which it is not known that they
    end."""
    graph = graph_of(code.body)
    if not code.body or not doubtful(code.body, graph):
        return []
    needed, doubts = _needed(code, observed, graph, post_dominators(graph))
    return sorted(doubts - needed)


def _needed(code: Code, observed: Collection[str], graph: Graph, join: Mapping[int, int]) -> tuple[set[int], set[int]]:
    """What is needed, and the branches by which loops are left that perhaps do not end."""
    body = code.body
    controls = _controls(body, graph, join)
    made_by = makers(body)
    effects = {pc for pc, (_, effect) in code.refused.items() if effect}
    waiting = [pc for pc, op in enumerate(body) if pc in effects or (matters(op) and not isinstance(op, Branch | Exit))]
    # What can't come to the end has no post-dominators to tell what its branches decide.
    ending = reach(graph.before, [graph.end])
    waiting += [pc for pc, op in enumerate(body) if isinstance(op, Branch) and pc not in ending]
    waiting += [pc for name in observed for pc in made_by.get(name, ())]
    given = [[maker for name in names_read(op) for maker in made_by.get(name, ())] for op in body]
    open_ = {pc for pc, op in enumerate(body) if is_open(op)}
    for pc, op in enumerate(body) if open_ else ():
        if isinstance(op, Branch) and op.guard is not None and not open_.isdisjoint(reach(given, given[pc])):
            waiting += [pc] if pc in reach(graph.after, graph.after[pc]) else []
    doubts = doubtful(body, graph)
    waiting += [pc for pc, open_ended in doubts.items() if not open_ended]
    return reach([[*one, *other] for one, other in zip(given, controls, strict=True)], waiting), set(doubts)


def _controls(body: Sequence[Op], graph: Graph, join: Mapping[int, int]) -> list[list[int]]:
    """For each instruction the branches that decide whether it is executed."""
    found: list[list[int]] = [[] for _ in body]
    for pc, op in enumerate(body):
        for node in graph.after[pc] if isinstance(op, Branch | Exit) and op.guard is not None else ():
            while node != join[pc] and node < len(body):
                found[node].append(pc)
                node = join[node]
    return found
