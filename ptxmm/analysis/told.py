"""What users are told of one test under one model: the answer of an analysis, and what it rests on.

The command line and the methods of tests answer through these functions, so that they say the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from ptxmm.analysis.result import Analysed, Listed, Note, Outcome, Result
from ptxmm.cat import Model, load
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.graph import backward

if TYPE_CHECKING:
    from ptxmm.analysis.expectation import Expectation
    from ptxmm.analysis.explain import ExplainResult
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test

R = TypeVar("R", bound=Analysed)

Listing = int | Literal["none", "all"]

_FIRST = 5.0
"""Seconds in which a verdict is looked for with all rounds of loops, before fewer are tried."""


class Asked(Struct, frozen=True):
    """How a verdict is asked for.

    ``listing``: ``none`` (the verdict and its witnesses), ``all`` final states, or the verdict and then at most so
    many. ``all_readings``: say which readings of the model the verdict rests on. ``graphs``: give executions as graphs.
    """

    engine: str = "auto"
    all_state: bool = False
    listing: Listing = "all"
    all_readings: bool = False
    graphs: bool = False


def verdict(
    test: Test,
    name: str,
    model: Model,
    limits: Limits,
    asked: Asked,
    *,
    expectation: Expectation | None = None,
    claim: str | None = None,
) -> Result:
    """The verdict on ``test`` under ``model``, which the user calls ``name``; ``claim``: of a kernel, what is to be
    decided in place of its condition. Raises as ``outcomes.check``."""
    from ptxmm.analysis import kernel
    from ptxmm.analysis.outcomes import check, check_listed
    from ptxmm.analysis.readings import basis, decided_by, may_decide, vary

    engine, all_state = asked.engine, asked.all_state
    if claim is not None:

        def changed(key: str, value: str) -> Result:
            """The verdict with one reading of ``model`` changed."""
            return kernel.decide(test, _other(name, model, key, value), claim, limits, engine)

        def decided(limits: Limits) -> Result:
            return kernel.decide(test, model, claim, limits, engine, asked.graphs, assumptions=True)

        found = _rising(test, limits, decided)
        notes = (*basis(model), *found.notes)
        if found.holds is False and (changes := may_decide(test, model, found)):
            notes += decided_by(found, vary(model, changed, changes))
        return replace(found, model=name, notes=notes)
    if isinstance(asked.listing, int):
        result = check_listed(
            test,
            model,
            asked.listing,
            engine=engine,
            limits=limits,
            expectation=expectation,
            all_state=all_state,
            graphs=asked.graphs,
        )
    else:

        def checked(limits: Limits) -> Result:
            return check(
                test,
                model,
                engine=engine,
                limits=limits,
                expectation=expectation,
                all_state=all_state,
                enumerate_all=asked.listing == "all",
                graphs=asked.graphs,
            )

        result = _rising(test, limits, checked, every=asked.listing == "all")
    return _remarked(test, name, model, limits, asked, result)


def _rising(test: Test, limits: Limits, answer: Callable[[Limits], Result], every: bool = False) -> Result:
    """The ``answer`` within ``limits``. Where it takes long, with fewer rounds of loops first: an execution found in
    these stands, and if none goes on beyond them they are all. ``every``: final states are to be listed."""
    start, end = time.monotonic(), limits.deadline
    if (end is not None and end - start <= _FIRST) or not any(backward(thread.body) for thread in test.threads):
        return answer(limits)
    result = answer(replace(limits, deadline=start + _FIRST))
    if result.status != "timeout":
        return result
    for unroll in range(limits.unroll + 1):
        result = answer(replace(limits, unroll=unroll))
        known = result.listed if every else result.holds is not None or result.status == "undefined"
        if known or result.status == "timeout":
            break
    return replace(result, seconds=time.monotonic() - start)


def streamed(
    test: Test, name: str, model: Model, limits: Limits, asked: Asked, *, expectation: Expectation | None = None
) -> tuple[Result, Iterator[Outcome | Listed]]:
    """As ``verdict``: the verdict, with a final state that satisfies the condition and one that does not; all of them,
    each as soon as it is known, and how many there are. See ``outcomes.check_streamed``, also for what is raised."""
    from ptxmm.analysis.outcomes import check_streamed

    most = asked.listing if isinstance(asked.listing, int) else None
    result, states = check_streamed(
        test, model, most, engine=asked.engine, limits=limits, expectation=expectation, all_state=asked.all_state
    )
    deciding = {found.satisfies: found for found in result.outcomes}
    result = replace(result, outcomes=tuple(deciding.values()), listed=False)
    result = _remarked(test, name, model, limits, asked, result)
    return result, (replace(item, model=name) if isinstance(item, Listed) else item for item in states)


def _remarked(test: Test, name: str, model: Model, limits: Limits, asked: Asked, result: Result) -> Result:
    """``result``, which is about the condition of ``test``, with what it rests on."""
    from ptxmm.analysis import kernel
    from ptxmm.analysis.outcomes import check
    from ptxmm.analysis.readings import decided_by, may_decide, rests_on, vary

    def changed(key: str, value: str) -> Result:
        """The verdict with one reading of ``model`` changed."""
        return check(test, _other(name, model, key, value), engine=asked.engine, limits=limits, enumerate_all=False)

    if test.claims is not None:
        result = kernel.explained(test, result)
    if result.status == "undefined":
        from ptxmm.analysis.undefined import with_reasons  # with Z3, which takes time to load

        result = with_reasons(test, model, result, limits)
    rest: tuple[Note, ...] = ()
    if asked.all_readings:
        rest = rests_on(result, vary(model, changed))
    elif changes := may_decide(test, model, result):
        rest = decided_by(result, vary(model, changed, changes))
    # A model of the user's own is called by its path: its stem may be the name of a shipped one.
    return replace(result, model=name, notes=(*result.notes, *rest))


class Reported(Result, frozen=True):
    """A verdict with what a report shows besides: the ``explanation`` why the condition holds, or not."""

    explanation: ExplainResult | None = None


def reported(
    test: Test,
    name: str,
    model: Model,
    limits: Limits,
    asked: Asked,
    *,
    expectation: Expectation | None = None,
    claim: str | None = None,
) -> Reported:
    """As ``verdict``, with what a report shows besides."""
    from ptxmm.analysis.explain import explain

    found = verdict(test, name, model, limits, asked, expectation=expectation, claim=claim)
    explanation = None
    if claim is None and found.status == "complete" and found.observation is not None:
        try:
            explanation = explain(test, model, limits=limits, misses=False, graphs=asked.graphs)
        except PtxmmError as error:
            if error.kind == "internal":
                raise
    return Reported(**asdict(found), explanation=explanation)


def analysed(
    test: Test,
    name: str,
    model: Model,
    limits: Limits,
    function: Callable[[Test, Model, Limits], R],
    brief: Callable[[Test, Model, Limits], R] | None = None,
) -> R:
    """What the analysis ``function`` says of ``test`` under ``model``, which the user calls ``name``.

    Of a result with several ``answers``, by what they are about, it is told on which readings each rests; ``brief``: an
    analysis that gives as many, and may list less. Raises as ``function`` does.
    """
    from ptxmm.analysis.readings import basis, decided_answers
    from ptxmm.analysis.readings import told as told_of

    found = function(test, model, limits)
    answers: Mapping[str, str] | None = getattr(found, "answers", None)
    rest: tuple[Note, ...] = ()
    if answers is not None and found.status in ("complete", "undefined"):

        def changed(key: str, value: str) -> Mapping[str, str]:
            try:
                other = (brief or function)(test, _other(name, model, key, value), limits)
            except Timeout:
                return {}
            return getattr(other, "answers", {}) if other.status != "timeout" else {}

        rest = decided_answers(told_of(test, model), answers, changed)
    return replace(found, model=name, notes=(*basis(model), *found.notes, *rest))  # type: ignore[type-var]


def _other(name: str, model: Model, key: str, value: str) -> Model:
    """``model`` with one reading changed."""
    return load(name, dict(model.readings) | {key: value})
