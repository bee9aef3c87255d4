"""Robustness: are the final states that a model allows those of sequential consistency?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.execution import execution
from ptxmm.analysis.explain.graph import drawn
from ptxmm.analysis.instruction import bound_reached
from ptxmm.analysis.observe import observed, outcome, outcomes
from ptxmm.analysis.result import Execution, Note, Outcome, Status, told
from ptxmm.analysis.search import FinalStates, Question, final_states, rebuild, values, worst
from ptxmm.cat import Model, load
from ptxmm.engines.result import Limits, Observed
from ptxmm.program.condition import State
from ptxmm.program.test import Test

REFERENCE = "sc"
"""The model whose final states are the measure."""

MOST = 20
"""So many further states are shown with an execution unless told otherwise."""

_SHARED_READINGS = ("b128", "cas-failure", "vector", "wgmma-mov")
"""The readings that say what the accesses of an instruction are: both models get the same."""


class Extra(Struct, frozen=True):
    """A final state that ``sc`` does not allow; ``execution`` ends in it (None beyond the limit of those shown)."""

    outcome: Outcome
    execution: Execution | None


class RobustResult(Struct, frozen=True, tag_field="analysis", tag="robust"):
    """The final states of a test under a model, compared with those under ``sc``.

    Two states differ if some register written or some element of memory does. ``states`` and ``reference``: how many
    there are under the model and under ``sc``. ``extra``: those of the model alone, ``missing`` those of ``sc`` alone.
    ``deadlock``: only under the model some execution waits for ever. ``robust``: there is nothing that ``sc`` does not
    allow; None where a longer search could tell, the program has no meaning, or no execution reaches its end.
    """

    file: str
    test: str
    model: str
    status: Status
    robust: bool | None
    states: int
    reference: int
    extra: tuple[Extra, ...]
    missing: tuple[Outcome, ...]
    deadlock: bool
    notes: tuple[Note, ...]
    seconds: float

    @property
    def answers(self) -> dict[str, str]:
        """The answer in a word, by what it is about (the program)."""
        return {"": {True: "robust", False: "not robust", None: self.status}[self.robust]}

    @property
    def finding(self) -> bool | None:
        """Whether the test is not robust."""
        return None if self.robust is None else not self.robust


def strong_model(model: Model) -> Model:
    """``sc`` with the readings of ``model`` that say what the accesses of an instruction are."""
    return load(REFERENCE, {key: model.readings[key] for key in _SHARED_READINGS if key in model.readings})


def robust(
    test: Test,
    model: Model,
    *,
    limits: Limits | None = None,
    most: int = MOST,
    engines: tuple[str, ...] = ("z3",),
    graphs: bool = False,
) -> RobustResult:
    """Compare the final states of ``test`` under ``model`` with those under ``sc``; show ``most`` executions.

    Every state of ``model`` is confirmed; ``engines`` must agree. ``graphs``: give the executions as graphs.

    Raises ``PtxmmError``: kind ``unsupported`` where one of the models does not cover the test, ``internal`` where an
    execution is not confirmed; and what the engine raises.
    """
    limits = limits or Limits()
    start = time.perf_counter()
    check_compatible(test, model)
    reference = strong_model(model)
    check_compatible(test, reference)
    what = observed(test, all_state=True)
    strong = final_states(Question(test, reference, what, limits, engines))
    weak = final_states(Question(test, model, what, limits, engines))
    known = {values(what, state) for state in strong.rows}
    reached = {values(what, state) for state in weak.rows}
    further = [state for state in weak.rows if values(what, state) not in known]
    deadlock = weak.search.deadlock and not strong.search.deadlock
    status = worst(strong.status, weak.status)
    answer: bool | None = None
    if status != "undefined" and (further or deadlock) and strong.exhausted:
        answer = False
    elif status == "complete" and weak.rows:
        answer = True
    return RobustResult(
        file=test.file,
        test=test.name,
        model=model.name,
        status=told(status, answer is not None),
        robust=answer,
        states=len(weak.rows),
        reference=len(strong.rows),
        extra=tuple(_extra(test, model, what, weak, further, most, graphs)),
        missing=tuple(outcomes(test, what, (state for state in strong.rows if values(what, state) not in reached)))
        if weak.exhausted
        else (),
        deadlock=deadlock,
        notes=tuple(_notes(test, strong, weak, model, limits)),
        seconds=time.perf_counter() - start,
    )


def _extra(
    test: Test, model: Model, what: Observed, weak: FinalStates, further: Sequence[State], most: int, graphs: bool
) -> Iterator[Extra]:
    """The states ``further``, the first ``most`` with an execution."""
    witnesses = weak.witnesses(what)
    for number, state in enumerate(further):
        shown = None
        if number < most:
            witness = witnesses[values(what, state)]
            shown = (drawn if graphs else execution)(weak.test, rebuild(weak.test, model, witness)[1])
        yield Extra(outcome(test, what, state), shown)


def _notes(test: Test, strong: FinalStates, weak: FinalStates, model: Model, limits: Limits) -> Iterator[Note]:
    for name, found in ((model.name, weak), (REFERENCE, strong)):
        yield from found.remarks(name, bound_reached(test, limits.unroll, found.search.loops))
        if found is weak and not found.rows and found.exhausted and found.search.undefined is None:
            yield Note("vacuous", f"{name}: no execution reaches its end, so that there are no states to compare")
        if found.computed and found is weak:
            yield Note("unknown", f"the program computes with unknown values ({'; '.join(found.computed)})")
