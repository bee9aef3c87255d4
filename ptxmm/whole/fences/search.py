"""Is each fence, barrier, wait, order and scope of a launch with all its threads needed, and what is missing?

A launch that is free of races is executed again without each instruction that orders, and with each weaker form of it;
one that is not with more. Only an answer about all executions counts: where there is none, it is said.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal

from msgspec import Struct

from ptxmm.analysis.result import TIMEOUT, Note, Status
from ptxmm.analysis.strength.changes import ChangeEntry, Costs
from ptxmm.engines.result import Limits
from ptxmm.formats.modules.kernel import Kernel
from ptxmm.whole.analysis import Examined, examined
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.fences.repairs import Step, steps
from ptxmm.whole.fences.variants import Edits, Unit, Weaker, edited, orders, units, weaker, without
from ptxmm.whole.result import Answer, WholeResult

MOST = 10
"""So many repairs are listed unless more are asked for."""
_TRIED = 400
"""So many changes are tried as repairs."""
_TOGETHER, _DEARER = 2, 2
"""So many steps make a repair, which is listed if it costs no more than so many times the cheapest."""
_PROPERTY = "no data race, every thread comes to its end, and the claims that hold"


class Judged(Struct, frozen=True):
    """What an instruction that orders is for the launch, all others staying as they are.

    ``verdict``: ``unknown`` where one execution does not tell of the launch without it. ``weaker``: the weakest forms
    that suffice (``verdict`` is ``weaker``). ``why``: what goes wrong without it, or why nothing is known."""

    line: int
    text: str
    verdict: Literal["needed", "removable", "weaker", "unknown"]
    weaker: tuple[str, ...]
    why: str


class WholeRepair(Struct, frozen=True):
    """Changes after which the launch is free of races, none of which can be left out, and what they ``cost``."""

    cost: int
    changes: tuple[ChangeEntry, ...]


class WholeFences(Struct, frozen=True, tag_field="analysis", tag="whole-fences"):
    """``answer`` is that about the launch as it is written, ``holds`` whether it is free of races (None: not known).
    If so, ``items`` judges each instruction that orders; if not, ``repairs`` are the smallest repairs that were
    found, of so many that were ``tried``. ``reason``: why nothing is known."""

    file: str
    test: str
    model: str
    required: str
    answer: Answer
    holds: bool | None
    status: Status
    reason: str | None
    items: tuple[Judged, ...]
    repairs: tuple[WholeRepair, ...]
    tried: int
    notes: tuple[Note, ...]
    seconds: float

    @property
    def finding(self) -> bool | None:
        """Whether the launch is wrong."""
        return None if self.holds is None else not self.holds


class _Answered(Struct, frozen=True):
    """Whether a changed launch is right, None where that is not known, and ``why`` not."""

    holds: bool | None
    why: str


class Found(Struct, frozen=True):
    """A verdict or a repair as it is found, so many ``seconds`` after the start; ``finding``: as that of the result."""

    what: Judged | WholeRepair
    finding: bool | None
    seconds: float


def searched(
    kernels: tuple[Kernel, ...], file: str, limits: Limits, most: int | None = MOST, costs: Costs | None = None
) -> Iterator[Found | WholeFences]:
    """The verdicts on the fences of a launch, or its repairs, each as it is found, and then the result.

    ``most``: so many repairs are enough, None for all. Raises ``PtxmmError`` where its memory is too large."""
    yield from _Search(kernels, file, limits, most, costs or Costs()).run()


class _Search:
    def __init__(self, kernels: tuple[Kernel, ...], file: str, limits: Limits, most: int | None, costs: Costs) -> None:
        self.kernels, self.file, self.limits, self.most, self.costs = kernels, file, limits, most, costs
        self.start = time.perf_counter()
        self.machine: Machine | None = None
        self.items: list[Judged] = []
        self.repairs: list[WholeRepair] = []
        self.notes: list[Note] = []
        self.tried = 0
        self.late = False
        self.claims: frozenset[str | None] = frozenset()
        """What is claimed of the launch and holds of it as it is written."""

    def run(self) -> Iterator[Found | WholeFences]:
        """See ``searched``."""
        now = examined(self.kernels, self.file, self.limits)
        self.machine = now.machine
        self.claims = frozenset(claim.condition for claim in now.result.claims if claim.holds)
        work = self._judge() if now.result.holds else self._repair(now) if now.result.holds is False else iter(())
        for found in work:
            yield Found(found, now.result.finding, time.perf_counter() - self.start)
        yield self._result(now.result)

    def _result(self, now: WholeResult) -> WholeFences:
        status: Status = "timeout" if self.late and now.holds is None else now.status
        notes = (*now.notes, *self.notes, *((TIMEOUT,) if self.late else ()))
        return WholeFences(
            self.file, now.test, now.model, _PROPERTY, now.answer, now.holds, status, now.reason,
            tuple(self.items), tuple(sorted(self.repairs, key=lambda repair: repair.cost)), self.tried, notes,
            time.perf_counter() - self.start,
        )  # fmt: skip

    def _changed(self, edits: Edits, repair: bool = False) -> _Answered:
        """The answer about the launch with some of its instructions changed; no claim at all fails of one that is to
        be a ``repair``, and ``why`` says which is not decided."""
        self.tried += 1
        found = examined(edited(self.kernels, edits), self.file, self.limits, self.machine).result
        if not found.holds:
            return _Answered(found.holds, _why(found))
        kept = [claim for claim in found.claims if claim.condition in self.claims]
        for holds, word in ((False, "fails"), (None, "is not decided")):
            for claim in found.claims if repair else kept:
                if claim.holds is holds:
                    return _Answered(True if repair and holds is None else holds, f"the claim {claim.condition} {word}")
        return _Answered(True, "")

    # -- what can go --

    def _judge(self) -> Iterator[Judged]:
        assert self.machine is not None
        idle = []
        for unit in units(self.kernels):
            if not orders(unit.op):
                continue
            if not any(self.machine.launch.parts[n].entry + at in self.machine.executed for n, at in unit.places):
                idle.append(unit.line)
                continue
            if self._is_late():
                return
            item = self._item(unit)
            if item is not None:
                self.items.append(item)
                yield item
        if idle:
            lines = ", ".join(map(str, dict.fromkeys(idle)))
            self.notes.append(Note("unjudged", f"line {lines}: not executed by this launch, and not judged"))

    def _is_late(self) -> bool:
        self.late = self.limits.deadline is not None and time.monotonic() >= self.limits.deadline
        return self.late

    def _item(self, unit: Unit) -> Judged | None:
        """The verdict on a unit; None where nothing could stand in its place."""
        gone = without(self.kernels, unit)
        forms = weaker(self.kernels, unit)
        if gone is None and not forms:
            return None
        bare = None if gone is None else self._changed(gone.edits)
        if bare is not None and bare.holds:
            return Judged(unit.line, unit.text, "removable", (), "")
        enough, failed = self._weakest(forms)
        bare = bare or failed
        if enough:
            why = "" if bare is None else bare.why
            return Judged(unit.line, unit.text, "weaker", tuple(form.text for form in enough), why)
        assert bare is not None
        if bare.holds is None:
            return Judged(unit.line, unit.text, "unknown", (), bare.why)
        open_ = "; whether a weaker one is enough is not decided" if failed is not None and failed.holds is None else ""
        return Judged(unit.line, unit.text, "needed", (), bare.why + open_)

    def _weakest(self, forms: Sequence[Weaker]) -> tuple[list[Weaker], _Answered | None]:
        """The forms that suffice and that no weaker one does of which that is known; what fails in another one, or why
        that is not known. Forms come from the strongest: what is weaker than one that fails fails too."""
        enough: list[Weaker] = []
        failed: list[Weaker] = []
        first: _Answered | None = None
        for form in forms:
            if any(form.steps < other.steps for other in failed):
                continue
            found = self._changed(form.edits)
            if found.holds:
                enough.append(form)
            else:
                failed.append(form)
                if first is None or (first.holds is False and found.holds is None):
                    first = found
        least = [form for form in enough if not any(other.steps < form.steps for other in enough)]
        return least, first

    # -- what is missing --

    def _repair(self, now: Examined) -> Iterator[WholeRepair]:
        if not now.clues:
            text = "no repair is looked for where threads wait for ever or do what is undefined"
            self.notes.append(Note("repair", text))
            return
        every = sorted(steps(self.kernels, now, self.costs), key=lambda step: step.cost)
        enough: list[list[Step]] = []
        open_: list[WholeRepair] = []
        unknown = 0
        sets = [frozenset(chosen) for n in range(1, _TOGETHER + 1) for chosen in combinations(range(len(every)), n)]
        for chosen in sorted(sets, key=lambda chosen: (sum(every[n].cost for n in chosen), len(chosen))):
            made = [every[n] for n in sorted(chosen)]
            larger = any(all(any(step.within(other) for other in made) for step in small) for small in enough)
            if larger or not (edits := _together(made)):
                continue
            cost = sum(step.cost for step in made)
            first = next(iter(self.repairs or open_), None)
            if first is not None and (cost > _DEARER * first.cost or len(enough) == self.most):
                break
            if self._is_late() or self.tried >= _TRIED:
                self.notes.append(Note("bound", "the search has come to its bound: there may be more repairs"))
                break
            answered = self._changed(edits, repair=True)
            unknown += answered.holds is None
            repair = WholeRepair(cost, tuple(step.change for step in made))
            if answered.holds and answered.why:
                open_.append(repair)
            elif answered.holds:
                enough.append(made)
                self.repairs.append(repair)
                yield repair
        if open_ and not self.repairs:
            self.notes.append(Note("claims", "not every claim is decided of the launch after these repairs"))
            self.repairs += open_[: self.most]
            yield from self.repairs
        if not self.repairs:
            text = f"of the changes that were tried, up to {_TOGETHER} at once, none is enough"
            if unknown:
                text = (
                    f"of {self.tried} changes that were tried, up to {_TOGETHER} at once, none is known to be enough; "
                )
                text += f"{unknown} are not decided: they may be"
            self.notes.append(Note("repair", text))


def _together(chosen: Sequence[Step]) -> Edits | None:
    """The edits of some steps; None where two of them are of one instruction."""
    together: dict[tuple[int, int], Sequence[object]] = {}
    for step in chosen:
        if together.keys() & step.edits.keys():
            return None
        together |= step.edits
    return together  # type: ignore[return-value]


def _why(found: WholeResult) -> str:
    """What is wrong with a launch, in a word."""
    if found.races:
        race = found.races[0]
        return f"race of lines {race.first.line} and {race.second.line}"
    return found.reason or str(found.answer)
