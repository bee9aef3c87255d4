"""Launches with another instruction in the place of one that orders, or none, or one more.

An instruction is changed as what it is in the source: all that nvcc has made of one statement with one opcode at once
(``Unit``). Which orders, scopes and fences may stand in its place are those of ``ptxmm fences``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.instruction import written
from ptxmm.analysis.strength.changes import restated
from ptxmm.analysis.strength.forms import SCOPES, Forms, forms_with
from ptxmm.cat import load
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.kernel import Kernel
from ptxmm.program.edit import retarget
from ptxmm.ptx import ops
from ptxmm.ptx.printer import instruction_text

_SHORT = re.compile(r"(?:@\S+ )?(\S+).*?( \(called .*)?")
Place = tuple[int, int]
"""The number of a grid, and of an instruction of its kernel."""
Edits = Mapping[Place, Sequence[ops.Op]]
"""What stands in the place of instructions."""
_WAITS = (ops.AsyncWait, ops.AsyncCommit, ops.WarpBarrier, ops.CopyAsyncArrive)
"""What can be left out and has no weaker form."""


class Unit(Struct, frozen=True):
    """Instructions that are one in the source: their ``places``, the first of them, its text and line."""

    places: tuple[Place, ...]
    op: ops.Op

    @property
    def text(self) -> str:
        return written(self.op)

    @property
    def line(self) -> int:
        line: int = self.op.source.span.line
        return line


def edited(kernels: Sequence[Kernel], edits: Edits) -> tuple[Kernel, ...]:
    """``kernels`` with ``edits``; a branch to an instruction goes to the first of those in its place."""
    return tuple(_edited(number, kernel, edits) for number, kernel in enumerate(kernels))


def _edited(number: int, kernel: Kernel, edits: Edits) -> Kernel:
    if not any(grid == number for grid, _ in edits):
        return kernel
    chunks = [tuple(edits.get((number, at), (op,))) for at, op in enumerate(kernel.code.body)]
    starts, count = {}, 0
    for at, chunk in enumerate(chunks):
        starts[at] = count
        count += len(chunk)
    refused = {starts[at]: why for at, why in kernel.code.refused.items()}
    return replace(kernel, code=replace(kernel.code, body=retarget(chunks), refused=refused))


def units(kernels: Sequence[Kernel]) -> list[Unit]:
    """All instructions, in the order of the source."""
    found: dict[Hashable, list[Place]] = {}
    for number, kernel in enumerate(kernels):
        for at, op in enumerate(kernel.code.body):
            short = _SHORT.fullmatch(written(op))
            key = op.source.span.line, op.source.span.column, short.groups() if short else written(op)
            found.setdefault(key, []).append((number, at))
    made = [Unit(tuple(places), kernels[places[0][0]].code.body[places[0][1]]) for places in found.values()]
    return sorted(made, key=lambda unit: (unit.line, unit.places))


def orders(op: ops.Op) -> bool:
    """Whether an instruction orders others: a fence, a barrier, a wait, a commit, an access with an order."""
    match op:
        case ops.Load() | ops.Store():
            return op.sem != "weak" and not op.mmio
        case ops.ClusterBarrier():
            return op.kind == "arrive"  # with the wait behind it
        case ops.GridControl():
            return op.kind == "wait"
        case ops.Atomic() | ops.Fence() | ops.ProxyFence() | ops.MbarrierInitFence() | ops.Barrier():
            return True
        case ops.MbarrierArrive() | ops.MbarrierWait() | ops.TensormapFence():
            return True
        case _:
            return isinstance(op, _WAITS)


class Weaker(Struct, frozen=True):
    """What may stand in the place of a unit: ``text`` (empty: nothing), what it takes (``steps``, of fewer the weaker),
    and the ``edits``."""

    text: str
    steps: frozenset[int]
    edits: Edits


def without(kernels: Sequence[Kernel], unit: Unit) -> Weaker | None:
    """The launch without a unit; None where it can't just be left out."""
    op = unit.op
    match op:
        case ops.MbarrierWait():
            return Weaker("", frozenset(), {place: (_passed(kernels, place),) for place in unit.places})
        case ops.MbarrierArrive() if op.dst is not None:
            return None
        case ops.Fence() | ops.ProxyFence() | ops.TensormapFence() | ops.MbarrierInitFence():
            return Weaker("", frozenset(), dict.fromkeys(unit.places, ()))
        case ops.Barrier() | ops.MbarrierArrive():
            return Weaker("", frozenset(), dict.fromkeys(unit.places, ()))
        case ops.ClusterBarrier(kind="arrive"):
            edits: dict[Place, Sequence[ops.Op]] = {}
            for place in unit.places:
                edits |= dict.fromkeys(_pair(kernels, place), ())
            return Weaker("", frozenset(), edits)
        case _ if isinstance(op, (*_WAITS, ops.GridControl)):
            return Weaker("", frozenset(), dict.fromkeys(unit.places, ()))
    return None


def _passed(kernels: Sequence[Kernel], place: Place) -> ops.Op:
    """What a wait is that always returns true."""
    op = kernels[place[0]].code.body[place[1]]
    assert isinstance(op, ops.MbarrierWait)
    zero = ops.Imm(0)
    return ops.SetPredicate("eq", ops.U32, op.dst, None, zero, zero, op.source, op.guard)


def _pair(kernels: Sequence[Kernel], place: Place) -> list[Place]:
    """An arrival at the barrier of a cluster, and the wait that is next in the text."""
    grid, at = place
    body = kernels[grid].code.body
    for other in range(at + 1, len(body)):
        if isinstance(op := body[other], ops.ClusterBarrier):
            return [place, (grid, other)] if op.kind == "wait" else [place]
    return [place]


def weaker(kernels: Sequence[Kernel], unit: Unit) -> list[Weaker]:
    """The other forms that are weaker than a unit as it is written, the strongest first."""
    found: dict[frozenset[int], dict[Place, Sequence[ops.Op]]] = {}
    texts: dict[frozenset[int], str] = {}
    for place in unit.places:
        kernel = kernels[place[0]]
        op = kernel.code.body[place[1]]
        forms = _forms(kernel, op)
        for form, steps in forms.forms if forms is not None else ():
            if form is not None and forms is not None and steps < forms.given:
                found.setdefault(steps, {})[place] = (form,)
                texts.setdefault(steps, said(unit.op, form))
    complete = [Weaker(texts[s], s, edits) for s, edits in found.items() if len(edits) == len(unit.places)]
    return sorted(complete, key=lambda item: -len(item.steps))


def _forms(kernel: Kernel, op: ops.Op) -> Forms | None:
    """The forms of an instruction, among the scopes that tell the threads of the launch apart."""
    every = levels(kernel)

    def narrower(kept: ops.Scope | None) -> tuple[ops.Scope, ...]:
        return tuple(scope for scope in SCOPES if scope in every or scope == kept)

    if isinstance(op, ops.Barrier | ops.WarpBarrier | ops.AsyncWait | ops.AsyncCommit | ops.CopyAsyncArrive):
        return None
    return forms_with(kernel.isa, op, narrower, load("ptx-8.5").coverage, stronger=False)


def levels(kernel: Kernel) -> tuple[ops.Scope, ...]:
    """The scopes that include different threads of a launch, the narrowest of each kind, from the narrowest."""
    found: list[ops.Scope] = ["cta"]
    cluster = kernel.grid.cluster
    several = cluster is not None and cluster[0] * cluster[1] * cluster[2] > 1
    if several:
        found.append("cluster")
    launch = kernel.launch
    grids = sum(grid.gpu == kernel.grid.gpu for grid in launch.grids)
    if grids > 1 or kernel.grid.ctas > (cluster[0] * cluster[1] * cluster[2] if cluster is not None else 1):
        found.append("gpu")
    if len(launch.gpus) > 1 or launch.host:
        found.append("sys")
    return tuple(found)


def said(old: ops.Op, new: ops.Op) -> str:
    """The text of ``new``, with the operands of ``old`` as they are written if these stay."""
    try:
        text = instruction_text(new, True, lambda index: f"L{index}")
    except PtxmmError:
        return written(new)
    if isinstance(new, ops.AsyncWait):  # for how many groups it waits is an operand
        return text
    return restated(written(old), text)


def added(kernels: Sequence[Kernel], unit: Unit, made: Sequence[ops.Op], after: bool) -> Edits:
    """More instructions before or after those of a unit."""
    found: dict[Place, Sequence[ops.Op]] = {}
    for grid, at in unit.places:
        op = kernels[grid].code.body[at]
        found[grid, at] = (op, *made) if after else (*made, op)
    return found
