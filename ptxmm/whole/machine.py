"""The execution of a launch, all threads at once: those that are at the same instruction execute it together.

It is one interleaving, in which each instruction is executed as a whole: an execution that every model allows. Of the
threads that can go on those go first that are furthest behind in the text, so that what diverged comes together again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ptxmm.engines.result import Limits
from ptxmm.events.explicit.values import arithmetic
from ptxmm.formats.modules.kernel import Kernel
from ptxmm.program.test import TRAP
from ptxmm.ptx import ops
from ptxmm.whole.computing import results
from ptxmm.whole.meeting import Meeting
from ptxmm.whole.memory import Numbers
from ptxmm.whole.state import ENDED, RUNS, State, Stopped
from ptxmm.whole.trace import ATOMIC, READ, WRITE, Trace
from ptxmm.whole.values import Value, extended, unknown

_ORDERLESS = ("add", "and", "max", "min", "or", "xor")
"""What atomic operations on integers may be done in any order with the same result."""
_OTHER = 255


class Machine(State):
    """An execution of a launch of ``kernel``. ``strong`` and ``fences``: the strong accesses and the fences that were
    executed, by the indices of their instructions."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.trace = Trace(self.clocks)
        self.strong: set[int] = set()
        self.fences: set[int] = set()
        self._meeting = Meeting(self)
        self._atomics = np.zeros(len(self.memory.bytes), np.uint8)
        self._back: dict[int, tuple[int, bytes]] = {}
        self._steps = 0

    def run(self, limits: Limits) -> None:
        """Execute all threads to their ends.

        Raises ``Stopped``, and ``Timeout`` at the deadline of ``limits``."""
        while True:
            runs = self.mode == RUNS
            if not runs.any():
                if self._meeting.released():
                    continue
                self._meeting.finished()
                return
            at = int(self.pc[runs].min())
            threads = np.flatnonzero(runs & (self.pc == at))
            if self._steps & 0xFF == 0:
                limits.check()
            self._steps += 1
            if at == len(self.body):
                self._end(threads)
            else:
                self._execute(at, threads)

    def _execute(self, at: int, threads: Numbers) -> None:
        op = self.body[at]
        chosen = threads
        if op.guard is not None:
            holds = self.truth(at, threads, op.guard.register) ^ op.guard.negated
            chosen = threads[holds]
        self.pc[threads] += 1
        if not len(chosen):
            return
        refused = self.kernel.code.refused.get(at)
        if refused is not None and refused[1]:
            raise Stopped("unsupported", refused[0].message, at)
        execute = _EXECUTE.get(type(op))
        if execute is None:
            words = [word for word in op.source.text.split() if not word.startswith("@")]
            name = words[0] if words else type(op).__name__
            raise Stopped("unsupported", f"`{name.rstrip(';')}` is not followed in a whole launch yet", at)
        execute(self, op, at, chosen)

    def _end(self, threads: Numbers) -> None:
        self.mode[threads] = ENDED

    def places(self, address: ops.Address, space: str | None, size: int, at: int, threads: Numbers) -> Numbers:
        """Where in the arena the ``size`` bytes at an operand are.

        Raises ``Stopped`` where they are in no variable, or their address is no multiple of their size."""
        value = self.operand(address.base, ops.U64, threads)
        words = self.sure(value, at, "the address") + np.uint64(address.offset & (1 << 64) - 1)
        window = None if space is None else space.partition("::")[0]
        if isinstance(address.base, ops.Sym):
            window = self.kernel.variables[address.base.name].space
        elif space == "shared::cluster":
            raise Stopped("unsupported", "shared memory of other CTAs is not followed in a whole launch yet", at)
        if (words == np.uint64(TRAP)).any():
            raise Stopped("undecided", "a trap is executed, which ends the launch", at, int(threads[0]))
        if window is not None:
            words = words + self.memory.windows(window, threads)
        if (wrong := np.flatnonzero(words % np.uint64(size) != 0)).size:
            raise Stopped("undefined", f"an address that is no multiple of {size}", at, int(threads[wrong[0]]))
        _, places = self.memory.find(words, size, threads)
        if (wrong := np.flatnonzero(places < 0)).size:
            raise Stopped("outside", "an access outside of all variables", at, int(threads[wrong[0]]))
        return places

    def _check_writable(self, places: Numbers, at: int, threads: Numbers) -> None:
        """Nothing writes constants and parameters of kernels."""
        for number in np.unique(self.memory.instance_of(places)).tolist():
            if (space := self.memory.instances[number].variable.space) in ("const", "param"):
                raise Stopped("undefined", f"a write of memory in .{space}", at, int(threads[0]))

    def load(self, op: ops.Load, at: int, threads: Numbers) -> None:
        """``ld``."""
        size = op.type.bytes
        places = self.places(op.address, op.space, size * len(op.dst), at, threads)
        if op.scope is not None:
            self.strong.add(at)
        for number, register in enumerate(op.dst):
            here = places + number * size
            self.trace.add(at, READ, here, size, threads)
            if register is not None:
                words, known = self.memory.load(here, min(size, 8))
                if op.type.signed:
                    words = extended(words, op.type.bits, self.bits(register))
                self.assign(register, threads, Value(words, known & (size <= 8)))

    def store(self, op: ops.Store, at: int, threads: Numbers) -> None:
        """``st``."""
        size = op.type.bytes
        places = self.places(op.address, op.space, size * len(op.values), at, threads)
        self._check_writable(places, at, threads)
        self.changes += 1
        if op.scope is not None:
            self.strong.add(at)
        for number, operand in enumerate(op.values):
            here = places + number * size
            self.trace.add(at, WRITE, here, size, threads)
            value = self.operand(operand, op.type, threads)
            for part in range(0, size, 8):
                known = value.known & (size <= 8)
                self.memory.store(here + part, min(size, 8), value.words, known)
            self._atomics[(here[:, None] + np.arange(size)).ravel()] = 0

    def atomic(self, op: ops.Atomic, at: int, threads: Numbers) -> None:
        """``atom`` and ``red``: what they return depends on the order in which threads come, so that it is not known;
        what they leave does not, if all do the same orderless operation."""
        size = op.type.bytes
        if len(op.operands) > 1 or op.packed > 1 or size > 8:
            raise Stopped("unsupported", "atomic operations on vectors are not followed in a whole launch yet", at)
        places = self.places(op.address, op.space, size, at, threads)
        self._check_writable(places, at, threads)
        self.changes += 1
        self.strong.add(at)
        self.trace.add(at, ATOMIC, places, size, threads)
        value = self.operand(op.operands[0][-1], op.type, threads)
        orderless = op.op in _ORDERLESS and op.type.kind not in ("f", "bf")
        same = _ORDERLESS.index(op.op) + 1 + 8 * op.type.signed if orderless else _OTHER
        for number, place in enumerate(places.tolist()):
            here = np.array([place])
            words, known = self.memory.load(here, size)
            before = set(self._atomics[place : place + size].tolist())
            certain = bool(known[0] and value.known[number] and orderless and before <= {0, same})
            word = arithmetic.compute(op.op, op.type, int(words[0]), int(value.words[number])) if certain else 0
            self.memory.store(here, size, np.array([word], np.uint64), np.array([certain]))
            self._atomics[place : place + size] = same
        for register in op.dst:
            self.assign(register, threads, unknown(len(threads)))

    def compute(self, op: Any, at: int, threads: Numbers) -> None:
        """What only gives registers values."""
        for register, value in results(self, op, threads):
            self.assign(register, threads, value)

    def exit(self, op: ops.Exit, at: int, threads: Numbers) -> None:
        """``exit`` and ``ret``."""
        self._end(threads)

    def branch(self, op: ops.Branch, at: int, threads: Numbers) -> None:
        """``bra``. Raises ``Stopped`` where threads go round a loop in which nothing changes."""
        self.pc[threads] = op.target
        if op.target <= at:
            now = self.changes, threads.tobytes()
            if self._back.get(at) == now:
                message = "this loop waits for what another thread does, which is not followed in a whole launch yet"
                raise Stopped("unsupported", message, at, int(threads[0]))
            self._back[at] = now

    def barrier(self, op: ops.Barrier | ops.BarrierReduction, at: int, threads: Numbers) -> None:
        """``barrier.cta``."""
        self.changes += 1
        self._meeting.barrier(op, at, threads)

    def warp_wide(self, op: ops.WarpBarrier | ops.WarpExchange, at: int, threads: Numbers) -> None:
        """What the lanes of a mask execute together."""
        self.changes += 1
        self._meeting.warp_wide(op, at, threads)

    def order(self, op: Any, at: int, threads: Numbers) -> None:
        """What only orders accesses of threads that synchronize by them: nothing is concluded from it."""
        self.fences.add(at)

    def nothing(self, op: Any, at: int, threads: Numbers) -> None:
        """What has no effect on memory."""


_EXECUTE: Mapping[type, Callable[[Machine, Any, int, Numbers], None]] = {
    **dict.fromkeys(
        (
            ops.Alu, ops.AluPair, ops.Convert, ops.SetPredicate, ops.Select, ops.Pack, ops.Unpack, ops.Opaque,
            ops.ConvertAddress, ops.IsSpace, ops.Nothing,
        ),
        Machine.compute,
    ),
    ops.Branch: Machine.branch,
    ops.Exit: Machine.exit,
    ops.Load: Machine.load,
    ops.Store: Machine.store,
    ops.Atomic: Machine.atomic,
    ops.Fence: Machine.order,
    **dict.fromkeys((ops.Barrier, ops.BarrierReduction), Machine.barrier),
    **dict.fromkeys((ops.WarpBarrier, ops.WarpExchange), Machine.warp_wide),
    ops.SetMaxRegisters: Machine.nothing,
}  # fmt: skip
"""What is followed; every other instruction is refused where it is executed."""
