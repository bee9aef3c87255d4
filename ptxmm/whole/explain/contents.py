"""Does the answer about a launch rest on what its data are? On objects of which the launch does not say what they hold.

Such an object is 0 (docs/modules.md). Where a branch or an address is made of what a thread reads there before anybody
has written it, another content may lead to another execution, of which the answer says nothing. What is made of what
is found by registers and variables, without the order of instructions, so that more may be named than matters. Objects
with a strong or atomic access are left out: that flags and counters begin with 0 is what they are.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ptxmm.program.graph import conditional, graph_of
from ptxmm.program.shared.flows import sides
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written, uses
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.order.trace import READ


def resting(machine: Machine) -> tuple[str, int] | None:
    """An object of the launch that holds 0 as nothing else is said, and an instruction that does what it does by what
    is read there; None if there is none. ``machine`` has been run."""
    return _Contents(machine).found()


class _Contents:
    """What is made of the first contents of objects: registers, at each instruction (``at``, one bit for each name),
    and ``variables``; ``whose``: of which object. ``reads`` and ``writes``: for each instruction the variables that it
    accesses."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.body = machine, machine.body
        self._rows = machine.trace.columns()
        self._instance = machine.memory.instance_of(self._rows["place"])
        variables = [item.variable.name for item in machine.memory.instances]
        pairs = np.unique(np.stack((self._rows["instruction"], self._instance, self._rows["kind"] == READ)), axis=1)
        self.reads: dict[int, set[str]] = {}
        self.writes: dict[int, set[str]] = {}
        for at, instance, read in pairs.T.tolist():
            (self.reads if read else self.writes).setdefault(at, set()).add(variables[instance])
        self._bits: dict[str, int] = {}
        self._gives = [self._mask(names_written(op)) for op in self.body]
        self._places = [self._mask(map(_base, ops.touched(op))) for op in self.body]
        self._uses = [self._mask(name for name, _ in uses(op)) for op in self.body]
        self._guards = [0 if op.guard is None else self._mask([op.guard.register]) for op in self.body]
        self._sides = {at: self._mask(names) for at, names in sides(self.body).items()}
        self.at = [0] * (len(self.body) + 1)
        self.variables: dict[str, str] = {}
        self.whose: dict[int, str] = {}
        self._kept = 0

    def found(self) -> tuple[str, int] | None:
        """As ``resting``."""
        first = self._first()
        if not first:
            return None
        after = graph_of(self.body).after
        before: object = None
        while before != (state := (tuple(self.at), len(self.variables), self._kept)):
            before = state
            for at in range(len(self.body)):
                behind = self._behind(at, first.get(at))
                for following in after[at]:
                    self.at[following] |= behind
        decided = ((self.at[at] & self._deciding(at, op), at) for at, op in enumerate(self.body))
        return next(((self._object(mask), at) for mask, at in decided if mask), None)

    def _mask(self, names: Iterable[str | None]) -> int:
        found = 0
        for name in names:
            if name is not None:
                found |= 1 << self._bits.setdefault(name, len(self._bits))
        return found

    def _object(self, mask: int) -> str:
        """The object that one of some registers is made of."""
        return self.whose[(mask & -mask).bit_length() - 1]

    def _first(self) -> dict[int, str]:
        """The instructions that read what such an object holds at first."""
        given = {item.name for item in self.machine.kernel.launch.objects if item.initial is None}
        strong = {
            name
            for at, op in enumerate(self.body)
            if isinstance(op, ops.Atomic) or (isinstance(op, ops.Load | ops.Store) and op.scope is not None)
            for name in self.reads.get(at, set()) | self.writes.get(at, set())
        }
        found: dict[int, str] = {}
        for number, item in enumerate(self.machine.memory.instances):
            variable = item.variable
            if variable.name in given - strong and variable.initial == () and variable.space == "global":
                here = np.flatnonzero(self._instance == number)
                found.update(dict.fromkeys(self._unwritten(here, item.start, variable.size), variable.name))
        return found

    def _unwritten(self, rows: Numbers, start: int, size: int) -> list[int]:
        """The instructions that read bytes of an object, by ``rows``, that nobody has written before."""
        written = np.full(size, len(self._rows["place"]), np.int64)
        writes, reads = (rows[(self._rows["kind"][rows] == READ) == read] for read in (False, True))
        widths = self._rows["size"][writes]
        for width in np.unique(widths).tolist():
            those = writes[widths == width]
            places = (self._rows["place"][those] - start)[:, None] + np.arange(width)
            np.minimum.at(written, places, those[:, None])
        # Who reads bytes of which the first or the last one is not written has read the first content.
        places, sizes = self._rows["place"][reads] - start, self._rows["size"][reads]
        early = (written[places] > reads) | (written[places + sizes - 1] > reads)
        return [*map(int, np.unique(self._rows["instruction"][reads[early]]))]

    def _behind(self, at: int, first: str | None) -> int:
        """The registers that are made of contents behind an instruction."""
        here, gives = self.at[at] | self._kept, self._gives[at]
        made = here & self._uses[at] & ~(self._places[at] & ~self._guards[at])
        held = (self.variables[name] for name in self.reads.get(at, ()) if name in self.variables)
        object_ = first or (self._object(made) if made else next(held, None))
        if object_ is None:
            return here if self._guards[at] else here & ~gives
        if isinstance(self.body[at], ops.Branch):
            # What its sides give is made of them wherever that is given.
            gives = self._sides.get(at, 0)
            self._kept |= gives
        for bit in range(len(self._bits)) if gives & ~here else ():
            if gives >> bit & 1:
                self.whose.setdefault(bit, object_)
        for variable in self.writes.get(at, ()):
            self.variables.setdefault(variable, object_)
        return here | gives

    def _deciding(self, at: int, op: ops.Op) -> int:
        """The registers by which an instruction is executed or not, or somewhere else, or in another way."""
        found, only_gives = self._places[at], bool(self._gives[at]) and not ops.touched(op)
        if at not in self._sides and (conditional(op) or not only_gives):
            found |= self._guards[at]
        if not only_gives and not ops.touched(op) and not isinstance(op, ops.Branch):
            found |= self._uses[at]
        return found


def _base(touch: ops.Touch) -> str | None:
    base = touch.address.base
    return base.name if isinstance(base, ops.Reg) else None
