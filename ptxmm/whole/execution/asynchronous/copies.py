"""Asynchronous copies, and how it is known that they are done (PTX ISA 8.9.1.1, 9.7.10.24, 9.7.14.15.15).

A copy is done at once here. It is an agent of its own: it comes after what its thread did before, and what it did is
known to those only who know of its completion, by a group of its thread or by an mbarrier. A thread has one agent for
each way to learn of that; the clock of the agent is the number of the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from ptxmm.formats.modules.launch import DESTINATION_CTA, EXIT_WAITS, SAME_VALUE
from ptxmm.program.shared.refusals import same_group
from ptxmm.ptx import ops
from ptxmm.ptx.ops.copies import BULK_ALIGNMENT as _UNIT
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.asynchronous.tensors import Spans, Transfer, straight, tiled
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.lenient import ISSUE
from ptxmm.whole.order.clocks import NOTHING, Release
from ptxmm.whole.order.trace import ASYNC, ATOMIC, READ, TENSORMAP, WRITE

_READ, _DONE = "read", "done"
_U16 = ops.Type("u", 16)


class Copies:
    """The asynchronous operations of the threads of ``machine``."""

    def __init__(self, machine: Accessing) -> None:
        self.machine = machine
        self._agents: dict[tuple[object, ...], int] = {}
        self._threads: dict[int, int] = {}
        self._groups: dict[tuple[str, int], list[dict[str, Release]]] = {}
        self._last: dict[tuple[int, int], tuple[int, int]] = {}
        self._open: dict[int, list[tuple[int, int, int]]] = {}
        self._calls = 0
        self._same: dict[tuple[object, ...], int] = {}

    def thread(self, agent: int) -> int:
        """The thread that an agent is, or that has issued its operations; the first lane of a leader."""
        machine, thread = self.machine, self._threads.get(agent, agent)
        return machine.members(thread - machine.count)[0] if thread >= machine.count else thread

    def agent(self, thread: int, *what: object, cta: int | None = None) -> int:
        """What makes the accesses of the asynchronous operations of a thread of which one learns in this way."""
        key = thread, *what
        if key not in self._agents:
            clocks = self.machine.clocks
            self._agents[key] = clocks.add_component(int(clocks.cta[thread]) if cta is None else cta)
            self._threads[self._agents[key]] = thread
        return self._agents[key]

    def known(self, thread: int, *what: object) -> int | None:
        """The same, if there is one."""
        return self._agents.get((thread, *what))

    def behind(self, agent: int) -> int:
        """What those come after who know that an agent is done, beside what it did (A35)."""
        return int(self.machine.clocks.views(np.array([agent]))[0]) if ISSUE in self.machine.lenient else NOTHING

    def done(self, agent: int) -> Release:
        """What an agent has done by now, for those who know of it."""
        clocks = self.machine.clocks
        clocks.clock[agent] += 1
        return Release(self.behind(agent), agent, int(clocks.clock[agent]) - 1)

    def _issued(self, threads: Numbers, *what: object) -> Numbers:
        """The agents that make the accesses of what ``threads`` issue now: these come after all that they did."""
        clocks = self.machine.clocks
        agents = np.array([self.agent(thread, *what) for thread in threads.tolist()], np.int64)
        for thread, agent in zip(threads.tolist(), agents.tolist(), strict=True):
            clocks.acquire(np.array([agent]), [clocks.release(thread)])
        return agents

    # cp.async, by the generic proxy.

    def copy(self, op: ops.CopyAsync, at: int, threads: Numbers) -> None:
        """``cp.async``: bytes past the size of the source are written as zeros."""
        machine = self.machine
        sizes = np.full(len(threads), op.size, np.int64)
        if op.source_size is not None:
            given = machine.operand(op.source_size, ops.U32, threads)
            sizes = machine.sure(given, at, "the source size of this copy", threads).astype(np.int64)
            if (wrong := np.flatnonzero(sizes > op.size)).size:
                message = f"cp.async reads {sizes[wrong[0]]} bytes of {op.size}"
                raise Stopped("undefined", message, at, int(threads[wrong[0]]))
        if op.ignore is not None:
            sizes[machine.truth(at, threads, op.ignore.name) ^ op.ignore_negated] = 0
            if machine.apart:
                raise Stopped("undecided", "what this copies depends on which lane is elected", at, int(threads[0]))
        to = machine.places(op.dst, "shared", op.size, at, threads)
        agents = self._issued(threads, "cp.async", _DONE)
        machine.tell("copy", ("group", "cp.async"), 0, at, threads)
        for size in np.unique(sizes).tolist():
            here = np.flatnonzero(sizes == size)
            if size:
                frm = machine.places(op.src, "global", size, at, threads[here], op.size)
                machine.trace.add(at, READ, frm, size, agents[here])
                self._move(to[here], frm, size)
            rest = (to[here][:, None] + np.arange(size, op.size)).ravel()
            machine.memory.bytes[rest], machine.memory.known[rest], machine.memory.opaque[rest] = 0, True, False
        machine.trace.add(at, WRITE, to, op.size, agents)
        machine.overwrite(to, op.size, at)
        for place, thread in zip(to.tolist(), threads.tolist(), strict=True):
            self._open.setdefault(thread, []).append((place, place + op.size, at))

    def _move(self, to: Numbers, frm: Numbers, size: int) -> None:
        self.machine.memory.move(to, frm, size, self.machine.watched)

    def arrive(self, op: ops.CopyAsyncArrive, at: int, threads: Numbers) -> None:
        """``cp.async.mbarrier.arrive``: an arrival when all earlier ``cp.async`` of the thread are done."""
        machine = self.machine
        places = machine.mbarrier_places(op, at, threads)
        for place, thread in zip(places.tolist(), threads.tolist(), strict=True):
            agent = self.known(thread, "cp.async", _DONE)
            releases = [] if agent is None else [self.done(agent)]
            machine.mbarriers.arrive_late(place, at, thread, not op.noinc, releases)

    # Groups.

    def commit(self, op: ops.AsyncCommit | ops.AsyncWait, at: int, threads: Numbers) -> None:
        """``commit_group``. Copies of one group are in no order: two of them to one location are undefined
        (9.7.10.24.4)."""
        for thread in threads.tolist():
            written = sorted(self._open.pop(thread, [])) if op.kind == "cp.async" else []
            for (_, end, one), (first, _, other) in pairwise(written):
                if first < end:
                    raise Stopped("undefined", same_group(*(self.machine.body[i] for i in (one, other))), at, thread)
            groups = self._groups.setdefault((op.kind, thread), [])
            self.machine.tell("commit", ("group", op.kind), len(groups), at, np.array([thread]))
            groups.append(self._latest(op.kind, thread))

    def _latest(self, kind: str, thread: int) -> dict[str, Release]:
        """What a thread has issued of a kind, which ends a group now."""
        agents = {part: self.known(thread, kind, part) for part in (_READ, _DONE)}
        return {part: self.done(agent) for part, agent in agents.items() if agent is not None}

    def wait(self, op: ops.AsyncWait, at: int, threads: Numbers) -> None:
        """``wait_group`` and ``wait_all``, a commit and a wait: the thread comes after all groups but the latest
        ``pending``."""
        if op.pending is None:
            self.commit(op, at, threads)
        for thread in threads.tolist():
            groups = self._groups.get((op.kind, thread), [])
            done = groups[: max(0, len(groups) - (op.pending or 0))]
            self.machine.tell("pass", ("group", op.kind), len(done) - 1, at, np.array([thread]))
            if not done:
                continue
            releases = [release for part, release in done[-1].items() if part == _READ or not op.read]
            self.machine.clocks.acquire(np.array([thread]), releases)

    # Bulk copies, by the asynchronous proxy.

    def bulk(self, op: ops.BulkCopy, at: int, threads: Numbers) -> None:
        """``cp.async.bulk`` and ``cp.reduce.async.bulk``, with and without a tensor map."""
        self._calls += 1
        if op.byte_mask is not None or op.load_mode != "tile":
            raise Stopped("unsupported", "a copy of some bytes or by im2col is not followed in a whole launch yet", at)
        machine, clocks = self.machine, self.machine.clocks
        for thread in threads.tolist():
            one = np.array([thread])
            place = None
            if op.mbarrier is not None:
                place = int(machine.places(op.mbarrier, op.dst_space, ops.MBARRIER_BYTES, at, one)[0])
            moved = self._moved(op, at, one)
            reads, writes = self._bulk_agents(one, place)
            if moved.map is not None:
                machine.trace.add(
                    at, READ, np.array([moved.map]), ops.TENSORMAP_BYTES, reads, f"{TENSORMAP}.{moved.map}"
                )
            for frm, size, proxy in self._alike(moved.reads, one):
                machine.trace.add(at, READ, frm, size, np.repeat(reads, len(frm)), proxy)
                self.note(at, frm, reads)
            machine.tell("copy", ("group", "bulk") if place is None else ("mbarrier", place), 0, at, one)
            targets = self._targets(op, at, one, moved, place)
            writers = [self._writer(thread, writes, place, target) for target, _ in targets]
            for (target, _), writer in zip(targets, writers, strict=True):
                self._write(op, at, target, writer)
            if place is None:
                continue
            for (_, other), writer in zip(targets, writers, strict=True):
                release = Release(self.behind(int(writer[0])), int(writer[0]), int(clocks.clock[writer[0]]))
                if len(targets) > 1:  # who waits at one mbarrier does not know what is done to the others
                    end = self.agent(thread, "mbarrier", place, "end", other)
                    home = int(clocks.cta[end])
                    release = Release(clocks.joined(home, NOTHING, [release]), end, int(clocks.clock[end]))
                    clocks.clock[end] += 1
                self.note(at, np.array([other]), np.array([release.agent]), release.clock)
                machine.mbarriers.complete(other, at, thread, moved.size, release)
            clocks.clock[np.unique(np.concatenate([writes, *writers]))] += 1

    def _writer(self, thread: int, writes: Numbers, place: int | None, target: Transfer) -> Numbers:
        """The agent that writes a target: of the CTA that issues the copy, or of the one that has the target."""
        owner = self._owner(target.writes[0]) if len(target.writes[0]) else None
        clocks = self.machine.clocks
        if owner in (None, int(clocks.cta[thread])) or DESTINATION_CTA not in self.machine.lenient:
            return writes
        agent = np.array([self.agent(thread, "mbarrier", place, owner, cta=owner)])
        clocks.acquire(agent, [clocks.release(thread)])
        return agent

    def _targets(
        self, op: ops.BulkCopy, at: int, thread: Numbers, moved: Transfer, place: int | None
    ) -> list[tuple[Transfer, int]]:
        """What is written, and the mbarrier that counts that: in each CTA of a mask the same variables."""
        if op.mask is None or place is None:
            return [(moved, -1 if place is None else place)]
        machine = self.machine
        mask = int(machine.sure(machine.operand(op.mask, _U16, thread), at, "the CTA mask of this copy", thread)[0])
        found = []
        for rank in range(mask.bit_length()):
            if mask >> rank & 1:
                starts, to = (self.at_rank(part, rank, at, thread) for part in (moved.writes[0], moved.to))
                (other,) = self.at_rank(np.array([place]), rank, at, thread).tolist()
                found.append((replace(moved, writes=(starts, moved.writes[1]), to=to), other))
        return found

    def at_rank(self, places: Numbers, rank: int, at: int, thread: Numbers) -> Numbers:
        """The same places in another CTA of the cluster."""
        memory = self.machine.memory
        instances = [memory.instances[number] for number in memory.instance_of(places).tolist()]
        words = np.array([item.base - item.start for item in instances], np.int64) + places
        threads, ranks = np.repeat(thread, len(places)), np.full(len(places), rank, np.uint64)
        addresses, valid = memory.mapped(words.astype(np.uint64), ranks, threads)
        found = memory.find(addresses, 1, threads)[1]
        if not valid.all() or (found < 0).any():
            raise Stopped("undefined", f"CTA {rank} has no destination of this copy", at, int(thread[0]))
        return found

    def store(self, op: ops.AsyncStore, at: int, threads: Numbers) -> None:
        """``st.async`` and ``red.async``, by the generic proxy (9.7.10.12, 9.7.14.7)."""
        machine, clocks, size = self.machine, self.machine.clocks, op.type.bytes
        for thread in threads.tolist():
            one = np.array([thread])
            to = machine.places(op.address, op.space, size * len(op.values), at, one)
            barrier = machine.places(op.mbarrier, op.space, ops.MBARRIER_BYTES, at, one)
            if self._owner(to) is None or self._owner(to) != self._owner(barrier):
                message = "the destination and the mbarrier are not in the shared memory of one CTA (9.7.10.12)"
                raise Stopped("undefined", message, at, thread)
            place = int(barrier[0])
            agents = self._issued(one, "mbarrier", place)
            machine.tell("copy", ("mbarrier", place), 0, at, one)
            for number, operand in enumerate(op.values):
                here, value = to + number * size, machine.operand(operand, op.type, one)
                machine.trace.add(at, WRITE if op.reduction is None else ATOMIC, here, size, agents)
                known = value.known & (op.reduction is None)
                machine.memory.store(here, min(size, 8), value.words, known)
                machine.overwrite(here, size, at)
            self.note(at, to, agents)
            release = Release(self.behind(int(agents[0])), int(agents[0]), int(clocks.clock[agents[0]]))
            machine.mbarriers.complete(place, at, thread, size * len(op.values), release)
            clocks.clock[agents] += 1

    def _moved(self, op: ops.BulkCopy, at: int, thread: Numbers) -> Transfer:
        """What a copy moves."""
        machine, one = self.machine, int(thread[0])
        if op.tensormap is not None:
            where = machine.places(op.tensormap, None, ops.TENSORMAP_BYTES, at, thread, _UNIT)
            near, space = (op.src, op.src_space) if op.dst is None else (op.dst, op.dst_space)
            assert near is not None
            (first,) = machine.places(near, space, 1, at, thread, _UNIT).tolist()
            moved = tiled(machine, op, int(where[0]), first, at, thread)
            machine.places(near, space, moved.size, at, thread, _UNIT)
            return moved
        assert op.size is not None and op.src is not None and op.dst is not None
        size = int(machine.sure(machine.operand(op.size, ops.U32, thread), at, "the size of this copy", thread)[0])
        if size % _UNIT:
            raise Stopped("undefined", f"a bulk copy of {size} bytes, which is no multiple of {_UNIT}", at, one)
        if not size:
            nothing = np.zeros(0, np.int64)
            return Transfer((nothing, nothing), (nothing, nothing), nothing, nothing, nothing, 0, op.type)
        frm, to = (
            int(machine.places(address, space, size, at, thread, _UNIT)[0])
            for address, space in ((op.src, op.src_space), (op.dst, op.dst_space))
        )
        return straight(frm, to, size, op.type)

    def note(self, at: int, places: Numbers, agents: Numbers, clock: int | None = None) -> None:
        """Note what is done last to the shared memory of a CTA by an agent, now or at a ``clock`` of it."""
        owner, agent = self._owner(places), int(agents[0])
        if owner is not None:
            self._last[agent, owner] = int(self.machine.clocks.clock[agent]) if clock is None else clock, at

    def check_end(self) -> None:
        """Raise ``Stopped`` where a CTA may end, and its shared memory with it, before a bulk copy is done (5.1.7)."""
        clocks = self.machine.clocks
        for (agent, owner), (clock, at) in self._last.items():
            reads = getattr(self.machine.body[at], "mbarrier", None) is None
            own = reads and self.machine.cta[self.thread(agent)] == owner
            if own and EXIT_WAITS in self.machine.lenient:
                continue
            threads = np.flatnonzero(self.machine.cta == owner)
            given = np.full(len(threads), agent), np.full(len(threads), clock)
            known = clocks.after(clocks.views(threads), threads, *given)
            if not known.any():
                message = "the CTA may end, and its shared memory with it, before this is done (5.1.7)"
                rests = frozenset({EXIT_WAITS} if own else ())
                self.machine.unordered(message, at, self.thread(agent), rests, self.machine.end_of(owner))

    def _owner(self, places: Numbers) -> int | None:
        """The CTA whose shared memory is at a place; None: it is other memory."""
        memory = self.machine.memory
        instance = memory.instances[int(memory.instance_of(places)[0])]
        return instance.owner if instance.variable.space == "shared" else None

    def _bulk_agents(self, thread: Numbers, place: int | None) -> tuple[Numbers, Numbers]:
        """The agents that read and write for a copy."""
        if place is None:
            return self._issued(thread, "bulk", _READ), self._issued(thread, "bulk", _DONE)
        agents = self._issued(thread, "mbarrier", place)
        return agents, agents

    def _alike(self, spans: Spans, agents: Numbers) -> Iterator[tuple[Numbers, int, str]]:
        """Where bytes begin, by how many they are and by which proxy an agent accesses them."""
        memory, (starts, sizes) = self.machine.memory, spans
        instances = memory.instance_of(starts)
        for instance in np.unique(instances).tolist():
            for size in np.unique(sizes[instances == instance]).tolist():
                places = starts[(instances == instance) & (sizes == size)]
                yield places, size, self._proxy(places, agents)

    def _write(self, op: ops.BulkCopy, at: int, moved: Transfer, agents: Numbers) -> None:
        machine, number = self.machine, None
        if op.reduction is None and SAME_VALUE in machine.lenient:
            owners = set(machine.memory.instance_of(moved.to).tolist())
            if owners.isdisjoint(machine.memory.instance_of(moved.frm).tolist()):
                # Threads that execute the copy together: nothing writes its source between.
                key = at, self._calls, *(part.tobytes() for part in (moved.frm, moved.to, moved.sizes))
                number = self._same.setdefault(key, len(self._same))
        for places, size, proxy in self._alike(moved.writes, agents):
            self._check_writable(places, at, agents)
            self.note(at, places, agents)
            machine.memory.lose(places, size)
            if op.reduction is None:  # what is outside of the tensor is read as zeros (5.5.3.3)
                machine.memory.clear(places, size)
            machine.overwrite(places, size, at)
            width = size
            if op.reduction is not None:
                assert moved.type is not None
                width = moved.type.bytes
                places = (places[:, None] + np.arange(0, size, width)).ravel()
            if number is not None:
                first = machine.trace.count
                machine.trace.same |= dict.fromkeys(range(first, first + len(places)), number)
            kind = WRITE if op.reduction is None else ATOMIC
            machine.trace.add(at, kind, places, width, np.repeat(agents, len(places)), proxy)
        if op.reduction is None:
            for size in np.unique(moved.sizes).tolist():
                here = moved.sizes == size
                self._move(moved.to[here], moved.frm[here], size)

    def _check_writable(self, places: Numbers, at: int, agents: Numbers) -> None:
        """Nothing writes constants and parameters of kernels."""
        memory = self.machine.memory
        if (space := memory.instances[int(memory.instance_of(places)[0])].variable.space) in ("const", "param"):
            raise Stopped("undefined", f"a write of memory in .{space}", at, self.thread(int(agents[0])))

    def _proxy(self, places: Numbers, agents: Numbers) -> str:
        """The proxy of an access by its place: in global memory, in shared memory of the own CTA or of another one."""
        owner = self._owner(places)
        if owner is None:
            return f"{ASYNC}.global"
        return f"{ASYNC}.own" if owner == self.machine.clocks.cta[agents[0]] else f"{ASYNC}.other"

    def fence(self, op: ops.ProxyFence, at: int, threads: Numbers) -> None:
        """``fence.proxy.async``, for the objects in a state space or in all (9.7.14.4)."""
        self.machine.tell("proxy", (op.kind, op.space), 0, at, threads)
        if op.kind == ASYNC:
            spaces = {"global": ("global",), "shared::cta": ("own",), "shared::cluster": ("own", "other")}
            for space in spaces.get(op.space or "", ("global", "own", "other")):
                self.machine.clocks.fence(threads, f"{ASYNC}.{space}")
