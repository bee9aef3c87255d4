"""Is a launch free of data races, with all its threads? What is asked, and what the answer rests on."""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.claims import RACES
from ptxmm.analysis.result import Note
from ptxmm.engines.result import Limits
from ptxmm.errors import Timeout
from ptxmm.formats.modules.kernel import Kernel
from ptxmm.formats.modules.launch import ACTIVE_TOGETHER
from ptxmm.whole.deciding import Deciding
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.explain.timeline import Timeline, timeline
from ptxmm.whole.lenient import NOTES, VECTOR, assumed
from ptxmm.whole.order.history import History
from ptxmm.whole.order.strong import follow
from ptxmm.whole.result import WholeResult


def whole(kernels: tuple[Kernel, ...], file: str, limits: Limits | None = None) -> WholeResult:
    """Whether the launch of ``kernels``, one for each grid, is free of data races under ptx-8.5 (PTX ISA 8.7.1),
    and its threads come to their ends. Raises ``PtxmmError`` where its memory is too large."""
    return examined(kernels, file, limits or Limits()).result


class Examined(Struct, frozen=True):
    """The ``result`` about a launch, with an execution of it (``machine``), and for each race the instructions of its
    two accesses and of what almost orders them (``clues``)."""

    result: WholeResult
    machine: Machine
    clues: tuple[tuple[int, ...], ...]


def examined(kernels: tuple[Kernel, ...], file: str, limits: Limits, before: Machine | None = None) -> Examined:
    """As ``whole``, with what is needed to change the launch. ``before``: an execution of a launch that differs in some
    of its instructions; then races are not explained, nor what they rest on. Raises ``PtxmmError``."""
    given = assumed(kernels[0].launch)
    run, first = _decided(kernels, file, limits, given, before)
    found = first
    told = Examined(first, run.machine, tuple(run.clues))
    if given is None or before is not None:
        return told
    lenient = given
    while found.answer in ("race", "undecided", "undefined") and run.rests - lenient:
        lenient |= run.rests
        if run.enough:
            return replace(told, result=_resting(first, lenient - given))
        run, found = _decided(kernels, file, limits, lenient)
        if found.holds is False and lenient - given == {ACTIVE_TOGETHER}:  # these are executions like all others
            first, told = found, Examined(found, run.machine, tuple(run.clues))
    if found.answer == "race-free" and found is not first:
        return replace(told, result=_resting(first, lenient - given))
    if first.answer == found.answer == "race" and VECTOR not in lenient - given:  # whole vectors may race otherwise
        # What does not rest on anything comes before what does.
        return Examined(replace(first, races=found.races), run.machine, tuple(run.clues))
    return told


def _decided(
    kernels: tuple[Kernel, ...], file: str, limits: Limits, lenient: frozenset[str] | None,
    before: Machine | None = None,
) -> tuple[Deciding, WholeResult]:  # fmt: skip
    """The answer, and what is known of the launch that gave it: one in which threads take turns by ``cas``, or where
    that does not decide, as it is."""
    run = Deciding(kernels, file, limits, lenient, before)
    found = run.result()
    if found.answer == "undecided" and run.launch.swapping:
        other = Deciding(kernels, file, limits, lenient, turns=False)
        if (told := other.result()).answer != "timeout":
            run, found = other, told
    return run, found


def _resting(found: WholeResult, names: frozenset[str]) -> WholeResult:
    """An answer with what it rests on, which is told of the claim that there is no race, too."""
    notes = tuple(Note("reading", NOTES[name]) for name in sorted(names))
    claims = (
        replace(claim, notes=(*claim.notes, *notes)) if claim.condition == RACES else claim for claim in found.claims
    )
    return replace(found, notes=(*found.notes, *notes), claims=tuple(claims))


class Drawn(Struct, frozen=True):
    """The ``result`` about a launch, and the ``timeline`` of an execution of it."""

    result: WholeResult
    timeline: Timeline

    @property
    def finding(self) -> bool | None:
        """As that of the result."""
        return self.result.finding


def drawn(kernels: tuple[Kernel, ...], file: str, limits: Limits) -> Drawn:
    """As ``whole``, with the timeline of the execution that has the races, or of one that is followed as far as it
    goes. Raises ``PtxmmError``."""
    run, result = _decided(kernels, file, limits, assumed(kernels[0].launch))
    if run.told is None:
        run.told = run.machine = Machine(run.launch, follow(), run.waiting, run.machine)
        run.told.history = History(run.told.clocks, run.told.trace)
        with suppress(Stopped, Timeout):
            run.told.run(limits)
    return Drawn(result, timeline(run.told, run.raced))
