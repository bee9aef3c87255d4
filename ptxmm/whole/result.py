"""The answer about a whole launch."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ptxmm.analysis.result import Note, Status

Answer = Literal["race-free", "race", "deadlock", "outside", "undefined", "undecided", "unsupported", "timeout"]
"""``race-free``: in every execution each pair of conflicting accesses is ordered, and every thread comes to its end;
``race``, ``deadlock`` (threads wait for ever), ``outside`` (an access of no variable), ``undefined`` (misuse of a
barrier or of an address): some execution has it; ``undecided``: the execution depends on values or on a schedule that
one execution does not tell; ``unsupported``: an instruction is not followed."""


class Spot(Struct, frozen=True):
    """An instruction that a thread executes: its ``line`` in the file, its text, and the thread by the numbers of its
    CTA and of itself there."""

    line: int
    text: str
    cta: int
    thread: int

    def __str__(self) -> str:
        return f"line {self.line}: {self.text} (CTA {self.cta}, thread {self.thread})"


class WholeRace(Struct, frozen=True):
    """Two accesses that conflict and that nothing orders; ``place``: the variable and the byte in it; ``pairs``: how
    many pairs of threads race so at these two instructions."""

    first: Spot
    second: Spot
    place: str
    pairs: int


class WholeResult(Struct, frozen=True, tag_field="analysis", tag="whole"):
    """What is known of a launch with all its ``threads``.

    ``holds``: whether the answer is ``race-free``; None where it is none. ``accesses``: how many the threads made.
    ``spot`` and ``reason``: where and why there is another answer than ``race`` and ``race-free``.
    """

    file: str
    test: str
    model: str
    status: Status
    answer: Answer
    holds: bool | None
    threads: int
    ctas: int
    accesses: int
    races: tuple[WholeRace, ...]
    spot: Spot | None
    reason: str | None
    notes: tuple[Note, ...]
    seconds: float

    @property
    def finding(self) -> bool | None:
        """Whether something is wrong with the launch."""
        return None if self.holds is None else not self.holds
