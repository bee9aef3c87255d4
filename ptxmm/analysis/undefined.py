"""What takes the meaning from a program: the instructions that raise a flag of the model, and an execution in which
they do."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ptxmm.analysis.execution import INITIAL, Access, Execution, Step, execution, location, shown
from ptxmm.analysis.instruction import instruction
from ptxmm.analysis.result import Note, Result
from ptxmm.analysis.unread import without_unread
from ptxmm.cat import Model, index
from ptxmm.engines.problem import Problem, chosen
from ptxmm.engines.result import Limits, Observed
from ptxmm.engines.witness import Confirmer, Rebuilt
from ptxmm.errors import Timeout
from ptxmm.program.test import Test
from ptxmm.program.unknown import assignments

_MOST = 3
"""So many places that raise a flag are named."""

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
        for assigned in assignments(without_unread(test, model, limits)):
            for found, reached in _raised(assigned.test, model, limits, told):
                notes += found
                first = first or reached
            if first is not None:
                break
    except Timeout:
        pass
    return notes, first


def _raised(
    test: Test, model: Model, limits: Limits, told: Collection[str | None]
) -> Iterator[tuple[list[Note], Execution]]:
    problem = Problem(test, model, Observed((), ()), limits)
    misuses = problem.program.undefined
    preferred = [when for when, text in misuses if text in told] or [when for when, _ in misuses]
    if problem.solver.satisfiable(problem.formulas.any(preferred)):
        yield [], _misusing(test, problem)
    for name, formula in problem.flags:
        limits.check()
        when = problem.formulas.both(formula, problem.program.final)
        if name in index().undefined and problem.solver.satisfiable(when):
            witness = problem.witness()
            rebuilt = Confirmer(test, model).rebuild(witness)
            yield list(_named(test, model, name, rebuilt)), execution(test, witness, rebuilt)


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
        " and ".join(str(instruction(test, *layout.events[e].id[:2])) for e in sorted(events))
        for events in found
        if max(events) < layout.initial_first
    )
    for text in list(words)[:_MOST]:
        yield Note("undefined", f"{name}: {text}: {_SECTIONS[name]}" if name in _SECTIONS else f"{name}: {text}")


def _misusing(test: Test, problem: Problem) -> Execution:
    """What the solver found last: an execution in which something is misused, which has no end to be confirmed by."""
    witness, value = problem.witness(), problem.solver.value
    threads: list[dict[tuple[int, int], list[Access]]] = [{} for _ in test.threads]
    for event in problem.program.events:
        thread, at, turn = event.id[:3]
        if not (0 <= thread < len(threads) and 0 <= at < len(test.threads[thread].body) and value(event.presence)):
            continue
        accesses = threads[thread].setdefault((at, turn), [])
        place = next((place for place in event.places if value(place.when)), None)
        if event.kind not in ("R", "W") or place is None:
            continue
        sources = () if event.kind == "W" else witness.reads.get(event.id, ())
        written = [INITIAL if s.write is None else instruction(test, *s.write[:2]).place for s in sources]
        key = place.virtual if place.virtual in test.objects else place.physical
        if key not in test.objects:  # an address outside of all memory, which the note names
            continue
        cell = (key, place.offset, place.size)
        number = shown(test, chosen(event.value, value), cell)
        accesses.append(Access(event.kind, location(test, *cell), number, tuple(dict.fromkeys(written))))
    steps = [
        tuple(Step(instruction(test, number, at), turn, tuple(made)) for (at, turn), made in thread.items())
        for number, thread in enumerate(threads)
    ]
    return Execution(tuple((t.name, made) for t, made in zip(test.threads, steps, strict=True)), (), ())
