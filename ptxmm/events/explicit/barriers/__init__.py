"""Barriers on plain integers: every way in which given sequences of operations form phases, and who waits for ever.

CTA barriers (decision A27), warp barriers (A29), cluster barriers (A30), mbarriers with asynchronous arrivals (A31,
A32), and the groups of the untyped dialect. PTX ISA 9.7.14.1 to 9.7.14.3, 9.7.14.15.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ptxmm.events.explicit.barriers.mbarrier import EPOCH
from ptxmm.events.explicit.barriers.meeting import Meeting
from ptxmm.events.explicit.relations.scopes import Place
from ptxmm.events.explicit.trace import Event, Step
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Barrier

__all__ = ("EPOCH", "Meeting", "meetings")


def meetings(
    test: Test,
    places: Sequence[Place],
    steps: Sequence[Sequence[Step | Event]],
    ended: Sequence[bool],
    check: Callable[[], None],
    fixed: Mapping[EventId, int | None] | None = None,
    *,
    observed: Collection[EventId] | None = None,
    tokens: Mapping[EventId, int] | None = None,
    ordered: bool = False,
    order: Sequence[EventId] | None = None,
    told: bool = False,
) -> Iterator[Meeting]:
    """Every way the barriers turn out, each once.

    ``steps``: those of each thread's path, in program order (a CTA barrier may be given by its BA event); ``ended``:
    whether the path reaches the end of the thread (so that it exits after them). ``check`` is called often.
    ``fixed``: only ways in which each operation has this phase, and none is undefined. ``observed``: the arrivals whose
    tokens are to be told apart, because something else than a wait sees them (None: all that return one to a register);
    the tokens of others, and then the phases at an mbarrier where nobody waits, are those of some way with the rest.
    ``tokens``: only ways in which these arrivals return these tokens. ``ordered``: ways that differ in the order of
    arrivals, or of an arrival and a wait that returns true, at one mbarrier are different ways; ``order``: only ways
    that have each mbarrier's operations in this order. ``told``: phases are told apart even where nobody waits.

    A wait for an mbarrier happens only when it returns its result (``number``); ways in which it can't are left out.
    An undefined operation ends its thread and stops the barrier; all other threads go on as far as they can without it,
    as if before it. Raises ``PtxmmError`` (kind ``internal``) for a wait by state whose arrival is not among ``steps``.
    """
    given = [[_step(s) if isinstance(s, Event) else s for s in mine] for mine in steps]
    if not any(given):
        yield Meeting((0,) * len(given), {})
        return
    # The simulations are loaded where there is something to simulate.
    if test.dialect:
        from ptxmm.events.explicit.barriers.dialect import group_meetings

        yield from group_meetings(test, places, given, check, fixed)
    else:
        from ptxmm.events.explicit.barriers.explore import Wanted, explore
        from ptxmm.events.explicit.barriers.plan import plan
        from ptxmm.events.explicit.barriers.transitions import Simulation

        seen = tokens if tokens is not None else observed
        simulation = Simulation(test, plan(test, places, given, ended, seen, ordered or order is not None, told))
        yield from explore(simulation, check, Wanted(fixed, tokens, order))


def _step(event: Event) -> Step:
    """The step of the arrival at a CTA barrier."""
    assert event.barrier is not None and isinstance(event.op, Barrier)
    return Step(event.id, f"bar.{event.op.kind}", event.barrier[0], event.barrier[1], event.op.instance)
