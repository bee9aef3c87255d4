"""Two models on one test, or two versions of a test under one model: the final states that only one side allows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.execution import execution
from ptxmm.analysis.explain.chains import reason
from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.reasons import Found, Search, applies, reasons
from ptxmm.analysis.explain.steps import Reason
from ptxmm.analysis.instruction import bound_reached
from ptxmm.analysis.observe import exactly, memory_name, observed, outcome, register_name
from ptxmm.analysis.result import Execution, Note, Observation, Outcome, Status, told
from ptxmm.analysis.search import FinalStates, Question, final_states, rebuild, values, worst
from ptxmm.cat import Model, specification
from ptxmm.engines.explicit.witness import Confirmer, Rebuilt, Unconfirmed
from ptxmm.engines.result import Limits, Observed, Witness, observing
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import MemoryTerm, Proposition, RegisterTerm, State
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import has_unknown

MOST = 3
"""So many differing final states of each side are shown with an execution and a reason unless told otherwise."""


class Difference(Struct, frozen=True):
    """A final state that one side allows and the other does not.

    ``execution`` ends in it on the side that allows it (confirmed); None beyond the limit of those shown. ``axioms``:
    those of the other side that this execution violates. ``reason``: why the other side allows no execution that
    ends so, the shortest of its reasons; ``reasons``: how many there are. ``impossible``: the other side has no
    execution at all that ends so, whatever its axioms say.
    """

    outcome: Outcome
    execution: Execution | None = None
    axioms: tuple[str, ...] = ()
    reason: Reason | None = None
    reasons: int = 0
    impossible: bool = False


class Side(Struct, frozen=True):
    """One of the two: ``name`` is that of the model, or the file of the version. ``states``: how many final states it
    has; ``observation``: does the proposition of the condition hold in no, some or all of them; ``flags``:
    ``deadlock`` and the flags of the model; ``only``: the final states that the other side does not have."""

    name: str
    states: int
    observation: Observation | None
    status: Status
    flags: tuple[str, ...]
    only: tuple[Difference, ...]


class CompareResult(Struct, frozen=True, tag_field="analysis", tag="compare"):
    """The comparison of ``first`` with ``second``: of two models on one test (``versions`` is false), or of an old and
    a new version of a program under ``model``. ``differ``: they have different final states, or only one of them may
    wait for ever or has no meaning; None where a longer search could tell, or neither has a meaning. ``compared`` is
    false where one of the models does not cover the test; ``notes`` says why."""

    file: str
    test: str
    model: str
    status: Status
    versions: bool
    first: Side
    second: Side
    differ: bool | None
    notes: tuple[Note, ...]
    seconds: float
    compared: bool = True

    @property
    def finding(self) -> bool | None:
        """Whether the two differ."""
        return self.differ


def compare(
    test: Test,
    model: Model,
    other: Model,
    *,
    limits: Limits | None = None,
    most: int = MOST,
    names: tuple[str, str] | None = None,
) -> CompareResult:
    """Compare the final states of ``test`` (every register written, every element of memory) under two models.

    Of each side ``most`` differing states are shown with an execution and the reason of the other model against it.
    ``names``: what to call the models.
    Every state is confirmed. Raises ``PtxmmError``: kind ``unsupported`` where one of the models does not cover the
    test, ``internal`` where an execution is not confirmed; and what the engine raises.
    """
    limits = limits or Limits()
    start = time.perf_counter()
    for each in (model, other):
        check_compatible(test, each)
    what = observed(test, all_state=True)
    one, two = _View(test, model, what, limits), _View(test, other, what, limits)
    return _result(one, two, most, names or model_names(model, other), start=start)


def uncovered(test: Test, names: tuple[str, str], error: PtxmmError) -> CompareResult:
    """What stands for a comparison of two models, one of which does not cover ``test``, as ``error`` says."""
    first, second = (Side(name, 0, None, "complete", (), ()) for name in names)
    note = Note("unsupported", f"not compared: {error.message}")
    return CompareResult(
        test.file, test.name, names[0], "complete", False, first, second, False, (note,), 0.0, compared=False
    )


def compare_versions(
    old: Test, new: Test, model: Model, *, limits: Limits | None = None, most: int = MOST, all_state: bool = False
) -> CompareResult:
    """Compare the final states of two versions of a program under ``model``: which were lost, which are new.

    States are compared by what the conditions and ``locations`` of the two name and both have, or (``all_state``) by
    every register written and every location that both have; registers go by the names of their threads. Raises as
    ``compare``, and ``PtxmmError`` (kind ``usage``) where the two have nothing in common that could be compared.
    """
    limits = limits or Limits()
    start = time.perf_counter()
    for test in (old, new):
        check_compatible(test, model)
    observables = [_named(test, observed(test, all_state=True)) for test in (old, new)]
    chosen = observables if all_state else [_named(test, observed(test)) for test in (old, new)]
    wanted = {**chosen[0], **chosen[1]}
    common = [name for name in wanted if name in observables[0] and name in observables[1]]
    if not common:
        hint = "--all-state compares everything that both have" if not all_state else None
        message = f"{old.file} and {new.file} have no register or location in common that could be compared"
        raise PtxmmError(message, kind="usage", hint=hint)
    one, two = (
        _View(test, model, observing(all_names[n] for n in dict.fromkeys((*common, *own))), limits, common)
        for test, all_names, own in zip((old, new), observables, chosen, strict=True)
    )
    result = _result(one, two, most, (old.file, new.file), versions=True, start=start)
    apart = [name for name in wanted if name not in common]
    if not apart:
        return result
    note = Note("names", f"not compared, as only one version has them: {', '.join(apart)}")
    return replace(result, notes=(note, *result.notes))


_Key = tuple[tuple[str, str], ...]
"""The names and values of a final state."""


class _View:
    """The final states of one side, which are compared by the names ``common`` (None: all that are observed)."""

    def __init__(
        self, test: Test, model: Model, what: Observed, limits: Limits, common: Sequence[str] | None = None
    ) -> None:
        self.test = test
        self.model = model
        self.what = what
        self.limits = limits
        self.terms = {name: term for name, term in _named(test, what).items() if common is None or name in common}
        self.found: FinalStates = final_states(Question(test, model, what, limits))
        self.states: dict[_Key, State] = {}
        for state in self.found.rows:
            shown = outcome(test, what, state)
            named = {**shown.registers, **shown.memory}
            self.states.setdefault(tuple(sorted((name, str(named[name])) for name in self.terms)), state)

    @property
    def flags(self) -> tuple[str, ...]:
        search = self.found.search
        return (*(("deadlock",) if search.deadlock else ()), *sorted(search.flags))

    @property
    def observation(self) -> Observation | None:
        if self.found.meaningless:
            return None
        known = {holds for holds in self.found.satisfied if holds is not None}
        if known == {True, False}:
            return "sometimes"
        if self.found.status != "complete" or not known:
            return None
        return "always" if True in known else "never"


def _result(
    one: _View,
    two: _View,
    most: int,
    names: tuple[str, str],
    *,
    versions: bool = False,
    start: float,
) -> CompareResult:
    lost = [key for key in one.states if key not in two.states] if two.found.exhausted else []
    gained = [key for key in two.states if key not in one.states] if one.found.exhausted else []
    differ = _differ(one.found, two.found, bool(lost or gained))
    sides = [
        Side(
            name=name,
            states=len(view.states),
            observation=view.observation,
            status=view.found.status,
            flags=view.flags,
            only=tuple(_differences(view, other, keys, most)) if not view.found.meaningless else (),
        )
        for name, view, other, keys in ((names[0], one, two, lost), (names[1], two, one, gained))
    ]
    first, second = sides
    return CompareResult(
        file=one.test.file,
        test=one.test.name,
        model=one.model.name if versions else names[0],
        status=told(worst(one.found.status, two.found.status), differ is not None),
        versions=versions,
        first=first,
        second=second,
        differ=differ,
        notes=(*_notes(one, first), *_notes(two, second)),
        seconds=time.perf_counter() - start,
    )


def _differ(one: FinalStates, two: FinalStates, apart: bool) -> bool | None:
    """Whether the two differ: in their final states (``apart``), or as ``CompareResult`` says."""
    if one.meaningless and two.meaningless:
        return None
    if one.meaningless or two.meaningless:
        return True if (two if one.meaningless else one).exhausted else None
    if one.exhausted and two.exhausted:
        return apart or one.search.deadlock != two.search.deadlock
    return apart or None


def model_names(one: Model, other: Model) -> tuple[str, str]:
    """The names of two models, with the readings in which they differ where the names are equal."""
    if one.name != other.name:
        return one.name, other.name
    apart = [key for key, value in one.readings.items() if other.readings.get(key) != value]
    first, second = (specification(m.name, {key: m.readings[key] for key in apart}) for m in (one, other))
    return (one.path, other.path) if first == second else (first, second)


def _notes(view: _View, side: Side) -> Iterator[Note]:
    yield from view.found.remarks(side.name, bound_reached(view.test, view.limits.unroll))
    if view.found.computed:
        computed = "; ".join(view.found.computed)
        yield Note("unknown", f"{side.name}: the program computes with unknown values ({computed})")


def _differences(mine: _View, other: _View, keys: Sequence[_Key], most: int) -> Iterator[Difference]:
    """The states ``keys`` of ``mine``, those that satisfy the condition first; the first ``most`` with an execution."""
    witnesses = mine.found.witnesses(mine.what)
    shown = [(mine.states[key], outcome(mine.test, mine.what, mine.states[key])) for key in keys]
    shown.sort(key=lambda item: item[1].satisfies is not True)
    for number, (state, what) in enumerate(shown):
        if number >= most:
            yield Difference(what)
            continue
        witness = witnesses[values(mine.what, state)]
        program, rebuilt = rebuild(mine.found.test, mine.model, witness)
        there = _under(program, other.model, witness) if mine.test is other.test else None
        violated = () if there is None else tuple(axiom.name for axiom, _ in there.violated())
        difference = Difference(what, execution(program, rebuilt), violated)
        yield _explained(difference, mine, other, state, there)


def _under(test: Test, model: Model, witness: Witness) -> Rebuilt | None:
    """``witness`` with the relations of ``model``; None where its readings make other executions."""
    try:
        return Confirmer(test, model).rebuild(witness)
    except Unconfirmed:
        return None


def _explained(difference: Difference, mine: _View, other: _View, state: State, there: Rebuilt | None) -> Difference:
    """``difference`` with the reason of the other side, if possible one that holds of the execution that is shown.

    There is none in words where a value is unknown, and of a model with negated checks.
    """
    proposition = _as_proposition(mine, other, state)
    if proposition is None or any(axiom.negated and not axiom.flag for axiom in other.model.axioms):
        return difference
    found: list[Found] = []
    try:
        found += reasons(Search(other.test, other.model, proposition, mine.limits), mine.limits)
    except Timeout:
        return difference
    if not found:
        return replace(difference, impossible=True)
    here = [] if there is None else [item for item in found if applies(item.named, there)]
    best = min(here or found, key=lambda item: item.violation.cost)
    told = reason(other.model, Views(other.test, best.execution), best)
    return replace(difference, reason=told, reasons=len(found))


def _as_proposition(mine: _View, other: _View, state: State) -> Proposition | None:
    """``state`` in terms of the other side, or None where some value in it is unknown."""
    if has_unknown(mine.test):
        return None
    reached = dict(zip((*mine.what.registers, *mine.what.memory), values(mine.what, state), strict=True))
    return exactly((other.terms[name], reached[term]) for name, term in mine.terms.items())


def _named(test: Test, what: Observed) -> dict[str, RegisterTerm | MemoryTerm]:
    """What is observed, by the names that results use."""
    registers: Mapping[str, RegisterTerm | MemoryTerm] = {register_name(test, t): t for t in what.registers}
    return {**registers, **{memory_name(test, t): t for t in what.memory}}
