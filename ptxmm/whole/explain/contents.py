"""Does the answer about a launch rest on what its data are? On objects of which the launch does not say what they hold.

Such an object is 0 (docs/modules.md). Where a branch or an address is made of what a thread reads there before anybody
has written it, another content may lead to another execution, of which the answer says nothing. What is made of what
is found by registers and variables, without the order of instructions, so that more may be named than matters. Objects
with a strong or atomic access are left out: that flags and counters begin with 0 is what they are.
"""

from __future__ import annotations

import numpy as np

from ptxmm.program.graph import conditional
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
    """What is made of the first contents of objects: registers (``names``) and variables, each with one of these
    objects; ``reads`` and ``writes``: for each instruction the variables that it accesses."""

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
        self.names: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self._sides = sides(self.body)

    def found(self) -> tuple[str, int] | None:
        """As ``resting``."""
        first = self._first()
        if not first:
            return None
        known = -1
        while known != len(self.names) + len(self.variables):
            known = len(self.names) + len(self.variables)
            for at, op in enumerate(self.body):
                object_ = first.get(at) or self._made(at, op)
                if object_ is not None:
                    self._give(at, op, object_)
        decided = ((self._decided(at, op), at) for at, op in enumerate(self.body))
        return next(((object_, at) for object_, at in decided if object_ is not None), None)

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

    def _made(self, at: int, op: ops.Op) -> str | None:
        """The object that what an instruction gives or writes is made of."""
        addresses = {t.address.base.name for t in ops.touched(op) if isinstance(t.address.base, ops.Reg)}
        values = [name for name, _ in uses(op) if name not in addresses]
        held = (self.variables.get(name) for name in self.reads.get(at, ()))
        return next(filter(None, (*(self.names.get(name) for name in values), *held)), None)

    def _give(self, at: int, op: ops.Op, object_: str) -> None:
        """What an instruction gives or writes is made of the content of an object."""
        names = names_written(op)
        if isinstance(op, ops.Branch):
            names = [*self._sides.get(at, ())]
        for name in names:
            self.names.setdefault(name, object_)
        for variable in self.writes.get(at, ()):
            self.variables.setdefault(variable, object_)

    def _decided(self, at: int, op: ops.Op) -> str | None:
        """The object by the content of which an instruction is executed or not, or somewhere else, or in another
        way."""
        names = {t.address.base.name for t in ops.touched(op) if isinstance(t.address.base, ops.Reg)}
        writes = bool(names_written(op))
        if op.guard is not None and at not in self._sides and (conditional(op) or not writes or ops.touched(op)):
            names.add(op.guard.register)
        if not writes and not ops.touched(op) and not isinstance(op, ops.Branch):
            names.update(name for name, _ in uses(op))
        return next(filter(None, (self.names.get(name) for name in sorted(names))), None)
