"""tcgen05: tensor memory, and what works on it (PTX ISA 9.0, 9.7.16).

Loads, stores, copies, products and shifts are asynchronous: they come after what their thread came after at its last
``tcgen05.fence::after_thread_sync``, and after those loads and stores that its ``tcgen05.wait`` has waited for, and
nothing else of it (9.7.16.6.3). Matrices in shared memory are read by the asynchronous proxy, which comes after the
thread's ``fence.proxy.async`` as well. That they are done is known behind ``tcgen05.wait`` to the thread, or behind a
wait for the mbarrier of a ``tcgen05.commit``. What threads hand over by relaxed operations between
``before_thread_sync``, or a commit, and ``after_thread_sync`` orders tensor memory alone (``clocks.HANDED``); what is
executed in the order of its issue all the same is said in ``conflicts.pipelined``.

Tensor memory has 128 lanes of 512 columns; it has no values but those that ``tcgen05.st`` stores.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ptxmm.analysis.claims import BOUNDS
from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.asynchronous.allocations import Allocations
from ptxmm.whole.execution.asynchronous.copies import Copies
from ptxmm.whole.execution.asynchronous.described import copied, multiplied, read_matrix
from ptxmm.whole.execution.asynchronous.issuing import LOADS, Handed, Issuing
from ptxmm.whole.execution.matrices import check_together
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.execution.values import Value
from ptxmm.whole.memory import TENSOR_COLUMNS, TENSOR_LANES
from ptxmm.whole.order.clocks import NOTHING
from ptxmm.whole.order.trace import READ, TENSOR, WRITE

_BYTES = ops.COLUMN_BYTES
_U32, _U16 = ops.Type("u", 32), ops.Type("u", 16)
_QUARTERS = 4


class Tensorcore:
    """The tensor memory of the CTAs of ``machine``; ``allocations``: which of it is allocated; ``issuing``: what its
    accesses come after; ``views``: of the rows of these, the thread that has issued them and what that came after."""

    def __init__(self, machine: Accessing, copies: Copies) -> None:
        self.machine, self._copies = machine, copies
        self.allocations, self.issuing = Allocations(machine, copies), Issuing(machine, copies)
        self.views: dict[int, tuple[int, int]] = {}

    def _access(self, at: int, kind: int, places: Numbers, size: int, agents: Numbers, threads: Numbers,
                pipe: Hashable = None) -> None:  # fmt: skip
        trace, one = self.machine.trace, np.unique(threads)
        views = dict(zip(one.tolist(), self.machine.clocks.views(one).tolist(), strict=True))
        rows = enumerate(threads.tolist(), trace.count)
        self.views.update({row: (thread, views[thread]) for row, thread in rows})
        trace.add(at, kind, places, size, agents, TENSOR, pipe)

    # -- loads and stores --

    def load(self, op: ops.TensorLoad, at: int, threads: Numbers) -> None:
        """``tcgen05.ld``: each lane of a warp reads columns of its own lane of tensor memory."""
        places, agents = self._lanes(op.address, len(op.dst), LOADS, at, threads)
        self._access(at, READ, places, _BYTES * len(op.dst), agents, threads)
        for number, register in enumerate(op.dst):
            self.machine.assign(register, threads, Value(*self.machine.memory.load(places + number * _BYTES, _BYTES)))

    def store(self, op: ops.TensorStore, at: int, threads: Numbers) -> None:
        """``tcgen05.st``."""
        places, agents = self._lanes(op.address, len(op.values), "tcgen05.st", at, threads)
        self._access(at, WRITE, places, _BYTES * len(op.values), agents, threads)
        for number, operand in enumerate(op.values):
            value, here = self.machine.operand(operand, _U32, threads), places + number * _BYTES
            self.machine.memory.store(here, _BYTES, value.words, value.known)
            self.machine.overwrite(here, _BYTES, at)

    def _lanes(
        self, address: ops.Address, columns: int, what: str, at: int, threads: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Where each lane of warps accesses tensor memory (9.7.16.8.1), and its agents."""
        machine = self.machine
        check_together(machine, at, threads)
        words = self._words(address, at, threads)
        within = threads % machine.size
        if (wrong := np.flatnonzero((words.reshape(-1, WARP_SIZE) != words[::WARP_SIZE, None]).any(axis=1))).size:
            message = "lanes of a warp that name different addresses of tensor memory (9.7.16.8 of PTX ISA 9.0)"
            raise Stopped("undefined", message, at, int(threads[wrong[0] * WARP_SIZE]))
        quarter = within // WARP_SIZE % _QUARTERS * WARP_SIZE
        if (wrong := np.flatnonzero(words >> 16 != quarter)).size:
            first = int(quarter[wrong[0]])
            message = f"this warp accesses lanes {first} to {first + WARP_SIZE - 1} only, not {words[wrong[0]] >> 16}"
            raise Stopped("undefined", f"{message} (9.7.16.8.1 of PTX ISA 9.0)", at, int(threads[wrong[0]]))
        places = self._places(words + (within % WARP_SIZE << 16), columns, at, threads)
        agents = [self.issuing.issued(thread, what, self.issuing.resumed) for thread in threads.tolist()]
        return places, np.array(agents)

    def _words(self, address: ops.Address, at: int, threads: Numbers) -> Numbers:
        """Addresses in tensor memory (9.7.16.1.1)."""
        value = self.machine.operand(address.base, _U32, threads)
        words = self.machine.sure(value, at, "the address in tensor memory").astype(np.int64)
        return words + address.offset // _BYTES

    def _places(self, words: Numbers, columns: int, at: int, threads: Numbers) -> Numbers:
        """The places in the arena of some columns of lanes of tensor memory, which is allocated."""
        lanes, first = words >> 16, words & 0xFFFF
        if (wrong := np.flatnonzero((lanes >= TENSOR_LANES) | (first + columns > TENSOR_COLUMNS))).size:
            message = f"lane {lanes[wrong[0]]}, columns {first[wrong[0]]} to {first[wrong[0]] + columns - 1}"
            raise Stopped("outside", f"outside of tensor memory: {message}", at, int(threads[wrong[0]]), BOUNDS)
        self.allocations.check(first, columns, at, threads)
        found: Numbers = self.allocations.start(threads) + (lanes * TENSOR_COLUMNS + first) * _BYTES
        return found

    def wait(self, op: ops.TensorWait, at: int, threads: Numbers) -> None:
        """``tcgen05.wait``: a thread comes after what it has loaded, or stored."""
        check_together(self.machine, at, threads)
        for thread in threads.tolist():
            agent = self._copies.known(thread, f"tcgen05.{op.kind}")
            if agent is not None:
                done = self._copies.done(agent)
                self.issuing.waited.setdefault(thread, {})[agent] = done
                self.machine.clocks.acquire(np.array([thread]), [done])
        self.machine.tell("pass", ("group", f"tcgen05.{op.kind}"), 0, at, threads)

    # -- what one thread issues --

    def product(self, op: ops.TensorProduct, at: int, threads: Numbers) -> None:
        """``tcgen05.mma``: reads of matrices, and a write of the accumulator, which it reads first."""
        for thread in threads.tolist():
            one = np.array([thread])
            shape = multiplied(self.machine, op, at, one)
            agent = self.issuing.issued(thread, "tcgen05", self.issuing.resumed)
            reader = self.issuing.issued(thread, "tcgen05.matrix", self.issuing.entered)
            matrices = [op.b] if isinstance(op.a, ops.Address) else [op.b, op.a]
            for descriptor, size in zip(matrices, (shape.b, shape.a), strict=False):
                self._matrix(descriptor, size, at, one, reader)
            (word,) = self._words(op.dst, at, one).tolist()
            pipe = "mma", (op.kind, shape.m, shape.n, word)
            if isinstance(op.a, ops.Address):
                (left,) = self._words(op.a, at, one).tolist()
                self._rows(left, shape.lanes(left, at, thread), shape.depth, READ, at, thread, agent, pipe)
            lanes = shape.lanes(word, at, thread)
            kept = [lane for lane in lanes if not shape.disabled >> lane & 1]
            self._rows(word, kept, shape.n, WRITE, at, thread, agent, pipe)

    def copy(self, op: ops.TensorCopy, at: int, threads: Numbers) -> None:
        """``tcgen05.cp``."""
        for thread in threads.tolist():
            one, (lines, chunks, columns) = np.array([thread]), copied(op, at)
            agent = self.issuing.issued(thread, "tcgen05", self.issuing.resumed)
            reader = self.issuing.issued(thread, "tcgen05.matrix", self.issuing.entered)
            self._matrix(op.src, (lines, False, chunks), at, one, reader)
            (word,) = self._words(op.dst, at, one).tolist()
            self._check_lane(word, 0, at, thread)
            self._rows(word, [*range(lines)], columns, WRITE, at, thread, agent, ("cp", op.shape))

    def shift(self, op: ops.TensorShift, at: int, threads: Numbers) -> None:
        """``tcgen05.shift``: 32 bytes of the lanes of a warp, which are read and written (9.7.16.9.3)."""
        for thread in threads.tolist():
            agent = self.issuing.issued(thread, "tcgen05", self.issuing.resumed)
            (word,) = self._words(op.address, at, np.array([thread])).tolist()
            first = word >> 16
            if first % WARP_SIZE:
                message = f"lane {first} is no multiple of {WARP_SIZE} (9.7.16.9.3 of PTX ISA 9.0)"
                raise Stopped("undefined", message, at, thread)
            self._rows(word, [*range(first, first + WARP_SIZE)], 8, WRITE, at, thread, agent, ("shift",))

    def _check_lane(self, word: int, lane: int, at: int, thread: int) -> None:
        if word >> 16 != lane:
            message = f"lane {word >> 16} of tensor memory, which is not the first one, is not followed here yet"
            raise Stopped("unsupported", message, at, thread)

    def _rows(
        self, word: int, lanes: list[int], columns: int, kind: int, at: int, thread: int, agent: int,
        pipe: Hashable,
    ) -> None:  # fmt: skip
        """Columns of some lanes are accessed."""
        if not lanes:
            return
        threads = np.full(len(lanes), thread)
        words = np.array(lanes, np.int64) << 16 | word & 0xFFFF
        places, size = self._places(words, columns, at, threads), columns * _BYTES
        self._access(at, kind, places, size, np.full(len(lanes), agent), threads, pipe)
        if kind == WRITE:
            self.machine.memory.known[places[:, None] + np.arange(size)] = False

    def _matrix(
        self, descriptor: ops.Operand, shape: tuple[int, bool, int], at: int, thread: Numbers, agent: int
    ) -> None:
        """A matrix in shared memory is read by an agent of a thread."""
        machine, trace = self.machine, self.machine.trace
        before = trace.count
        value = machine.operand(descriptor, ops.B64, thread)
        word = int(machine.sure(value, at, "the descriptor of this matrix")[0])
        places = read_matrix(machine, word, shape, at, thread, np.array([agent]))
        self._copies.note(at, places, np.array([agent]))
        view = int(machine.clocks.views(thread)[0])
        self.views.update(dict.fromkeys(range(before, trace.count), (int(thread[0]), view)))

    def commit(self, op: ops.TensorCommit, at: int, threads: Numbers) -> None:
        """``tcgen05.commit``: arrivals when all that the thread has issued of the last three kinds is done."""
        machine, clocks = self.machine, self.machine.clocks
        for thread in threads.tolist():
            one = np.array([thread])
            place = int(machine.places(op.address, op.space, ops.MBARRIER_BYTES, at, one)[0])
            places = [place]
            if op.mask is not None:
                mask = int(machine.sure(machine.operand(op.mask, _U16, one), at, "the CTA mask of this commit", one)[0])
                ranks = [rank for rank in range(mask.bit_length()) if mask >> rank & 1]
                places = [int(self._copies.at_rank(np.array([place]), rank, at, one)[0]) for rank in ranks]
            agents = [self._copies.agent(thread, what) for what in ("tcgen05", "tcgen05.matrix")]
            done = [self._copies.done(agent) for agent in agents]
            waited = [*self.issuing.waited.get(thread, {}).values()]
            before = clocks.joined(int(clocks.cta[thread]), NOTHING, [*done, *waited])
            self.issuing.handed[agents[0]] = Handed(before, NOTHING)
            for other in places:
                self._copies.note(at, np.array([other]), np.array(agents[:1]), done[0].clock)
                machine.mbarriers.arrive_late(other, at, thread, False, [*done, *waited, clocks.issued(one)])
