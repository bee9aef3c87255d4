"""An execution that never ends in plain values: what becomes of each thread, and why no loop in it will be left."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.analysis.execution import INITIAL, location, shown
from ptxmm.analysis.instruction import crowded, instruction
from ptxmm.analysis.morally_strong import conditions
from ptxmm.analysis.progress.result import Seen, ThreadReport
from ptxmm.analysis.result import Access, Instruction, Step
from ptxmm.engines.explicit.hangs import Hang
from ptxmm.engines.explicit.witness import Rebuilt
from ptxmm.program.accesses import overlap
from ptxmm.program.test import Test

_DOES = {
    "ends": "{} ends without it",
    "spins": "{} spins",
    "waits": "{} waits at a barrier",
    "held": "{} waits for an earlier grid",
    "stops": "{} is left out of the schedule",
}


def thread_reports(test: Test, hang: Hang) -> tuple[ThreadReport, ...]:
    """What becomes of each thread of ``test`` in ``hang``."""
    return tuple(_thread_report(test, hang, t) for t in range(len(test.threads)))


def _thread_report(test: Test, hang: Hang, t: int) -> ThreadReport:
    state = hang.states[t]
    spin = hang.runs[t].spin if state == "spins" else None
    lines = None
    seen: tuple[Seen, ...] = ()
    if spin is not None:
        at = [test.at((t, pc)).source.span.line for pc in spin.loop.body]
        lines = min(at), max(at)
        seen = (*_reads(test, hang, t), *_waits(test, hang, t))
    steps = tuple(_steps(test, hang, t))
    return ThreadReport(test.threads[t].name, state, _next(test, hang, t), lines, steps, seen)


def _origin(test: Test, hang: Hang, t: int, pc: int) -> int:
    """The pc in ``test`` of the instruction ``pc`` of a thread that may be changed; -1: none."""
    spin = hang.runs[t].spin
    if spin is not None:
        pc = spin.origin[pc] if 0 <= pc < len(spin.origin) else -1
    return pc if 0 <= pc < len(test.threads[t].body) else -1


def _instruction(test: Test, hang: Hang, number: int) -> Instruction | None:
    """The instruction of the event ``number``; None for an initial write."""
    if number >= hang.layout.initial_first:
        return None
    t, pc = hang.layout.events[number].id.site
    return instruction(test, t, _origin(test, hang, t, pc))


def _next(test: Test, hang: Hang, t: int) -> Instruction | None:
    """The instruction at which a thread that neither ends nor spins has stopped."""
    path, state = hang.paths[t], hang.states[t]
    if state in ("ends", "spins"):
        return None
    steps, events = path.trace.steps, path.trace.events
    if state == "waits":
        identity = steps[path.passed].id
    elif path.length < len(events):
        identity = events[path.length].id
    else:
        return None
    pc = _origin(test, hang, t, identity.instruction) if identity.instruction >= 0 else 0
    return instruction(test, t, pc) if 0 <= pc < len(test.threads[t].body) else None


def _steps(test: Test, hang: Hang, t: int) -> Iterator[Step]:
    """What thread ``t`` has executed; of the rounds of a loop that never ends only the last."""
    layout, spin = hang.layout, hang.runs[t].spin
    first, end = layout.spans[t]
    found: dict[tuple[int, int], list[Access]] = {}
    pcs: dict[tuple[int, int], int] = {}
    for number in range(first, end):
        event = layout.events[number]
        pc = _origin(test, hang, t, event.id.instruction) if event.id.instruction >= 0 else -1
        if pc < 0 or (spin is not None and event.id.instruction in spin.first and hang.states[t] == "spins"):
            continue
        key = event.id.instruction, event.id.round
        pcs[key] = pc
        accesses = found.setdefault(key, [])
        if event.kind in ("R", "W") and event.cell is not None:
            sources = tuple(_place(test, hang, w) for w in hang.sources.get(number, ()))
            value = shown(test, hang.values[number] or 0, event.cell, event.id._replace(instruction=pc))
            accesses.append(Access(event.kind, location(test, *event.cell), value, sources))
    for key, accesses in found.items():
        yield Step(instruction(test, t, pcs[key]), key[1], tuple(accesses), crowded(test, t, pcs[key]))


def _place(test: Test, hang: Hang, number: int) -> str:
    found = _instruction(test, hang, number)
    return INITIAL if found is None else found.place


def _reads(test: Test, hang: Hang, t: int) -> Iterator[Seen]:
    """What the loop in which ``t`` spins reads."""
    layout, spin = hang.layout, hang.runs[t].spin
    assert spin is not None
    first, end = layout.spans[t]
    for number in range(first, end):
        event = layout.events[number]
        if event.kind != "R" or event.id.instruction not in spin.second or event.cell is None:
            continue
        found = _instruction(test, hang, number)
        assert found is not None
        sources = " and ".join(_source(test, hang, number))
        value = shown(test, hang.values[number] or 0, event.cell, event.id._replace(instruction=found.index))
        reasons = tuple(_reasons(test, hang, number))
        yield Seen(found, location(test, *event.cell), value, sources, reasons)


def _source(test: Test, hang: Hang, number: int) -> list[str]:
    """Where the value of a read of the last round comes from. If a round of some loop wrote it back, from before."""
    found: list[str] = []
    for w in hang.sources.get(number, ()):
        seen = {w}
        while (read := _read_of_idempotent(hang, w)) is not None and hang.sources[read][0] not in seen:
            w = hang.sources[read][0]
            seen.add(w)
        found.append(_place(test, hang, w))
    return list(dict.fromkeys(found))


def _read_of_idempotent(hang: Hang, w: int) -> int | None:
    """The read of the atomic of a loop that spins whose write ``w`` is."""
    event = hang.layout.events[w]
    if w >= hang.layout.initial_first:
        return None
    spin = hang.runs[event.id.thread].spin
    if spin is None or not spin.rounds(event.id.instruction):
        return None
    return hang.layout.numbers.get((event.id, "R"))


def _reasons(test: Test, hang: Hang, read: int) -> Iterator[str]:
    """Why the read of the last round will return no other value."""
    layout = hang.layout
    cell = layout.events[read].cell
    assert cell is not None
    rebuilt = _rebuilt(hang)
    missed = [w for r, w in hang.missed if r == read]
    executed: set[tuple[int, int]] = set()
    for w in range(layout.initial_first):
        event = layout.events[w]
        if event.kind != "W" or event.cell is None or not overlap(event.cell, cell):
            continue
        t, pc = event.id.site
        executed.add((t, _origin(test, hang, t, pc)))
        found = _instruction(test, hang, w)
        if w in missed:
            failing = "; ".join(f"{c.name}: {c.text}" for c in conditions(hang.test, rebuilt, read, w))
            yield f"{found} may never be seen: it is not morally strong with the read ({failing})"
        elif _unordered(hang, w, read):
            yield f"{found} need not come after what is read: coherence order does not relate them"
    yield from _absent(test, hang, executed, cell)


def _unordered(hang: Hang, w: int, read: int) -> bool:
    """Whether coherence order relates ``w`` with no write that ``read`` reads from."""
    has = hang.layout.algebra.has
    sources = hang.sources.get(read, ())
    return _read_of_idempotent(hang, w) is None and all(
        s != w and not has(hang.co, s, w) and not has(hang.co, w, s) for s in sources
    )


def _absent(test: Test, hang: Hang, executed: set[tuple[int, int]], cell: tuple[str, int, int]) -> Iterator[str]:
    """The instructions that might write ``cell`` and are not executed, and why; or that there is none."""
    some = False
    for t, pc, key, offset, size in sorted(hang.writers):
        spin = hang.runs[t].spin
        if not overlap((key, offset, size), cell) or (spin is not None and pc in spin.loop.body):
            continue
        some = True
        if (t, pc) not in executed:
            does = _DOES[hang.states[t]].format(test.threads[t].name)
            yield f"{instruction(test, t, pc)} is not executed: {does}"
    if not some:
        yield "no thread writes it"


def _waits(test: Test, hang: Hang, t: int) -> Iterator[Seen]:
    """The waits on mbarriers that never return true in the loop in which ``t`` spins."""
    run = hang.runs[t]
    assert run.spin is not None
    for step in run.trace.steps:
        if step.id.instruction not in run.spin.second or step.place is None or step.number:
            continue
        key, offset = step.place
        cell = (key, offset, 8)
        pc = _origin(test, hang, t, step.id.instruction)
        phase = hang.phase(step.id)
        executed = {
            (e.id.thread, _origin(test, hang, e.id.thread, e.id.instruction))
            for e in hang.layout.events[: hang.layout.initial_first]
            if e.kind == "MBA" and e.mbarrier == step.place
        }
        reasons = (f"its phase {phase} is never completed", *_absent(test, hang, executed, cell))
        reasons = tuple(r for r in reasons if r != "no thread writes it")
        yield Seen(instruction(test, t, pc), location(test, *cell), phase, "", reasons)


def _rebuilt(hang: Hang) -> Rebuilt:
    written = [value or 0 for value in hang.values]
    traces = [path.trace for path in hang.paths]
    values = {event.id: value for event, value in zip(hang.layout.events, written, strict=True) if event.kind == "R"}
    return Rebuilt(hang.layout, hang.evaluator, hang.base, written, values, hang.co, traces, hang.meeting)
