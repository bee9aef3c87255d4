"""What is so in a scenario of barriers: the facts that its run makes true."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.events.symbolic.barriers.paths import Step
from ptxmm.events.symbolic.event import Mbarrier
from ptxmm.program.identity import EventId


class Happens(Struct, frozen=True):
    """A step happens, an asynchronous one from its issue on."""

    step: Step


class InPhase(Struct, frozen=True):
    """The phase that a step is in; of a wait at an mbarrier how many phases were complete."""

    step: EventId
    phase: int


class Late(Struct, frozen=True):
    """Whether a step at an mbarrier where nobody waits comes after its first phase: runs that agree on it are one,
    whichever later phase that is."""

    step: EventId
    late: bool


class Returns(Struct, frozen=True):
    """The token that an arrival at an mbarrier returns."""

    arrival: EventId
    token: int


class PhaseOfToken(Struct, frozen=True):
    """The phase in that token, where nothing but waits look at it: runs that agree on it are one."""

    arrival: EventId
    phase: int


class Follows(Struct, frozen=True):
    """An arrival at an mbarrier, and a step there with no arrival between them."""

    arrival: EventId
    step: EventId


class Completed(Struct, frozen=True):
    """How many phases an mbarrier completed since it was initialised last."""

    place: Mbarrier
    phases: int


class Waits(Struct, frozen=True):
    """A step at which its thread waits for ever, or was when the run became undefined."""

    step: EventId


class Ends(Struct, frozen=True):
    """Whether a thread without a further step is at its end, or at the bound, or (None) neither."""

    thread: int
    ends: bool | None


class Misuse(Struct, frozen=True):
    """Why the run has no meaning, and the thread that made it so; None for an asynchronous step."""

    why: str
    thread: int | None


Fact = Happens | InPhase | Late | Returns | PhaseOfToken | Follows | Completed | Waits | Ends | Misuse
"""What is so in a scenario."""
