"""Writes of a kernel that may race with each other where they write the same value.

That is no reading of PTX ISA 8.7.1, in which values play no part: it is what the launch of a kernel says of its stores,
of all of them or of those in some lines. A race of a write with a read is never left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ptxmm.program.condition import MemoryTerm
from ptxmm.program.shared.mbarriers import mbarriers
from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.shared.undetermined import WRITERS, locations
from ptxmm.program.shared.unseen import opened
from ptxmm.program.test import SameValue, Test
from ptxmm.ptx.ops import BulkCopy, Op, Reg, Sym, touched


def with_same_value(test: Test, lines: frozenset[int] | None) -> Test:
    """``test``, in which the writes of the ``lines`` (None: all writes) may race with each other where they write the
    same value.

    What is written to an object that a result comes to which is not worked out is not known: those lines are left open.
    """
    allowed = SameValue(lines)
    barriers = mbarriers(test.threads, test.objects)
    plain = {key for key, item in test.objects.items() if key not in barriers and item.tensormap is None}
    found: list[tuple[int, set[str]]] = []
    unknown: set[str] = set()
    for thread, results in zip(test.threads, opened(test), strict=True):
        known = known_addresses(thread, test.objects)
        for pc, op in enumerate(thread.body):
            written = plain.intersection(_written(test, op, known))
            if pc in results or isinstance(op, WRITERS):
                unknown |= written
            if written and allowed.allows(op.source.span.line):
                found.append((op.source.span.line, written))
    open_ = frozenset(line for line, written in found if written & unknown)
    keys = set[str]().union(*(written for line, written in found if line not in open_))
    items = [test.objects[key] for key in sorted(keys)]
    terms = tuple(MemoryTerm(item.key, index, item.type) for item in items for index in range(item.count))
    return replace(test, same_value=SameValue(lines, open_, terms))


def _written(test: Test, op: Op, known: Mapping[str, Sym]) -> Iterator[str]:
    """The physical objects that ``op`` may write."""
    for touch in touched(op):
        base = touch.address.base
        place = known.get(base.name) if isinstance(base, Reg) else base
        if not touch.writes and not isinstance(op, BulkCopy):
            continue
        if isinstance(place, Sym) and not isinstance(op, BulkCopy):
            yield from locations(test.objects[place.name])
        else:
            yield from test.objects
