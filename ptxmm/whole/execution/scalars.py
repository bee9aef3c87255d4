"""Loads, stores and atomic operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ptxmm.events.explicit.values import arithmetic
from ptxmm.formats.modules.launch import SAME_VALUE
from ptxmm.program.test import SameValue
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.locations import Locations
from ptxmm.whole.execution.polls import Poll
from ptxmm.whole.execution.state import RUNS, WAITS, Stopped
from ptxmm.whole.execution.values import Value, extended, mask, unknown
from ptxmm.whole.order.options import ORDERLESS
from ptxmm.whole.order.origins import Derived, Origin, Result, Words
from ptxmm.whole.order.strong import Arrival, Location
from ptxmm.whole.order.trace import ATOMIC, READ, WRITE

_OTHER = 255


class Scalars:
    """What threads of ``machine`` do to memory one register at a time; ``stored``: what is written by stores that may
    race with the same value, by the instruction, the place, the size, and the thread with its clock; ``racing``: which
    ones may; ``later``: threads that wait for the atomic operations that theirs is to come after."""

    def __init__(self, machine: Accessing, locations: Locations) -> None:
        self.machine, self.locations = machine, locations
        self.stored: dict[tuple[int, int, int, int, int], set[int | None]] = {}
        self.later: list[int] = []
        self.racing = machine.kernel.same_value or (SameValue(None) if SAME_VALUE in machine.lenient else None)
        launch = machine.kernel.launch
        self._alone = launch.condition is None and not launch.robust and not machine.waiting
        self._alone &= not any(map(_looks, machine.body)) and not any(map(self._takes, machine.body))
        """Whether nobody looks at what strong accesses leave: no thread, so that nothing synchronizes by them, and no
        claim."""
        self._arrived: set[Arrival] = set()
        self._arrivals: dict[tuple[Location, int], int] = {}

    def _takes(self, op: ops.Op) -> bool:
        """Whether something is made of what an atomic operation returns."""
        given = op.dst if isinstance(op, ops.Atomic) else ()
        return any(register is not None and register.name in self.machine.launch.read for register in given)

    def load(self, op: ops.Load, at: int, threads: Numbers) -> None:
        """``ld``."""
        size = op.type.bytes
        if at in self.machine.waiting:
            self._begin(self.machine.waiting[at], threads)
            self.locations.look(op, self.machine.waiting[at], at, threads)
            return
        places = self.machine.places(op.address, op.space, size * len(op.dst), at, threads)
        pieces = self.locations.pieces(op)
        if op.scope is not None and len(pieces) == 1:
            every, width = zip(places.tolist(), threads.tolist(), strict=True), pieces[0].type.bytes
            goes = np.array([self.locations.meets(at, (place, width), thread) for place, thread in every], np.bool_)
            places, threads = places[goes], threads[goes]
        found: dict[int, Origin] = {}
        for number, register in enumerate(op.dst):
            here = places + number * size
            piece, part = divmod(number, len(op.dst) // len(pieces))
            if not part:
                width = pieces[piece].type.bytes
                found = self.locations.find(op, at, here, width, threads)
                self.machine.trace.add(at, self.locations.kind(at), here, width, threads)
            if register is not None:
                words, known = self.machine.memory.load(here, min(size, 8))
                known = known | self.machine.carried.loaded(register, here, size)
                if op.type.signed:
                    words = extended(words, op.type.bits, self.machine.bits(register))
                known = known & (size <= 8) & (at not in self.machine.plan.unknown)
                self.machine.assign(register, threads, Value(words, known))
                if found and (not op.type.signed or op.type.bits == self.machine.bits(register)):
                    unsure = {thread: found[thread] for thread in threads[~known].tolist() if thread in found}
                    if len(pieces) < len(op.dst):
                        unsure = {thread: _element(whole, part, op.type.bits) for thread, whole in unsure.items()}
                    self.machine.origins.setdefault(register.name, {}).update(unsure)
                if not op.type.signed and at not in self.machine.plan.unknown:
                    self.machine.kept.recall(register.name, here, size, threads)

    def _begin(self, poll: Poll, threads: Numbers) -> None:
        """Do what gives the same in every round of a loop that waits."""
        for at in poll.fixed:
            op = self.machine.body[at]
            if not isinstance(op, ops.Load):
                self.locations.compute(op, at, threads)
                continue
            try:
                self.load(op, at, threads)
                size = op.type.bytes * len(op.dst)
                places = self.machine.places(op.address, op.space, size, at, threads)
            except Stopped as stop:  # perhaps it does not come there
                raise Stopped("undecided", f"this loop may come to {stop.message}", at, stop.thread) from None
            self.machine.fixed[places[:, None] + np.arange(size)] = at

    def store(self, op: ops.Store, at: int, threads: Numbers) -> None:
        """``st``."""
        pieces = self.locations.pieces(op)
        if op.sem == "release" and len(pieces) > 1:  # in no order, so that none releases the others (8.2.4)
            raise Stopped("unsupported", "a release of several elements is not followed in a whole launch yet", at)
        size = op.type.bytes
        places = self.machine.places(op.address, op.space, size * len(op.values), at, threads)
        if self.machine.plan.chosen and len(pieces) == 1:
            every, width = zip(places.tolist(), threads.tolist(), strict=True), pieces[0].type.bytes
            goes = np.array([self.locations.lets(at, (place, width), thread) for place, thread in every], np.bool_)
            places, threads = places[goes], threads[goes]
        self.machine.changes += 1
        level = self.machine.strong.level(op.scope)
        for piece in pieces:
            there, width = places + piece.offset, piece.type.bytes
            if level:
                for place in there.tolist():
                    self.locations.watch((place, width))
            self.machine.trace.add(at, WRITE, there, width, threads)
            values = op.values[piece.item : piece.item + piece.items]
            parts = [self._put(op, operand, there + n * size, threads) for n, operand in enumerate(values)]
            if self.racing is not None and not level and self.racing.allows(op.source.span.line):
                for row, (place, thread) in enumerate(zip(there.tolist(), threads.tolist(), strict=True)):
                    key = at, place, width, thread, int(self.machine.clocks.clock[thread])
                    self.stored.setdefault(key, set()).add(_joined(parts, row, op.type.bits))
            span = there[:, None] + np.arange(width)
            for row in np.flatnonzero(self.machine.watched[span].any(axis=1)).tolist():
                word, place, thread = _joined(parts, row, op.type.bits), int(there[row]), int(threads[row])
                self.machine.tell("write", ("flag", place), width, at, threads[row : row + 1])
                self.locations.written((place, width), thread, word, level, op.sem == "release")

    def _put(self, op: ops.Store, operand: ops.Operand, places: Numbers, threads: Numbers) -> Value:
        """Threads store an element; its value."""
        machine, size = self.machine, op.type.bytes
        value = machine.operand(operand, op.type, threads)
        opaque = value.known & (size <= 8) & machine.carried.by(operand)
        known = value.known & (size <= 8) & ~opaque
        for part in range(0, size, 8):
            machine.memory.store(places + part, min(size, 8), value.words, known)
        span = places[:, None] + np.arange(size)
        machine.memory.opaque[span[opaque]] = True
        machine.changed[span.ravel()] = 0
        machine.kept.keep(operand, op.type, places, threads)
        return Value(value.words, known)

    def fill(self, op: ops.StoreBulk | ops.Discard, at: int, threads: Numbers) -> None:
        """``st.bulk``, which writes zeros, and ``discard``, after which nothing is known."""
        machine, alignment = self.machine, op.size if isinstance(op, ops.Discard) else 1
        sizes = np.full(len(threads), alignment)
        if isinstance(op, ops.StoreBulk):
            sizes = machine.decided(op.size, ops.U64, at, "the size", threads).astype(np.int64)
        machine.changes += 1
        for size in np.unique(sizes).tolist():
            here = threads[sizes == size]
            if size % ops.BULK_UNIT:
                message = f"{size} bytes, which is no multiple of {ops.BULK_UNIT} (9.7.9.13 of version 9.0)"
                raise Stopped("undefined", message, at, int(here[0]))
            places = machine.places(op.address, op.space, size, at, here, alignment)
            if isinstance(op, ops.StoreBulk) and (places % ops.BULK_UNIT).any():
                raise Stopped("unsupported", op.misaligned, at, int(here[0]))
            machine.trace.add(at, WRITE, places, size, here)
            machine.memory.lose(places, size)
            if isinstance(op, ops.StoreBulk):
                machine.memory.clear(places, size)
            machine.overwrite(places, size, at)

    def atomic(self, op: ops.Atomic, at: int, threads: Numbers) -> None:
        """``atom`` and ``red``: what they return depends on the order in which threads come, so that it is not known;
        what they leave does not, if all do the same orderless operation."""
        size = op.type.bytes
        if len(op.operands) > 1 or op.packed > 1 or size > 8:
            self._vector(op, at, threads)
            return
        places = self.machine.places(op.address, op.space, size, at, threads)
        self.machine.changes += 1
        if self.machine.plan.last or self.machine.plan.chosen:
            every = zip(places.tolist(), threads.tolist(), strict=True)
            goes = np.array([self._comes((place, size), at, thread) for place, thread in every], np.bool_)
            places, threads = places[goes], threads[goes]
        level = self.machine.strong.level(op.scope)
        value = self.machine.operand(op.operands[0][-1], op.type, threads)
        orderless = op.op in ORDERLESS and op.type.kind not in ("f", "bf")
        same = ORDERLESS.index(op.op) + 1 + 8 * op.type.signed if orderless else _OTHER
        found: dict[int, Origin] = {}
        given = unknown(len(threads))
        self.machine.kept.forget(places, size)
        if self._alone and op.op != "cas" and self.machine.history is None and not self.machine.plan.plain:
            self._change(op, at, places, threads, value, same)
            return
        order = [*enumerate(places.tolist())]
        for number, place in reversed(order) if self.machine.plan.plain and self._takes(op) else order:
            thread, here, location = int(threads[number]), np.array([place]), (place, size)
            self.locations.watch(location)
            old = self.locations.held(location)
            self.machine.tell("read", ("flag", place), size, at, threads[number : number + 1])
            if op.returns:
                key = self.machine.strong.read("atomic", at, location, thread, level, op.sem in ("acquire", "acq_rel"))
                if old is not None:
                    found[thread] = Result(key, old)
                    given.words[number], given.known[number] = old, self.machine.plan.plain
            swapped = self._swapped(op, old, thread)
            self.machine.trace.add(at, READ if swapped is False else ATOMIC, here, size, threads[number : number + 1])
            if swapped is False:
                continue
            words, known = self.machine.memory.load(here, size)
            before = set(self.machine.changed[place : place + size].tolist())
            certain = bool(known[0] and value.known[number] and orderless and before <= {0, same})
            word = arithmetic.compute(op.op, op.type, int(words[0]), int(value.words[number])) if certain else 0
            operand = int(value.words[number]) if value.known[number] and (op.op != "cas" or swapped) else None
            new = operand if swapped else None
            if old is not None and operand is not None and not swapped and op.type.kind not in ("f", "bf"):
                new = arithmetic.compute(op.op, op.type, old, operand)
            if self.machine.plan.plain and new is not None:
                word, certain = new, True
            self.machine.memory.store(here, size, np.array([word], np.uint64), np.array([certain]))
            self.machine.changed[place : place + size] = same
            change = op.op, op.type, operand
            self.machine.tell("write", ("flag", place), size, at, threads[number : number + 1])
            self.locations.written(location, thread, new, level, op.sem in ("release", "acq_rel"), change)
        for register in op.dst:
            self.machine.assign(register, threads, given)
            if register is not None and not self.machine.plan.plain:
                self.machine.origins.setdefault(register.name, {}).update(found)

    def _vector(self, op: ops.Atomic, at: int, threads: Numbers) -> None:
        """Atomic operations on the elements of a vector, each for itself (9.7.14.5)."""
        machine, size, count = self.machine, op.type.bytes, len(op.operands) * op.packed
        if not self._alone or size > 8:
            raise Stopped("unsupported", "atomic operations on vectors are not followed in a whole launch yet", at)
        places = machine.places(op.address, op.space, size * count, at, threads)
        machine.changes += 1
        machine.kept.forget(places, size * count)
        for here in (places + size * number for number in range(count)):
            machine.trace.add(at, ATOMIC, here, size, threads)
            machine.memory.store(here, size, np.zeros(len(here), np.uint64), np.zeros(len(here), np.bool_))
            machine.changed[here[:, None] + np.arange(size)] = _OTHER
        for register in op.dst:
            machine.assign(register, threads, unknown(len(threads)))

    def _change(
        self, op: ops.Atomic, at: int, places: Numbers, threads: Numbers, value: Value, same: int
    ) -> None:  # fmt: skip
        """What atomic operations leave in memory, of which nobody keeps a log."""
        machine, size = self.machine, op.type.bytes
        machine.trace.add(at, ATOMIC, places, size, threads)
        for place in np.unique(places).tolist():
            rows = np.flatnonzero(places == place)
            here, certain = np.array([place]), same != _OTHER and bool(value.known[rows].all())
            words, known = machine.memory.load(here, size)
            certain &= bool(known[0]) and set(machine.changed[place : place + size].tolist()) <= {0, same}
            word = int(words[0]) if certain else 0
            for other in value.words[rows].tolist() if certain else ():
                word = arithmetic.compute(op.op, op.type, word, other)
            machine.memory.store(here, size, np.array([word], np.uint64), np.array([certain]))
            machine.changed[place : place + size] = same
        for register in op.dst:
            machine.assign(register, threads, unknown(len(threads)))

    def _swapped(self, op: ops.Atomic, old: int | None, thread: int) -> bool | None:
        """Whether a ``cas`` writes, if that is known; of other executions it is not."""
        if op.op != "cas" or old is None or not self.machine.plan.exact:
            return None
        self.machine.strong.swaps = True
        compared = self.machine.operand(op.operands[0][0], op.type, np.array([thread]))
        return bool(int(compared.words[0]) == old) if compared.known[0] else None

    def _comes(self, location: Location, at: int, thread: int) -> bool:
        """Whether a thread does an atomic operation now, and does not wait for those that it is to come after."""
        if not self.locations.lets(at, location, thread):
            return False
        number = self._arrivals.get((location, thread), 0) + 1
        arrival = location, thread, number
        if not self.machine.plan.last.get(arrival, frozenset()) <= self._arrived:
            self.machine.mode[thread], self.machine.pc[thread] = WAITS, at
            self.later.append(thread)
            return False
        self._arrivals[location, thread] = number
        self._arrived.add(arrival)
        self.machine.mode[self.later] = RUNS
        self.later = []
        return True


def _joined(parts: Sequence[Value], row: int, bits: int) -> int | None:
    """The number that elements of so many ``bits`` are together in one thread, if all are known."""
    if not all(part.known[row] for part in parts):
        return None
    return sum(int(part.words[row]) << number * bits for number, part in enumerate(parts))


def _element(whole: Origin, number: int, bits: int) -> Origin:
    """An element of a vector that is read in one piece."""
    return Derived(partial(_divided, number, bits), (whole,), whole.word >> number * bits & mask(bits))


def _divided(number: int, bits: int, words: Words) -> int | None:
    return None if words[0] is None else words[0] >> number * bits & mask(bits)


def _looks(op: ops.Op) -> bool:
    """Whether an instruction may order others by what it finds, or what others find."""
    if isinstance(op, ops.Load | ops.Atomic | ops.Store) and op.sem in ("acquire", "release", "acq_rel"):
        return True
    loud = ops.Fence | ops.ProxyFence | ops.TensormapFence | ops.TensormapCopyFence | ops.BulkCopy | ops.AsyncStore
    # What a strong store leaves depends on whether it comes before the atomic operations there.
    return isinstance(op, loud) or (isinstance(op, ops.Load | ops.Store) and op.scope is not None)
