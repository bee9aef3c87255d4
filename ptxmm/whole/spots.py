"""Where threads of a launch are, and what is said of it, as its result has that."""

from __future__ import annotations

import numpy as np

from ptxmm.analysis.result import Note
from ptxmm.formats.modules.launch import SAME_VALUE
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.execution.state import ENDED
from ptxmm.whole.order.trace import WRITE
from ptxmm.whole.result import Dimensions, Spot, Waiting

_MOST = 20


def spot_of(machine: Machine, at: int, agent: int) -> Spot:
    """Where an agent executes an instruction."""
    cta, thread = divmod(machine.copies.thread(agent), machine.size)
    source, number = machine.body[at].source, int(machine.part[cta])
    part = machine.launch.parts[number]
    cta, grid = cta - part.first, part.kernel.grid
    indices = _index(cta, grid.grid), _index(thread, grid.block)
    name = part.host or (f"grid {number}" if len(machine.launch.parts) > 1 else "")
    return Spot(source.span.line, " ".join(source.text.split()), cta, thread, *indices, name)


def waiting(machine: Machine) -> tuple[Waiting, ...]:
    """Who waits for what, where all that have not ended wait."""
    groups: dict[tuple[int, int], list[int]] = {}
    for thread in np.flatnonzero((machine.mode != ENDED) & machine.grids.begun).tolist():
        groups.setdefault((thread // machine.size, int(machine.pc[thread]) - 1), []).append(thread)
    found = []
    for (_, at), threads in list(groups.items())[:_MOST]:
        lacks, others = machine.lacks(threads[0])
        places = {int(machine.pc[other]) - 1: other for other in reversed(others) if machine.mode[other] != ENDED}
        ended = sum(machine.mode[other] == ENDED for other in others)
        lacks += f"; {ended} that have not have ended" if ended else ""
        missing = tuple(spot_of(machine, place, other) for place, other in places.items())
        found.append(Waiting(spot_of(machine, at, threads[0]), len(threads), lacks, missing))
    return tuple(found)


def notes(machine: Machine, agreeing: set[int]) -> tuple[Note, ...]:
    """What is to be said of a launch whatever the answer; ``agreeing``: the stores that race with the same value."""
    found = [Note("remark", text) for text in machine.kernel.remarks]
    body = machine.kernel.code.body
    if SAME_VALUE in machine.kernel.assumed:
        found.append(Note("kernel", f"races of writes of the same value are left out ({SAME_VALUE})"))
    raced = {body[at].source.span.line for at in agreeing}
    columns = machine.trace.columns()
    written = {body[at].source.span.line for at in np.unique(columns["instruction"][columns["kind"] == WRITE]).tolist()}
    for item in machine.kernel.allowed:
        if item.line in raced:
            text = f"writes of the same value race, which is allowed: {item.why}"
            found.append(Note("kernel", f"line {item.line}: {text}"))
        elif item.line not in written:
            text = f"no thread writes here, so that nothing is allowed: {item.why}"
            found.append(Note("kernel", f"line {item.line}: {text}"))
        else:
            found.append(Note("kernel", f"line {item.line}: no writes of the same value race here: {item.why}"))
    return tuple(found)


def _index(number: int, sizes: Dimensions) -> Dimensions:
    """The number of a CTA or of a thread by its three dimensions."""
    x, y, _ = sizes
    return number % x, number // x % y, number // (x * y)
