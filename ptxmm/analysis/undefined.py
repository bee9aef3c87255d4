"""What takes the meaning from a program: the instructions that raise a flag of the model, and an execution in which
they do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from msgspec.structs import replace

from ptxmm.analysis.execution import execution
from ptxmm.analysis.instruction import instruction
from ptxmm.analysis.result import Execution, Note, Result
from ptxmm.analysis.search import bug
from ptxmm.analysis.uninitialised import settle_uninitialised
from ptxmm.cat import Model, index
from ptxmm.engines.explicit.witness import Confirmer, Rebuilt, Unconfirmed
from ptxmm.engines.result import Limits, Observed
from ptxmm.engines.symbolic.problem import Problem, next_grid
from ptxmm.errors import Timeout
from ptxmm.program.shared.launches import held
from ptxmm.program.shared.polls import without_repeats
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import assignments

_MOST = 3
"""So many places that raise a flag are named."""

_PLACED = re.compile(r"\S+ line \d+: ")

_SECTIONS = {
    "mixed-size-race": "operations that overlap partially race (8.7.2)",
    "mbarrier-before-init": "the initialisation of the mbarrier does not precede this (9.7.14.15.9)",
    "shared-after-exit": "the CTA may have ended, and its shared memory with it (5.1.7)",
}
"""What the flags of `index().undefined` mean."""


def with_reasons(test: Test, model: Model, result: Result, limits: Limits) -> Result:
    """``result``, with the reasons and the execution for which the program is undefined, if it is."""
    if result.status != "undefined":
        return result
    notes, reached = misuse(test, model, limits, {note.text for note in result.notes if note.kind == "undefined"})
    return replace(result, notes=(*result.notes, *notes), execution=reached)


def misuse(
    test: Test, model: Model, limits: Limits, told: Collection[str | None]
) -> tuple[list[Note], Execution | None]:
    """For each flag that takes the meaning from ``test`` the instructions that raise it in some execution, and the
    first such execution; where something else takes it, an execution up to there: if there is one, for a
    reason that is ``told`` already. What there is no time for is left out."""
    notes: list[Note] = []
    first: Execution | None = None
    try:
        for parts in programs(test, model, limits):
            for part in parts:
                for found, reached in _raised(part, model, limits, told):
                    notes += [note for note in found if note not in notes]
                    first = first or reached
            if first is not None:
                break
    except Timeout:
        pass
    return notes, first


def programs(test: Test, model: Model, limits: Limits) -> Iterator[tuple[Test, ...]]:
    """What stands for all executions of ``test``: for each choice of its unknown values the program itself, and those
    in which a grid never begins."""
    for assigned in assignments(settle_uninitialised(without_repeats(test), model, limits)):
        yield assigned.test, *held(assigned.test, next_grid(model))


def _raised(
    test: Test, model: Model, limits: Limits, told: Collection[str | None]
) -> Iterator[tuple[list[Note], Execution]]:
    problem = Problem(test, model, Observed((), ()), limits)
    confirmer = Confirmer(test, model)
    preferred = [when for when, text in problem.misuses if text in told] or [when for when, _ in problem.misuses]
    # What a grid would do that never begins is no part of an execution; ``held`` has the others without it.
    if problem.solver.satisfiable(problem.formulas.both(problem.formulas.any(preferred), problem.program.all_begun)):
        rebuilt = confirmed(test, problem, confirmer)
        if rebuilt.misuse is None:
            raise bug(test, "an execution without meaning is not confirmed: it misuses nothing")
        place = placed_misuse(test, rebuilt)
        yield [] if place is None else [Note("undefined", place)], execution(test, rebuilt)
    for name, formula in problem.flags:
        limits.check()
        when = problem.formulas.both(formula, problem.counts)
        if name in index().undefined and problem.solver.satisfiable(when):
            rebuilt = confirmed(test, problem, confirmer)
            yield list(_named(test, model, name, rebuilt)), execution(test, rebuilt)


def placed_misuse(test: Test, rebuilt: Rebuilt) -> str | None:
    """What is misused in an execution, with the instructions at which threads have stopped there; None where it is said
    with its line already."""
    misuse = rebuilt.meeting.misuse
    if misuse is None or _PLACED.match(misuse) is not None:
        return None
    places = []
    for thread in sorted(rebuilt.meeting.waiting):
        steps = rebuilt.traces[thread].steps[: rebuilt.meeting.reached[thread]]
        places += [str(instruction(test, *steps[-1].id.site))] if steps else []
    return f"{' and '.join(places)}: {misuse}" if places else None


def confirmed(test: Test, problem: Problem, confirmer: Confirmer) -> Rebuilt:
    """What the solver found last: an execution, or as much of one as is executed before threads stop. Raises
    ``PtxmmError`` (kind ``internal``)."""
    try:
        return confirmer.allowed(problem.witness())
    except Unconfirmed as error:
        raise bug(test, f"an execution without meaning is not confirmed: {error}") from error


def _named(test: Test, model: Model, name: str, rebuilt: Rebuilt) -> Iterator[Note]:
    """The instructions that raise the flag ``name``, alone or in pairs."""
    axiom = next(axiom for axiom in model.axioms if axiom.name == name)
    value, layout = rebuilt.evaluator.value(axiom.body), rebuilt.layout
    found: list[tuple[int, ...]] = (
        [(e,) for e in range(layout.initial_first) if value >> e & 1]
        if axiom.body.is_set
        else list(layout.algebra.pairs(value))
    )
    words = dict.fromkeys(
        " and ".join(str(instruction(test, *layout.events[e].id.site)) for e in sorted(events))
        for events in found
        if max(events) < layout.initial_first
    )
    if not words:
        raise bug(test, f"an execution that raises the flag {name} is not confirmed")
    for text in list(words)[:_MOST]:
        yield Note("undefined", f"{name}: {text}: {_SECTIONS[name]}" if name in _SECTIONS else f"{name}: {text}")
