"""Where the threads of a test may run, and how narrow its scopes may be, so that it keeps a property."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.analysis.claims import trapping
from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.instruction import bound_reached, instruction
from ptxmm.analysis.placements import LEVELS, WORDS, Placed, placed
from ptxmm.analysis.property import Requirement, judge, requirement
from ptxmm.analysis.result import TIMEOUT, Instruction, Note, Status, told
from ptxmm.analysis.search import bug
from ptxmm.analysis.strength.family import Family
from ptxmm.analysis.strength.forms import below
from ptxmm.analysis.strength.sufficient import minimal_sets
from ptxmm.analysis.strength.units import Units, names, units
from ptxmm.analysis.words import Property
from ptxmm.cat import Model
from ptxmm.cat.ir import Coverage
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.program.variation import Variation
from ptxmm.ptx.ops import (
    Atomic,
    Fence,
    Load,
    MbarrierArrive,
    MbarrierTx,
    MbarrierWait,
    Multimem,
    Op,
    Scope,
    Store,
    TensormapFence,
)

MOST = 10
"""So many sets of narrowest scopes are listed unless told otherwise."""

_SCOPED = (Load, Store, Atomic, Multimem, Fence, TensormapFence, MbarrierArrive, MbarrierTx, MbarrierWait)

AS_WRITTEN = "as written"


class Together(Struct, frozen=True):
    """Threads that are closer than a placement asks for, and why."""

    threads: tuple[str, ...]
    reason: str


class Row(Struct, frozen=True):
    """The verdict of a placement. ``placement``: ``as written`` or one of ``placements.LEVELS``; ``words``: what it
    means. ``impossible``: why there is none, or None. ``holds``: whether the property does, None where that is not
    known or no execution reaches its end; ``status`` and ``flags`` are those of the search; ``refuted``: which claim
    about a kernel (``bounds``, ``barriers``, ``traps``) it does not meet. ``together``: threads that are closer than
    the placement asks for."""

    placement: str
    words: str
    impossible: str | None
    holds: bool | None
    status: Status | None
    flags: tuple[str, ...]
    refuted: str | None
    together: tuple[Together, ...]


class Narrowing(Struct, frozen=True):
    """The scope of an instruction: as ``given``, and the narrowest with which the property still holds if all others
    stay as they are (``alone``; None: not known)."""

    instruction: Instruction
    given: Scope
    alone: Scope | None


class ScopesResult(Struct, frozen=True, tag_field="analysis", tag="scopes"):
    """Placements and scopes of one test under one model.

    ``required``: the property in words. ``narrowings``: each instruction with a scope that can be narrower, ``joint``
    all choices of scopes for them that keep the property and of which none can be narrower (all iff ``listed``); both
    are empty where the property does not hold as written.
    """

    file: str
    test: str
    model: str
    status: Status
    required: str
    placements: tuple[Row, ...]
    narrowings: tuple[Narrowing, ...]
    joint: tuple[tuple[Scope, ...], ...]
    listed: bool
    notes: tuple[Note, ...]
    seconds: float

    @property
    def finding(self) -> bool | None:
        """Whether the property fails at some placement."""
        answers = [row.holds for row in self.placements if row.impossible is None]
        return True if False in answers else None if None in answers else False


class _Work(Struct):
    """What is found before the deadline; ``open``: what the searches of placements left open."""

    rows: list[Row] = field(default_factory=list)
    narrowings: list[Narrowing] = field(default_factory=list)
    joint: list[tuple[Scope, ...]] = field(default_factory=list)
    timeout: bool = False
    bounded: bool = False
    listed: bool = False
    open: dict[Note, None] = field(default_factory=dict)


def scopes(
    test: Test,
    model: Model,
    *,
    wanted: Property | None = None,
    limits: Limits | None = None,
    most: int = MOST,
) -> ScopesResult:
    """Whether ``test`` has the property ``wanted`` with its threads placed elsewhere, and the narrowest scopes that
    keep it; at most ``most`` choices of these for all instructions together. ``wanted``: None is all that is claimed of
    a kernel, and of other tests ``Property.never``.

    Raises ``PtxmmError``: ``usage`` where the test has no condition, ``unsupported`` where the model does not cover the
    test or less than two of its threads run on a GPU, ``internal`` where two searches disagree.
    """
    limits = limits or Limits()
    start = time.perf_counter()
    check_compatible(test, model)
    test = trapping(test) if wanted is None else test
    if sum(not t.placement.host for t in test.threads) < 2:
        message = "fewer than two threads of the test run on a GPU: there are no placements to compare"
        raise PtxmmError(message, kind="unsupported", file=test.file)
    work, text = _Work(), ""
    try:
        required = requirement(test, model, wanted, limits)
        text = required.text
        _search(test, model, required, limits, most, work)
    except Timeout:
        work.timeout = True
    return ScopesResult(
        file=test.file,
        test=test.name,
        model=model.name,
        status=_status(work),
        required=text,
        placements=tuple(work.rows),
        narrowings=tuple(work.narrowings),
        joint=tuple(work.joint),
        listed=work.listed,
        notes=tuple(_notes(test, work, limits)),
        seconds=time.perf_counter() - start,
    )


def _search(test: Test, model: Model, wanted: Requirement, limits: Limits, most: int, work: _Work) -> None:
    own = _row(Placed(AS_WRITTEN, test, None), model, wanted, limits, work)
    work.rows.append(own)
    for level in LEVELS:
        work.rows.append(_row(placed(test, level, model.coverage), model, wanted, limits, work))
    if own.holds:
        if "deadlock" not in own.flags:  # nor may threads wait for ever that do not now
            wanted = replace(wanted, deadlock=True)
        _narrow(test, model, wanted, limits, most, work)


def _row(place: Placed, model: Model, wanted: Requirement, limits: Limits, work: _Work) -> Row:
    """The verdict on the property at one placement."""
    words = WORDS.get(place.level, AS_WRITTEN)
    if place.test is None:
        return Row(place.level, words, place.reason, None, None, (), None, ())
    judged = judge(place.test, model, wanted, limits)
    names = [tuple(place.test.threads[i].name for i in tie.threads) for tie in place.together]
    reasons = [tie.reason for tie in place.together]
    together = tuple(dict.fromkeys(map(Together, names, reasons)))
    result = judged.result
    work.open |= dict.fromkeys(item for item in result.notes if item.kind == "open")
    # Every property holds of nothing; that is no reason to call a placement or a scope good enough.
    nothing = judged.holds and not result.outcomes and (judged.vacuous or judged.deadlock)
    holds = None if nothing else judged.answer(wanted)
    status = told(judged.status(wanted), holds is not None)
    return Row(place.level, words, None, holds, status, result.flags, judged.refuted(wanted), together)


# Narrower scopes.


def narrower(op: Op, coverage: Coverage) -> tuple[Scope, ...]:
    """The scopes that ``op`` may have in its place, from the narrowest to its own; none where it has no other."""
    if not isinstance(op, _SCOPED) or op.scope is None:
        return ()
    if (isinstance(op, Load | Store) and (op.volatile or op.mmio)) or (isinstance(op, Fence) and op.restrict):
        return ()
    less = below(op.scope, coverage)
    return (*less, op.scope) if less else ()


def _narrow(test: Test, model: Model, wanted: Requirement, limits: Limits, most: int, work: _Work) -> None:
    """Which narrower scopes keep the property, for each instruction alone and for all of them."""
    together = units(test)
    scopes = {sites[0]: narrower(test.at(sites[0]), model.coverage) for sites in together.sites.values()}
    choices = {site: found for site, found in scopes.items() if found}
    if not choices:
        work.listed = True
        return
    variations = {
        site: _variation(owner, test.at(site), found)
        for owner, found in choices.items()
        for site in together.sites[together.of[owner]]
    }
    suffices = Family(test, variations, model, wanted, limits).suffices
    everything = frozenset(Switch(*site, n) for site, found in choices.items() for n in range(len(found) - 1))
    if not suffices(everything):
        raise bug(test, "the property fails as written in one search and holds in another")
    search = _Ordinary(test, model, wanted, limits, together)
    _alone(choices, everything, suffices, search, work)
    sets = minimal_sets(dict.fromkeys(everything, 1), suffices, limits.check)
    _join(({s: found[sum(switch.site == s for switch in on)] for s, found in choices.items()} for on in sets),
          search, most, work)  # fmt: skip


def _alone(
    choices: Mapping[Site, tuple[Scope, ...]],
    everything: frozenset[Switch],
    suffices: Callable[[frozenset[Switch]], bool],
    search: _Ordinary,
    work: _Work,
) -> None:
    """List the narrowest scope of each instruction with which the property holds if all others stay as they are."""
    for site, found in choices.items():
        others = frozenset(s for s in everything if s.site != site)
        least = next(n for n in range(len(found)) if suffices(others | {Switch(*site, k) for k in range(n)}))
        known = search.agrees({site: found[least]}, True)
        if least:
            known = search.agrees({site: found[least - 1]}, False) and known
        work.bounded = work.bounded or not known
        shown = replace(instruction(search.test, *site), thread=names(search.test, search.together.threads(site)))
        work.narrowings.append(Narrowing(shown, found[-1], found[least] if known else None))


def _join(narrowest: Iterable[dict[Site, Scope]], search: _Ordinary, most: int, work: _Work) -> None:
    """List those of the ``narrowest`` scopes with which the property holds."""
    unknown = False
    for scopes in narrowest:
        if len(work.joint) == most:
            return
        if search.agrees(scopes, True):
            work.joint.append(tuple(scopes.values()))
        else:  # a wider choice may do, which is no smallest one for the solver
            work.bounded = unknown = True
    work.listed = not unknown


def _variation(owner: Site, op: Op, found: Sequence[Scope]) -> Variation:
    return Variation(
        tuple((_with_scope(op, scope), frozenset(Switch(*owner, k) for k in range(n))) for n, scope in enumerate(found))
    )


def _with_scope(op: Op, scope: Scope) -> Op:
    assert isinstance(op, _SCOPED)
    return replace(op, scope=scope)


class _Ordinary(Struct, frozen=True):
    """The ordinary search, which has to find the same as that of all scopes at once."""

    test: Test
    model: Model
    wanted: Requirement
    limits: Limits
    together: Units

    def agrees(self, chosen: Mapping[Site, Scope], holds: bool) -> bool:
        """Whether it finds that with the scopes ``chosen`` the property holds or does not; False where it is not
        complete: narrower scopes may have executions that go on beyond the bound.

        Raises ``PtxmmError`` (kind ``internal``) where it finds the contrary, and ``Timeout``.
        """
        edits = {
            site: (_with_scope(self.test.at(site), scope),)
            for owner, scope in chosen.items()
            for site in self.together.sites[self.together.of[owner]]
        }
        judged = judge(edited(self.test, edits), self.model, self.wanted, self.limits)
        if judged.holds is not None and judged.holds != holds:
            raise bug(self.test, "two searches disagree on whether a scope is wide enough")
        if judged.result.status == "timeout":
            raise Timeout
        return judged.holds is not None


def _status(work: _Work) -> Status:
    known = {row.status for row in work.rows}
    if work.timeout or "timeout" in known:
        return "timeout"
    if work.rows and work.rows[0].status == "undefined":
        return "undefined"
    if work.bounded or "bounded" in known:
        return "bounded"
    return "inconclusive" if "inconclusive" in known else "complete"


def _notes(test: Test, work: _Work, limits: Limits) -> Iterator[Note]:
    status = {row.status for row in work.rows}
    if work.bounded and "bounded" not in status:
        text = f"the search with narrower scopes is not complete; --unroll takes a higher bound than {limits.unroll}"
        yield Note("bound", text)
    if "bounded" in status:
        yield Note("bound", bound_reached(test, limits.unroll))
    if work.timeout or "timeout" in status:
        yield TIMEOUT
    elif work.rows and work.rows[0].status == "undefined" and work.rows[0].holds is None:
        yield Note("scopes", "the program has no meaning as written: there are no scopes to narrow")
    elif work.rows and work.rows[0].holds is False:
        yield Note("scopes", "the property fails as written: there are no scopes to narrow")
    yield from work.open
    if any(row.status == "inconclusive" and row.flags for row in work.rows):
        yield Note("vacuous", "unknown: no execution reaches its end")
    if work.joint and not work.listed and not work.timeout and not work.bounded:
        yield Note("limit", f"there may be more choices of scopes than these {len(work.joint)}; --most lists more")
