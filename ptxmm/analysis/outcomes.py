"""The allowed final states of a test under a model, each confirmed, and the verdict on its condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.expectation import Expectation, conclude
from ptxmm.analysis.observe import observed, outcome
from ptxmm.analysis.result import Note, Result
from ptxmm.analysis.verdict import Verdict, decide
from ptxmm.cat import Model, index
from ptxmm.engines.result import Limits, Observed, Search
from ptxmm.engines.witness import Confirmer, Unconfirmed
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import Proposition, State
from ptxmm.program.test import Test

ENGINES = ("auto", "z3", "enumerate", "both")
_Search = Callable[[Test, Model, Observed, Limits, "Proposition | None"], Search]
_LAST_STATES = 1.0
"""Seconds after the deadline in which states that were found before it are confirmed."""
_TIMEOUT = Note("timeout", "the time limit ended the search; --timeout takes a higher one")


def check(
    test: Test,
    model: Model,
    *,
    engine: str = "auto",
    limits: Limits | None = None,
    expectation: Expectation | None = None,
    all_state: bool = False,
    enumerate_all: bool = True,
) -> Result:
    """Decide the condition of ``test`` under ``model`` and list its final states.

    ``enumerate_all``: list every final state; else only the witnesses that decide the condition (at most two; all
    states where there is no condition). ``all_state``: final states are distinguished by every register written and
    every object, not just by what the test names. Each state has been confirmed by executing its witness again.
    ``engine``: one of ``ENGINES``; ``auto`` is z3, ``both`` always lists all states and compares them.

    Raises ``PtxmmError``: kind ``unsupported`` where the model does not cover the test, ``internal`` where a witness
    is not confirmed or the engines disagree, ``usage`` for an unknown engine; and what the engines raise.
    """
    if engine not in ENGINES:
        raise PtxmmError(f"unknown engine {engine!r}", kind="usage", hint=f"engines: {', '.join(ENGINES)}")
    limits = limits or Limits()
    condition = test.condition
    check_compatible(test, model)
    names = ("z3", "enumerate") if engine == "both" else ("z3" if engine == "auto" else engine,)
    for name in names:
        _engine(name)
    start = time.perf_counter()
    what = observed(test, all_state)
    whole = enumerate_all or engine == "both" or condition is None
    proposition = None if whole or condition is None else condition.proposition
    searches = [_confirmed(name, test, model, what, limits, proposition) for name in names]
    if engine == "both":
        _compare(test, what, *searches)
    search = searches[0]
    states = sorted((found.state for found in search.found), key=lambda state: _values(what, state))
    outcomes = tuple(outcome(test, what, state) for state in states)
    satisfied = [o.satisfies for o in outcomes]
    partial = whole and not search.exhausted
    verdict = decide(search, condition.kind if condition else None, True in satisfied, False in satisfied, partial)
    return Result(
        file=test.file,
        test=test.name,
        model=model.name,
        engine="z3" if engine == "auto" else engine,
        quantifier=condition.kind if condition else None,
        condition=condition.text if condition else None,
        holds=verdict.holds,
        observation=verdict.observation,
        status=verdict.status,
        flags=verdict.flags,
        expected=None if expectation is None else str(expectation),
        conclusion=conclude(expectation, verdict, satisfied),
        outcomes=outcomes,
        listed=whole and not partial and verdict.status not in ("bounded", "timeout"),
        notes=_notes(model, search, verdict, limits),
        seconds=time.perf_counter() - start,
    )


def check_listed(
    test: Test,
    model: Model,
    most: int,
    *,
    engine: str = "auto",
    limits: Limits | None = None,
    expectation: Expectation | None = None,
    all_state: bool = False,
) -> Result:
    """As ``check``: first the verdict, which then stands, then up to ``most`` final states as far as time permits."""
    limits = limits or Limits()
    few = replace(limits, states=most)
    once = engine == "both" or test.condition is None
    first = check(
        test,
        model,
        engine=engine,
        limits=limits if engine == "both" else few,
        expectation=expectation,
        all_state=all_state,
        enumerate_all=once,
    )
    second = first
    if not once and first.status != "timeout":
        second = check(test, model, engine=engine, limits=few, expectation=expectation, all_state=all_state)
        for old, new in ((first.holds, second.holds), (first.observation, second.observation)):
            if old is not None and new is not None and old != new:
                raise _bug(test, f"two searches under {model.name} disagree: {old} and {new}")
    listed, outcomes = second.listed and len(second.outcomes) <= most, second.outcomes
    if not listed:
        deciding = {found.satisfies: found for found in first.outcomes}.values()
        outcomes = (*deciding, *(found for found in outcomes if found not in deciding))[:most]
    return replace(
        first,
        outcomes=outcomes,
        listed=listed,
        seconds=first.seconds + (second.seconds if second is not first else 0.0),
    )


def _engine(name: str) -> _Search:
    """The search of an engine, which is loaded only where it is used: Z3 costs 0.05 s."""
    if name == "z3":
        from ptxmm.engines.solve import search as solver_search

        return solver_search
    from ptxmm.engines.enumerate import search as explicit_search

    return explicit_search


def _search(
    name: str, test: Test, model: Model, what: Observed, limits: Limits, proposition: Proposition | None
) -> Search:
    try:
        return _engine(name)(test, model, what, limits, proposition)
    except Timeout:
        return Search(timeout=True)


def _confirmed(
    name: str, test: Test, model: Model, what: Observed, limits: Limits, proposition: Proposition | None
) -> Search:
    """A search, every final state of which ends an execution that the interpreter went through again.

    States that there is no time to confirm are dropped. A search that the deadline ended has its last states
    confirmed all the same, for a second.
    """
    search = _search(name, test, model, what, limits, proposition)
    confirmer = Confirmer(test, model)
    for number, found in enumerate(search.found):
        if limits.deadline is not None and time.monotonic() > limits.deadline + _LAST_STATES:
            del search.found[number:]
            search.timeout, search.exhausted = True, False
            break
        try:
            state = confirmer.confirm(what, found.witness)
        except Unconfirmed as error:
            raise _bug(test, f"a witness under {model.name} is not confirmed: {error}") from error
        if _values(what, state) != _values(what, found.state):
            raise _bug(test, f"a witness under {model.name} ends in another final state than the engine found")
    return search


def _compare(test: Test, what: Observed, one: Search, two: Search) -> None:
    """Raise unless both engines found the same, as far as each of them got."""
    states = [{_values(what, found.state) for found in search.found} for search in (one, two)]
    facts = [_facts(search) for search in (one, two)]
    # What a search that was cut did not find, it may have missed.
    differ = (
        (one.exhausted and (states[1] - states[0] or facts[1] - facts[0]))
        or (two.exhausted and (states[0] - states[1] or facts[0] - facts[1]))
    )
    if differ:
        only = " and ".join(
            " ".join((f"{len(states[mine] - states[1 - mine])} final states", *sorted(facts[mine] - facts[1 - mine])))
            + f" only in {name}"
            for mine, name in enumerate(("z3", "enumerate"))
        )
        raise _bug(test, f"the engines disagree: {only}")


def _facts(search: Search) -> set[str]:
    named = {"bounded": search.bounded, "deadlock": search.deadlock, "undefined": search.undefined is not None}
    return search.flags | {name for name, holds in named.items() if holds}


def _bug(test: Test, message: str) -> PtxmmError:
    return PtxmmError(
        message, kind="internal", file=test.file, hint="this is a bug in ptxmm; please report it with the test"
    )


def _values(what: Observed, state: State) -> tuple[int, ...]:
    registers = tuple(state.registers[t.thread, t.register] for t in what.registers)
    return registers + tuple(state.memory[t.key, t.index] for t in what.memory)


def _chosen_readings(model: Model) -> list[tuple[str, str]]:
    """The readings of ``model`` that are not the default."""
    shipped = index().models.get(model.name)
    default = {key: reading.values[0] for key, reading in index().readings.items()}
    default |= shipped.readings if shipped else {}
    return sorted((key, value) for key, value in model.readings.items() if default.get(key) != value)


def _notes(model: Model, search: Search, verdict: Verdict, limits: Limits) -> tuple[Note, ...]:
    notes = [Note("reading", f"reading {key}={value}") for key, value in _chosen_readings(model)]
    if search.undefined is not None:
        notes.append(Note("undefined", search.undefined))
    if search.bounded:
        text = f"a loop goes on after {limits.unroll} backward branches; --unroll takes a higher bound"
        notes.append(Note("bound", text))
    if search.timeout:
        notes.append(_TIMEOUT)
    if search.deadlock:
        ends = "some execution waits" if search.found else "no execution was found to reach its end: threads wait"
        notes.append(Note("deadlock", f"{ends} for ever at a barrier"))
    if "vacuous" in verdict.flags:
        notes.append(Note("vacuous", "no consistent execution reaches its end: every statement holds of nothing"))
    return tuple(notes)


def timed_out(test: Test, model: str, engine: str, expectation: Expectation | None, seconds: float) -> Result:
    """The result of a check that was ended from outside before it gave any."""
    condition = test.condition
    search = Search(timeout=True)
    verdict = decide(search, condition.kind if condition else None, False, False)
    return Result(
        file=test.file,
        test=test.name,
        model=model,
        engine=engine,
        quantifier=condition.kind if condition else None,
        condition=condition.text if condition else None,
        holds=None,
        observation=None,
        status=verdict.status,
        flags=(),
        expected=None if expectation is None else str(expectation),
        conclusion=conclude(expectation, verdict, ()),
        outcomes=(),
        listed=False,
        notes=(_TIMEOUT,),
        seconds=seconds,
    )
