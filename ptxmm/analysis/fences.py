"""Is each fence, order and scope of a program needed, and what is missing where they are not enough?

What a program must not do is searched for in one problem that stands for all its weaker or stronger variants
(``superposition``); the sets of steps that suffice are found from the executions that others allow (``sufficient``).
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.claims import trapping
from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.instruction import written
from ptxmm.analysis.observe import observed
from ptxmm.analysis.progress import progress
from ptxmm.analysis.property import Requirement, judge, requirement
from ptxmm.analysis.result import TIMEOUT, Note, Outcome, Status, told
from ptxmm.analysis.robust import strong_model
from ptxmm.analysis.search import Question, bug, final_states, values
from ptxmm.analysis.strength.barriers import BARRIERS
from ptxmm.analysis.strength.changes import Change, Costs, stated
from ptxmm.analysis.strength.family import Family
from ptxmm.analysis.strength.joint import all_changes, combined
from ptxmm.analysis.strength.repairs import Repair as Found
from ptxmm.analysis.strength.repairs import Repairs
from ptxmm.analysis.strength.structure import Structural, left_out, removals, strengthenings, unjudged
from ptxmm.analysis.strength.sufficient import minimal_sets
from ptxmm.analysis.strength.superposition import Superposition, superposition
from ptxmm.analysis.strength.units import names, units
from ptxmm.analysis.undefined import with_reasons
from ptxmm.analysis.words import Property
from ptxmm.cat import Model
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import Proposition, State, evaluate
from ptxmm.program.edit import edited
from ptxmm.program.graph import backward
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import has_unknown
from ptxmm.program.variation import Variation
from ptxmm.ptx.ops import ClusterBarrier, Op

MOST = 10
"""So many repairs, or joint reductions, are listed unless more are asked for."""

_LIFETIME = (
    "a barrier.cluster that orders nothing may still keep a CTA from ending while others access its shared memory, "
    "which must not be: the memory model does not speak of it"
)
"""CUDA C++ Programming Guide, Distributed Shared Memory."""

_EVERYONE = "all threads of a warp, a CTA or a cluster have to come to its barriers, those too that do not run here"

_OTHERS = (
    "{} threads of the launch do not run here: whether a barrier can go is not decided then, and what else can go or "
    "be weaker is so for the threads that run; `fences --whole` asks about all of them"
)

_SPINS = (
    "threads may spin for ever, in the program as it is and after repairs; no claim is about it, and `ptxmm progress` "
    "shows where"
)

_SPINNING = "{} changes were left out after which the property holds, but threads may spin for ever"

_INTERLEAVED = (
    "what must not be happens under sc too, where instructions take effect one after the other: no order is missing, "
    "but the threads do something else than they should, or do not wait for what they need"
)

_SHARE = 2.0, 0.05
"""So many seconds, or such a part of the time that is left, has the explicit engine for a repair of a kernel."""

_FIRST = 0.05
"""Such a part of the time has the search whether a kernel needs a repair, before wider scopes are tried."""

_UNDECIDED = (
    "whether the property holds as the program is was not decided in time; with wider scopes it does; a part of them "
    "may be enough, or other changes"
)

THREADS = "threads"
"""Why a barrier is not judged of which not all threads may be in the test."""

SETS, TRIED = 40, 1500
"""So many sets of several barriers, waits and moves are tried as repairs; the search ends after so many strengths."""


class Item(Struct, frozen=True):
    """An instruction that orders: ``verdict`` is what it is for the property, all others staying as they are. In a
    kernel it is one of the source, in all the threads that ``thread`` names.

    ``unknown``: the search was cut by the bound of a loop or by the time limit, or it is a barrier (``why``:
    ``threads``) of which not all threads may be in the test. ``weaker``: the weakest forms that suffice in its place
    (``verdict`` is ``weaker``). ``without``: a final state that must not be and appears where it is taken away or is as
    weak as it can be; None where it fails in another way (``why``).
    """

    thread: str
    line: int
    column: int
    text: str
    verdict: Literal["needed", "removable", "weaker", "unknown"]
    weaker: tuple[str, ...]
    without: Outcome | None
    why: str


class Repair(Struct, frozen=True):
    """A changed program that meets the property and that no smaller change of its kind makes meet it.

    ``cost``: of the steps added (a repair) or kept (a reduction). ``engines``: those that confirm ``program``, which
    is ``source`` changed. ``keeps``: every state that ``sc`` allows and that may be is still reached; a barrier may
    prevent the communication itself.
    """

    changes: tuple[Change, ...]
    cost: int
    engines: tuple[str, ...]
    source: Test
    program: Test
    keeps: bool


class FencesResult(Struct, frozen=True, tag_field="analysis", tag="fences"):
    """``holds``: whether the program as written meets what is ``required``; None: not known, or it has no meaning.

    If it does, ``items`` judges each instruction that orders alone, and ``repairs`` are all smallest programs; if
    not, ``repairs`` are the smallest repairs. ``listed``: there are no others; ``more``: others were found, or the
    search ended, since so many were asked for. ``bad``: a final state that must not be; ``refuted``: which claim about
    a kernel (``bounds``, ``barriers``, ``traps``) it does not meet.
    """

    file: str
    test: str
    model: str
    required: str
    holds: bool | None
    status: Status
    bad: Outcome | None
    refuted: str | None
    items: tuple[Item, ...]
    repairs: tuple[Repair, ...]
    listed: bool
    more: bool
    notes: tuple[Note, ...]
    seconds: float

    @property
    def answers(self) -> dict[str, str]:
        """The answers in a word, by what they are about: the program, and each instruction that was decided."""
        property_ = {True: "holds", False: "fails", None: self.status}[self.holds]
        return {"": property_} | {f"{i.thread}:{i.line}: {i.text}": i.verdict for i in self.items if i.why != "timeout"}

    @property
    def finding(self) -> bool | None:
        """Whether the property fails; None where that is not known."""
        return None if self.holds is None else not self.holds


class Progress(Struct, frozen=True):
    """A repair as it is ``found``, and the result if the time limit ended the search now."""

    found: Repair
    so_far: FencesResult

    @property
    def finding(self) -> bool | None:
        """As that of the result."""
        return self.so_far.finding


def fences(
    test: Test,
    model: Model,
    *,
    wanted: Property | None = None,
    costs: Costs | None = None,
    most: int | None = MOST,
    limits: Limits | None = None,
    graphs: bool = False,
) -> FencesResult:
    """Judge the fences, orders and scopes of ``test`` under ``model``, or repair it.

    ``wanted``: what must hold; None: of a kernel all that is claimed, and of other tests ``Property.never``.
    ``most``: how many repairs or reductions are listed, None for all. ``graphs``, and what is raised: as ``check``.
    """
    search = searched(test, model, wanted=wanted, costs=costs, most=most, limits=limits, graphs=graphs)
    while True:
        try:
            next(search)
        except StopIteration as end:
            result: FencesResult = end.value
            return result


def searched(
    test: Test,
    model: Model,
    *,
    wanted: Property | None = None,
    costs: Costs | None = None,
    most: int | None = MOST,
    limits: Limits | None = None,
    graphs: bool = False,
) -> Generator[Progress, None, FencesResult]:
    """As ``fences``, with each repair as soon as it is found and confirmed; not in the order of their cost."""
    limits, costs = limits or Limits(), costs or Costs()
    check_compatible(test, model)
    test = trapping(test) if wanted is None else test
    if model.readings.get("sc-acqrel") == "off":
        message = "under sc-acqrel=off a fence.sc is no stronger than a fence.acq_rel: there is no order of strengths"
        raise PtxmmError(message, kind="unsupported", file=test.file)
    search = _Search(test, model, costs, most, limits)
    try:
        for found in search.run(wanted, graphs):
            yield Progress(found, search.result(wanted, cut=True))
    except Timeout:
        return search.result(wanted, cut=True)
    return search.result(wanted)


class _Search:
    def __init__(self, test: Test, model: Model, costs: Costs, most: int | None, limits: Limits) -> None:
        self.test, self.model, self.costs, self.most, self.limits = test, model, costs, most, limits
        self.required: Requirement | None = None
        self.holds: bool | None = None
        self.status: Status = "complete"
        self.bad: Outcome | None = None
        self.refuted: str | None = None
        self.items: list[tuple[int, Item]] = []  # each with its first thread
        self.together = units(test)
        self.repairs: list[Repair] = []
        self.listed = True
        self.partial = False
        self.hangs = False
        self.spins: bool | None = None
        """Whether threads spin for ever in the program as it is, where that was asked."""
        self.spinning = 0
        """So many repairs were left out, after which threads spin for ever."""
        self.others = 0 if test.claims is None else test.claims.others
        """So many threads of the launch may need what those of the test do not."""
        self.notes: list[Note] = []
        self.cheaper: int | None = None
        """All repairs that cost less have been found."""
        self.start = time.perf_counter()

    def result(self, wanted: Property | None, cut: bool = False) -> FencesResult:
        """What is known; ``cut``: the time limit ends the search here."""
        named = Property.never if wanted is None else wanted
        notes = [*self.notes]
        if self.others and self.items:
            notes.append(Note(THREADS, _OTHERS.format(self.others)))
        if self.spins and self.repairs:
            notes.append(Note("progress", _SPINS))
        if self.spinning:
            notes.append(Note("progress", _SPINNING.format(self.spinning)))
        if cut:
            notes.append(TIMEOUT)
        if cut and self.cheaper is not None:
            notes.append(Note("bound", f"repairs of cost {self.cheaper} or more may be missing"))
        listed, more = (False, True) if cut else (self.listed and not self.partial, not self.listed)
        return FencesResult(
            self.test.file,
            self.test.name,
            self.model.name,
            named.value if self.required is None else self.required.text,
            self.holds,
            told("timeout" if cut else self.status, self.holds is not None),
            self.bad,
            self.refuted,
            tuple(item for _, item in sorted(self.items, key=lambda entry: (entry[0], entry[1].line))),
            tuple(self._ordered()),
            listed,
            more,
            tuple(notes),
            time.perf_counter() - self.start,
        )

    def run(self, wanted: Property | None, graphs: bool) -> Iterator[Repair]:
        """Judge or repair the program; the repairs as they are found."""
        required = self.required = requirement(self.test, self.model, wanted, self.limits)
        now = judge(self.test, self.model, required, self._first(), graphs=graphs)
        if now.result.status == "timeout":
            yield from self._widened(required)
            if not self.repairs:
                now = judge(self.test, self.model, required, self.limits, graphs=graphs)
        self.holds, self.status = now.answer(required), now.status(required)
        self.refuted = now.refuted(required)
        self.bad = None if self.holds is None else now.outcome
        self.hangs = now.deadlock
        self.notes += with_reasons(self.test, self.model, now.result, self.limits).notes
        if now.holds and not now.result.outcomes and (now.vacuous or now.deadlock):
            self.holds = None
            self.notes.append(Note("vacuous", "no execution reaches its end, so that every property holds of it"))
        if self.repairs or (self.holds is None and self.status != "undefined"):
            return
        if now.holds:
            self._reduce(self._strict(required))
        else:
            yield from self._repair(required)
        if (
            any(item.verdict == "unknown" and item.why != THREADS for _, item in self.items)
            and self.status == "complete"
        ):
            self.status = "bounded"
        left = unjudged(self.test)
        if left is not None:
            text = f"`{written(left)}` is not judged: its value is used, so that it can't just be left out"
            self.notes.append(Note("unjudged", text))

    def _strict(self, required: Requirement) -> Requirement:
        """``required``, and that no thread waits for ever, if none does now: a barrier that threads do not come to is
        no repair, and what they need to come to it can't go."""
        return required if self.hangs else replace(required, deadlock=True)

    # -- what can go --

    def _reduce(self, required: Requirement) -> None:
        everything = superposition(self.test, self.model.coverage, stronger=False)
        family = Family(everything.test, everything.variations, self.model, required, self.limits)
        given = everything.given
        for site in everything.sites:
            if everything.forms[site].given:
                self.items.append((everything.places[site].site.thread, self._item(everything, family, required, site)))
        for structural in removals(self.test):
            item = self._removed(structural, required)
            self.items.append((structural.at.thread, item))
            if isinstance(self.test.at(structural.at), ClusterBarrier) and item.verdict == "removable":
                self.notes.append(Note("lifetime", _LIFETIME))
        weights = {switch: self.costs.of(everything, switch) for switch in given}
        fixed = frozenset(s for s in given if self._meets_others(everything.test.at(s.site)))
        some = {switch: weights[switch] for switch in given - fixed}
        for kept in minimal_sets(some, lambda on: family.suffices(on | fixed), self.limits.check):
            cost = sum(weights[s] for s in kept | fixed)
            if self._enough(cost):
                break
            self._list(everything, kept | fixed, cost, required)
        self.listed = self.listed and (self.most is None or len(self.repairs) <= self.most)

    def _item(self, everything: Superposition, family: Family, required: Requirement, site: Site) -> Item:
        own = frozenset(switch for switch in everything.given if switch.site == site)
        rest = everything.given - own
        costs = {switch: self.costs.of(everything, switch) for switch in own}
        enough = list(minimal_sets(costs, lambda on: family.suffices(rest | on), self.limits.check))
        place = everything.places[site]
        op = self.test.at(place.site)
        where = self._where(place.site, op, written(op))
        # What the problem of all strengths says is decided again for the program itself.
        decided = [judge(everything.program(rest | on), self.model, required, self.limits) for on in enough]
        if any(judgement.holds is False for judgement in decided) or not enough:
            raise self._bug()
        if any(judgement.holds is None for judgement in decided):
            return Item(*where, "unknown", (), None, next(j.result.status for j in decided if j.holds is None))
        if own not in enough and self._meets_others(op):
            return Item(*where, "unknown", (), None, THREADS)
        forms = [everything.form(site, rest | on) for on in enough]
        if forms == [None]:
            return Item(*where, "removable", (), None, "")
        without = judge(everything.program(rest), self.model, required, self.limits)
        outcome, why = without.outcome, without.why(required)
        if own in enough:
            return Item(*where, "needed", (), outcome, why)
        weaker = tuple(stated(self.test, op, form) for form in forms if form is not None)
        return Item(*where, "weaker", weaker, outcome, why)

    def _removed(self, structural: Structural, required: Requirement) -> Item:
        op = self.test.at(structural.at)
        without = judge(edited(self.test, structural.edits), self.model, required, self.limits)
        where = self._where(structural.at, op, structural.text)
        if without.holds is None:
            return Item(*where, "unknown", (), None, without.result.status)
        if without.holds and not without.vacuous and (self.hangs or not without.deadlock):
            if self._meets_others(op):
                return Item(*where, "unknown", (), None, THREADS)
            return Item(*where, "removable", (), None, "")
        return Item(*where, "needed", (), without.outcome, without.why(required))

    def _meets_others(self, op: Op) -> bool:
        """Whether this is a barrier to which threads of the launch come that are not in the test, and may need it."""
        return self.others > 0 and isinstance(op, BARRIERS)

    def _where(self, site: Site, op: Op, text: str) -> tuple[str, int, int, str]:
        span = op.source.span
        return names(self.test, self.together.threads(site)), span.line, span.column, text

    # -- what is missing --

    def _first(self) -> Limits:
        """For the program as it is: of a kernel no more than a part of the time, in case its scopes are too narrow."""
        if self.test.claims is None or self.limits.deadline is None:
            return self.limits
        now = time.monotonic()
        return replace(self.limits, deadline=now + (self.limits.deadline - now) * _FIRST)

    def _widened(self, required: Requirement) -> Iterator[Repair]:
        """A repair by wider scopes of a program that takes too long: atomic operations that are not atomic with each
        other may leave very many values. Whether less is enough is known as far as that is decided soon."""
        everything = superposition(self.test, self.model.coverage, stronger=True)
        (unchanged,) = combined(self.test, (), ())
        wider = sorted(s for s in everything.switches - everything.given if everything.step(s).startswith("scope"))
        chosen = [s for s in wider if not everything.places[s.site].added]

        def enough(switches: Sequence[Switch]) -> bool | None:
            self.limits.check()
            limits = replace(self.limits, deadline=time.monotonic() + _SHARE[0])
            decided = judge(everything.program(everything.given.union(switches)), self.model, required, limits)
            return None if decided.holds is None else decided.holds and not (decided.vacuous or decided.deadlock)

        if not chosen or not enough(chosen):
            return
        for switch in chosen[:]:
            rest = [other for other in chosen if other != switch]
            decided = enough(rest)
            if decided is None:
                break
            chosen = rest if decided else chosen
        on = everything.given.union(chosen)
        cost = sum(self.costs.of(everything, switch) for switch in chosen)
        changes = all_changes(self.test, unchanged, everything, on)
        if self._confirm(everything.program(on), changes, cost, required, None):
            self.notes.append(Note("bound", _UNDECIDED))
            self.listed, self.partial = False, True
            yield from self.repairs

    def _repair(self, required: Requirement) -> Iterator[Repair]:
        strict = self._strict(required)
        before: frozenset[tuple[int, ...]] | None = None

        def problem(steps: int, test: Test, variations: Mapping[Site, Variation]) -> Family:
            return Family(test, variations, self.model, strict if steps else required, self.limits)

        steps = strengthenings(self.test, self.model.coverage, self.costs)
        repairs = Repairs(self.test, steps, self.model.coverage, self.costs, problem, self.limits.check, sets=SETS)

        def confirm(found: Found) -> Iterator[Repair]:
            nonlocal before
            if found.chosen and before is None:
                before = self._reached(self.test, required)
            wanted, earlier = (strict, before) if found.chosen else (required, None)
            if self._confirm(found.program, found.changes, found.cost, wanted, earlier):
                repairs.accept(found)
                yield self.repairs[-1]

        self.cheaper = repairs.cost
        for found in chain(repairs.likely_orders(), repairs.likely()):
            yield from confirm(found)
        while (cost := repairs.cost) is not None and not self._enough(cost):
            self.cheaper = cost
            if repairs.tried >= TRIED:
                self._bound("repairs", cost)
                break
            following = repairs.advance()
            if following is not None:
                yield from confirm(following)
        if repairs.missed is not None:
            self._bound("repairs by several barriers, waits and moves", repairs.missed)
        added = [change.op for repair in self.repairs for change in repair.changes if change.old is None]
        if self.test.claims is not None and any(isinstance(op, BARRIERS) for op in added):
            self.notes.append(Note("barrier", _EVERYONE))
        if left_out(self.test):
            self.partial = True
            self.notes.append(Note("repair", "the threads are too long for all barriers and waits to be tried"))
        self.listed = self.listed and (self.most is None or len(self.repairs) <= self.most)
        if not self.repairs and self.listed and not self.partial:
            self.notes.append(Note("repair", "no order, scope, fence, barrier or wait that can be added is enough"))
            self.notes += self._interleaved(required)

    def _interleaved(self, required: Requirement) -> Iterator[Note]:
        """Whether ``sc`` allows, too, what must not be."""
        if required.bad is None:
            return
        try:
            strong = judge(self.test, strong_model(self.model), replace(required, flags=frozenset()), self._share(""))
        except PtxmmError as error:
            if error.kind == "internal":
                raise
            return
        if strong.outcome is not None:
            yield Note("sc", _INTERLEAVED)

    def _bound(self, what: str, cost: int) -> None:
        self.partial = True
        text = f"the search has come to its bound: there may be more {what}, of cost {cost} or more"
        self.notes.append(Note("bound", text))

    def _enough(self, cost: int) -> bool:
        """Whether a variant of this cost is beyond those that are listed; of equal ones all are found, to choose the
        same in every run."""
        cheaper = [repair for repair in self.repairs if repair.cost < cost]
        if self.most is None or len(cheaper) < self.most:
            return False
        self.listed = False
        return True

    def _ordered(self) -> list[Repair]:
        """The repairs that are listed, the cheapest first, those that prevent what is wanted last."""

        def key(repair: Repair) -> tuple[bool, int, int, list[tuple[int, int, str]]]:
            places = [(c.number, c.index, c.new or "") for c in repair.changes]
            return not repair.keeps, repair.cost, len(repair.changes), places

        return sorted(self.repairs, key=key)[: self.most]

    def _reached(self, test: Test, required: Requirement) -> frozenset[tuple[int, ...]] | None:
        """The final states that ``sc`` allows and that may be; None where that is not known, or none is asked about."""
        if self.test.condition is None and self.test.claims is not None:
            return None
        what = observed(self.test)
        try:
            states = final_states(Question(test, strong_model(self.model), what, self.limits))
        except PtxmmError as error:
            if error.kind == "internal":
                raise
            return None
        if not states.search.exhausted or has_unknown(test):
            return None
        bad = required.bad
        allowed = [s for s in states.rows if bad is None or not self._holds(bad, s)]
        return frozenset(values(what, state) for state in allowed)

    @staticmethod
    def _holds(bad: Proposition, state: State) -> bool:
        try:
            return evaluate(bad, state)
        except KeyError:  # it is about more than is told apart here
            return False

    def _list(self, everything: Superposition, on: frozenset[Switch], cost: int, required: Requirement) -> None:
        (unchanged,) = combined(self.test, (), ())
        found = all_changes(self.test, unchanged, everything, on)
        self._confirm(everything.program(on), found, cost, required, None)

    def _confirm(
        self,
        program: Test,
        found: tuple[Change, ...],
        cost: int,
        required: Requirement,
        before: frozenset[tuple[int, ...]] | None,
    ) -> bool:
        """Add a variant, after both engines have decided the program itself; whether it is one. ``before``: see
        ``_reached``."""
        engines = []
        for engine in ("z3", "enumerate"):
            decided = judge(program, self.model, required, self._share(engine), engine)
            if decided.holds is False and decided.why(required) != "deadlock":
                raise self._bug()
            # Threads that wait for ever do no harm, and no good either; the problem of all strengths need not know of
            # those that wait for what never comes.
            if decided.holds is False or decided.vacuous or (decided.deadlock and not self.hangs):
                return False
            if decided.holds:
                engines.append(engine)
            elif decided.result.status == "bounded":
                self.status = "bounded"
        if found and program is not self.test and not self.holds and self._spins(program):
            if self.spins is None:
                self.spins = self._spins(self.test)
            if not self.spins:
                self.spinning += 1
                return False
        after = None if before is None else self._reached(program, required)
        keeps = before is None or after is None or before <= after
        self.repairs.append(Repair(found, cost, tuple(engines), self.test, program, keeps))
        return True

    def _spins(self, program: Test) -> bool:
        """Whether threads of a program with loops are known to spin for ever in some execution."""
        if not any(backward(thread.body) for thread in program.threads):
            return False
        try:
            return progress(program, self.model, limits=self._share("enumerate")).verdict == "may hang"
        except PtxmmError as error:
            if error.kind == "internal":
                raise
            return False

    def _share(self, engine: str) -> Limits:
        """The explicit engine may take very long for a kernel: no repair waits for it long."""
        limits = self.limits
        if engine == "z3" or self.test.claims is None or limits.deadline is None:
            return limits
        now = time.monotonic()
        return replace(limits, deadline=min(limits.deadline, now + max(_SHARE[0], (limits.deadline - now) * _SHARE[1])))

    def _bug(self) -> PtxmmError:
        return bug(self.test, "a program that was found to meet the property does not")
