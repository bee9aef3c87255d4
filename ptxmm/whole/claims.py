"""What is claimed of a launch, answered by its one execution: a verdict for each claim, as ``check`` gives them.

A launch without races that is deterministic has the same values in every execution, so that its condition is decided by
those at the end, as far as they are worked out. The one execution of another launch can refute what is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxmm.analysis.claims import BARRIERS, BOUNDS, CLAIMS, RACES, ROBUST, TRAPS
from ptxmm.analysis.result import Note, Observation, Outcome, Result, Status
from ptxmm.analysis.words import Conclusion
from ptxmm.formats.modules.launch import Launch
from ptxmm.program.condition import RegisterTerm, Term
from ptxmm.program.floats import real_text
from ptxmm.ptx.ops import Type
from ptxmm.whole.finals import Final, Finals, evaluate

_STATUS: dict[str, Status] = {"outside": "undefined", "undefined": "undefined", "timeout": "timeout"}
ENGINE = "whole"
"""What has decided these verdicts, as results name it."""


class Known(Struct, frozen=True):
    """What is known of the executions of a launch.

    ``answer`` as of ``WholeResult``, with its ``reason``; ``refuted``: the claim that an execution refutes; ``finals``:
    what the condition is about; ``every``: final values that all executions have, of several kinds of executions if
    there are some; ``open``: those of kinds of which there may be no execution; ``some``: those of some execution.
    ``ordered``: no execution has anything but weak accesses that are ordered. ``late``: one of ``some``, and which
    read comes there before which write."""

    answer: str
    reason: str
    refuted: str | None
    finals: Finals | None
    every: tuple[Final, ...]
    open: tuple[Final, ...]
    some: tuple[Final, ...]
    ordered: bool
    late: tuple[Final, str] | None = None

    @property
    def hangs(self) -> bool:
        """Whether threads wait for ever at barriers in some execution."""
        return self.answer == "deadlock" and self.refuted == BARRIERS


class _Verdict(Struct, frozen=True):
    """Whether a claim ``holds``, and why; ``finals``: values that tell so, and whether these are ``satisfied`` with the
    proposition of the condition; ``every``: no execution has others."""

    holds: bool | None
    why: str
    satisfied: bool | None = None
    finals: tuple[Final, ...] = ()
    every: bool = False


class Told(Struct, frozen=True):
    """What all verdicts on one launch say."""

    file: str
    test: str
    model: str
    notes: tuple[Note, ...]
    seconds: float


def verdicts(launch: Launch, known: Known, told: Told) -> Iterator[Result]:
    """The verdict on each claim of a launch."""
    wanted = (RACES, launch.races), (ROBUST, launch.robust), (BOUNDS, launch.bounds)
    claims = [name for name, there in (*wanted, (BARRIERS, launch.barriers), (TRAPS, launch.traps)) if there]
    condition = launch.condition
    if condition is not None:
        found = _condition(condition.kind, known)
        yield _result(told, condition.kind, condition.text, known, found)
    for claim in claims:
        yield _result(told, claim, claim, known, _claim(claim, known))


def _claim(claim: str, known: Known) -> _Verdict:
    if claim == RACES and known.answer == "race":
        return _Verdict(False, known.reason)
    if claim == known.refuted:
        return _Verdict(False, known.reason)
    if known.answer != "race-free":
        return _Verdict(None, known.reason)
    if claim == ROBUST and not known.ordered:
        return _Verdict(None, "strong accesses are there, of which one execution does not tell the order")
    return _Verdict(True, "")


def _condition(kind: str, known: Known) -> _Verdict:
    """Whether the condition holds."""
    wanted = kind == "exists"
    if known.hangs:
        return _Verdict(False, known.reason)
    if known.finals is None:
        return _Verdict(None, known.reason)
    proposition = known.finals.proposition
    given = known.every, known.open, known.some
    every, unsure, some = ([(evaluate(proposition, final), final) for final in each] for each in given)
    # What one execution satisfies settles `exists`, and `~exists`; what one does not, `forall`.
    settles = kind != "forall"
    for found, final in every:
        if found is settles:
            return _Verdict(wanted, "", found, (final,), len(every + unsure) == 1)
    for found, final in some:
        if found is settles:
            return _Verdict(wanted, "", found, (final,))
    if known.answer != "race-free":
        return _Verdict(None, known.reason)
    every += unsure
    if every and all(found is (not settles) for found, _ in every):
        return _Verdict(not wanted, "", not settles, known.every + known.open, True)
    lacking = next((final for found, final in every if found is None), None)
    if lacking is None:
        return _Verdict(None, "some of the values that may be there in the end are perhaps there in no execution")
    names = [known.finals.names[term] for term, value in lacking.items() if value is None]
    return _Verdict(None, f"what {', '.join(names)} is in the end is not worked out")


def _result(told: Told, quantifier: str, text: str, known: Known, found: _Verdict) -> Result:
    holds = found.holds
    conclusion = {None: Conclusion.inconclusive, True: Conclusion.expected, False: Conclusion.contradicted}[holds]
    outcomes: tuple[Outcome, ...] = ()
    notes: list[Note] = []
    if found.finals and known.finals is not None:
        distinct = [final for at, final in enumerate(found.finals) if final not in found.finals[:at]]
        outcomes = tuple(_outcome(known.finals, final, found.satisfied) for final in distinct)
        if holds is False:
            which = "every" if found.every and len(outcomes) == 1 else "an"
            where = f": {known.late[1]}" if known.late is not None and known.late[0] == found.finals[0] else ""
            notes.append(Note("value", f"{which} execution ends with {outcomes[0]}{where}"))
    elif not holds:
        kinds = {"race": "race", "deadlock": "deadlock", "outside": "undefined", "undefined": "undefined"}
        notes.append(Note(kinds.get(known.answer, "value" if known.answer == "race-free" else "open"), found.why))
    status: Status = "complete" if holds is not None else _STATUS.get(known.answer, "inconclusive")
    observation: Observation | None = None
    if found.every:
        observation = "always" if found.satisfied else "never"
    flags: tuple[str, ...] = ()
    if quantifier not in CLAIMS:
        flags = ("data-race",) * (known.answer == "race") + ("deadlock",) * known.hangs
    return Result(
        told.file, told.test, told.model, ENGINE, quantifier, text, holds, observation, status, flags, "holds",
        conclusion, outcomes, False, (*told.notes, *notes), told.seconds,
    )  # fmt: skip


def _outcome(finals: Finals, final: Final, satisfies: bool | None) -> Outcome:
    """Final values that are known, as results show them."""
    registers: dict[str, int | str] = {}
    memory: dict[str, int | str] = {}
    for term, value in final.items():
        if value is not None:
            (registers if isinstance(term, RegisterTerm) else memory)[finals.names[term]] = _shown(finals, term, value)
    return Outcome(registers, memory, satisfies)


def _shown(finals: Finals, term: Term, value: int) -> int | str:
    type_: Type = term.type  # type: ignore[union-attr]
    if type_.kind == "f":
        return real_text(value, type_)
    return value - (1 << type_.bits) if type_.signed and value >> type_.bits - 1 else value
