"""Which lanes of a warp execute an ``activemask`` together (PTX ISA 9.7.14.11).

Lanes that come to one instruction may execute it together, each for itself, or in any other groups: nothing makes them
converge. The lanes that never come to it are in no group. A test stands for one test for each choice of groups, in
which every ``activemask`` has its mask as an operand; the engines know nothing else of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from math import prod

from msgspec.structs import replace

from ptxmm.program.graph import graph_of, post_dominators
from ptxmm.program.shared.control import around
from ptxmm.program.test import Test, Thread
from ptxmm.ptx.ops import Imm, Op, WarpExchange

Site = tuple[int, int]
"""A thread and the index of an instruction in its body."""

_MOST = 64
"""At most so many choices of groups are tried."""
_MOST_LANES = 4
"""Of more lanes than these, only some groups."""


def with_masks(test: Test) -> Iterator[Test]:
    """``test`` for each choice of the lanes that execute an ``activemask`` together; itself if there is none."""
    groups = together(test)
    if not groups:
        yield test
        return
    lanes = {t: lanes_of(test, t) for group in groups for t, _ in group}
    choices = [_choices(test, group)[0] for group in groups]
    for chosen in islice(product(*choices), _MOST):
        bodies = {t: list(test.threads[t].body) for t in lanes}
        for parts in chosen:
            for part in parts:
                mask = Imm(sum(1 << lanes[t].index(t) for t, _ in part))
                for t, pc in part:
                    op = bodies[t][pc]
                    assert isinstance(op, WarpExchange)
                    bodies[t][pc] = replace(op, operands=(mask,))
        threads = tuple(
            replace(thread, body=tuple(bodies[t])) if t in bodies else thread for t, thread in enumerate(test.threads)
        )
        yield replace(test, threads=threads)


def untried_masks(test: Test) -> list[str]:
    """The instructions of which not all groups of lanes are tried, in words."""
    groups = together(test)
    found = [group for group in groups if not _choices(test, group)[1]]
    if prod(len(_choices(test, group)[0]) for group in groups) > _MOST:
        found = groups
    return [_words(test, group) for group in found]


def _words(test: Test, group: Sequence[Site]) -> str:
    t, pc = group[0]
    thread = test.threads[t]
    return f"{thread.name} line {thread.body[pc].source.span.line}: activemask"


def together(test: Test) -> list[list[Site]]:
    """Each ``activemask`` that lanes of one warp may execute together: in kernels those made of one of the source, in
    a litmus test the first of each lane, the second, and so on."""
    found: dict[object, list[Site]] = {}
    for t, thread in enumerate(test.threads):
        if thread.placement.warp is None:
            continue
        counts: dict[object, int] = {}
        for pc, op in enumerate(thread.body):
            if _is_mask(op):
                name = (op.source.span.line, op.source.span.column) if test.claims is not None else None
                counts[name] = counts.get(name, 0) + 1
                key = (lanes_of(test, t), name, counts[name])
                found.setdefault(key, []).append((t, pc))
    return list(found.values())


def lanes_of(test: Test, thread: int) -> tuple[int, ...]:
    """The threads that are lanes of the warp of ``thread``, in order."""
    warps = [(p.gpu, p.grid, p.cluster, p.cta, p.warp) for p in (t.placement for t in test.threads)]
    return tuple(t for t, warp in enumerate(warps) if warp == warps[thread])


def _is_mask(op: Op) -> bool:
    return isinstance(op, WarpExchange) and op.op == "activemask" and not op.operands


def _choices(test: Test, group: list[Site]) -> tuple[list[list[list[Site]]], bool]:
    """The ways to divide ``group`` that are tried, and whether these are all."""
    alone = [[site] for site in group]
    if any(_repeated(test.threads[t]) for t in lanes_of(test, group[0][0])):
        return [alone], False  # each round may be executed with others
    if len(group) == 1:
        return [alone], True
    if not all(_always(test.threads[t], pc) for t, pc in group):
        return [alone], False
    if len(group) > _MOST_LANES:
        return [[group], alone], False
    return list(_partitions(group)), True


def _repeated(thread: Thread) -> bool:
    """Whether an ``activemask`` is in a loop."""
    return any(_is_mask(op) and around(thread)[pc] for pc, op in enumerate(thread.body))


def _always(thread: Thread, pc: int) -> bool:
    """Whether every way through ``thread`` executes the instruction."""
    join = post_dominators(graph_of(thread.body))
    node = 0
    while node < pc:
        node = join[node]
    return node == pc and thread.body[pc].guard is None


def _partitions(group: list[Site]) -> Iterator[list[list[Site]]]:
    """The ways to divide ``group``, the whole one first."""
    if not group:
        yield []
        return
    first, rest = group[0], group[1:]
    for parts in _partitions(rest):
        for number, part in enumerate(parts):
            yield [*parts[:number], [first, *part], *parts[number + 1 :]]
        yield [[first], *parts]
