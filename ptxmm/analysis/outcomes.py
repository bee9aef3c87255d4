"""The allowed final states of a test under a model, each confirmed, and the verdict on its condition."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.execution import execution
from ptxmm.analysis.expectation import Expectation, conclude
from ptxmm.analysis.instruction import bound_reached
from ptxmm.analysis.observe import observed, outcomes
from ptxmm.analysis.readings import basis
from ptxmm.analysis.result import TIMEOUT, Execution, Listed, Note, Outcome, Result, told
from ptxmm.analysis.search import FinalStates, Question, bug, engine_named, rebuild, stages, values
from ptxmm.analysis.verdict import Verdict, decide, doubted, status_of
from ptxmm.analysis.words import Conclusion
from ptxmm.cat import Model
from ptxmm.engines.result import Limits, Observed, Search
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import Conjunction, State, evaluate
from ptxmm.program.test import Test
from ptxmm.program.unspecified.undecided import either_way, note
from ptxmm.program.unspecified.unknown import assignments, described

ENGINES = ("auto", "z3", "enumerate", "both")


def late(engines: Sequence[str]) -> Note | None:
    """What to say where the time limit ended some of several ``engines``; None where it ended none."""
    if not engines:
        return None
    text = f"the time limit ended the search of {' and '.join(engines)}, so the engines were not compared in full"
    return Note("timeout", f"{text}; --timeout takes a higher one")


def check(
    test: Test,
    model: Model,
    *,
    engine: str = "auto",
    limits: Limits | None = None,
    expectation: Expectation | None = None,
    all_state: bool = False,
    enumerate_all: bool = True,
    graphs: bool = False,
    what: Observed | None = None,
) -> Result:
    """Decide the condition of ``test`` under ``model`` and list its final states.

    ``enumerate_all``: list every final state; else only the witnesses that decide the condition (at most two; all
    states where there is no condition). ``all_state``: final states are distinguished by every register written and
    every object, not just by what the test names; ``what``: by that. Each state has been confirmed by executing its
    witness again. ``graphs``: with each state give an execution that ends in it, as a graph.
    ``engine``: one of ``ENGINES``; ``auto`` is z3, ``both`` always lists all states and compares them.

    Raises ``PtxmmError``: kind ``unsupported`` where the model does not cover the test, ``internal`` where a witness
    is not confirmed or the engines disagree, ``usage`` for an unknown engine; and what the engines raise.
    """
    question = _question(test, model, engine, limits, what or observed(test, all_state), enumerate_all)
    return next(_stages(question, expectation, graphs))


def check_listed(
    test: Test,
    model: Model,
    most: int,
    *,
    engine: str = "auto",
    limits: Limits | None = None,
    expectation: Expectation | None = None,
    all_state: bool = False,
    graphs: bool = False,
) -> Result:
    """As ``check``: first the verdict, which then stands, then up to ``most`` final states as far as time permits."""
    few = limits if engine == "both" else replace(limits or Limits(), states=most)
    results = _stages(_question(test, model, engine, few, observed(test, all_state), False), expectation, graphs)
    first = next(results)
    second = first if first.status == "timeout" else next(results, first)
    for old, new in ((first.holds, second.holds), (first.observation, second.observation)):
        if old is not None and new is not None and old != new:
            raise bug(test, f"two searches under {model.name} disagree: {old} and {new}")
    listed, outcomes = second.listed and len(second.outcomes) <= most, second.outcomes
    if not listed:
        deciding = {found.satisfies: found for found in first.outcomes}.values()
        outcomes = (*deciding, *(found for found in outcomes if found not in deciding))[:most]
    return replace(first, outcomes=outcomes, listed=listed, seconds=second.seconds)


def check_streamed(
    test: Test,
    model: Model,
    most: int | None = None,
    *,
    engine: str = "auto",
    limits: Limits | None = None,
    expectation: Expectation | None = None,
    all_state: bool = False,
) -> tuple[Result, Iterator[Outcome | Listed]]:
    """As ``check_listed``: the verdict, with the final states that decide it, and all of them, each as soon as it is
    found and confirmed, in that order; at last how many there are.

    Nothing is kept of a state; but where the program has unknown values, or several engines search, the states come
    when they all are known, in the order of their values.
    """
    few = limits if engine == "both" else replace(limits or Limits(), states=most)
    question = replace(_question(test, model, engine, few, observed(test, all_state), False), each=True)
    if question.proposition is None and engine != "both":
        question = replace(question, proposition=Conjunction(()))
    start = time.perf_counter()
    coming = stages(question)
    states = first = next(coming)
    verdict = _result(question, expectation, first)
    known = {values(question.what, state) for state in first.rows}

    def found() -> Iterator[State]:
        nonlocal states
        yield from first.rows
        for states in coming:
            yield from (state for state in states.rows if values(question.what, state) not in known)

    def listed() -> Iterator[Outcome | Listed]:
        count = satisfying = 0
        for outcome in outcomes(test, question.what, islice(found(), most)):
            count += 1
            satisfying += outcome.satisfies is True
            yield outcome
        if (satisfying and verdict.observation == "never") or (satisfying < count and verdict.observation == "always"):
            raise bug(test, f"a state under {model.name} is against what was decided: {verdict.observation}")
        whole = states.search.exhausted and status_of(states.search) not in ("bounded", "timeout")
        whole = whole and (most is None or len(first.rows) <= most)
        yield Listed(
            test.file,
            test.name,
            model.name,
            count,
            None if test.condition is None else satisfying,
            whole,
            not whole and count != most,
            time.perf_counter() - start,
        )

    return replace(verdict, seconds=time.perf_counter() - start), listed()


def _question(
    test: Test, model: Model, engine: str, limits: Limits | None, what: Observed, enumerate_all: bool
) -> Question:
    """What ``check`` asks for."""
    if engine not in ENGINES:
        raise PtxmmError(f"unknown engine {engine!r}", kind="usage", hint=f"engines: {', '.join(ENGINES)}")
    check_compatible(test, model)
    engines = ("z3", "enumerate") if engine == "both" else ("z3" if engine == "auto" else engine,)
    whole = enumerate_all or engine == "both" or test.condition is None
    proposition = None if whole or test.condition is None else test.condition.proposition
    either = either_way(test, (*what.registers, *what.memory))
    shown = test.claims is not None  # of verdicts, those on kernels may have one
    return Question(
        either.test,
        model,
        what,
        limits or Limits(),
        engines,
        proposition,
        telling=either.telling,
        loose=either.loose,
        shown=shown,
    )


def _stages(question: Question, expectation: Expectation | None, graphs: bool) -> Iterator[Result]:
    """The answer to ``question``; where that is no more than the witnesses, then that with all final states."""
    for name in question.engines:
        engine_named(name)
    start = time.perf_counter()
    question = replace(question, shown=question.shown or graphs)
    for states in stages(question):
        result = _result(question, expectation, states)
        if graphs:
            result = replace(result, outcomes=tuple(_drawn(result.outcomes, question, states)))
        yield replace(result, seconds=time.perf_counter() - start)
        question = replace(question, proposition=None)


def _result(question: Question, expectation: Expectation | None, states: FinalStates) -> Result:
    """The result of a search, but for the time that it took."""
    test, model, limits = question.test, question.model, question.limits
    condition, whole = test.condition, question.proposition is None
    search, satisfied = states.search, states.satisfied
    search.deadlock = search.deadlock or _waits_for_ever(states, model, limits)
    shown = tuple(outcomes(test, question.what, states.rows))
    partial = whole and not search.exhausted
    quantifier = condition.kind if condition else None
    verdict = decide(search, quantifier, True in satisfied, False in satisfied, partial)
    conclusion = conclude(expectation, verdict, satisfied)
    if states.late and conclusion != "contradicted":  # what all engines were asked for, all have to say
        satisfied = states.agreed
        verdict = decide(search, quantifier, True in satisfied, False in satisfied, partial)
        conclusion = conclude(expectation, verdict, satisfied)
    refuting, missing = _refuting(test, model, states)
    notes = [*missing, *_notes(test, model, states, verdict, limits), *_unknown_notes(test, states)]
    if question.telling:
        sure = doubted(verdict, quantifier)
        conclusion = Conclusion.inconclusive if question.loose else _of_none(expectation, verdict, sure, satisfied)
        notes = [item for item in notes if item.kind not in _CERTAIN]
        notes.append(Note("open", note(question.telling, question.loose)))
        verdict, refuting = sure, None
        if conclusion == "inconclusive":
            verdict = replace(sure, holds=None, observation=None)
    return Result(
        file=test.file,
        test=test.name,
        model=model.name,
        engine="both" if len(question.engines) > 1 else question.engines[0],
        quantifier=quantifier,
        condition=condition.text if condition else None,
        holds=verdict.holds,
        observation=verdict.observation,
        status=told(verdict.status, conclusion != "inconclusive"),
        flags=verdict.flags,
        expected=None if expectation is None else str(expectation),
        conclusion=conclusion,
        outcomes=shown,
        listed=whole and not partial and verdict.status not in ("bounded", "timeout"),
        notes=tuple(notes),
        seconds=0.0,
        execution=refuting,
    )


_CERTAIN = ("undefined", "deadlock", "missing")
"""Notes on executions that there are."""


def _of_none(
    expectation: Expectation | None, verdict: Verdict, sure: Verdict, satisfied: Sequence[bool | None]
) -> Conclusion:
    """The conclusion where each execution found may be none: from ``sure``, what is known then of ``verdict``."""
    some = bool(satisfied) and sure.observation is None and sure.holds is None
    if expectation is not None and expectation.word == "none":
        some = bool(satisfied)
    waits = "deadlock" in verdict.flags and (expectation is None or expectation.deadlock is not None)
    if some or waits or sure.status != verdict.status:
        return Conclusion.inconclusive
    return conclude(expectation, sure, ())


def _drawn(outcomes: Sequence[Outcome], question: Question, states: FinalStates) -> Iterator[Outcome]:
    """``outcomes``, those of ``states``, each with an execution."""
    from ptxmm.analysis.explain.graph import drawn

    what, model = question.what, question.model
    witnesses = states.witnesses(what)
    for item, state in zip(outcomes, states.rows, strict=True):
        witness = witnesses[values(what, state)]
        yield replace(item, execution=drawn(states.test, rebuild(states.test, model, witness)[1]))


def _waits_for_ever(states: FinalStates, model: Model, limits: Limits) -> bool:
    """Whether there is no final state because threads wait for ever at a barrier, others spinning for them."""
    search = states.search
    if search.found or search.bounded or search.timeout or search.undefined is not None:
        return False
    from ptxmm.engines.explicit.hangs import deadlocks  # few programs have no final state

    try:
        return any(deadlocks(assigned.test, model, limits) for assigned in assignments(states.test))
    except Timeout:
        return False
    except PtxmmError as error:
        if error.kind != "unsupported":
            raise
        return False


def _refuting(test: Test, model: Model, states: FinalStates) -> tuple[Execution | None, list[Note]]:
    """An execution of a kernel whose final state is against the condition, and what it lacks that would forbid it."""
    condition = test.condition
    if test.claims is None or condition is None or condition.kind == "exists":
        return None, []
    for found in states.search.found:
        if evaluate(condition.proposition, found.state) == (condition.kind == "~exists"):
            assigned, rebuilt = rebuild(states.test, model, found.witness)
            from ptxmm.analysis.explain.missing import missing  # of verdicts, only those on kernels tell it

            return execution(assigned, rebuilt), missing(assigned, rebuilt)
    return None, []


def _notes(test: Test, model: Model, states: FinalStates, verdict: Verdict, limits: Limits) -> tuple[Note, ...]:
    search = states.search
    notes = basis(model)
    if search.undefined is not None:
        notes.append(Note("undefined", search.undefined))
    if states.unrolled:
        notes.append(Note("bound", bound_reached(test, limits.unroll, search.loops)))
    if search.timeout:
        notes.append(late(states.late) or TIMEOUT)
    if search.deadlock:
        ends = "some execution waits" if states.satisfied else "no execution was found to reach its end: threads wait"
        notes.append(Note("deadlock", f"{ends} for ever at a barrier"))
    if "vacuous" in verdict.flags:
        notes.append(Note("vacuous", "no consistent execution reaches its end: every statement holds of nothing"))
    return tuple(notes)


def _unknown_notes(test: Test, states: FinalStates) -> list[Note]:
    """What a result owes to values that memory without an initial value holds, or that are undetermined."""
    notes = []
    if states.depends:
        notes.append(Note("unknown", f"the condition depends on {described(test)}"))
    if states.computed:
        text = f"{described(test)} is computed with ({'; '.join(states.computed)}): only the values"
        notes.append(Note("unknown", f"{text} of the constants in the test were tried for it"))
    return notes + [Note("open", text) for text in states.left_open]


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
        notes=(TIMEOUT,),
        seconds=seconds,
    )
