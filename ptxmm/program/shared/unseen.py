"""Values that nothing sees: what no address, branch, barrier operand, misuse or final state that is asked for depends
on (slicing, Weiser 1984, over registers and whole objects: ``flows``).

Where a value would have too many cases these need none: any value stands for all. Functions that are not worked out
(``ops.Opaque``) give only such values, or the test is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ptxmm.program.condition import MemoryTerm, RegisterTerm, Term
from ptxmm.program.identity import EventId
from ptxmm.program.latest import Latest
from ptxmm.program.shared.flows import Flow, is_open
from ptxmm.program.shared.refusals import ABSENT, OPAQUE, refused
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.typed_text import mnemonic


class Unseen(Struct, frozen=True):
    """``instructions``: by thread those whose results nothing sees; ``objects``: the physical objects whose contents
    nothing sees; ``moves``: by thread the copies, stores and shuffles between lanes of which nothing sees what they
    move; ``terms``: what may be asked for, None if that is all."""

    instructions: tuple[frozenset[int], ...]
    objects: frozenset[str] = frozenset()
    moves: tuple[frozenset[int], ...] = ()
    terms: frozenset[Term] | None = None

    def sees(self, term: Term) -> bool:
        """Whether ``term`` may be asked for."""
        return self.terms is None or term in self.terms or not isinstance(term, RegisterTerm | MemoryTerm)

    def returned(self, read: EventId, objects: Iterable[str]) -> bool:
        """Whether nothing sees what a read of ``objects`` returned."""
        if not self.instructions:
            return False
        unseen = self.instructions[read.thread] | self.moves[read.thread]
        return read.instruction in unseen or not self.objects.isdisjoint(objects)


NOTHING = Unseen(())


def open_results(test: Test, asked: Iterable[Term]) -> Unseen:
    """What nothing sees of ``test`` if it has functions that are not worked out, else ``NOTHING``.

    Raises ``PtxmmError`` (kind ``unsupported``) where the result of one of these is seen.
    """
    if not any(is_open(op) for thread in test.threads for op in thread.body):
        return NOTHING
    found = unseen(test, asked)
    for thread, blind, given in zip(test.threads, found.instructions, found.moves, strict=True):
        for pc, op in enumerate(thread.body):
            exchange = isinstance(op, ops.WarpExchange)
            if is_open(op) and pc not in (given if exchange else blind):
                raise refused(ABSENT if exchange else OPAQUE, test, op)
    return found


def not_worked_out(test: Test) -> str | None:
    """How many results of ``test`` are not worked out, in words; None if there are none."""
    found = [mnemonic(op).partition(".")[0] for thread in test.threads for op in thread.body if is_open(op)]
    if not found:
        return None
    names = ", ".join(f"`{name}`" for name in sorted(set(found)))
    what = "the result of 1 instruction is" if len(found) == 1 else f"the results of {len(found)} instructions are"
    return f"{what} not worked out ({names})"


def unseen(test: Test, asked: Iterable[Term]) -> Unseen:
    """What nothing sees of ``test`` where the final values ``asked`` for count."""
    terms = frozenset(asked)
    flow = Flow(test)
    seen = flow.seen(terms)
    blind, given = (
        tuple(frozenset(pc for pc, nodes in by_pc.items() if seen.isdisjoint(nodes)) for by_pc in by_thread)
        for by_thread in (flow.gives, flow.moves)
    )
    return Unseen(blind, frozenset(flow.hidden(seen)), given, terms)


def opened(test: Test) -> tuple[frozenset[int], ...]:
    """For each thread the accesses whose values may be made of results that are not worked out."""
    known = _opened.get(test, None)
    if known is None:
        flow = Flow(test)
        made = flow.made_of(flow.opened())
        found = (frozenset(pc for pc, of in holds.items() if not made.isdisjoint(of)) for holds in flow.holds)
        known = _opened.keep(test, None, tuple(found))
    return known


_opened: Latest[tuple[frozenset[int], ...]] = Latest(2)


class Undecided(Struct, frozen=True):
    """Instructions by thread that give predicates made of results that are not worked out, where these are seen.
    ``telling``: those of them that something other sees than branches whose sides only give registers values."""

    instructions: tuple[frozenset[int], ...]
    telling: tuple[frozenset[int], ...]


def undecided(test: Test, asked: Iterable[Term]) -> Undecided:
    """The comparisons of ``test`` that nothing decides, where the final values ``asked`` for count."""
    found: list[tuple[frozenset[int], ...]] = []
    for forks in (True, False):
        flow = Flow(test, forks)
        sites = flow.comparisons()
        seen = flow.seen(asked, flow.given(sites))
        shown = {site for site, given in sites.items() if not seen.isdisjoint(given)}
        found.append(tuple(frozenset(pc for t, pc in shown if t == number) for number in range(len(test.threads))))
    return Undecided(*found)
