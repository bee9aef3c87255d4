"""The answer about a whole launch."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ptxmm.analysis.result import Note, Result, Status

Answer = Literal["race-free", "race", "deadlock", "outside", "undefined", "undecided", "unsupported", "timeout"]
"""``race-free``: in every execution each pair of conflicting accesses is ordered, and every thread comes to its end;
``race``, ``deadlock`` (threads wait for ever), ``outside`` (an access of no variable), ``undefined`` (misuse of a
barrier or of an address): some execution has it; ``undecided``: the execution depends on values or on a schedule that
one execution does not tell; ``unsupported``: an instruction is not followed."""


Dimensions = tuple[int, int, int]


class Spot(Struct, frozen=True):
    """An instruction that a thread executes: its ``line`` in the file, its text, and the thread by the numbers of its
    CTA and of itself there; these as ``%ctaid`` and ``%tid`` (``block_index``, ``thread_index``). ``part``: which
    grid it is of where there are several, or the thread of the host."""

    line: int
    text: str
    cta: int
    thread: int
    block_index: Dimensions
    thread_index: Dimensions
    part: str = ""

    def __str__(self) -> str:
        return f"line {self.line}: {self.text} ({self.where})"

    @property
    def where(self) -> str:
        """The thread, in one number where its CTA has one dimension."""
        cta, thread = (
            str(number) if not any(index[1:]) else f"({', '.join(map(str, index))})"
            for number, index in ((self.cta, self.block_index), (self.thread, self.thread_index))
        )
        grid = f"{self.part}, " if self.part else ""
        return self.part if self.part[:1].isupper() else f"{grid}CTA {cta}, thread {thread}"


class WholeRace(Struct, frozen=True):
    """Two accesses that conflict and that nothing orders; ``place``: the variable and the byte in it; ``pairs``: how
    many pairs of threads race so at these two instructions. ``steps``: what of the one thread, and of the other, almost
    orders them; ``fails``: what of it is too little, in words."""

    first: Spot
    second: Spot
    place: str
    pairs: int
    steps: tuple[Spot, ...] = ()
    fails: tuple[str, ...] = ()


class Waiting(Struct, frozen=True):
    """``threads`` threads of a CTA that wait for ever at one instruction, the first of them at ``spot``; ``lacks``: for
    what, in words; ``missing``: where those are that have not come, if it is known who should."""

    spot: Spot
    threads: int
    lacks: str
    missing: tuple[Spot, ...]


ChoiceKind = Literal[
    "lock", "ticket", "arrivals", "claim", "list", "semaphore", "update", "sequence-lock", "look-back", "hazard",
    "vote", "look", "active-lanes", "clock",
]  # fmt: skip
"""What depends on the schedule (docs/whole.md has what each is)."""


class Choice(Struct, frozen=True):
    """What of a launch depends on the schedule: its ``kind``, what that is in words (``text``), the ``operation`` of
    which the result depends on it; ``advice``: how to check all executions of some threads."""

    kind: ChoiceKind
    text: str
    operation: Spot
    advice: str

    def __str__(self) -> str:
        return f"{self.text} ({self.operation})"


class WholeResult(Struct, frozen=True, tag_field="analysis", tag="whole"):
    """What is known of a launch with all its ``threads``.

    ``holds``: whether the answer is ``race-free``; None where it is none. ``accesses``: how many the threads made.
    ``claims``: the verdict on each claim of the launch.
    ``spot`` and ``reason``: where and why there is another answer than ``race`` and ``race-free``; ``other``: with what
    the operation there is not ordered, if it is about two.
    ``waiting``: who waits for what, where the answer is ``deadlock``. ``choice``: what depends on the schedule where
    the answer is ``undecided``, if that is known.
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
    claims: tuple[Result, ...]
    spot: Spot | None
    reason: str | None
    notes: tuple[Note, ...]
    seconds: float
    waiting: tuple[Waiting, ...] = ()
    choice: Choice | None = None
    other: Spot | None = None

    @property
    def finding(self) -> bool | None:
        """Whether something is wrong with the launch, or with what is claimed of it."""
        found = [None if self.holds is None else not self.holds, *(claim.finding for claim in self.claims)]
        return True if True in found else None if None in found else False
