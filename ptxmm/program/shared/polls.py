"""Polls of one place that are written out several times: one of them, in a loop, stands for all.

Libraries wait in stages: some polls right after each other, then some with a sleep in between, then longer ones; and
compilers unroll each stage. What comes out is a region of loads of one place and of branches on what they return. It is
entered at its first load and left to one place only, each load comes from the one before it, and none leads out of it
for a value for which the first one does not; those that do not lead out may be relaxed where the first acquires. All
that such a region does is to wait for a value, so every load but the first becomes a jump back to that one: a spin loop
(``control.spin_loops``).

- **No final state is lost.** Take an execution of the program and a way through the region. Take out all its reads
  but the last one, as if that were the first load: the same read of the same place, it leads out of the region as
  before, and the registers that are needed there get the same values. As with the rounds of a spin loop only reads
  go, with what they order.
- **None is added.** A final state of the spin loop is reached without a round that fails, and so by the program. In
  the search for data races, and accesses outside every object, one round may fail before the read r that leads out.
  Then the program goes on to loads that may lead out or not, but all of which return what r does: copies of r right
  before it, that read from the same write, some of them relaxed. The way out is looked for that they take
  (``_Region.ends``). A base relation that a copy has with another event is one that r has with it. So what an axiom
  forbids about copies it forbids about r, except that causality order gets those pairs (w, r) in which r observes w
  (8.9.5, by way of a copy); and from-reads from r to w would contradict that, for w is what r reads, or comes before
  that in coherence order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import is_

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.program.condition import RegisterTerm, Term
from ptxmm.program.graph import Graph, graph_of, live_at, reach
from ptxmm.program.latest import Latest
from ptxmm.program.shared.retries import without_retries
from ptxmm.program.shared.ways import Form, Rejected, Ways
from ptxmm.program.test import Test
from ptxmm.ptx.isa import names_read, names_written
from ptxmm.ptx.ops import COMPUTING, Branch, Load, Op

_MOST = 64
"""The branches on the way from one load to the next."""


def without_repeats(test: Test, asked: Collection[Term] = ()) -> Test:
    """``test`` with one load for each region of polls, and without the rounds of ``retries``; all pcs stay.

    ``asked``: the registers whose final values are asked for, besides those that ``test`` names.
    """
    terms = frozenset(t for t in (*asked, *test.named) if isinstance(t, RegisterTerm))
    return _latest.get(test, terms) or _latest.keep(test, terms, _shortened(test, terms))


_latest: Latest[Test] = Latest(8)


def _shortened(test: Test, terms: Collection[RegisterTerm]) -> Test:
    threads = []
    for number, thread in enumerate(test.threads):
        asked = frozenset(term.register for term in terms if term.thread == number)
        body = without_retries(thread, asked)
        for first, others, inside in list(_regions(body, asked)):
            for pc in others:
                body[pc] = Branch(first, None, body[pc].source)
            # What was between the other loads is not reached any more, and no part of the loop.
            for pc in inside - reach(graph_of(body).after, [first]):
                body[pc] = Branch(first, None, body[pc].source)
        _one_way_back(body, thread.body)
        threads.append(thread if all(map(is_, body, thread.body)) else replace(thread, body=tuple(body)))
    return test if all(map(is_, threads, test.threads)) else replace(test, threads=tuple(threads))


def _one_way_back(body: list[Op], before: Sequence[Op]) -> None:
    """Let what goes back to a load go by way of one of the branches that were made: one failing round is enough for all
    of them."""
    made = {
        op.target: pc for pc, op in enumerate(body) if op is not before[pc] and isinstance(op, Branch) and not op.guard
    }
    for pc, op in enumerate(body):
        if isinstance(op, Branch) and op.target <= pc < made.get(op.target, 0):
            body[pc] = replace(op, target=made[op.target])


def _regions(body: Sequence[Op], asked: frozenset[str]) -> Iterator[tuple[int, list[int], set[int]]]:
    """The regions of ``body``: the first load, the others, and all pcs."""
    loads = [pc for pc, op in enumerate(body) if isinstance(op, Load) and _polls(op)]
    if len(loads) < 2 or not any(isinstance(op, Branch) for op in body):
        return
    graph = graph_of(body)
    entering = live_at(body, graph, asked)
    done: set[int] = set()
    for first in loads:
        branch = next((pc for pc in range(first, len(body)) if isinstance(body[pc], Branch)), None)
        if first in done or branch is None:
            continue
        for out in sorted(graph.after[branch], reverse=True):
            inside = reach(graph.after, [first], out)
            others = sorted(pc for pc in inside.intersection(loads) if pc != first)
            if (
                others
                and _is_closed(body, graph, first, inside)
                and _Region(body, first, out, inside, entering).waits()
            ):
                yield first, others, inside
                done.update(inside)
                break


def _polls(op: Load) -> bool:
    return op.guard is None and len(op.dst) == 1 and op.proxy == "generic" and not (op.mmio or op.nc)


def _is_closed(body: Sequence[Op], graph: Graph, first: int, inside: set[int]) -> bool:
    """Whether the pcs ``inside`` are entered at ``first`` only, and only look."""
    return graph.end not in inside and all(
        (pc == first or inside.issuperset(graph.before[pc])) and isinstance(body[pc], (Load, *COMPUTING, Branch))
        for pc in inside
    )


class _Leaf(Struct, frozen=True):
    """Where a load leads: to ``pc``, out of the region or to another load, where the predicates ``when`` are so; and
    the registers that are needed outside, with what they hold then."""

    pc: int
    when: frozenset[tuple[Form, bool]]
    needed: tuple[tuple[str, Form], ...] = ()


class _Region(Ways):
    """Loads and branches ``inside``, entered at ``first``, left to ``out``."""

    def __init__(
        self, body: Sequence[Op], first: int, out: int, inside: set[int], entering: list[frozenset[str]]
    ) -> None:
        super().__init__(body, {name for pc in inside for name in names_written(body[pc])})
        self.first, self.out, self.inside = first, out, inside
        self.needed = sorted(entering[out].intersection(self.written))
        self.form: tuple[str, Form] = "", None

    def waits(self) -> bool:
        """Whether one load stands for all."""
        try:
            self.form = self._load(self.first)
            loads = [pc for pc in self.inside if isinstance(self.body[pc], Load)]
            ways = {pc: self._leaves(pc) for pc in loads}
        except Rejected:
            return False
        leaving = {
            pc: {(leaf.when, leaf.needed) for leaf in leaves if leaf.pc == self.out} for pc, leaves in ways.items()
        }
        known = leaving[self.first]
        return bool(known) and all(
            found <= known and self.ends(pc, when, ways) for pc, found in leaving.items() for when, _ in known
        )

    def ends(self, pc: int, when: frozenset[tuple[Form, bool]], ways: Mapping[int, list[_Leaf]]) -> bool:
        """Whether from ``pc`` on control comes out of the region if every load returns a value with which ``when`` is
        so."""
        seen: set[int] = set()
        while pc != self.out:
            following = next((leaf.pc for leaf in ways[pc] if leaf.when <= when), None)
            if pc in seen or following is None:
                return False
            seen.add(pc)
            pc = following
        return True

    def _load(self, pc: int) -> tuple[str, Form]:
        op = self.body[pc]
        if not isinstance(op, Load) or not _polls(op) or any(name in self.written for name in names_read(op)):
            raise Rejected
        return op.sem, (op.address, op.type, op.scope, op.space, op.volatile)

    def _leaves(self, pc: int) -> list[_Leaf]:
        """Where the load at ``pc`` leads. Raises ``Rejected`` if that rests on more than what it returns, or if it is
        none of those that may be there (see above)."""
        form = self._load(pc)
        if form not in (self.form, _relaxed(self.form)):
            raise Rejected
        start: dict[str, Form] = dict.fromkeys(names_written(self.body[pc]), ("value",))
        found: list[_Leaf] = []
        stack: list[tuple[int, dict[str, Form], dict[Form, bool], int]] = [(pc + 1, start, {}, 0)]
        while stack:
            at, held, when, steps = stack.pop()
            if at == self.out or (at in self.inside and isinstance(self.body[at], Load)):
                needed = tuple((name, held.get(name)) for name in self.needed) if at == self.out else ()
                if any(held is None for _, held in needed) or (at == self.out and form != self.form):
                    raise Rejected
                found.append(_Leaf(at, frozenset(when.items()), needed))
                continue
            if at not in self.inside or steps > _MOST * len(self.body) or len(found) > _MOST:
                raise Rejected
            stack += [(*way, steps + 1) for way in self.step(at, held, when)]
        return found


def _relaxed(form: tuple[str, Form]) -> tuple[str, Form]:
    """What a load is that orders no more than one that is ``form``."""
    return ("relaxed" if form[0] == "acquire" else form[0], form[1])
