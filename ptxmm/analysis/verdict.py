"""From what an engine found to a verdict: observation, quantified statement, status, flags. Nothing searches here."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.analysis.result import Observation, Status
from ptxmm.cat import index
from ptxmm.engines.result import Search


class Verdict(Struct, frozen=True):
    """The fields of a ``Result`` that follow from a ``Search`` (see there); ``conditional``: there is a condition."""

    conditional: bool
    observation: Observation | None
    holds: bool | None
    status: Status
    flags: tuple[str, ...]


def decide(
    search: Search, quantifier: str | None, satisfying: bool, falsifying: bool, partial: bool = False
) -> Verdict:
    """The verdict on the statement ``quantifier`` over the final states of ``search``.

    ``satisfying``, ``falsifying``: some final state found satisfies the proposition, some does not. A statement that
    a longer search could change gives None: one witness settles ``exists``, one counterexample ``forall``, and
    everything else needs a search that is neither cut by the unrolling bound nor by the deadline. A search for one
    state that satisfies the proposition and one that does not settles as much as one for all states. Of no final state
    at all, ``exists`` is false, and ``~exists`` and ``forall`` are None: that is no claim. ``partial``:
    the search stopped at ``Limits.states``, so that there may be further states.
    """
    status = status_of(search)
    final = status == "complete" and not partial
    states = satisfying or falsifying or bool(search.found)
    flags = search.flags - index().uncovered.keys()
    if search.deadlock:
        flags.add("deadlock")
    if final and not states and not search.deadlock:
        flags.add("vacuous")
    if quantifier is None or status == "undefined":
        return Verdict(quantifier is not None, None, None, status, tuple(sorted(flags)))
    return Verdict(
        True,
        _observation(final, satisfying, falsifying),
        _holds(quantifier, final, satisfying, falsifying),
        status,
        tuple(sorted(flags)),
    )


def doubted(verdict: Verdict, quantifier: str | None) -> Verdict:
    """What is known if each execution that ``verdict`` on the statement ``quantifier`` is about may be none of the
    program, which has no others: what holds of all of them, and which flags none raises."""
    flags = tuple(flag for flag in verdict.flags if flag == "vacuous")
    status: Status = "complete" if verdict.status == "undefined" else verdict.status
    observation = None if verdict.observation == "sometimes" else verdict.observation
    holds = verdict.holds if verdict.holds is (quantifier != "exists") else None
    return Verdict(verdict.conditional, observation, holds, status, flags)


def status_of(search: Search) -> Status:
    """How far a search got that may have come to the bound of a loop."""
    if search.undefined is not None or search.flags & index().undefined:
        return "undefined"
    if search.timeout:
        return "timeout"
    return "bounded" if search.bounded else "complete"


def _observation(final: bool, satisfying: bool, falsifying: bool) -> Observation | None:
    if satisfying and falsifying:
        return "sometimes"
    if not final or not (satisfying or falsifying):
        return None
    return "always" if satisfying else "never"


def _holds(quantifier: str, final: bool, satisfying: bool, falsifying: bool) -> bool | None:
    if quantifier == "forall":
        return False if falsifying else (True if final and satisfying else None)
    if quantifier == "~exists":
        return False if satisfying else (True if final and falsifying else None)
    return True if satisfying else (False if final else None)
