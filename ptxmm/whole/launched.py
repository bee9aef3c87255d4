"""The grids of a launch as one: their instructions one behind the other, their CTAs numbered through.

A thread of the host is a grid of one thread, on a device of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.kernel import Kernel, observed
from ptxmm.formats.modules.lower import Code
from ptxmm.formats.modules.objects import Object
from ptxmm.program.graph import Graph, graph_of, live_at, post_dominators
from ptxmm.program.source import NameTerm
from ptxmm.program.symbols import symbols
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read


class Part(Struct, frozen=True):
    """A grid, or the thread ``host`` of the host: its ``kernel``, where its instructions begin (``entry``), its first
    CTA, and the ``device`` that it runs on."""

    kernel: Kernel
    entry: int
    first: int
    device: int
    host: str | None = None

    @property
    def named(self) -> set[str]:
        """The variables that its instructions name."""
        return {name for op in self.kernel.code.body for name in symbols(op)}


class Launched(Struct, frozen=True, dict=True):
    """A launch: its ``parts``, and a ``kernel`` of all their instructions and variables. ``mixed``: a register that has
    two widths in two of them, if there is one. ``unchanging``: loads of the kernel that are atomic operations in the
    text, which leave what is there; ``comparing``: those that write only if they find what they compare with.
    ``swapping``: loads that are ``cas`` in the text, which write where their loop ends."""

    kernel: Kernel
    parts: tuple[Part, ...]
    mixed: str | None = None
    unchanging: frozenset[int] = frozenset()
    comparing: frozenset[int] = frozenset()
    swapping: Mapping[int, ops.Atomic] = {}

    @property
    def ctas(self) -> int:
        """The CTAs of all grids."""
        return sum(part.kernel.grid.ctas for part in self.parts)

    @property
    def size(self) -> int:
        """How many threads the largest CTA has; each of the others has as many numbers."""
        return max(part.kernel.grid.size for part in self.parts)

    @property
    def threads(self) -> int:
        """The threads of all grids."""
        return sum(part.kernel.grid.ctas * part.kernel.grid.size for part in self.parts)

    @property
    def clustered(self) -> bool:
        """Whether some grid has clusters."""
        return any(part.kernel.grid.cluster is not None for part in self.parts)

    @cached_property
    def owners(self) -> dict[str, list[int]]:
        """Of each variable that instructions name the CTAs in which they do."""
        found: dict[str, list[int]] = {}
        for part in self.parts:
            for name in sorted(part.named):
                found.setdefault(name, []).extend(range(part.first, part.first + part.kernel.grid.ctas))
        return found

    @cached_property
    def graph(self) -> Graph:
        """Which instruction may follow which."""
        return graph_of(self.kernel.code.body)

    @cached_property
    def joins(self) -> dict[int, int]:
        """For each instruction the first one that every way on from it comes to."""
        return post_dominators(self.graph)

    @cached_property
    def live(self) -> list[frozenset[str]]:
        """The registers whose values count before each instruction."""
        return live_at(self.kernel.code.body, self.graph, observed(self.kernel))

    @cached_property
    def read(self) -> set[str]:
        """The registers that instructions read."""
        return {name for op in self.kernel.code.body for name in names_read(op)}

    def number_of(self, term: NameTerm) -> tuple[int, int, int] | None:
        """The thread that a term names: its part, its CTA there, and its number in that; None if there is none."""
        name, before = term.thread or "", 0
        for number, part in enumerate(self.parts):
            grid = part.kernel.grid
            if part.host is not None:
                if part.host == name:
                    return number, 0, 0
                continue
            count = len(grid.threads) or grid.ctas * grid.size
            digits = name.removeprefix("P")
            if digits.isdigit() and 0 <= int(digits) - before < count:
                at = int(digits) - before
                return number, *(grid.threads[at] if grid.threads else divmod(at, grid.size))
            before += count
        return None


def launched(kernels: Sequence[Kernel], hosts: Mapping[str, Kernel]) -> Launched:
    """The launch of ``kernels``, one for each grid, beside threads of the host."""
    devices = {gpu: gpu for gpu in sorted(kernels[0].launch.gpus)}
    parts: list[Part] = []
    body: list[ops.Op] = []
    refused: dict[int, tuple[PtxmmError, bool]] = {}
    registers: dict[str, ops.Type] = {}
    variables: dict[str, Object] = {}
    mixed, ctas = None, 0
    for name, kernel in [*((None, kernel) for kernel in kernels), *hosts.items()]:
        device = devices[kernel.grid.gpu] if name is None else devices.setdefault(-1 - len(parts), -1 - len(parts))
        parts.append(Part(kernel, len(body), ctas, device, name))
        ctas += kernel.grid.ctas
        refused |= {len(body) + at: why for at, why in kernel.code.refused.items()}
        body += _moved(kernel.code.body, len(body), alone=len(kernels) + len(hosts) == 1)
        for register, type_ in kernel.code.registers.items():
            if registers.setdefault(register, type_).bits != type_.bits:
                mixed = register
        variables |= kernel.variables
    first = kernels[0]
    several = len(set(devices.values())) > 1
    loads = {at: load for at, op in enumerate(body) if _keeps(op) and (load := load_of(op, several))}
    code = Code(tuple(loads.get(at, op) for at, op in enumerate(body)), registers, refused)
    remarks = tuple(dict.fromkeys(text for kernel in kernels for text in kernel.remarks))
    assumed = tuple(dict.fromkeys(name for kernel in kernels for name in kernel.assumed))
    kernel = replace(first, code=code) if len(parts) == 1 else replace(
        first, code=code, variables=variables, remarks=remarks, assumed=assumed, workspace={}
    )  # fmt: skip
    comparing = frozenset(at for at in loads if isinstance(op := body[at], ops.Atomic) and op.op == "cas")
    return Launched(kernel, tuple(parts), mixed, frozenset(loads), comparing)


def load_of(op: ops.Op, several: bool) -> ops.Load | None:
    """The load that an atomic operation is if it writes nothing and its scope includes all threads of the launch, which
    has ``several`` devices or one."""
    if not isinstance(op, ops.Atomic) or not op.returns or op.packed > 1 or len(op.operands) > 1 or op.type.bytes > 8:
        return None
    if not (op.scope == "sys" or (op.scope == "gpu" and not several)) or op.proxy != "generic":
        return None
    sem = "acquire" if op.sem in ("acquire", "acq_rel") else "relaxed"
    return ops.Load(op.dst, op.address, op.type, sem, op.scope, op.space, op.source, op.guard)


def _keeps(op: ops.Op) -> bool:
    """Whether an operation is an atomic one that leaves what it finds, whatever that is, and releases nothing: as long
    as nobody looks at who has written it is a load, as whoever reads what it leaves may as well read what it has read
    (8.9.2)."""
    if not isinstance(op, ops.Atomic) or len(op.operands) > 1 or op.sem not in ("relaxed", "acquire"):
        return False
    (operands,) = op.operands
    if op.op == "cas":
        return operands[0] == operands[1]
    (operand,) = operands
    if not isinstance(operand, ops.Imm) or op.type.kind in ("f", "bf"):
        return False
    ones = (1 << op.type.bits) - 1
    least = 1 << (op.type.bits - 1) if op.type.signed else 0
    neutral = {"add": 0, "sub": 0, "or": 0, "xor": 0, "and": ones, "max": least, "min": least ^ ones}
    return op.op in neutral and operand.value & ones == neutral[op.op]


def _moved(body: Sequence[ops.Op], start: int, alone: bool) -> list[ops.Op]:
    """Instructions that stand at ``start``; behind the last one no thread comes to those of another grid."""
    if alone:
        return [*body]
    found = [replace(op, target=op.target + start) if isinstance(op, ops.Branch) else op for op in body]
    return [*found, ops.Exit(body[-1].source)] if body else found
