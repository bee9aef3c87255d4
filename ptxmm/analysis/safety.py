"""What no execution of a kernel may do: access what lies outside of its objects, come apart at barriers, trap."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.claims import BARRIERS, MISUSES, TRAPS
from ptxmm.analysis.execution import execution
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import Execution, Note, Result, Status
from ptxmm.analysis.undefined import confirmed, placed_misuse, programs
from ptxmm.cat import Model
from ptxmm.engines.explicit.witness import Confirmer
from ptxmm.engines.result import Limits, Observed
from ptxmm.engines.symbolic.problem import Problem
from ptxmm.errors import Timeout
from ptxmm.program.shared.broadcasts import quiet
from ptxmm.program.shared.control import SPINS, control_flow
from ptxmm.program.test import Test
from ptxmm.program.unspecified.undecided import Either, either_way, note

_MOST = 3
"""So many places are named."""

_NOTHING = Observed((), ())
"""No final value matters."""


class Safety(Struct, frozen=True):
    """Whether a claim ``holds``, None where that is not known, how far the search got and why, and an execution that
    refutes it, as far as it has a meaning."""

    holds: bool | None
    status: Status
    notes: tuple[Note, ...]
    execution: Execution | None = None


def safe(test: Test, model: Model, claim: str, limits: Limits, engine: str = "z3") -> Safety:
    """Whether no execution of ``test`` under ``model`` does what ``claim`` (``BOUNDS``, ``BARRIERS``, ``TRAPS``: of the
    kernel in which traps are looked for) excludes, one that goes on for ever neither.

    What takes the meaning from the program in another way leaves it open, unless the claim is refuted. That threads
    wait for ever at a barrier refutes ``BARRIERS``. Raises as ``check`` does.
    """
    either = either_way(replace(test, condition=None))
    found = check(either.test, model, engine=engine, limits=limits, what=_NOTHING)
    found = replace(found, notes=tuple(item for item in found.notes if item.kind not in ("kernel", "reading")))
    if found.status == "undefined" or (claim == BARRIERS and "deadlock" in found.flags):
        return _doubted(found, either) if either.telling else _wrong(either.test, model, claim, limits, found)
    holds = True if found.status == "complete" and "vacuous" not in found.flags else None
    if holds and (either.loose or (claim == BARRIERS and either.telling and _spins(either.test))):
        return _doubted(found, either)  # with what the comparisons really give, nothing may end the loop
    if holds and claim == BARRIERS and test.claims is not None and test.claims.endless:
        return Safety(None, "bounded", found.notes)
    return Safety(holds, found.status, found.notes)


def _spins(test: Test) -> bool:
    """Whether some thread has a loop of which the engines take the rounds out that make no difference."""
    return any(
        control_flow(thread, found.accesses, together=found.rounds).spin
        for thread, found in zip(test.threads, quiet(test, SPINS, True), strict=True)
    )


def _doubted(found: Result, either: Either) -> Safety:
    """What is known where an execution that was found need not be one of the program."""
    notes = [item for item in found.notes if item.kind not in ("undefined", "deadlock")]
    status: Status = "complete" if found.status == "undefined" else found.status
    return Safety(None, status, (*notes, Note("open", note(either.telling, either.loose))))


def _wrong(test: Test, model: Model, claim: str, limits: Limits, found: Result) -> Safety:
    """What is known where some execution has no meaning, or waits for ever."""
    if found.status != "undefined":
        return Safety(False, found.status, (*_waits(test, model, limits), *found.notes))
    try:
        texts, shown = _refuted(test, model, claim, limits)
    except Timeout:
        return Safety(None, "timeout", found.notes)
    if not texts:
        return Safety(None, "undefined", found.notes)
    notes = tuple(Note("undefined", text) for text in texts[:_MOST])
    return Safety(False, "complete" if claim == TRAPS else "undefined", notes, shown)


def _refuted(test: Test, model: Model, claim: str, limits: Limits) -> tuple[list[str], Execution | None]:
    """What some executions do that refutes ``claim``, and the first of them up to there."""
    texts: dict[str, None] = {}
    first: Execution | None = None
    for parts in programs(test, model, limits):
        for part in parts:
            problem = Problem(part, model, _NOTHING, limits)
            wrong = [(when, text) for when, text in problem.misuses if MISUSES[claim].search(text)]
            while wrong and len(texts) < _MOST:
                limits.check()
                some = problem.formulas.any([when for when, _ in wrong])
                if not problem.solver.satisfiable(problem.formulas.both(some, problem.program.all_begun)):
                    break
                now = [text for when, text in wrong if problem.solver.value(when)]
                wrong = [(when, text) for when, text in wrong if text not in now]
                rebuilt = confirmed(test, problem, Confirmer(part, model))
                place = placed_misuse(part, rebuilt) if claim == BARRIERS else None
                texts |= dict.fromkeys(now if place is None else [place])
                first = first or execution(part, rebuilt)
    return list(texts), first


def _waits(test: Test, model: Model, limits: Limits) -> tuple[Note, ...]:
    """At which barriers threads wait for ever."""
    from ptxmm.analysis.progress import progress

    found = progress(test, model, limits=limits)
    places = [f"{thread.at}" for thread in found.threads if thread.state == "waits" and thread.at is not None]
    return tuple(Note("deadlock", f"{place}: waits for ever") for place in places[:_MOST])
