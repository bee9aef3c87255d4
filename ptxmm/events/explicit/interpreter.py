"""Runs one thread on plain integers, or with the values of its reads left open.

With the values given (``values``) this is an ordinary interpreter. With open values registers hold expressions, and
the run forks only where it must know one: at a branch, a predicated memory access, an address, the comparison of a
``cas``, an operand of a barrier, the result of a wait. Each choice becomes a constraint that the values must meet in
the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptxmm.events.explicit.accesses import elements
from ptxmm.events.explicit.barriers import synchronization
from ptxmm.events.explicit.machine import PRED, Domain, Effects, Given, Impossible, Machine, Missing, Undecided, Unmet
from ptxmm.events.explicit.program import Program
from ptxmm.events.explicit.readings import Readings
from ptxmm.events.explicit.relations.scopes import places
from ptxmm.events.explicit.trace import Event, Trace
from ptxmm.events.explicit.values import compute
from ptxmm.events.explicit.values.node import Node, Undecidable
from ptxmm.program.identity import EventId
from ptxmm.program.shared.broadcasts import quiet
from ptxmm.program.shared.chunks import Chunks
from ptxmm.program.shared.control import BARRIERS, SPINS, around, control_flow, exits_matter
from ptxmm.program.shared.convergence import gathers, sites
from ptxmm.program.shared.mbarriers import opaque
from ptxmm.program.shared.refusals import UNDECIDABLE, refused
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written

__all__ = ["Domain", "Missing", "Program", "Undecided", "programs", "run"]

WARP = 32
"""A thread without a named warp counts as a whole one in a barrier with a reduction (A27)."""


def programs(test: Test, readings: Readings = Readings()) -> tuple[Program, ...]:  # noqa: B008 (frozen)
    """Every thread of ``test``, ready to run."""
    objects = tuple((o.address, o.address + o.size, o) for o in test.objects.values() if o.virtual == o.key)
    chunks = Chunks(test, readings.split, readings.whole)
    api, exits = _has_api(test), exits_matter(test)
    where = places(test)
    hidden = opaque(test.threads, test.objects)
    unnoticed = quiet(test, SPINS, readings.told and not readings.failing_writes)
    aligned = sites(test)
    found = []
    warps: dict[object, list[int]] = {}
    ctas: dict[object, list[tuple[int, int]]] = {}
    for i, place in enumerate(where):
        warps.setdefault(place.warp, []).append(i)
        ctas.setdefault(place.cta, []).append((i, WARP if test.threads[i].placement.warp is None else 1))
    for i, t in enumerate(test.threads):
        lanes, mates = tuple(warps[where[i].warp]), tuple(ctas[where[i].cta])
        flow = control_flow(t, unnoticed[i].accesses, readings.essential, unnoticed[i].rounds)
        products = any(isinstance(op, ops.Wgmma) for op in t.body)
        around_ = around(t)
        found.append(
            Program(test, i, flow, around_, objects, chunks, api, exits, lanes, mates, hidden, products, aligned[i])
        )
    return tuple(found)


def _has_api(test: Test) -> bool:
    """Whether CUDA API synchronization matters: several grids run on one GPU, or a thread waits for earlier ones."""
    grids: dict[int, set[int]] = {}
    for thread in test.threads:
        if not thread.placement.host:
            grids.setdefault(thread.placement.gpu, set()).add(thread.placement.grid)
    return any(len(g) > 1 for g in grids.values()) or any(
        isinstance(op, ops.GridControl) and op.kind == "wait" for t in test.threads for op in t.body
    )


def run(
    program: Program,
    decisions: tuple[int, ...] = (),
    *,
    values: Mapping[EventId, int] | None = None,
    exchanged: Mapping[EventId, tuple[int, int]] | None = None,
    domain: Domain | None = None,
    unroll: int = 3,
    readings: Readings = Readings(),  # noqa: B008 (frozen)
    spinning: bool = False,
    prune: bool = True,
    beginning: bool = False,
) -> Trace:
    """One path of ``program``: the one that takes ``decisions``, and the first choice where they end.

    ``values``: what each read, arrival with a token and wait returns (then nothing is open); ``exchanged``: what each
    exchange with other threads then gives (the run stops at others). ``domain`` narrows choices, and is needed where an
    address or a barrier operand is open (else ``Undecided``). ``unroll``: bound of each backward branch. ``spinning``:
    go round spin loops as well. ``prune``: narrow choices between true and false by ``domain`` too; without, what a
    read outside every object returns stays open as well, since ``domain`` may not have its address yet.
    ``beginning``: the run ends before an instruction for which ``values`` lacks one; else that raises ``Missing``.
    Raises ``PtxmmError`` (kind ``unsupported``) for what can't be modelled.
    """
    machine = Machine(
        program,
        decisions,
        Given(values, {} if exchanged is None else exchanged, domain, unroll, readings, spinning, prune),
    )
    trace = machine.trace
    try:
        _run(machine)
    except Impossible:
        trace.end = "impossible"
    except Unmet:
        trace.end = "exchange"
    except Missing:
        if not beginning:
            raise
        trace.end = "open"
        _undo(machine)
    except Undecidable:
        raise refused(UNDECIDABLE, program.test, machine.op) from None
    trace.registers = {name: machine.register(name) for name in machine.thread.registers}
    return trace


def _run(machine: Machine) -> None:
    body = machine.thread.body
    headers = frozenset(machine.program.control.spin.values())
    if machine.program.api:
        _boundary(machine, -1, ())
    while machine.pc < len(body):
        machine.step_count += 1
        if machine.guards:
            _close_guards(machine)
        if machine.pc in headers:
            machine.visited[machine.pc] = machine.step_count
        op = body[machine.pc]
        if isinstance(op, ops.Branch | ops.Exit):
            if not _jump(machine, op):
                break
        else:
            assert not isinstance(op, ops.WholeOnly)
            _execute(machine, op)
            machine.pc += 1
    if machine.program.exits and machine.trace.end == "end":
        machine.step_count += 1
        _exit(machine)
    if machine.program.api and machine.trace.end == "end":
        pending = tuple(i for i, e in enumerate(machine.trace.events) if e.asynchronous)
        machine.step_count += 1
        _boundary(machine, len(body), pending)


def _undo(machine: Machine) -> None:
    """Take out what the instruction has done so far at which the run ends, but that the thread has come to it."""
    here, trace = machine.identity().instance, machine.trace
    trace.events = [e for e in trace.events if e.id.instance != here]
    trace.steps = [s for s in trace.steps if s.id.instance != here or s.operation == "aligned"]
    trace.tokens = {i: number for i, number in trace.tokens.items() if i.instance != here}
    trace.waits = {i: result for i, result in trace.waits.items() if i.instance != here}


def _boundary(machine: Machine, pc: int, completes: tuple[int, ...]) -> None:
    """The start or the end of the thread, as an event of CUDA API synchronization."""
    identity = EventId(machine.trace.thread, pc)
    event = Event(identity, "API", None, left=machine.left, turn=machine.step_count, completes=completes)
    machine.trace.events.append(event)


def _exit(machine: Machine) -> None:
    """The exit of the thread, which barriers that it has not come to may wait for."""
    identity = EventId(machine.trace.thread, len(machine.thread.body))
    exits = Event(identity, "EX", None, ctrl=machine.missed, left=machine.left, turn=machine.step_count)
    machine.trace.events.append(exits)


def _execute(machine: Machine, op: ops.Straight) -> None:
    guard = _guard(machine, op)
    if guard is not None and guard.constant:
        if not guard.value:
            return
        guard = None
    machine.guard = guard
    meets = machine.pc in machine.program.aligned and gathers(op)
    if meets and (guard is None or machine.decide(guard, (0, 1))):
        machine.round = _round(machine)
        synchronization.gather(machine)
    products = machine.products
    if products is not None and products.concerns(op) and (guard is None or machine.decide(guard, (0, 1))):
        wrong = products.execute(op)
        if wrong is not None:
            machine.undefined(wrong)
    if isinstance(op, compute.Assigning) and not (isinstance(op, ops.Opaque) and op.free):
        compute.assign(machine, op)
        return
    if guard is not None and isinstance(op, BARRIERS):
        machine.missed |= guard.reads
    if guard is not None and not machine.decide(guard, (0, 1)):
        _skip(machine, op, guard)
        return
    machine.control = _control(machine, guard)
    machine.round = _round(machine)
    effect(type(op))(machine, op)


def _round(machine: Machine) -> int:
    """How often the backward branches around the instruction have been taken."""
    return sum(machine.rounds.get(b, 0) + machine.spins.get(b, 0) for b in machine.program.around[machine.pc])


def _control(machine: Machine, guard: Node | None) -> int:
    """The reads that decide whether the instruction is executed; a store that both ways have depends on neither."""
    own = 0 if guard is None else guard.reads
    twin = machine.program.control.twins.get(machine.pc)
    if twin is None:
        return machine.ctrl | own
    if twin == machine.pc:
        return machine.ctrl
    for _, reads, branch in machine.guards:
        if branch != twin:
            own |= reads
    return own


_EFFECTS: Effects = {**elements.EFFECTS, **synchronization.EFFECTS, **compute.EFFECTS}


def effect(kind: type) -> Callable[[Machine, Any], None]:
    """What the operations of one kind do where they happen."""
    if kind in _EFFECTS:
        return _EFFECTS[kind]
    # Few programs have one of the others, and loading all of them takes time at the start.
    from ptxmm.events.explicit import families

    return families.EFFECTS[kind]


def _skip(machine: Machine, op: ops.Op, guard: Node) -> None:
    """An instruction that does not happen here still makes what it would write depend on its guard."""
    if guard.reads:
        for name in names_written(op):
            absent = machine.expressions.absent(machine.width(name))
            machine.registers[name] = machine.expressions.select(guard, absent, machine.register(name))


# Control.


def _guard(machine: Machine, op: ops.Op) -> Node | None:
    if op.guard is None:
        return None
    node = machine.expressions.settled(machine.register(op.guard.register))
    return machine.expressions.operation("not", PRED, node) if op.guard.negated else node


def _close_guards(machine: Machine) -> None:
    """At the join of branches: what they assigned depends on their guards from here on."""
    closing = [g for g in machine.guards if g[0] == machine.pc]
    if not closing:
        return
    machine.guards = [g for g in machine.guards if g[0] != machine.pc]
    added: dict[str, int] = {}
    for _, reads, branch in closing:
        for name in machine.program.control.decided(branch):
            added[name] = added.get(name, 0) | reads
    for name, reads in added.items():
        machine.registers[name] = machine.expressions.joined(machine.register(name), reads, machine.width(name))
    machine.ctrl = 0
    for _, reads, _ in machine.guards:
        machine.ctrl |= reads


def _jump(machine: Machine, op: ops.Branch | ops.Exit) -> bool:
    """Go on after a branch or exit; false at the end of the run."""
    node = _guard(machine, op)
    if isinstance(op, ops.Branch) and op.condition is not None:
        c = op.condition
        operands = machine.operand(c.a, c.type), machine.operand(c.b, c.type)
        test = machine.expressions.operation(c.cmp, c.type, *operands)
        node = test if node is None else machine.expressions.operation("and", PRED, node, test)
        node = machine.expressions.settled(node)
    taken = node is None or machine.decide(node, (0, 1)) != 0
    if node is not None and node.reads:
        machine.guards.append((machine.program.control.join[machine.pc], node.reads, machine.pc))
        machine.ctrl |= node.reads
        if machine.pc in machine.program.control.leaving:
            machine.left |= node.reads
        if machine.pc in machine.program.control.skipping:
            machine.missed |= node.reads
    if not taken:
        machine.pc += 1
        return True
    if isinstance(op, ops.Exit):
        return False
    if op.target <= machine.pc and not _go_back(machine):
        return False
    machine.pc = op.target
    return True


def _wrote(machine: Machine, since: int) -> bool:
    """Whether the thread has written since a step, other than back what it read (``program.shared.idempotent``)."""
    if machine.last_write >= since:
        return True
    return any(machine.decide(changed, (0, 1)) != 0 for step, changed in machine.changes if step >= since)


def _go_back(machine: Machine) -> bool:
    """Count a backward branch; false if the run ends here."""
    pc = machine.pc
    spin = machine.program.control.spin.get(pc)
    idle = pc in machine.program.control.rounds or (spin is not None and not _wrote(machine, machine.visited[spin]))
    if idle and not machine.given.spinning:
        count = machine.spins.get(pc, 0)
        if count >= machine.program.control.allowed(pc):
            machine.trace.end = "spin"
            return False
        machine.spins[pc] = count + 1
        return True
    count = machine.rounds.get(pc, 0)
    if count >= machine.given.unroll:
        machine.trace.end = "cut"
        return False
    machine.rounds[pc] = count + 1
    return True
