"""Which instructions of a test change together, and what their threads are called.

An instruction of a litmus test is changed by itself; but an ``.aligned`` one in all threads of its warp that are in the
test, for they have to execute the same one together (``program/convergence``). One of the source of a kernel is run by
many threads, and by one several times where a loop is unrolled: who changes it changes all of these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from itertools import groupby

from msgspec import Struct

from ptxmm.analysis.instruction import written
from ptxmm.program.identity import Site
from ptxmm.program.shared import convergence
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Op

_SHORT = re.compile(r"(?:@\S+ )?(\S+).*?( \(called .*)?")
"""An instruction on one line: its opcode, and where it was inlined."""

Unit = Hashable
"""What instructions have in common that change together."""


class Units(Struct, frozen=True):
    """The instructions of a test: ``of`` each site its unit, the ``sites`` of each unit in the order of the test."""

    of: Mapping[Site, Unit]
    sites: Mapping[Unit, tuple[Site, ...]]

    def threads(self, site: Site) -> tuple[int, ...]:
        """The threads that have an instruction of the unit of that at ``site``."""
        return tuple(dict.fromkeys(thread for thread, _ in self.sites[self.of[site]]))


def units(test: Test) -> Units:
    """The units of ``test``."""
    of: dict[Site, Unit] = {}
    sites: dict[Unit, list[Site]] = {}
    warps = aligned(test)
    for site, op in test.instructions:
        of[site] = unit = warps[site] if site in warps else _unit(test, site, op)
        sites.setdefault(unit, []).append(site)
    return Units(of, {unit: tuple(found) for unit, found in sites.items()})


def aligned(test: Test) -> dict[Site, Unit]:
    """The units of the instructions of a litmus test that several threads of a warp execute together: of those that are
    the same the k-th of each thread."""
    found: dict[Site, Unit] = {}
    for number, (thread, known) in enumerate(zip(test.threads, convergence.sites(test), strict=True)):
        count = Counter[str]()
        for index, name in sorted(known.items()) if test.claims is None else ():
            found[Site(number, index)] = thread.placement, name, count[name]
            count[name] += 1
    return found


def names(test: Test, threads: Iterable[int]) -> str:
    """``P1``, or ``P0-P3,P6`` for several threads."""
    order = sorted(threads)
    runs = [[n for _, n in run] for _, run in groupby(enumerate(order), key=lambda item: item[1] - item[0])]
    called = [[test.threads[number].name for number in run] for run in runs]
    return ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in called)


def _unit(test: Test, site: Site, op: Op) -> Unit:
    """The place in the source and the opcode there: of CUDA a compiler may print an instruction several times, with
    other registers, offsets and constants in each round of a loop, all of them at the place of their statement; inlined
    calls are told apart by the text, which says where they are."""
    if test.claims is None:
        return site
    found = _SHORT.fullmatch(written(op))
    text = (type(op).__name__, getattr(op, "kind", None)) if found is None else found.groups()
    # The threads of the host may be in another file.
    return test.threads[site.thread].placement.host, op.source.span.line, op.source.span.column, text
