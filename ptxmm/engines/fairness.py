"""Which threads a scheduler must let go on: the progress models of GPUs as rules about who may starve.

Threads are numbered in the order of the file. A thread that spins takes steps for ever; one that waits at a barrier can
take none until the barrier lets it. Whoever is left out of the schedule for ever starves while another thread spins:
a scheduler that has nothing else to run runs it.

Sorensen, Salvador, Raval, Evrard, Wickerson, Martonosi, Donaldson: Specifying and Testing GPU Workgroup Progress
Models, OOPSLA 2021 (occupancy-bound execution, HSA, and their combinations).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

Fairness = Literal["fair", "hsa", "obe", "hsa_obe", "lobe", "unfair"]

FAIRNESS: tuple[Fairness, ...] = ("fair", "hsa", "obe", "hsa_obe", "lobe", "unfair")

MEANING: Mapping[Fairness, str] = {
    "fair": "every thread that can go on does (independent forward progress, sm_70 and later)",
    "hsa": "only the first thread that has not ended is sure to go on",
    "obe": "every thread that has begun goes on; others may never begin (occupancy-bound execution)",
    "hsa_obe": "every thread that has begun, and the first that has not ended, goes on",
    "lobe": "every thread goes on that has begun, or before a thread that has begun (linear occupancy-bound execution)",
    "unfair": "some thread that can go on does",
}

State = Literal["ends", "spins", "waits", "held", "stops", "cut"]
"""What becomes of a thread: it ends; it spins for ever; it waits for ever at a barrier; it can't begin or go on because
an earlier grid does not end; it is left out of the schedule for ever; it goes round a loop more often than the bound.
"""


def may_starve(fairness: Fairness, states: Sequence[State], begun: Sequence[bool]) -> bool:
    """Whether a scheduler of ``fairness`` may leave out for ever the threads that stop.

    ``begun``: whether each thread has done anything.
    """
    starved = [t for t, state in enumerate(states) if state == "stops"]
    if not starved:
        return True
    if fairness == "fair" or "spins" not in states:
        return False
    first = next(t for t, state in enumerate(states) if state != "ends")
    match fairness:
        case "hsa":
            return first not in starved
        case "obe":
            return not any(begun[t] for t in starved)
        case "hsa_obe":
            return first not in starved and not any(begun[t] for t in starved)
        case "lobe":
            return not any(any(begun[t:]) for t in starved)
    return True
