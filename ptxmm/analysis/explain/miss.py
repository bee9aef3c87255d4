"""Nearest misses: the weakest single changes of a program that make states allowed that it forbids.

Changes are tried in this order, and all of the first distance at which one succeeds are reported:

1. one instruction in a weaker order or a narrower scope, the fewest steps first (``forms``), then one fence or proxy
   fence left out; and beside these one barrier (in all its threads), or one wait for asynchronous operations or grids;
2. one thread in another CTA, then in another cluster, then on another GPU.

Instructions that are named neither by a reason nor where an execution breaks an order can't matter: the executions
would stay forbidden. Every change found is confirmed by an ordinary search in the changed test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.explain.forms import Weaker, weaker
from ptxmm.analysis.strength.changes import Change, removal, replacement, restated
from ptxmm.analysis.strength.structure import removals
from ptxmm.analysis.strength.units import Units, units
from ptxmm.analysis.words import Property
from ptxmm.cat import Model, index
from ptxmm.engines.explicit.witness import Confirmer, Unconfirmed
from ptxmm.engines.result import Found, Limits, Observed
from ptxmm.engines.symbolic.solve import search
from ptxmm.engines.symbolic.strengths import Strengths, Unwanted
from ptxmm.errors import PtxmmError
from ptxmm.program.condition import Condition, Proposition, evaluate
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Placement, Test
from ptxmm.program.variation import Variation
from ptxmm.ptx.ops import Op

MOST = 3
"""So many repairs are told."""


class Move(Struct, frozen=True):
    """A thread in another place of the scope tree; both places as a litmus test writes them."""

    thread: str
    before: str
    after: str


class Miss(Struct, frozen=True):
    """Changes of instructions, or the move of a thread, that make the states allowed. ``kind``: order, scope, removal
    or placement; ``distance`` counts its steps. Of kind ``repair``: changes that make them forbidden."""

    kind: str
    distance: int
    changes: tuple[Change, ...]
    move: Move | None = None


class Question(Struct, frozen=True):
    """Which final states are asked for, and what they are told apart by."""

    proposition: Proposition
    observed: Observed


def nearest(test: Test, model: Model, question: Question, sites: Collection[Site], limits: Limits) -> tuple[Miss, ...]:
    """The nearest misses of ``test`` by the order above; none where no single change is enough.

    ``sites``: the instructions that may matter. Raises ``Timeout``.
    """
    search = _Search(test, model, question, sites, limits, units(test))
    return search.weakened() + search.removed() or search.moved()


def closest(found: Iterable[tuple[Miss, ...]]) -> tuple[Miss, ...]:
    """The nearest of the nearest misses of several programs, each once."""
    every = list(dict.fromkeys(miss for misses in found for miss in misses))
    weaker = [miss for miss in every if miss.kind in ("order", "scope")]
    removed = [miss for miss in every if miss.kind == "removal"]
    chosen = (weaker or removed) and [*_least(weaker), *removed]
    return tuple(chosen or _least(every))


def _least(misses: list[Miss]) -> list[Miss]:
    least = min((miss.distance for miss in misses), default=0)
    return [miss for miss in misses if miss.distance == least]


def repairs(test: Test, model: Model, question: Question, limits: Limits) -> tuple[tuple[Miss, ...], bool]:
    """The smallest changes of ``test`` that forbid the states, each confirmed; and whether they were looked for to the
    end. Their ``distance`` is their cost."""
    from ptxmm.analysis.fences import fences  # which takes time to load

    asked = replace(test, condition=Condition("~exists", question.proposition, ""))
    try:
        found = fences(asked, model, wanted=Property.never, most=MOST, limits=limits)
    except PtxmmError as error:
        if error.kind == "internal":
            raise
        return (), False
    made = (
        Miss("repair", item.cost, tuple(_placed(test, change) for change in item.changes)) for item in found.repairs
    )
    return tuple(made), found.status == "complete"


def _placed(test: Test, change: Change) -> Change:
    """``change``; what is inserted at the end of a thread comes after its last instruction."""
    return replace(change, after=change.after or change.index == len(test.threads[change.number].body))


def allows(test: Test, model: Model, question: Question, limits: Limits) -> Found | None:
    """A confirmed execution of ``test`` that ends in a state asked for; None if there is none, or if the program has
    no meaning. Raises ``Timeout``."""
    answer = search(test, model, question.observed, limits, question.proposition)
    if answer.undefined is not None or answer.flags & (index().undefined | index().uncovered.keys()):
        return None
    for found in answer.found:
        if evaluate(question.proposition, found.state):
            try:
                state = Confirmer(test, model).confirm(question.observed, found.witness)
            except Unconfirmed:
                return None
            return found if evaluate(question.proposition, state) else None
    return None


class _Search(Struct, frozen=True):
    """The changes of ``test`` that are tried at ``sites``."""

    test: Test
    model: Model
    question: Question
    sites: Collection[Site]
    limits: Limits
    together: Units

    def weakened(self) -> tuple[Miss, ...]:
        """Orders and scopes, and, only if none of those is enough, fences left out: all from one problem. The other
        instructions of a unit take the same form as its first."""
        test, coverage = self.test, self.model.coverage
        first = dict.fromkeys(self.together.sites[self.together.of[site]][0] for site in sorted(self.sites))
        forms = {owner: found for owner in first if (found := tuple(weaker(test, test.at(owner), coverage)))}
        if not forms:
            return ()
        same = {owner: self.together.sites[self.together.of[owner]] for owner in forms}
        variations = {
            site: _variation(owner, test.at(site), weaker(test, test.at(site), coverage))
            for owner, sites in same.items()
            for site in sites
        }
        wanted = Unwanted(self.question.proposition)
        strengths = Strengths(test, self.model, variations, wanted, self.limits, self.question.observed)
        every = frozenset(strengths.switches)
        candidates = [(site, number) for site, found in forms.items() for number in range(len(found))]

        def far(candidate: tuple[Site, int]) -> tuple[bool, int]:
            form = forms[candidate[0]][candidate[1]]
            return form.change == "removal", form.distance

        for _, group in groupby(sorted(candidates, key=far), key=far):
            misses = []
            for site, number in group:
                self.limits.check()
                on = frozenset(s for s in every if s.site != site or s.number < number)
                made = {other: variations[other].forms[number][0] for other in same[site]}
                if strengths.find(on) is not None and self._allowed(_with(test, made)):
                    shown = tuple(_change(test, other, made[other]) for other in self._shown(site))
                    misses.append(Miss(forms[site][number].change, forms[site][number].distance, shown))
            if misses:
                return tuple(misses)
        return ()

    def removed(self) -> tuple[Miss, ...]:
        """Barriers and waits left out: fences are among the forms of ``weakened``."""
        misses = []
        for change in removals(self.test):
            self.limits.check()
            group = sorted(change.edits)
            if not set(group).isdisjoint(self.sites) and self._allowed(edited(self.test, change.edits)):
                shown = dict.fromkeys(other for site in group for other in self._shown(site))
                misses.append(Miss("removal", 1, tuple(removal(self.test, site) for site in shown)))
        return tuple(misses)

    def moved(self) -> tuple[Miss, ...]:
        """One thread in another place."""
        threads = self.test.threads
        for distance, level in enumerate(("cta", "cluster", "gpu"), 1):
            misses = []
            for number in sorted({thread for thread, _ in self.sites}):
                self.limits.check()
                thread, there = threads[number], _elsewhere(self.test, number, level)
                if there is None:
                    continue
                moved = (*threads[:number], replace(thread, placement=there), *threads[number + 1 :])
                if self._allowed(replace(self.test, threads=moved)):
                    move = Move(thread.name, _place(thread.placement), _place(there))
                    misses.append(Miss("placement", distance, (), move))
            if misses:
                return tuple(misses)
        return ()

    def _shown(self, site: Site) -> tuple[Site, ...]:
        """Those of the unit of an instruction that are told of where it changes: in a kernel, one of the source."""
        found = self.together.sites[self.together.of[site]]
        return found if self.test.claims is None else found[:1]

    def _allowed(self, changed: Test) -> bool:
        """Whether a changed test allows the states; what can't be run is no miss."""
        try:
            check_compatible(changed, self.model)
            return allows(changed, self.model, self.question, self.limits) is not None
        except PtxmmError as error:
            if error.kind in ("timeout", "internal"):
                raise
            return False


def _with(test: Test, made: Mapping[Site, Op | None]) -> Test:
    """``test`` with these instructions, None: without."""
    return edited(test, {site: () if op is None else (op,) for site, op in made.items()})


def _variation(site: Site, op: Op, forms: Iterable[Weaker]) -> Variation:
    """The forms in a row, each with one switch more than the one before it, ``op`` last."""
    row = [*(form.op for form in forms), op]
    return Variation(tuple((form, frozenset(Switch(*site, k) for k in range(n))) for n, form in enumerate(row)))


def _same(a: Placement, b: Placement, level: str) -> bool:
    """Whether two threads are written to be in one warp, CTA or cluster."""
    levels = ("gpu", "grid", "cluster", "cta", "warp")
    above = levels[: levels.index(level) + 1]
    return getattr(a, level) is not None and all(getattr(a, name) == getattr(b, name) for name in above)


def _elsewhere(test: Test, number: int, level: str) -> Placement | None:
    """A place for a thread where no other thread is, in a new CTA of its cluster, a new cluster or on a new GPU; None
    if it is there already, or if shared memory of its CTA keeps it there."""
    places = [t.placement for n, t in enumerate(test.threads) if n != number]
    mine = test.threads[number].placement
    if mine.host or any(item.owner is not None for item in test.objects.values()):
        return None

    def new(name: str) -> int:
        return max((getattr(p, name) or 0 for p in (*places, mine)), default=0) + 1

    if level == "gpu":
        return Placement(gpu=new("gpu")) if any(p.gpu == mine.gpu and not p.host for p in places) else None
    if not any(_same(mine, p, level) for p in places):
        return None
    there = replace(mine, cta=new("cta"), warp=None)
    return there if level == "cta" else replace(there, cluster=new("cluster"))


def _change(test: Test, site: Site, op: Op | None) -> Change:
    """The new text has the operands as they are written, for only the opcode differs."""
    if op is None:
        return removal(test, site)
    change = replacement(test, site, op)
    assert change.old is not None and change.new is not None
    return replace(change, new=restated(change.old, change.new))


def _place(placement: Placement) -> str:
    """A place in the scope tree as a litmus test writes it."""
    if placement.host:
        return "host"
    levels = ((name, getattr(placement, name)) for name in ("gpu", "grid", "cluster", "cta", "warp"))
    return ", ".join(f"{name} {number}" for name, number in levels if number is not None)
