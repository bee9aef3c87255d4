"""Where the threads of a launch are, and what their registers hold."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from ptxmm.formats.modules.special import CLOCKS, cluster_of, special_values
from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import ops
from ptxmm.ptx.isa import uses
from ptxmm.whole.arrays import Flags, Numbers, Words
from ptxmm.whole.execution.values import Value, constant, cut, mask, unknown
from ptxmm.whole.launched import Launched
from ptxmm.whole.memory import MOST_CTAS, TENSOR, Memory
from ptxmm.whole.order.clocks import Clocks
from ptxmm.whole.order.history import History, Kind
from ptxmm.whole.order.origins import ELECTED, Decision, Derived, Origin
from ptxmm.whole.order.origins import Words as Found
from ptxmm.whole.result import Answer

RUNS, WAITS, ENDED = range(3)
Did: TypeAlias = tuple[int, int]
"""An instruction, and the thread that executes it."""


class Moment(Struct, frozen=True):
    """A ``thread`` comes to the instruction ``at`` when its clock is ``clock``; ``phase``: that of an mbarrier in which
    this counts."""

    thread: int
    at: int
    clock: int
    phase: int | None = None

    @property
    def step(self) -> Did:
        """The instruction and the thread."""
        return self.at, self.thread


class Stopped(Exception):
    """The execution can't go on: ``word`` says what it means (see ``result.Answer``); at the instruction ``at``.
    ``refutes``: what is claimed of the launch and does not hold, as this execution shows (one of ``claims.CLAIMS``).
    ``rests``: what may give another answer (``lenient``). ``other``: the instruction and the thread that this is about
    besides; ``moments``: what may come later in another execution that shows what is undefined."""

    def __init__(
        self, word: Answer, message: str, at: int | None = None, thread: int | None = None, refutes: str | None = None,
        rests: frozenset[str] = frozenset(), other: Did | None = None, moments: tuple[Moment, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.word, self.message, self.at, self.thread, self.refutes = word, message, at, thread, refutes
        self.rests, self.other, self.moments = rests, other, moments


def _is(word: int, found: Found) -> int | None:
    return None if found[0] is None else int(found[0] == word)


class State:
    """The threads of a launch: ``count`` in all, ``size`` in a CTA; of smaller CTAs the rest has ended before it
    begins. After them come the leaders of warps, if there are elections (``leaders``). ``part``, ``devices``: of
    each CTA the part of the launch that it is of, and where it runs. ``cta``: the CTA of each; ``pc``: the
    instruction that each comes to; ``mode``: whether it runs, waits or has ended. ``clusters``: the cluster of each
    CTA. ``changes``: how often a register or memory got another value; ``turn``: how often somebody operated on an
    mbarrier. ``undecided``: why other executions may be another matter, if that is known; ``exact``: whether what
    is not ordered here is not so in this execution. ``origins``: of registers whose value depends on what a read
    found, by thread; ``decisions``: what was executed or not because of them. ``history``: what is done to
    synchronize, if that is asked for."""

    def __init__(self, launch: Launched, before: State | None = None, layout: int = 0, compared: bool = False) -> None:
        """``before``: another execution of the same launch; ``layout``: as of ``Memory``; ``compared``: it is asked
        what the threads do, and not in which order."""
        kernel = launch.kernel
        self.launch, self.kernel, self.body = launch, kernel, kernel.code.body
        self.size, self.count = launch.size, launch.ctas * launch.size
        located: list[tuple[int, int]] = []
        for part in launch.parts:
            first = 1 + max((cluster for cluster, _ in located), default=-1)
            each = (cluster_of(part.kernel.grid, cta) for cta in range(part.kernel.grid.ctas))
            located += [(first + cluster, rank) for cluster, rank in each]
        counts = [part.kernel.grid.ctas for part in launch.parts]
        self.part = np.repeat(np.arange(len(counts)), counts)
        self.devices = np.repeat([part.device for part in launch.parts], counts)
        self.clusters = np.array([cluster for cluster, _ in located], np.int64)
        if launch.ctas > MOST_CTAS:
            message = f"{launch.ctas} CTAs; at most {MOST_CTAS} are followed"
            raise kernel.launch.error(
                kernel.grid.spans["grid"], message, "unsupported", "launch fewer that do the same"
            )
        variables, owners = kernel.variables, launch.owners
        if any(isinstance(op, ops.TensorAlloc) for op in self.body):
            variables, owners = {**variables, TENSOR.name: TENSOR}, {**owners, TENSOR.name: [*range(launch.ctas)]}
        self.memory = Memory(variables, owners, located, self.size, layout)
        self.elects = any(isinstance(op, ops.WarpExchange) and op.op == "elect" for op in self.body)
        self.leads = False
        warps = -(-self.size // WARP_SIZE)
        self.clocks = Clocks(self.count, self.size, warps if self.elects else 0, compared)
        self.cta = self.memory.cta = self.clocks.cta
        self.every = len(self.cta)
        self.pc = np.zeros(self.every, np.int64)
        self.mode = np.full(self.every, RUNS, np.int8)
        self.mode[self.count :] = ENDED
        for part, first, sizes in zip(launch.parts, self._firsts(), counts, strict=True):
            slots = np.arange(first, first + sizes * self.size)
            self.pc[slots] = part.entry
            self.mode[slots[slots % self.size >= part.kernel.grid.size]] = ENDED
        self.changes = self.turn = 0
        self.undecided: Stopped | None = None
        self.exact = True
        self.history: History | None = None
        self.doings: list[tuple[int, Numbers, Numbers, bool]] | None = [] if compared else None
        """What threads do but compute, if that is asked for: the instruction, who executes it, and of each a number
        that it is about, or a place (in the last column)."""
        self._registers: dict[str, Value] = {}
        self.origins: dict[str, dict[int, Origin]] = {}
        self.decisions: dict[tuple[Origin, int], Decision] = {}
        self.apart: dict[int, tuple[Origin, bool]] = {}
        self._special: dict[str, Value] = {} if before is None else before._special
        if before is None:
            self._start()
        self._registers |= self._special

    def tell(self, kind: Kind, what: Hashable, number: int, at: int, agents: Numbers) -> None:
        """``agents`` do something to synchronize."""
        if self.history is not None:
            self.history.add(kind, what, number, at, agents)

    def doubt(
        self, message: str, at: int | None, thread: int, rests: frozenset[str] = frozenset(),
        other: Did | None = None, moments: tuple[Moment, ...] = (),
    ) -> None:  # fmt: skip
        """This execution goes on, but says nothing of others."""
        if self.undecided is None:
            self.undecided = Stopped("undecided", message, at, thread, None, rests, other, moments)

    def unordered(
        self, message: str, at: int, thread: int, rests: frozenset[str] = frozenset(), other: Did | None = None
    ) -> None:
        """Something undefined, for nothing orders it with the ``other``."""
        if self.exact:
            raise Stopped("undefined", message, at, thread, None, rests, other)
        self.doubt(message, at, thread, other=other)

    def _start(self) -> None:
        """What the launch says of the special registers that the kernel reads; clocks may be anything."""
        used = {name for op in self.body for name, _ in uses(op)}
        clocks = {f"sreg {name}" for name in CLOCKS}
        for part, begin in zip(self.launch.parts, self._firsts(), strict=True):
            grid = part.kernel.grid
            ctas = [special_values(grid, cta, 0) for cta in range(grid.ctas)]
            threads = [special_values(grid, 0, thread) for thread in range(grid.size)]
            slots = (begin + np.arange(grid.ctas)[:, None] * self.size + np.arange(grid.size)).ravel()
            for name in (ctas[0].keys() & used) - clocks if part.host is None else ():
                # Each is the same in all threads of a CTA, or in all CTAs.
                first, second = (np.array([values[name] for values in each], np.uint64) for each in (ctas, threads))
                value = self._special.setdefault(name, unknown(self.every))
                value.words[slots] = (first[:, None] - first[0] + second[None, :]).ravel()
                value.known[slots] = True
            for name, half in part.kernel.workspace.items():
                address = self.memory.symbols[half.place.name]
                value = self._special.setdefault(name, unknown(self.every))
                value.words[slots] = constant(address >> 32 * half.high, 32, 1).words
                value.known[slots] = True

    def _firsts(self) -> list[int]:
        """The first thread of each part."""
        return [part.first * self.size for part in self.launch.parts]

    def end_of(self, cta: int) -> Did:
        """Where a CTA has ended: of its threads one that came furthest in the text."""
        first = cta * self.size
        thread = first + int(self.pc[first : first + self.own_size(cta)].argmax())
        return int(self.pc[thread]) - 1, thread

    def own_size(self, cta: int) -> int:
        """How many threads a CTA has."""
        return self.launch.parts[int(self.part[cta])].kernel.grid.size

    def warp(self, thread: int) -> int:
        """The number of the warp of a thread, in the launch."""
        return thread // self.size * -(-self.size // WARP_SIZE) + thread % self.size // WARP_SIZE

    def members(self, warp: int) -> list[int]:
        """The threads of a warp."""
        cta, number = divmod(warp, -(-self.size // WARP_SIZE))
        first = number * WARP_SIZE
        return [cta * self.size + t for t in range(first, min(first + WARP_SIZE, self.own_size(cta)))]

    def bits(self, register: ops.Reg) -> int:
        """The width of a register."""
        return self.kernel.code.registers[register.name].bits

    def truth(self, at: int, threads: Numbers, register: str) -> Flags:
        """What a predicate is, on which it depends what is executed; ``apart`` gets the threads in which that depends
        on who is elected."""
        self.apart = {}
        value = self.register(register, threads)
        holds: Flags = value.words != 0
        origins = self.origins.get(register, {})
        for number in np.flatnonzero(~value.known).tolist():
            thread = int(threads[number])
            if thread not in origins:
                message = "whether this is executed depends on a value that is not worked out"
                raise Stopped("undecided", message, at, thread)
            origin = origins[thread]
            holds[number] = origin.word != 0
            if any(kind == ELECTED for kind, _ in origin.reads()):
                self.apart[thread] = origin, bool(holds[number])
                continue
            self.decisions.setdefault((origin, at), Decision(origin, bool(holds[number]), at, thread))
        return holds

    def register(self, name: str, threads: Numbers) -> Value:
        value = self._registers.get(name)
        if value is None:
            return unknown(len(threads))
        return Value(value.words[threads], value.known[threads])

    def assign(self, register: ops.Reg | None, threads: Numbers, value: Value) -> None:
        """Give a register a value in some threads."""
        if register is None:
            return
        held = self._registers.get(register.name)
        if held is None:
            held = self._registers[register.name] = unknown(self.every)
        if (held.words[threads] != value.words).any() or (held.known[threads] != value.known).any():
            self.changes += 1
        held.words[threads], held.known[threads] = value.words, value.known
        if origins := self.origins.get(register.name):
            for thread in threads.tolist():
                origins.pop(thread, None)

    def lose(self, name: str, threads: Numbers) -> None:
        """Nothing is known of a register in some threads."""
        self.assign(ops.Reg(name), threads, unknown(len(threads)))

    def put(self, name: str, thread: int, word: int) -> None:
        """Give a register a value in one thread."""
        self.assign(ops.Reg(name), np.array([thread]), Value(np.array([word], np.uint64), np.ones(1, np.bool_)))

    def share(self, name: str, lanes: Numbers, leader: int) -> None:
        """Give a leader what a register is in all of its lanes, if it is elected."""
        value = self.register(name, lanes)
        words = {int(word) if known else None for word, known in zip(value.words, value.known, strict=True)}
        if words == {None}:
            origins = [self.origins.get(name, {}).get(thread) for thread in lanes.tolist()]
            elected = {(ELECTED, leader): 1}
            if all(origin is not None and set(origin.reads()) == elected.keys() for origin in origins):
                words = {None if origin is None else origin.given(elected) for origin in origins}
        if len(words) == 1 and (word := words.pop()) is not None:
            self.put(name, leader, word)
        else:
            self.lose(name, np.array([leader]))

    def operand(self, operand: ops.Operand, type_: ops.Type, threads: Numbers) -> Value:
        """The value of a source operand, as one of ``type_``."""
        match operand:
            case ops.Reg(name):
                value = self.register(name, threads)
                return Value(cut(value.words, type_.bits), value.known)
            case ops.Imm(number):
                return constant(number, type_.bits, len(threads))
            case ops.Sym(name, offset):
                address = self.memory.symbols.get(name)
                return unknown(len(threads)) if address is None else constant(address + offset, 64, len(threads))

    def decided(self, operand: ops.Operand, type_: ops.Type, at: int, what: str, threads: Numbers) -> Words:
        """The value of an operand that all else depends on. Where it depends on what reads found, others must find what
        gives the same. Raises ``Stopped`` where it is not known."""
        value = self.operand(operand, type_, threads)
        if value.known.all():
            return value.words
        words = value.words.copy()
        origins = self.origins.get(operand.name, {}) if isinstance(operand, ops.Reg) else {}
        for number in np.flatnonzero(~value.known).tolist():
            thread = int(threads[number])
            origin = origins.get(thread)
            if origin is None or any(kind == ELECTED for kind, _ in origin.reads()):
                raise Stopped("undecided", f"{what} depends on a value that is not worked out", at, thread)
            words[number] = origin.word & mask(type_.bits)
            if (key := (origin, -1 - at)) not in self.decisions:
                alike = Derived(partial(_is, origin.word), (origin,), 1)
                self.decisions[key] = Decision(alike, True, at, thread)
        return words

    def sure(self, value: Value, at: int, what: str, threads: Numbers | None = None) -> Words:
        """The numbers of a value that all else depends on, in ``threads`` if they are the same wherever the variables
        lie."""
        if not value.known.all():
            raise Stopped("undecided", f"{what} depends on a value that is not worked out", at)
        if threads is not None:
            self.did(at, threads, value.words)
        return value.words

    def did(self, at: int, threads: Numbers, numbers: Numbers | Words, places: bool = False) -> None:
        """What ``threads`` do at an instruction."""
        if self.doings is not None:
            self.doings.append((at, threads, numbers.astype(np.int64), places))
