"""What a search for executions that never end has found."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ptxmm.analysis.result import Instruction, Note, Status, Step
from ptxmm.engines.explicit.hangs import Visibility
from ptxmm.engines.fairness import Fairness, State

Verdict = Literal["terminates", "may hang", "unknown"]


class Seen(Struct, frozen=True):
    """A read, or a wait on an mbarrier, that returns the same in every round of a loop.

    ``value``: what it reads (of an mbarrier, the number of phases that are complete); ``source``: the instruction that
    wrote that, ``initial``, or empty for an mbarrier. ``reasons``: why it will read no other value.
    """

    instruction: Instruction
    location: str
    value: int | str
    source: str
    reasons: tuple[str, ...]


class ThreadReport(Struct, frozen=True):
    """What becomes of one thread in an execution that never ends.

    ``state``: ends, spins, waits (at a barrier), held (an earlier grid does not end), stops (left out of the schedule
    for ever). ``at``: the instruction at which it waits, or which comes next; None if it ends or spins. ``lines``: the
    first and the last line of the loop in which it spins. ``steps``: what it has executed, one round of that loop at
    the end; ``seen``: what the loop reads, for ever.
    """

    thread: str
    state: State
    at: Instruction | None
    lines: tuple[int, int] | None
    steps: tuple[Step, ...]
    seen: tuple[Seen, ...]


class ProgressResult(Struct, frozen=True, tag_field="analysis", tag="progress"):
    """Whether every execution of one test under one model ends.

    ``verdict``: ``may hang`` with what becomes of the ``threads`` in an execution that never ends; ``terminates`` after
    a complete search; else ``unknown``. ``fairness``: of the scheduler; ``visibility``: which writes a thread can't
    fail to see for ever.
    """

    file: str
    test: str
    model: str
    fairness: Fairness
    visibility: Visibility
    verdict: Verdict
    status: Status
    threads: tuple[ThreadReport, ...]
    notes: tuple[Note, ...]
    seconds: float

    @property
    def finding(self) -> bool | None:
        """Whether it may hang; None where that is not known."""
        return None if self.verdict == "unknown" else self.verdict == "may hang"
