"""Products of matrices by warpgroups: ``wgmma`` (PTX ISA 9.7.16).

A product is an operation of its warpgroup, which four warps execute together. It is done at once here, when all of them
have come. What it reads of shared memory comes after what each of their threads came after at its last ``wgmma.fence``
or ``fence.proxy.async`` (9.7.16.7.1), and precedes what knows that its group is complete: a group is one of the
warpgroup (9.7.16.7.2), so whoever waits for it knows of all of it. The reads are by the asynchronous proxy (9.7.16.4).

Its registers are those of all its threads: what a thread does to one of them between the last fence and the product, or
between the product and a wait for its group, is undefined (9.7.16.7.1, 9.7.16.7.3).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct, field

from ptxmm.formats.modules.launch import WGMMA_SYNC
from ptxmm.program.placement import WARP_SIZE
from ptxmm.program.shared.descriptors import described
from ptxmm.program.shared.products import UNFENCED, accessed, changed, copied, feeding, fragments, registers, unfinished
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.asynchronous.copies import Copies
from ptxmm.whole.execution.asynchronous.described import read
from ptxmm.whole.execution.state import ENDED, RUNS, WAITS, Stopped
from ptxmm.whole.execution.values import unknown
from ptxmm.whole.lenient import WGMMA_MOV
from ptxmm.whole.order.clocks import NOTHING, Release

WARPGROUP = 4 * WARP_SIZE
"""The threads of a warpgroup (9.7.16.1)."""
_DEPTH = 2
"""How deep a matrix is in chunks of 16 bytes, in each step of K."""
_APART = "an instruction that not all threads of the warpgroup execute together (9.7.16)"
_Use = tuple[str, object]


class _Group(Struct):
    """A warpgroup: the agent of its reads, and for each of its groups what those come after who know that it is done;
    ``used``: how each register
    has been used since the last ``wgmma.fence``, if there was one (``fenced``); ``running``: the registers of products
    by the number of their group, which are not known to be complete, with what each is for; ``parked``: who has come to
    which instruction."""

    agent: int | None = None
    ends: list[tuple[Release, ...]] = field(default_factory=list)
    fenced: bool = False
    used: dict[str, set[_Use]] = field(default_factory=dict)
    running: dict[int, dict[str, set[_Use]]] = field(default_factory=dict)
    parked: dict[int, int] = field(default_factory=dict)


class Products:
    """The products of the warpgroups of ``machine``."""

    def __init__(self, machine: Accessing, copies: Copies) -> None:
        self.machine, self._copies = machine, copies
        self._groups: dict[int, _Group] = {}
        self._fences = np.full(machine.count, NOTHING, np.int64)
        self._any = any(isinstance(op, ops.Wgmma) for op in machine.body)
        named = registers(machine.body)
        self._copies_pass = WGMMA_MOV in machine.lenient
        fed = feeding(machine.body, named) if self._copies_pass else frozenset[str]()
        self.touching: Mapping[int, list[str]] = {
            at: names
            for at, op in enumerate(machine.body if named else ())
            if not isinstance(op, ops.Wgmma) and (names := accessed(op, named, fed))
        }
        """The instructions that access registers of products, or what is copied to these, and which."""

    def number(self, thread: int) -> int:
        """The warpgroup of a thread: its first thread."""
        size = self.machine.size
        return thread // size * size + thread % size // WARPGROUP * WARPGROUP

    def together(self, at: int, threads: Numbers) -> list[Numbers]:
        """Those warpgroups whose threads have all come to an instruction; the others wait for the rest."""
        machine, found = self.machine, []
        for first in np.unique([self.number(thread) for thread in threads.tolist()]).tolist():
            if first % machine.size + WARPGROUP > machine.size:
                raise Stopped("undefined", "a warpgroup that is not made of four warps (9.7.16.1)", at, first)
            group = self._groups.setdefault(first, _Group())
            here = threads[(threads >= first) & (threads < first + WARPGROUP)]
            group.parked |= dict.fromkeys(here.tolist(), at)
            machine.mode[here] = WAITS
            if len(group.parked) == WARPGROUP:
                every = np.arange(first, first + WARPGROUP)
                if len(set(group.parked.values())) > 1:
                    raise Stopped("undefined", _APART, at, first)
                group.parked = {}
                machine.mode[every] = RUNS
                found.append(every)
        return found

    def check_end(self) -> None:
        """Raise ``Stopped`` where nobody goes on and some threads wait for the rest of their warpgroup."""
        for first, group in self._groups.items():
            if group.parked:
                thread, at = next(iter(group.parked.items()))
                rest = [t for t in range(first, first + WARPGROUP) if t not in group.parked]
                if (self.machine.mode[rest] == ENDED).all():
                    raise Stopped("undefined", _APART, at, thread)
                message = "warps of a warpgroup that wait for each other otherwise are not followed yet"
                late = next(t for t in rest if self.machine.mode[t] != ENDED)
                raise Stopped("unsupported", message, at, thread, other=(int(self.machine.pc[late]) - 1, late))

    def touch(self, at: int, threads: Numbers) -> None:
        """Threads access registers of products otherwise."""
        for first in {self.number(thread) for thread in threads.tolist()}:
            group = self._groups.setdefault(first, _Group())
            copy = copied(self.machine.body[at]) if self._copies_pass else None
            for name in self.touching[at]:
                if any(name in uses for uses in group.running.values()):
                    thread = int(threads[threads >= first][0])
                    raise Stopped("undefined", unfinished(name), at, thread)
                if copy is None:
                    group.used.setdefault(name, set()).add(("thread", None))
            if copy is not None and copy[1] is not None:
                group.used.setdefault(copy[0], set()).update(group.used.get(copy[1], ()))

    def fence(self, op: ops.WgmmaFence, at: int, threads: Numbers) -> None:
        """``wgmma.fence``."""
        group = self._groups[int(threads[0])]
        group.fenced = True
        group.used.clear()
        self.issues(threads)

    def issues(self, threads: Numbers) -> None:
        """What threads came after by now their later products come after."""
        if self._any:
            threads = threads[threads < self.machine.count]  # a leader is one of its lanes, and all of them count
            self._fences[threads] = self.machine.clocks.views(threads)

    def product(self, op: ops.Wgmma, at: int, threads: Numbers) -> None:
        """``wgmma.mma_async``."""
        machine, first = self.machine, int(threads[0])
        group = self._groups[first]
        self._use(group, op, at, first)
        clocks = machine.clocks
        if group.agent is None:
            group.agent = self._copies.agent(first, "wgmma")
        agent = np.array([group.agent])
        clocks.acquire(agent, [Release(clocks.common(self._fences[threads]), group.agent, 0)])
        matrices = [op.b] if isinstance(op.a, tuple) else [op.b, op.a]
        for descriptor, shape in zip(matrices, described(op), strict=True):
            self._read(descriptor, shape, at, threads, agent)
        for register in op.dst:
            machine.assign(register, threads, unknown(len(threads)))

    def _use(self, group: _Group, op: ops.Wgmma, at: int, first: int) -> None:
        accumulators: _Use = "D", (op.shape, op.type)
        allowed = {r.name: {accumulators} for r in op.dst} | {name: {("A", None)} for name in fragments(op)}
        wrong = sorted(name for name, uses in allowed.items() if not group.used.get(name, set()) <= uses)
        if not group.fenced:
            raise Stopped("undefined", UNFENCED, at, first)
        if wrong:
            raise Stopped("undefined", changed(wrong[0]), at, first, rests=frozenset({WGMMA_MOV}))
        for held in group.running.values():
            # A product that goes on holds it in another role (9.7.16.7.3).
            if early := sorted(name for name, uses in allowed.items() if held.get(name, uses) != uses):
                raise Stopped("undefined", unfinished(early[0]), at, first)
        held = group.running.setdefault(len(group.ends), {})
        for name, uses in allowed.items():
            group.used.setdefault(name, set()).update(uses)
            held.setdefault(name, set()).update(uses)

    def _read(
        self, descriptor: ops.Operand, shape: tuple[int, bool, int], at: int, threads: Numbers, agent: Numbers
    ) -> None:
        """Read a matrix of shared memory; ``shape``: as of ``described``."""
        machine = self.machine
        words = machine.sure(machine.operand(descriptor, ops.B64, threads), at, "the descriptor of this matrix")
        if (words != words[0]).any():
            message = "descriptors that are not the same in all warps of the warpgroup (9.7.16.5.2)"
            raise Stopped("undefined", message, at, int(threads[0]))
        read(machine, int(words[0]), shape, _DEPTH, at, threads, agent)

    def commit(self, threads: Numbers) -> None:
        """``wgmma.commit_group``."""
        group, clocks = self._groups[int(threads[0])], self.machine.clocks
        # The products of a group are not done before all of the warpgroup have come to them.
        ends = [clocks.issued(threads)]
        if group.agent is not None:
            ends.append(self._copies.done(group.agent))
        group.ends.append(tuple(ends))

    def wait(self, pending: int, threads: Numbers) -> None:
        """``wgmma.wait_group``: its threads come after all groups but the latest ``pending``."""
        group = self._groups[int(threads[0])]
        if WGMMA_SYNC in self.machine.lenient:
            self.machine.clocks.synchronize(threads)
        done = len(group.ends) - pending
        if done <= 0:
            return
        group.running = {number: names for number, names in group.running.items() if number >= done}
        self.machine.clocks.acquire(threads, group.ends[done - 1])
