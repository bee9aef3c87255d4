"""Whether what is claimed of a launched kernel holds; if not, an execution that refutes it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ptxmm.analysis.claims import BARRIERS, BOUNDS, RACES, TRAPS, trapping
from ptxmm.analysis.outcomes import late
from ptxmm.analysis.result import TIMEOUT, Execution, Note, Result, Status, told
from ptxmm.analysis.words import Conclusion
from ptxmm.cat import Model
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.program.same_value import with_same_value
from ptxmm.program.shared.unseen import not_worked_out
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import mark

if TYPE_CHECKING:
    from ptxmm.analysis.races import Race

_MOST = 3
"""So many races, or states that sequential consistency does not allow, are named."""


def decide(
    test: Test,
    model: Model,
    claim: str,
    limits: Limits,
    engine: str = "z3",
    graphs: bool = False,
    assumptions: bool = False,
) -> Result:
    """Decide the ``claim`` (one of ``claims.CLAIMS``) about ``test`` under ``model``. ``engine``: ``both`` asks the
    explicit engine too, which must agree; ``graphs``: give the execution that refutes it as a graph; ``assumptions``:
    say whether it holds if writes of the same value may race. Raises as the
    analyses do, and ``PtxmmError`` (kind ``internal``) where the engines disagree.
    """
    both = engine == "both"
    if claim in (BOUNDS, BARRIERS, TRAPS):
        return _safety(test, model, claim, limits, both)
    if claim == RACES:
        from ptxmm.analysis.races import confirm_races, races

        found = races(test, model, limits=limits, most=_MOST, graphs=graphs)
        shown = found.races[0].execution if found.races else None
        notes = [
            Note(
                "race",
                f"data race: {race.first} ({race.kinds[0]} of {race.locations[0]}) and {race.second} "
                f"({race.kinds[1]} of {race.locations[1]}); "
                + ", ".join(f"{reason.name}: {reason.text}" for reason in race.fails),
            )
            for race in found.races
        ]
        notes += found.notes
        free, status, seconds = found.race_free, found.status, found.seconds
        if both:
            start = time.perf_counter()
            compared = confirm_races(test, model, found, limits)
            seconds += time.perf_counter() - start
            if not compared:
                free, status = None if free else free, "timeout" if status == "complete" else status
                notes += filter(None, [late(("enumerate",))])
        if assumptions and found.races and all(_of_writes(race) for race in found.races):
            notes += _same_value(test, model, limits)
        return _result(test, model.name, claim, free, status, notes, seconds, shown, both)
    from ptxmm.analysis.robust import robust

    answer = robust(test, model, limits=limits, most=1, engines=("z3", "enumerate") if both else ("z3",), graphs=graphs)
    shown = answer.extra[0].execution if answer.extra else None
    notes = []
    if answer.extra:
        notes.append(Note("robust", f"{len(answer.extra)} final states are not sequentially consistent"))
    if answer.deadlock:
        notes.append(Note("robust", "only under the model some execution waits for ever at a barrier"))
    notes += answer.notes
    return _result(test, model.name, claim, answer.robust, answer.status, notes, answer.seconds, shown, both)


def _safety(test: Test, model: Model, claim: str, limits: Limits, both: bool) -> Result:
    from ptxmm.analysis.safety import safe

    assert test.claims is not None
    start = time.perf_counter()
    asked = trapping(test) if claim == TRAPS else test
    found = safe(asked, model, claim, limits, "both" if both else "z3")
    seconds = time.perf_counter() - start
    shown = _result(asked, model.name, claim, found.holds, found.status, found.notes, seconds, found.execution, both)
    return replace(shown, test=test.name)


def _of_writes(race: Race) -> bool:
    return race.kinds == ("write", "write") and not race.mixed


def _same_value(test: Test, model: Model, limits: Limits) -> list[Note]:
    """Whether there is no race but of writes of the same value, of which some are not allowed to race."""
    from ptxmm.analysis.races import races

    if test.same_value is not None and test.same_value.lines is None:
        return []
    try:
        found = races(mark(with_same_value(test, None)), model, limits=limits, most=1)
    except PtxmmError as error:
        if error.kind == "internal":
            raise
        return []
    if found.status == "timeout":
        return [Note("reading", "same-value-races could not be decided: the time limit ended the search")]
    hint = 'assume = ["same-value-races"] in the launch, or allow(race: same-value, "why") at the line, gives holds'
    return [Note("reading", f"rests on same-value-races: {hint}")] if found.race_free else []


def explained(test: Test, result: Result) -> Result:
    """``result``, the verdict on the condition of a kernel, with what its reader has to know. That no execution reaches
    its end refutes every condition; where the test leaves executions out, that a condition holds of the others is not
    known to be true of the kernel."""
    assert test.claims is not None
    endless = "deadlock" in result.flags and not result.outcomes and result.status == "complete"
    conclusion = Conclusion.contradicted if endless or "vacuous" in result.flags else result.conclusion
    holds, observation = result.holds, result.observation
    if conclusion == "expected" and test.claims.partial:
        conclusion, holds, observation = Conclusion.inconclusive, None, None
    shown = result.execution if conclusion == "contradicted" and result.status != "undefined" else None
    missing = [note for note in result.notes if note.kind == "missing" and shown is not None]
    notes = (*missing, *_remarks(test), *(note for note in result.notes if note.kind != "missing"))
    status: Status = "complete" if result.status == "inconclusive" else result.status
    return replace(
        result,
        holds=holds,
        observation=observation,
        status=told(status, conclusion != "inconclusive"),
        notes=notes,
        conclusion=conclusion,
        execution=shown,
    )


def _remarks(test: Test) -> list[Note]:
    claims = test.claims
    found = [] if claims is None else [Note("kernel", text) for text in (*claims.remarks, *claims.endless)]
    what = not_worked_out(test)
    return [*found, Note("kernel", what)] if what else found


def _result(
    test: Test,
    model: str,
    claim: str,
    holds: bool | None,
    status: Status,
    notes: Sequence[Note],
    seconds: float,
    shown: Execution | None,
    both: bool = False,
) -> Result:
    partial = test.claims is not None and test.claims.partial
    if holds and partial:
        holds = None
    conclusion = {None: Conclusion.inconclusive, True: Conclusion.expected, False: Conclusion.contradicted}[holds]
    return Result(
        file=test.file,
        test=test.name,
        model=model,
        engine="both" if both else "z3",
        quantifier=claim,
        condition=claim,
        holds=holds,
        observation=None,
        status=told(status, holds is not None),
        flags=(),
        expected="holds",
        conclusion=conclusion,
        outcomes=(),
        listed=False,
        notes=(*_remarks(test), *notes),
        seconds=seconds,
        execution=shown,
    )


def expired(test: Test, model: str, claim: str, seconds: float) -> Result:
    """The result for a claim whose analysis was ended from outside after ``seconds``."""
    return _result(test, model, claim, None, "timeout", (TIMEOUT,), seconds, None)
