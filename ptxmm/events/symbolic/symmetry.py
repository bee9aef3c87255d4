"""Threads that can change places without changing the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ptxmm.events.symbolic.barriers.scenarios import cta_key
from ptxmm.program.test import Test
from ptxmm.ptx.isa import placeless
from ptxmm.ptx.ops import AsyncStore, BulkCopy, CopyAsync, CtaRank, IsSpace, Mapa

_PLACED = (Mapa, CtaRank, IsSpace, BulkCopy, AsyncStore, CopyAsync)


def interchangeable(test: Test, fixed: Collection[int]) -> list[list[int]]:
    """Groups of two or more threads with the same code in the same kind of place, none of them in ``fixed``.

    Swapping two threads of a group keeps the scope tree: either each is alone in its CTA, or they share a CTA and
    each is a warp of its own. Where instructions tell the CTAs of a cluster apart, or who owns a shared variable, there
    are none.
    """
    if any(isinstance(op, _PLACED) for thread in test.threads for op in thread.body):
        return []
    members = Counter(cta_key(test, i) for i in range(len(test.threads)))
    warps = Counter((cta_key(test, i), t.placement.warp) for i, t in enumerate(test.threads))
    groups: dict[object, list[int]] = {}
    for index, thread in enumerate(test.threads):
        if index in fixed:
            continue
        place, cta = thread.placement, cta_key(test, index)
        if place.warp is not None and warps[cta, place.warp] > 1:
            continue
        where = (place.host, place.gpu, place.grid, place.cluster, "alone" if members[cta] == 1 else cta)
        code = (
            placeless(thread.body),
            tuple(sorted(thread.initial.items())),
            tuple(sorted(thread.registers.items(), key=str)),
        )
        groups.setdefault((where, code), []).append(index)
    return [group for group in groups.values() if len(group) > 1]
