"""Is a launch free of data races, with all its threads?

What is followed synchronizes by barriers of its CTA and of its warps only. Then one execution tells of all others
(docs/whole.md): no branch, address or operand of a barrier depends on anything that another schedule would change, as
long as nothing races; and who meets at a barrier is the same.
"""

from __future__ import annotations

import time
from itertools import islice

import numpy as np

from ptxmm.analysis.result import Note, Status
from ptxmm.engines.result import Limits
from ptxmm.errors import Timeout
from ptxmm.formats.modules.kernel import Kernel
from ptxmm.ptx import ops
from ptxmm.whole.conflicts import Accesses, accesses, unordered
from ptxmm.whole.machine import Machine
from ptxmm.whole.memory import Numbers
from ptxmm.whole.result import Answer, Spot, WholeRace, WholeResult
from ptxmm.whole.state import Stopped
from ptxmm.whole.trace import READ

_MODEL = "ptx-8.5"
_MOST = 20
_PAIRS = 100_000
"""After so many pairs no more are looked for."""
_FOUND: dict[str, bool | None] = {
    "race-free": True, "race": False, "deadlock": False, "outside": False, "undefined": False,
}  # fmt: skip


def whole(kernel: Kernel, file: str, limits: Limits | None = None) -> WholeResult:
    """Whether the launch of ``kernel`` is free of data races under ptx-8.5 (PTX ISA 8.7.1), and its threads come to
    their ends. Raises ``PtxmmError`` where its memory is too large."""
    return _Whole(kernel, file, limits or Limits()).result()


class _Whole:
    def __init__(self, kernel: Kernel, file: str, limits: Limits) -> None:
        self.kernel, self.file, self.limits = kernel, file, limits
        self.start = time.perf_counter()
        self.machine = Machine(kernel)

    def result(self) -> WholeResult:
        if self.kernel.launch.host:
            return self._made("unsupported", Stopped("unsupported", "threads of the host are not followed yet"))
        try:
            self.machine.run(self.limits)
            races = self._races()
        except Stopped as stop:
            return self._made(stop.word, stop)
        except Timeout:
            return self._made("timeout", None)
        return self._made("race" if races else "race-free", None, races)

    def _races(self) -> tuple[WholeRace, ...]:
        """The races of what has been executed. Raises ``Stopped`` where it is not known whether they are."""
        machine = self.machine
        found = accesses(machine.memory, machine.trace)
        self._refuse_noncoherent(found)
        groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
        every = unordered(found, machine.clocks, self._scopes(), machine.trace.proxies)
        for number, (a, b) in enumerate(islice(every, _PAIRS)):
            groups.setdefault((int(found.instruction[a]), int(found.instruction[b])), []).append((a, b))
            if number % 4096 == 0:
                self.limits.check()
        for (one, other), pairs in groups.items():
            self._refuse_unsure(one, other, found, pairs[0])
        return tuple(self._race(found, pairs) for _, pairs in sorted(groups.items()))[:_MOST]

    def _refuse_unsure(self, one: int, other: int, found: Accesses, pair: tuple[int, int]) -> None:
        """Raise ``Stopped`` where accesses that no barrier orders may be ordered otherwise, or are no race."""
        strong, fences = self.machine.strong, self.machine.fences
        thread = int(found.agent[pair[1]])
        body = self.kernel.code.body
        if {one, other} <= strong and not (isinstance(body[one], ops.Atomic) and isinstance(body[other], ops.Atomic)):
            raise Stopped("undecided", "what this strong access finds depends on the schedule", other, thread)
        if fences or any(_orders(body[at]) for at in strong):
            message = "this races unless fences and strong accesses order it, which is not followed yet"
            raise Stopped("unsupported", message, other, thread)
        if self.kernel.allowed:
            message = "this races unless it writes the same value, which is allowed but not followed yet"
            raise Stopped("unsupported", message, other, thread)

    def _refuse_noncoherent(self, found: Accesses) -> None:
        """Raise ``Stopped`` where ``ld.global.nc`` reads what the launch writes (9.7.10.9)."""
        body = self.kernel.code.body
        noncoherent = [at for at, op in enumerate(body) if isinstance(op, ops.Load) and op.nc]
        reads = np.isin(found.instruction, noncoherent) & (found.kind == READ)
        if reads.any():
            number = int(np.flatnonzero(reads)[0])
            message = "a non-coherent load of what the launch writes"
            raise Stopped("undefined", message, int(found.instruction[number]), int(found.agent[number]))

    def _scopes(self) -> Numbers:
        """For each instruction whether its scope is its CTA alone."""
        launch = self.kernel.launch
        narrow = ("cta", "cluster") if launch.cluster is None else ("cta",)
        found = np.zeros(len(self.kernel.code.body) + 1, np.int64)
        for at, op in enumerate(self.kernel.code.body):
            if isinstance(op, ops.Atomic):
                if op.scope == "cluster" and launch.cluster is not None and at in self.machine.strong:
                    raise Stopped("unsupported", "atomic operations of cluster scope are not followed yet", at)
                found[at] = op.scope in narrow
        return found

    def _race(self, found: Accesses, pairs: list[tuple[int, int]]) -> WholeRace:
        a, b = pairs[0]
        place = int(found.cell[b])
        instance = self.machine.memory.instances[int(self.machine.memory.instance_of(np.array([place]))[0])]
        where = f"{instance.variable.name}, byte {place - instance.start}"
        first, second = (self._spot(int(found.instruction[n]), int(found.agent[n])) for n in (a, b))
        return WholeRace(first, second, where, len(pairs))

    def _spot(self, at: int, thread: int) -> Spot:
        source = self.kernel.code.body[at].source
        return Spot(source.span.line, source.text, *divmod(thread, self.machine.size))

    def _made(self, answer: Answer, stop: Stopped | None, races: tuple[WholeRace, ...] = ()) -> WholeResult:
        spot = None
        if stop is not None and stop.at is not None:
            spot = self._spot(stop.at, stop.thread or 0)
        status: Status = "complete" if answer in _FOUND else "timeout" if answer == "timeout" else "inconclusive"
        launch = self.kernel.launch
        name = f"{self.kernel.name} ({launch.name})" if launch.name else self.kernel.name
        return WholeResult(
            self.file, name, _MODEL, status, answer, _FOUND.get(answer), self.machine.count, launch.ctas,
            self.machine.trace.count, races, spot, None if stop is None else stop.message,
            tuple(Note("remark", text) for text in self.kernel.remarks), time.perf_counter() - self.start,
        )  # fmt: skip


def _orders(op: ops.Op) -> bool:
    """Whether a strong access may synchronize by itself."""
    return isinstance(op, ops.Load | ops.Store | ops.Atomic) and op.sem in ("acquire", "release", "acq_rel")
