"""What a program must never do, as a search for it: the condition, a data race, a state that ``sc`` does not allow."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.claims import BARRIERS, KEYS, MISUSES, ROBUST, TRAPS, claimed
from ptxmm.analysis.claims import RACES as CLAIM_RACES
from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.observe import exactly, observed
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import Outcome, Result, Status
from ptxmm.analysis.robust import strong_model
from ptxmm.analysis.search import Question, final_states, values
from ptxmm.analysis.words import Property
from ptxmm.cat import Model, index
from ptxmm.engines.result import Limits, Observed
from ptxmm.engines.symbolic.strengths import Unwanted
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import Condition, Disjunction, Negation, Proposition, Term
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import has_unknown

RACES = frozenset(("data-race", "mixed-size-race"))


_CLAIMED: Mapping[str | None, Property] = {None: Property.never, CLAIM_RACES: Property.races, ROBUST: Property.robust}
"""The properties of what is claimed of kernels."""


class Requirement(Struct, frozen=True):
    """A property of a test: ``bad``: what must hold of no final state, or None; ``flags``: what no execution may
    raise; ``deadlock``: no thread may wait for ever; ``claims``: those of ``safety`` that are part of it; ``text``: the
    property in words."""

    bad: Proposition | None
    flags: frozenset[str]
    text: str
    deadlock: bool = False
    claims: tuple[str, ...] = ()

    @property
    def unwanted(self) -> Unwanted:
        """The same, for the engine; an execution without meaning is unwanted too."""
        return Unwanted(self.bad, self.flags | index().undefined, True, self.deadlock)


class Judgement(Struct, frozen=True):
    """Whether a program meets a requirement: ``holds`` is None where the search was not complete. ``outcome``: a
    final state that must not be, where that is what fails; ``deadlock``: some execution waits for ever."""

    holds: bool | None
    outcome: Outcome | None
    result: Result

    @property
    def deadlock(self) -> bool:
        return "deadlock" in self.result.flags

    def answer(self, wanted: Requirement) -> bool | None:
        """What is told of the program: ``holds``, but that nothing is known of one without meaning, unless it raises
        one of the flags that are asked about, or does what is claimed that it does not."""
        undefined = self.result.status == "undefined" and not wanted.flags & set(self.result.flags)
        return None if undefined and self.refuted(wanted) is None else self.holds

    def refuted(self, wanted: Requirement) -> str | None:
        """The key of the claim (``bounds``, ``barriers``, ``traps``) that an execution without meaning refutes."""
        texts = [note.text for note in self.result.notes if note.kind == "undefined"]
        found = (claim for claim in wanted.claims if any(MISUSES[claim].search(text) for text in texts))
        return next((KEYS[claim] for claim in found), None)

    def status(self, wanted: Requirement) -> Status:
        """How far the search got; a program that traps has a meaning."""
        return "complete" if self.refuted(wanted) == KEYS[TRAPS] else self.result.status

    @property
    def vacuous(self) -> bool:
        return "vacuous" in self.result.flags

    def why(self, wanted: Requirement) -> str:
        """In a word or two, what goes wrong in a program that does not meet the property."""
        if self.holds:
            return "deadlock" if self.deadlock else ""
        if self.holds is None:
            return self.result.status
        if self.outcome is not None:
            return "outcome"
        if (refuted := self.refuted(wanted)) is not None:
            return refuted
        raised = [flag for flag in self.result.flags if flag in wanted.unwanted.flags]
        if raised:
            return raised[0]
        return "deadlock" if self.deadlock else self.result.status


def requirement(test: Test, model: Model, wanted: Property | None, limits: Limits) -> Requirement:
    """``wanted`` of ``test``; None: all that is claimed of a kernel, and of other tests ``Property.never``.

    Raises ``PtxmmError`` (kind ``usage``) where the test has no condition or the model no flag for it, and ``Timeout``.
    """
    if wanted is None:
        parts = [_claim(test, model, claim, limits) for claim in claimed(test)]
        bad = [part.bad for part in parts if part.bad is not None]
        return Requirement(
            Disjunction(tuple(bad)) if len(bad) > 1 else bad[0] if bad else None,
            frozenset[str]().union(*(part.flags for part in parts)),
            " and ".join(part.text for part in parts),
            any(part.deadlock for part in parts),
            tuple(claim for part in parts for claim in part.claims),
        )
    return _requirement(test, model, wanted, limits)


def _claim(test: Test, model: Model, claim: str | None, limits: Limits) -> Requirement:
    """What is claimed of a kernel. An execution without meaning is unwanted in any case."""
    if claim in _CLAIMED:
        return _requirement(test, model, _CLAIMED[claim], limits)
    assert claim is not None
    return Requirement(None, frozenset(), claim, deadlock=claim == BARRIERS, claims=(claim,))


def _requirement(test: Test, model: Model, wanted: Property, limits: Limits) -> Requirement:
    match wanted:
        case Property.never:
            condition = test.condition
            if condition is None:
                raise PtxmmError(
                    "the test has no condition", kind="usage", file=test.file, hint="ask for --property races or robust"
                )
            bad = Negation(condition.proposition) if condition.kind == "forall" else condition.proposition
            word = "always" if condition.kind == "forall" else "never"
            return Requirement(bad, frozenset(), f"{word} ({condition.text})")
        case Property.races:
            flags = RACES & {axiom.name for axiom in model.axioms if axiom.flag}
            if "data-race" not in flags:
                raise PtxmmError(f"{model.name} says nothing about data races", kind="unsupported", file=test.file)
            return Requirement(None, flags, "no data race")
        case Property.robust:
            return _robust(test, model, limits)


def _robust(test: Test, model: Model, limits: Limits) -> Requirement:
    """That every final state is one that ``sc`` allows, told apart by every register written and every object, and that
    no thread waits for ever unless one does under ``sc``.

    Raises ``Timeout``, and ``PtxmmError`` for what ``sc`` does not cover or where its search is not complete.
    """
    if has_unknown(test):
        message = "robustness of a program with unknown values can't be judged by its instructions"
        raise PtxmmError(message, kind="unsupported", file=test.file, hint="give initial values, such as `= 0`")
    free, strong = replace(test, condition=None), strong_model(model)
    check_compatible(test, strong)
    what = observed(free, all_state=True)
    found = final_states(Question(free, strong, what, limits))
    if found.search.timeout:
        raise Timeout
    if not found.search.exhausted:
        raise PtxmmError("the final states under sc are not all known", kind="unsupported", file=test.file)
    terms: tuple[Term, ...] = (*what.registers, *what.memory)
    known = [exactly(zip(terms, values(what, state), strict=True)) for state in found.rows]
    outside = Negation(Disjunction(tuple(known)))
    return Requirement(outside, frozenset(), "only the final states of sc", not found.search.deadlock)


def judge(
    test: Test, model: Model, wanted: Requirement, limits: Limits, engine: str = "auto", graphs: bool = False
) -> Judgement:
    """Whether ``test`` meets ``wanted`` under ``model``; ``graphs`` as for ``check``.

    Raises ``PtxmmError`` as ``analysis.check`` does.
    """
    # Where no final state is bad none has to be told apart: flags are those of all executions in any case.
    bad, what = (Disjunction[Term](()), Observed((), ())) if wanted.bad is None else (wanted.bad, None)
    asked = replace(test, condition=Condition("exists", bad, wanted.text))
    result = check(asked, model, engine=engine, limits=limits, what=what, enumerate_all=False, graphs=graphs)
    found = next((o for o in result.outcomes if o.satisfies), None)
    raised = (wanted.flags | index().undefined) & set(result.flags)
    hangs = wanted.deadlock and "deadlock" in result.flags
    # `holds` of `exists` speaks of the values of unknown memory too, which share a row with others.
    if result.holds or raised or hangs or result.status == "undefined":
        return Judgement(False, found, result)
    left_open = any(item.kind == "open" for item in result.notes)  # no flags are told then
    if result.status != "complete" or (left_open and (wanted.flags or wanted.deadlock)):
        return Judgement(None, None, result)
    return Judgement(True, None, result)
