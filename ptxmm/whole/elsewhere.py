"""Does what a launch does depend on where its variables lie? The language leaves that open (PTX ISA 5.1, 5.4).

``compares`` says of a kernel whether it computes anything with addresses but other addresses; ``Layouts`` executes it
with its variables at several places, and ``signature`` says what an execution did, so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from hashlib import sha256

import numpy as np

from ptxmm.engines.result import Limits
from ptxmm.program.graph import makers
from ptxmm.program.symbols import symbols
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.execution.polls import Poll
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.launched import Launched
from ptxmm.whole.layouts import PAIRS
from ptxmm.whole.memory import TENSOR
from ptxmm.whole.order.strong import follow
from ptxmm.whole.order.trace import Trace

_LINEAR = ("mov", "add", "sub", "mad.lo", "mad.wide")
_ADDRESSED = (
    ops.Load, ops.Store, ops.Atomic, ops.CopyAsync, ops.BulkCopy, ops.AsyncStore, ops.CopyAsyncArrive, ops.MbarrierInit,
    ops.MbarrierArrive, ops.MbarrierTx, ops.MbarrierWait, ops.LoadMatrix, ops.StoreMatrix, ops.WmmaLoad, ops.WmmaStore,
    ops.StoreBulk, ops.Discard, ops.Nothing,
    ops.TensorLoad, ops.TensorStore, ops.TensorShift, ops.TensorCopy, ops.TensorProduct, ops.TensorCommit,
    ops.TensorAlloc, ops.TensorDealloc,
)  # fmt: skip
"""What has operands that are addresses."""
_ADDRESS_BITS, _TENSOR_BITS = 64, 32


class Layouts:
    """Executions of a launch with its variables at different places; ``matter``: whether a kernel
    computes anything with addresses but other addresses. ``waiting``, ``lenient``: as of ``Machine``."""

    def __init__(self, launch: Launched, waiting: Mapping[int, Poll], lenient: frozenset[str], limits: Limits) -> None:
        self._given, self._limits = (launch, follow(), waiting, None), limits
        self._lenient = lenient
        self._made: list[Machine] | Stopped | None = None
        self._signatures: set[bytes] = set()

    @cached_property
    def matter(self) -> bool:
        return any(compares(part.kernel.code.body) for part in self._given[0].parts)

    def executed(self) -> list[Machine]:
        """All of them, at their ends. Raises ``Stopped`` where one does not come to its end, and ``Timeout``."""
        if self._made is None:
            self._made = []
            try:
                for layout in range(2 * PAIRS):
                    machine = Machine(*self._given, layout=layout, lenient=self._lenient, compared=True)
                    machine.run(self._limits)
                    self._signatures.add(signature(machine))
                    # No more is asked of what it did.
                    machine.trace, machine.doings = Trace(machine.clocks), None
                    self._made.append(machine)
            except Stopped as stop:
                self._made = stop
        if isinstance(self._made, Stopped):
            raise self._made
        return self._made

    def alike(self) -> bool:
        """Whether the launch does the same in all of them. Raises as ``executed``."""
        self.executed()
        return len(self._signatures) == 1

    def choose(self) -> bool:
        """Whether in one of them something depends on what is found. Raises as ``executed``."""
        return any(machine.strong.choices or machine.decisions for machine in self.executed())


def compares(body: Sequence[ops.Op]) -> bool:
    """Whether ``body`` may do something with an address that is neither an access nor another address of it: compare
    it, look at its bits, store it. What is loaded with the width of a generic address may be one, and what is loaded
    from shared memory with that of an address in tensor memory, if some is allocated."""
    known: set[str] = set()
    made_by = makers(body)
    allocates = any(isinstance(op, ops.TensorAlloc) for op in body)
    size = -1
    while len(known) != size:
        size = len(known)
        for op in body:
            read = {name for name, _ in uses(op)} & known
            if op.guard is not None and op.guard.register in known:
                return True
            if isinstance(op, ops.Load):
                inside = allocates and op.type.bits == _TENSOR_BITS and op.space not in ("global", "param", "const")
                known |= {name for name, _ in definitions(op) if inside or op.type.bits == _ADDRESS_BITS}
            elif isinstance(op, _ADDRESSED):
                if any(
                    isinstance(operand, ops.Sym) or getattr(operand, "name", None) in known for operand in _data(op)
                ):
                    return True
            elif isinstance(op, ops.WarpExchange) and op.op.startswith("match") and _is_shared(body, made_by, op):
                continue
            elif read or any(True for _ in symbols(op)):
                if not _keeps(op, known):
                    return True
                known |= {name for name, _ in definitions(op)}
    return False


def _is_shared(body: Sequence[ops.Op], made_by: Mapping[str, Sequence[int]], op: ops.Op) -> bool:
    """Whether what ``op`` reads but its mask, the last operand, is the same in all lanes of a warp wherever variables
    lie: made of constants, variables and parameters alone, by instructions that are the only ones for their results."""
    assert isinstance(op, ops.WarpExchange)
    given = [operand.name for operand in op.operands[:-1] if isinstance(operand, ops.Reg)]
    done: set[str] = set()
    while given:
        name = given.pop()
        if name in done:
            continue
        done.add(name)
        one = body[made_by[name][0]] if len(made_by.get(name, ())) == 1 else None
        parameter = isinstance(one, ops.Load) and one.space == "param"
        computed = isinstance(one, ops.Alu | ops.Convert | ops.ConvertAddress)
        if one is None or one.guard is not None or not (parameter or computed):
            return False
        given += [used for used, _ in uses(one)]
    return True


def _data(op: ops.Op) -> tuple[object, ...]:
    """What an instruction writes to memory."""
    match op:
        case ops.Store() | ops.AsyncStore() | ops.StoreMatrix() | ops.WmmaStore():
            return tuple(op.values)
        case ops.Atomic():
            return tuple(operand for given in op.operands for operand in given)
        case _:
            return ()


def _is_one(operand: object, known: Collection[str]) -> bool:
    """Whether an operand may be an address, which the registers ``known`` may be."""
    return isinstance(operand, ops.Sym) or (isinstance(operand, ops.Reg) and operand.name in known)


def _keeps(op: ops.Op, known: Collection[str]) -> bool:
    """Whether what an instruction computes from an address is another one, so far from it wherever that is."""
    if isinstance(op, ops.Alu):
        there = [_is_one(operand, known) for operand in op.sources]
        return op.op in _LINEAR and sum(there) == 1 and (there[-1] or not op.op.startswith("mad"))
    return isinstance(op, ops.Convert | ops.ConvertAddress | ops.Mapa | ops.Select | ops.AddressValue | ops.Unpack)


def signature(machine: Machine) -> bytes:
    """What each thread of an execution that is compared does, in its order: the instructions that do more than compute,
    with where they access and the numbers that they are about; and what its asynchronous operations access."""
    columns, memory = machine.trace.columns(), machine.memory
    order = sorted(range(len(memory.instances)), key=lambda at: _named(machine, at))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    instance = memory.instance_of(columns["place"])
    rows = [columns[name] for name in ("agent", "instruction", "kind", "size")]
    place = columns["place"].copy()
    for row in np.flatnonzero(
        np.array([item.variable is TENSOR for item in memory.instances], np.bool_)[instance]
    ).tolist():
        place[row] -= machine.tensorcore.allocations.shifts(int(place[row]))
    rows += [number[instance], place - memory.starts[instance]]
    table = np.stack(rows)
    found = sha256(np.ascontiguousarray(table[:, np.lexsort(table)]).tobytes())
    steps = machine.doings or []
    if steps:
        counts = [len(threads) for _, threads, _, _ in steps]
        at, there = (np.repeat([step[which] for step in steps], counts) for which in (0, 3))
        agents, words = (np.concatenate([step[which] for step in steps]) for which in (1, 2))
        instance = np.where(there, memory.instance_of(words), 0)
        table = np.stack((agents, at, np.where(there, number[instance], -1), words - there * memory.starts[instance]))
        found.update(np.ascontiguousarray(table[:, np.argsort(agents, kind="stable")]).tobytes())
    return found.digest()


def _named(machine: Machine, at: int) -> tuple[str, int]:
    item = machine.memory.instances[at]
    return item.variable.name, item.owner
