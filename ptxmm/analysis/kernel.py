"""Whether what is claimed of a launched kernel holds; if not, an execution that refutes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ptxmm.analysis.claims import RACES
from ptxmm.analysis.execution import Execution, execution
from ptxmm.analysis.instruction import instruction
from ptxmm.analysis.observe import observed
from ptxmm.analysis.result import Conclusion, Note, Result, Status
from ptxmm.analysis.search import final_states, rebuild
from ptxmm.analysis.unread import without_unread
from ptxmm.cat import Model, index
from ptxmm.engines.result import Limits, Observed
from ptxmm.engines.witness import Confirmer
from ptxmm.program.condition import evaluate
from ptxmm.program.test import Test

_MOST = 3
"""So many races, or states that sequential consistency does not allow, are named."""


def decide(test: Test, model: Model, claim: str, limits: Limits) -> Result:
    """Decide the ``claim`` (``RACES`` or ``ROBUST``) about ``test`` under ``model``. Raises as the analyses do."""
    if claim == RACES:
        from ptxmm.analysis.races import races

        found = races(test, model, limits=limits, most=_MOST)
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
        return _result(test, model, claim, found.race_free, found.status, [*notes, *found.notes], found.seconds, shown)
    from ptxmm.analysis.robust import robust

    answer = robust(test, model, limits=limits, most=1)
    shown = answer.extra[0].execution if answer.extra else None
    notes = []
    if answer.extra:
        notes.append(Note("robust", f"{len(answer.extra)} final states are not sequentially consistent"))
    if answer.deadlock:
        notes.append(Note("robust", "only under the model some execution waits for ever at a barrier"))
    notes += answer.notes
    return _result(test, model, claim, answer.robust, answer.status, notes, answer.seconds, shown)


def explained(test: Test, model: Model, result: Result, limits: Limits) -> Result:
    """``result``, the verdict on the condition of a kernel, with what its reader has to know and, where it fails, an
    execution that refutes it. That no execution reaches its end refutes every condition of a kernel."""
    assert test.claims is not None
    notes = (*_remarks(test), *result.notes)
    conclusion: Conclusion = "contradicted" if "vacuous" in result.flags else result.conclusion
    if conclusion == "expected" and test.claims.partial:
        conclusion = "inconclusive"
    shown = None
    if conclusion == "contradicted" and result.outcomes:
        shown = _refuting(test, model, limits)
    if result.status == "undefined":
        misuses, shown = _misuse(test, model, limits)
        notes = (*notes, *misuses)
    return replace(result, notes=notes, conclusion=conclusion, execution=shown)


def _refuting(test: Test, model: Model, limits: Limits) -> Execution | None:
    """An execution whose final state is against the condition."""
    condition = test.condition
    if condition is None or condition.kind == "exists":
        return None
    states = final_states(("z3",), test, model, observed(test), limits, condition.proposition)
    for found in states.search.found:
        if evaluate(condition.proposition, found.state) == (condition.kind == "~exists"):
            assigned, rebuilt = rebuild(states.test, model, found.witness)
            return execution(assigned, found.witness, rebuilt)
    return None


def _misuse(test: Test, model: Model, limits: Limits) -> tuple[list[Note], Execution | None]:
    """The instructions that make an execution raise a flag that takes the meaning from the program, and this one."""
    from ptxmm.engines.problem import Problem  # with Z3, which takes time to load

    test = without_unread(test, model, limits)
    problem = Problem(test, model, Observed((), ()), limits)
    for name, formula in problem.flags:
        when = problem.formulas.both(formula, problem.program.final)
        if name not in index().undefined or not problem.solver.satisfiable(when):
            continue
        witness = problem.witness()
        rebuilt = Confirmer(test, model).rebuild(witness)
        axiom = next(axiom for axiom in model.axioms if axiom.name == name)
        value = rebuilt.evaluator.value(axiom.body)
        layout = rebuilt.layout
        found: list[tuple[int, ...]] = (
            [(e,) for e in range(layout.initial_first) if value >> e & 1]
            if axiom.body.is_set
            else list(layout.algebra.pairs(value))
        )
        notes = dict.fromkeys(
            f"{name}: " + " and ".join(str(instruction(test, *layout.events[e].id[:2])) for e in events)
            for events in found
            if max(events) < layout.initial_first
        )
        return [Note("undefined", text) for text in list(notes)[:_MOST]], execution(test, witness, rebuilt)
    return [], None


def _remarks(test: Test) -> list[Note]:
    claims = test.claims
    return [] if claims is None else [Note("kernel", text) for text in claims.remarks]


def _result(
    test: Test,
    model: Model,
    claim: str,
    holds: bool | None,
    status: Status,
    notes: Sequence[Note],
    seconds: float,
    shown: Execution | None,
) -> Result:
    partial = test.claims is not None and test.claims.partial
    if holds and partial:
        holds = None
    conclusion: Conclusion = "inconclusive" if holds is None else "expected" if holds else "contradicted"
    return Result(
        file=test.file,
        test=test.name,
        model=model.name,
        engine="z3",
        quantifier=claim,
        condition=claim,
        holds=holds,
        observation=None,
        status=status,
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
    note = Note("timeout", "the time limit ended the search; --timeout takes a higher one")
    return Result(
        file=test.file, test=test.name, model=model, engine="z3", quantifier=claim, condition=claim, holds=None,
        observation=None, status="timeout", flags=(), expected="holds", conclusion="inconclusive", outcomes=(),
        listed=False, notes=(note,), seconds=seconds,
    )  # fmt: skip
