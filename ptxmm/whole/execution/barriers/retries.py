"""What a failing wait at an mbarrier decides: nothing else than that its thread asks again (PTX ISA 9.7.14.15.16).

How often a ``test_wait`` or ``try_wait`` fails depends on the schedule. So from each wait that returns false only
computation may lead, back to it or to another wait for the same phase that orders the same; and all of them have to
come to one place, with the same in all registers that are needed there. This is found by following the registers of the
threads, where a register that may hold this or that holds what is not known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.computing import results
from ptxmm.whole.execution.state import State
from ptxmm.whole.execution.values import Value, constant

_MOST = 4096
Registers = dict[str, Value]
"""What registers hold that have been written since."""


class _Guess(State):
    """Threads of a launch with other values in some registers."""

    def __init__(self, state: State, registers: Registers) -> None:
        self.kernel, self.memory, self._state, self.written = state.kernel, state.memory, state, registers

    def register(self, name: str, threads: Numbers) -> Value:
        return self.written[name] if name in self.written else self._state.register(name, threads)


def check_retries(state: State, at: int, threads: Numbers) -> bool:
    """Whether the result of the wait at ``at`` decides something, in one of ``threads``: then the execution is in
    doubt."""
    try:
        _Ways(state, at, threads).check()
    except _Decides as found:
        message = f"what happens after a wait that fails depends on the schedule: {found.why}"
        other = None if found.at is None else (found.at, int(threads[0]))
        state.doubt(message, at, int(threads[0]), other=other)
        return True
    return False


class _Decides(Exception):
    """A failing wait decides something; ``at``: whether this instruction is executed, or how it is."""

    def __init__(self, why: str, at: int | None = None) -> None:
        super().__init__(why)
        self.why, self.at = why, at


class _Ways:
    """The ways of ``threads`` on from their wait at ``first``."""

    def __init__(self, state: State, first: int, threads: Numbers) -> None:
        self.state, self.first, self.threads = state, first, threads
        self._asked = self._question(first, {})

    def check(self) -> None:
        """Raise ``_Decides`` where they are not all the same."""
        waits = self._failing()
        own = self._passing(self.first, {})
        others = [self._passing(pc, registers) for pc, registers in waits.items()]
        joins = [pc for pc in own if all(pc in other for other in others)]
        if not joins:
            raise _Decides("it goes on otherwise")
        left = [self._differing(pc, own, others) & self.state.launch.live[pc] for pc in joins]
        if all(left):
            raise _Decides(f"{min(left[-1])} is another one")

    def _differing(self, pc: int, own: dict[int, Registers], others: Sequence[dict[int, Registers]]) -> frozenset[str]:
        """The registers that need not be the same at ``pc`` on all ways."""
        return frozenset(
            name
            for other in others
            for name in own[pc].keys() | other[pc].keys()
            if not _equal(self._held(own[pc], name), self._held(other[pc], name))
        )

    def _held(self, registers: Registers, name: str) -> Value:
        return _Guess(self.state, registers).register(name, self.threads)

    def _question(self, pc: int, registers: Registers) -> tuple[Value, ...]:
        """What the wait at ``pc`` asks: its mbarrier, and the phase by parity or by state."""
        op = self.state.body[pc]
        assert isinstance(op, ops.MbarrierWait)
        guess, threads = _Guess(self.state, registers), self.threads
        base = guess.operand(op.address.base, ops.U64, threads)
        address = Value(base.words + np.uint64(op.address.offset & (1 << 64) - 1), base.known)
        by = op.parity is not None
        asked = op.parity if op.parity is not None else op.state
        assert asked is not None
        phase = guess.operand(asked, ops.U32 if by else ops.B64, threads)
        generic = op.space is None and not isinstance(op.address.base, ops.Sym)
        return address, phase, constant(2 * by + generic, 8, len(threads))

    def _orders_alike(self, op: ops.MbarrierWait) -> bool:
        """Whether the wait ``op`` orders as the first one does."""
        first = self.state.body[self.first]
        assert isinstance(first, ops.MbarrierWait)
        return (op.sem, op.scope) == (first.sem, first.scope)

    def _failing(self) -> dict[int, Registers]:
        """The waits that are asked again after one has failed, with the registers there."""
        seen: dict[int, Registers] = {}
        waits: dict[int, Registers] = {}
        work: list[tuple[int, Registers]] = [self._result(self.first, {}, 0)]
        for _ in range(_MOST):
            if not work:
                return waits
            pc, registers = work.pop()
            if pc in seen:
                registers = self._joined(seen[pc], registers)
                if _same(seen[pc], registers):
                    continue
            seen[pc] = registers
            op = self._op(pc)
            if isinstance(op, ops.MbarrierWait):
                if not self._orders_alike(op):
                    raise _Decides(f"another wait comes next, .{op.sem} in the scope .{op.scope}", pc)
                if op.guard is not None or not all(map(_equal, self._asked, self._question(pc, registers))):
                    raise _Decides("another wait comes next", pc)
                waits[pc] = registers
                work.append(self._result(pc, registers, 0))
            else:
                work += self._on(pc, registers)
        raise _Decides("it goes too far")

    def _passing(self, wait: int, registers: Registers) -> dict[int, Registers]:
        """Where a thread goes for sure after its ``wait`` has returned true, with the registers there."""
        found: dict[int, Registers] = {}
        ways = [self._result(wait, registers, 1)]
        while len(ways) == 1 and ways[0][0] not in found:
            pc, registers = ways[0]
            found[pc] = registers
            try:
                ways = self._on(pc, registers)
            except _Decides:
                break
        return found

    def _op(self, pc: int) -> ops.Op:
        if pc == len(self.state.body):
            raise _Decides("the thread ends")
        return self.state.body[pc]

    def _result(self, wait: int, registers: Registers, result: int) -> tuple[int, Registers]:
        op = self.state.body[wait]
        assert isinstance(op, ops.MbarrierWait)
        return wait + 1, {**registers, op.dst.name: constant(result, 1, len(self.threads))}

    def _on(self, pc: int, registers: Registers) -> list[tuple[int, Registers]]:
        """Where the instruction at ``pc`` leads to."""
        op = self._op(pc)
        guess = _Guess(self.state, registers)
        executed = {True}
        if op.guard is not None:
            value = guess.register(op.guard.register, self.threads)
            truths = set(((value.words != 0) ^ op.guard.negated).tolist())
            executed = truths if value.known.all() else {True, False}
        if isinstance(op, ops.Branch) and op.condition is None:
            return [(op.target if taken else pc + 1, registers) for taken in executed]
        if not isinstance(op, ops.Calculation | ops.AddressValue | ops.PendingCount | ops.Nothing):
            raise _Decides(f"`{op.source.text}` may come next", pc)
        if True not in executed:
            return [(pc + 1, registers)]
        after = dict(registers)
        for register, value in results(guess, op, self.threads):
            if register is not None:
                after[register.name] = value
        return [(pc + 1, after if executed == {True} else self._joined(after, registers))]

    def _joined(self, one: Registers, other: Registers) -> Registers:
        found = {}
        for name in one.keys() | other.keys():
            a, b = self._held(one, name), self._held(other, name)
            found[name] = Value(a.words, a.known & b.known & (a.words == b.words))
        return found


def _equal(one: Value, other: Value) -> bool:
    """Whether both are known, and the same in all threads."""
    return bool((one.known & other.known & (one.words == other.words)).all())


def _same(one: Registers, other: Registers) -> bool:
    """Whether no more is unknown in one than in the other."""
    return one.keys() == other.keys() and all(
        (value.known == other[name].known).all() and (value.words == other[name].words)[value.known].all()
        for name, value in one.items()
    )
