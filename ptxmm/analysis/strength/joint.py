"""Steps of several kinds made together, and which of them make smaller repairs.

A repair is a set of steps (``structure``) and a set of switches of the superposition of the program that they make. It
is smaller than another one if all its steps and all its switches are among those of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import combinations, permutations

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.strength.changes import Change, insertion, removal, replacement
from ptxmm.analysis.strength.structure import Step, differs
from ptxmm.analysis.strength.superposition import FENCES, ORDERED, Place, Superposition
from ptxmm.analysis.strength.units import units
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Barrier, Branch, Fence, Imm, Op

Chosen = tuple[int, ...]
"""Steps by their numbers; of those that put instructions into one place the first comes first."""


class Origin(Struct, frozen=True):
    """Where an instruction of a changed program comes from: it stands before the instruction ``gap`` of its thread as
    written (or is that one); it is the instruction ``index`` of it (None: a new one); ``step`` put it there as the
    ``part``-th (-1: it stands where it stood), ``after`` the one before that gap."""

    gap: int
    index: int | None
    step: int = -1
    part: int = 0
    after: bool = False


class Combined(Struct, frozen=True):
    """The program ``test`` that the steps ``chosen`` make; ``origins`` of the instructions of each thread."""

    chosen: Chosen
    test: Test
    origins: tuple[tuple[Origin, ...], ...]


class Agenda:
    """Sets of ``steps`` (of so many at ``most``), the cheapest first: nothing, then each that begins with one that was
    ``extend``-ed."""

    def __init__(self, steps: Sequence[Step], most: int | None = None) -> None:
        self._most = len(steps) if most is None else most
        self._costs = [step.cost for step in steps]
        self._heap: list[tuple[int, int, Chosen]] = [(0, 0, ())]

    @property
    def cost(self) -> int | None:
        """That of the next set."""
        return self._heap[0][0] if self._heap else None

    def pop(self) -> tuple[Chosen, int] | None:
        """The next set (by increasing number, so in the order of cost) and its cost; None after the last."""
        if not self._heap:
            return None
        cost, _, chosen = heappop(self._heap)
        if chosen and chosen[-1] + 1 < len(self._costs):
            last = chosen[-1]
            self._push(cost - self._costs[last] + self._costs[last + 1], (*chosen[:-1], last + 1))
        return chosen, cost

    def extend(self, chosen: Chosen) -> None:
        """Let sets with more steps than ``chosen`` come, too."""
        number = chosen[-1] + 1 if chosen else 0
        if number < len(self._costs) and len(chosen) < self._most:
            self._push(sum(self._costs[n] for n in chosen) + self._costs[number], (*chosen, number))

    def narrow(self) -> None:
        """Leave out all sets of several steps from now on."""
        self._most = min(self._most, 1)
        self._heap = [item for item in self._heap if len(item[2]) <= 1]

    def _push(self, cost: int, chosen: Chosen) -> None:
        heappush(self._heap, (cost, len(chosen), chosen))


def combined(test: Test, steps: Sequence[Step], chosen: Chosen) -> tuple[Combined, ...]:
    """The programs that the steps ``chosen`` make of ``test``, one for each order of instructions that several of them
    put into one place. None if two steps are about the same instruction in the same way, or if the threads of a
    barrier came to it and another one of theirs in different orders (the other way round it is another two)."""
    made = [steps[number] for number in chosen]
    for kind in ([step.moved for step in made], [step.replaced for step in made]):
        if max(Counter(site for changes in kind for site in changes).values(), default=0) > 1:
            return ()
    for one, other in combinations([step.barrier for step in made if step.barrier is not None], 2):
        if one[:2] == other[:2] and len({a < b for a, b in zip(one[2], other[2], strict=True) if a != b}) > 1:
            return ()
    shared = Counter(gap for step in made for gap in step.gaps)
    orders = permutations(chosen) if max(shared.values(), default=0) > 1 else (chosen,)
    programs: dict[tuple[tuple[Op, ...], ...], Combined] = {}
    for order in orders:
        program = _program(test, steps, order)
        programs.setdefault(tuple(thread.body for thread in program.test.threads), program)
    return tuple(programs.values())


def _program(test: Test, steps: Sequence[Step], order: Chosen) -> Combined:
    replaced = {site: op for number in order for site, op in steps[number].replaced.items()}
    moved = {site for number in order for site in steps[number].moved}

    def now(site: Site) -> Op:
        return replaced.get(site, test.at(site))

    chunks: dict[Site, list[tuple[Origin, Op]]] = {
        Site(thread, index): [] for thread, t in enumerate(test.threads) for index in range(len(t.body) + 1)
    }
    for site, _ in test.instructions:
        if site not in moved:
            chunks[site].append((Origin(site.instruction, site.instruction), now(site)))
    barriers = 0
    for number in reversed(order):
        step = steps[number]
        for gap, added in step.added.items():
            new = [_numbered(op, barriers) for op in added] if test.dialect else added
            chunks[gap][:0] = [
                (Origin(gap.instruction, None, number, part, step.after), op) for part, op in enumerate(new)
            ]
        barriers += step.barrier is not None
        for site, before in step.moved.items():
            chunks[Site(site.thread, before)].insert(0, (Origin(before, site.instruction, number), now(site)))
    origins: list[list[Origin]] = [[] for _ in test.threads]
    for site, chunk in chunks.items():
        origins[site.thread] += [origin for origin, _ in chunk]
    edits = {site: [op for _, op in chunk] for site, chunk in chunks.items()}
    return Combined(order, edited(test, edits), tuple(map(tuple, origins)))


def _numbered(op: Op, more: int) -> Op:
    """A barrier of the untyped dialect under another name: there each instance is used once."""
    if isinstance(op, Barrier) and op.instance is not None:
        number = op.instance + more
        return replace(op, barrier=Imm(number), instance=number)
    return op


def subsets(chosen: Chosen) -> Iterator[Chosen]:
    """All but ``chosen`` itself, each in the same order."""
    for size in range(len(chosen)):
        yield from combinations(chosen, size)


def projected(more: tuple[Combined, Superposition], fewer: tuple[Combined, Superposition]) -> dict[Switch, Switch]:
    """For switches of a program the switches of the program with ``fewer`` steps that do the same there.

    A fence that is added comes before the next instruction that both have; where a fence stands there already, that
    one gets stronger instead.
    """
    at = fewer[1].at
    found: dict[Switch, Switch] = {}
    different: set[Switch] = set()
    for site, place in more[1].places.items():
        thread, index = place.site
        here, there = more[0].origins[thread], fewer[0].origins[thread]
        if place.rank is not None:
            target = _gap(fewer[0].test, at, Site(thread, _next(here[index:], there)), place.rank)
        else:
            target = at.get(Place(Site(thread, _home(here[index], there))))
        if target is None:
            continue
        names = fewer[1].forms[target].steps
        mine, theirs = more[1].owners[site], fewer[1].owners[target]
        for number, name in enumerate(more[1].forms[site].steps):
            if name in names:
                switch, other = Switch(*mine, number), Switch(*theirs, names.index(name))
                if found.setdefault(switch, other) != other:
                    different.add(switch)
    return {switch: other for switch, other in found.items() if switch not in different}


def _home(origin: Origin, there: Sequence[Origin]) -> int:
    """Where the instruction of this origin stands there; the end if it does not."""
    if origin in there:
        return there.index(origin)
    same = (n for n, other in enumerate(there) if other.index == origin.index is not None)
    return next(same, len(there))


def _next(rest: Sequence[Origin], there: Sequence[Origin]) -> int:
    """Where the first of ``rest`` that is ``there`` stands there; the end if none is."""
    return next((there.index(origin) for origin in rest if origin in there), len(there))


def _gap(test: Test, at: Mapping[Place, Site], first: Site, rank: int) -> Site | None:
    """The site of a fence that comes at ``first`` or later, before the next instruction that it could order."""
    thread, index = first
    body = test.threads[thread].body
    while index < len(body):
        found = at.get(Place(Site(thread, index), rank))
        if found is not None:
            return found
        if isinstance(body[index], ORDERED):
            break
        index += 1
    if rank or index == len(body):
        return None
    while index > 0 and isinstance(body[index - 1], FENCES):
        index -= 1
        if isinstance(body[index], Fence):
            return at.get(Place(Site(thread, index)))
    return None


def groups(
    least: Collection[frozenset[Switch]], projection: dict[Switch, Switch]
) -> Iterator[tuple[frozenset[Switch], ...]]:
    """For each smallest set of a program with fewer steps, for each of its switches those that do the same."""
    sources: dict[Switch, set[Switch]] = {}
    for switch, target in projection.items():
        sources.setdefault(target, set()).add(switch)
    for known in least:
        if all(switch in sources for switch in known):
            yield tuple(frozenset(sources[switch]) for switch in sorted(known))


def all_changes(
    original: Test, program: Combined, everything: Superposition, on: frozenset[Switch]
) -> tuple[Change, ...]:
    """What makes of ``original`` the program of the steps and the switches ``on``, in the order of the text."""
    together = units(original)
    shown: list[Change] = []
    first: dict[object, Site] = {}
    found = _changes(original, program, everything, on)
    for change in sorted(found, key=lambda change: (change.number, change.index + change.after)):
        site = Site(change.number, change.index)
        # There is none at the end of a thread; in a litmus test each thread has a text of its own.
        unit = site if original.claims is None else together.of.get(site, site)
        # Rounds of a loop may have other operands.
        new: object = change.new
        if change.kind == "replace" and change.op is not None:
            new = differs(original, site, change.op)
        if first.setdefault((change.kind, change.after, unit, new), site) == site:
            shown.append(change)
    return tuple(shown)


def _changes(original: Test, program: Combined, everything: Superposition, on: frozenset[Switch]) -> Iterator[Change]:
    at = everything.at
    ranks = sorted({place.rank for place in at if place.rank is not None})
    for thread, origins in enumerate(program.origins):
        for number, origin in enumerate(origins):
            where = Site(thread, number)
            for place in [Place(where, rank) for rank in ranks]:
                form = everything.form(at[place], on) if place in at else None
                if form is not None:
                    yield insertion(original, Site(thread, origin.gap), form)
            op = everything.form(at[Place(where)], on) if Place(where) in at else program.test.at(where)
            old = None if origin.index is None else Site(thread, origin.index)
            if origin.step < 0 and old is not None:
                if op is None:
                    yield removal(original, old)
                elif op != original.at(old) and not isinstance(op, Branch):  # a branch goes to what its target became
                    yield replacement(original, old, op)
                continue
            if op is not None:
                yield insertion(original, Site(thread, origin.gap - origin.after), op, after=origin.after)
            if old is not None:
                yield removal(original, old)
