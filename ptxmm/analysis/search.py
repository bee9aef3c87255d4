"""The final states of a test from one engine or both, each confirmed, over all values of memory that has none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain, islice

from msgspec import Struct, field

from ptxmm.analysis.compatibility import check_covered
from ptxmm.analysis.result import TIMEOUT, Note, Status
from ptxmm.analysis.uninitialised import settle_uninitialised
from ptxmm.cat import Model, index
from ptxmm.engines.explicit.witness import Confirmer, Rebuilt, Unconfirmed
from ptxmm.engines.result import Found, Limits, Observed, Search, Witness
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import Proposition, State, evaluate
from ptxmm.program.test import Test
from ptxmm.program.unspecified.left_open import left_open
from ptxmm.program.unspecified.unknown import Assignment, assignments, computed_with, unknown_bytes

_Stages = Callable[[Test, Model, Observed, Limits, "Proposition | None"], Iterator[Search]]
_LAST_STATES = 1.0
"""Seconds after the deadline in which states that were found before it are confirmed."""


class FinalStates(Struct):
    """What the searches for a test found together.

    ``search`` has the facts of all; ``rows`` the final states, one for all that differ in an unknown initial value
    only; ``satisfied``: for each final state, those left out of ``rows`` too, whether it satisfies the proposition of
    the condition (None: there is no condition). ``depends``: that differs within a row. ``computed``: where the program
    computes with unknown values, so that not all values that matter may be known. ``left_open``: what the language
    leaves open that was not tried in full. ``unrolled``: some execution goes on beyond the bound of a loop. ``test``:
    the one whose executions ``search`` has; in it, unknown values that do not matter are 0 (``uninitialised``).
    ``late``: the engines that the deadline ended, where several search. ``agreed``: as ``satisfied``, of the final
    states that all of them found.
    """

    search: Search
    test: Test
    rows: list[State] = field(default_factory=list)
    satisfied: list[bool | None] = field(default_factory=list)
    depends: bool = False
    computed: list[str] = field(default_factory=list)
    unrolled: bool = False
    left_open: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    agreed: list[bool | None] = field(default_factory=list)

    @property
    def exhausted(self) -> bool:
        """Whether these are all final states."""
        return self.search.exhausted and not (self.search.timeout or self.search.bounded)

    @property
    def meaningless(self) -> bool:
        """Whether the program has no meaning."""
        return self.search.undefined is not None or bool(self.search.flags & index().undefined)

    @property
    def status(self) -> Status:
        """How far the search got."""
        if self.meaningless:
            return "undefined"
        return "timeout" if self.search.timeout else "complete" if self.exhausted else "bounded"

    def remarks(self, name: str, bound: str) -> Iterator[Note]:
        """What is to be said of the search on the side ``name``; ``bound``: if it was cut by that of a loop."""
        search = self.search
        if search.undefined is not None:
            yield Note("undefined", f"{name}: {search.undefined}")
        for flag in sorted(search.flags & index().undefined):
            yield Note("undefined", f"{name}: some execution raises the flag {flag}")
        if self.unrolled:
            yield Note("bound", f"{name}: {bound}")
        if search.timeout:
            yield Note("timeout", f"{name}: {TIMEOUT.text}")
        if search.deadlock:
            yield Note("deadlock", f"{name}: some execution waits for ever at a barrier")


def final_states(
    names: tuple[str, ...],
    test: Test,
    model: Model,
    what: Observed,
    limits: Limits,
    proposition: Proposition | None,
) -> FinalStates:
    """The final states of ``test`` from the engines ``names``, which must agree.

    With ``proposition`` only as many as decide it. Raises ``PtxmmError``: kind ``internal`` where a witness is not
    confirmed or the engines disagree, ``unsupported`` where an execution does what ``model`` does not cover, and what
    the engines raise.
    """
    return next(stages(names, test, model, what, limits, proposition))


def stages(
    names: tuple[str, ...],
    test: Test,
    model: Model,
    what: Observed,
    limits: Limits,
    proposition: Proposition | None,
) -> Iterator[FinalStates]:
    """As ``final_states``; with ``proposition`` all final states after those that decide it."""
    try:
        test = settle_uninitialised(test, model, limits, what)
    except Timeout:
        yield FinalStates(Search(timeout=True), test)
        return
    begun: list[tuple[Assignment, list[Iterator[Search]]]] = []

    def searched(wanted: Proposition | None) -> Iterator[tuple[Assignment, list[Search]]]:
        """What the engines find next with each choice of the unknown values."""
        for assigned, engines in begun:
            yield assigned, [next(engine) for engine in engines]
        for assigned in islice(assignments(test, {term.thread for term in what.registers}), len(begun), None):
            engines = [_confirmed(name, assigned.test, model, what, limits, wanted) for name in names]
            begun.append((assigned, engines))
            yield assigned, [next(engine) for engine in engines]

    for wanted in dict.fromkeys((proposition, None)):
        result = _together(names, test, model, what, limits, wanted, searched(wanted))
        yield result
        if result.search.timeout:
            return


def _together(
    names: tuple[str, ...],
    test: Test,
    model: Model,
    what: Observed,
    limits: Limits,
    proposition: Proposition | None,
    searched: Iterator[tuple[Assignment, list[Search]]],
) -> FinalStates:
    """What the searches ``searched`` found together."""
    asked = {term.thread for term in what.registers}
    result = FinalStates(Search(exhausted=True), test, computed=computed_with(test), left_open=left_open(test, asked))
    condition = None if test.condition is None else test.condition.proposition
    general: list[tuple[State, bool | None]] = []
    listed: set[tuple[int, ...]] = set()
    for assigned, searches in searched:
        _add(result.search, searches[0])
        if len(searches) > 1:
            _compare(test, what, *searches)
            _add_late(result, names, searches)
        common = set.intersection(*(_states(what, search) for search in searches))
        instances = {_instance(test, what, state, assigned): holds for state, holds in general}
        for state in sorted((found.state for found in searches[0].found), key=lambda state: values(what, state)):
            holds = None if condition is None else evaluate(condition, state)
            if not assigned.bytes:
                general.append((state, holds))
            key = values(what, state)
            if assigned.bytes and key in instances:
                result.depends = result.depends or holds != instances[key]
            elif key not in listed:  # several initial values may lead to the same state
                result.rows.append(state)
                listed.add(key)
            result.satisfied.append(holds)
            if key in common:
                result.agreed.append(holds)
        decided = proposition is not None and {True, False} <= set(result.satisfied)
        if decided or len(result.rows) == limits.states:
            break
    check_covered(test, model, result.search)
    result.unrolled = result.search.bounded
    partial = bool(result.computed or result.left_open)
    result.search.exhausted &= not partial
    result.search.bounded |= partial
    return result


def _states(what: Observed, search: Search) -> set[tuple[int, ...]]:
    return {values(what, found.state) for found in search.found}


def _add(total: Search, search: Search) -> None:
    """Add the facts of one search to those of all."""
    total.exhausted = total.exhausted and search.exhausted
    total.bounded = total.bounded or search.bounded
    total.loops |= search.loops
    total.deadlock = total.deadlock or search.deadlock
    total.timeout = total.timeout or search.timeout
    total.undefined = total.undefined or search.undefined
    total.flags |= search.flags
    total.found += search.found


def _add_late(result: FinalStates, names: tuple[str, ...], searches: list[Search]) -> None:
    """Where one of several engines did not get to its end, they have not been compared to theirs."""
    result.late += [n for n, s in zip(names, searches, strict=True) if s.timeout and n not in result.late]
    result.search.timeout = bool(result.late)
    result.search.exhausted = result.search.exhausted and not result.late


def _instance(test: Test, what: Observed, state: State, assigned: Assignment) -> tuple[int, ...]:
    """The values of ``state`` with those of ``assigned`` in place of the unknown ones."""
    unknown = unknown_bytes(test)

    def put(value: int, bits: int) -> int:
        content = value.to_bytes(max(1, bits // 8), "little")
        return int.from_bytes(bytes(assigned.bytes.get(b, b) if b in unknown else b for b in content), "little")

    registers = tuple(put(state.registers[t.thread, t.register], t.type.bits) for t in what.registers)
    return registers + tuple(put(state.memory[t.key, t.index], t.type.bits) for t in what.memory)


def engine_named(name: str) -> _Stages:
    """The search of an engine, which is loaded only where it is used: Z3 costs 0.05 s."""
    if name == "z3":
        from ptxmm.engines.symbolic.solve import stages as solver_stages

        return solver_stages
    from ptxmm.engines.explicit.enumerate import stages as explicit_stages

    return explicit_stages


def _confirmed(
    name: str, test: Test, model: Model, what: Observed, limits: Limits, proposition: Proposition | None
) -> Iterator[Search]:
    """The stages of a search, every final state of which ends an execution that the interpreter went through again.

    States that there is no time to confirm are dropped. A search that the deadline ended has its last states
    confirmed all the same, for a second.
    """
    confirmer = Confirmer(test, model)
    confirmed: dict[int, Found] = {}
    searches = engine_named(name)(test, model, what, limits, proposition)
    while True:
        try:
            search = next(searches)
        except StopIteration:
            return
        except Timeout:
            search = Search(timeout=True)
        for number, found in enumerate(search.found):
            if id(found) in confirmed:
                continue
            if limits.deadline is not None and time.monotonic() > limits.deadline + _LAST_STATES:
                del search.found[number:]
                search.timeout, search.exhausted = True, False
                break
            try:
                state = confirmer.confirm(what, found.witness)
            except Unconfirmed as error:
                raise bug(test, f"a witness under {model.name} is not confirmed: {error}") from error
            if values(what, state) != values(what, found.state):
                raise bug(test, f"a witness under {model.name} ends in another final state than the engine found")
            confirmed[id(found)] = found
        yield search


def rebuild(test: Test, model: Model, witness: Witness) -> tuple[Test, Rebuilt]:
    """``witness``, which was confirmed for one choice of the unknown initial values, and the test with that choice.

    Raises ``PtxmmError`` (kind ``internal``) if it is an execution for none.
    """
    reason = ""
    for assigned in chain(assignments(test), assignments(test, every=True)):
        try:
            return assigned.test, Confirmer(assigned.test, model).rebuild(witness)
        except Unconfirmed as error:
            reason = reason or str(error)
    raise bug(test, f"a witness under {model.name} is not confirmed: {reason}")


def _compare(test: Test, what: Observed, one: Search, two: Search) -> None:
    """Raise unless both engines found the same, as far as each of them got."""
    states = [_states(what, search) for search in (one, two)]
    facts = [_facts(search) for search in (one, two)]
    # What a search that was cut did not find, it may have missed.
    differ = (one.exhausted and (states[1] - states[0] or facts[1] - facts[0])) or (
        two.exhausted and (states[0] - states[1] or facts[0] - facts[1])
    )
    if differ:
        only = " and ".join(
            " ".join((f"{len(states[mine] - states[1 - mine])} final states", *sorted(facts[mine] - facts[1 - mine])))
            + f" only in {name}"
            for mine, name in enumerate(("z3", "enumerate"))
        )
        raise bug(test, f"the engines disagree: {only}")


def _facts(search: Search) -> set[str]:
    named = {"bounded": search.bounded, "deadlock": search.deadlock, "undefined": search.undefined is not None}
    return search.flags | {name for name, holds in named.items() if holds}


def worst(*statuses: Status) -> Status:
    """The status of several searches together."""
    order: tuple[Status, ...] = ("undefined", "timeout", "bounded", "complete")
    return min(statuses, key=order.index)


def bug(test: Test, message: str) -> PtxmmError:
    """An error of kind ``internal``."""
    return PtxmmError(
        message, kind="internal", file=test.file, hint="this is a bug in ptxmm; please report it with the test"
    )


def values(what: Observed, state: State) -> tuple[int, ...]:
    """The values of ``state``, in the order of ``what``."""
    registers = tuple(state.registers[t.thread, t.register] for t in what.registers)
    return registers + tuple(state.memory[t.key, t.index] for t in what.memory)
