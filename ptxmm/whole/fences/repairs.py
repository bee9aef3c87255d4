"""The changes of a launch that may repair a race: at the two accesses, and at what almost orders them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.strength.changes import ChangeEntry, Costs
from ptxmm.analysis.strength.forms import SCOPES, Forms, forms_with
from ptxmm.cat import load
from ptxmm.formats.modules.kernel import Kernel
from ptxmm.ptx import ops
from ptxmm.ptx.printer import instruction_text
from ptxmm.whole.analysis import Examined
from ptxmm.whole.fences.variants import Edits, Unit, added, levels, said, units

_COPIES = ops.CopyAsync | ops.BulkCopy | ops.AsyncStore


class Step(Struct, frozen=True):
    """One change: its ``edits``, how it is told, and what it costs; ``takes``: the orders and scopes that a stronger
    instruction has more."""

    cost: int
    edits: Edits
    change: ChangeEntry
    takes: frozenset[str] = frozenset()

    def within(self, other: Step) -> bool:
        """Whether ``other`` is this change, or makes the same instruction stronger still."""
        return self is other or (frozenset() < self.takes < other.takes and self.edits.keys() == other.edits.keys())


def steps(kernels: Sequence[Kernel], found: Examined, costs: Costs) -> list[Step]:
    """The changes that may repair the races that were found."""
    parts = found.machine.launch.parts
    of = {parts[number].entry + at: unit for unit in units(kernels) for number, at in unit.places}
    # What a thread of the host does is not repaired.
    clues = [[of[at] for at in clue if at in of] for clue in found.clues]
    near = list(dict.fromkeys(unit.places for clue in clues for unit in clue))
    by = {unit.places: unit for unit in of.values()}
    # Two weak accesses that are made strong do not race, but nothing orders what they find.
    pairs = [[of[at] for at in clue[:2] if at in of] for clue in found.clues]
    weak = {unit.places for pair in pairs for unit in pair if all(_is_weak(one.op) for one in pair)}
    made = [step for places in near for step in _of(kernels, by[places], costs, places not in weak)]
    return list(
        {(step.change.line, step.change.new, step.change.after, step.change.old): step for step in made}.values()
    )


def _is_weak(op: ops.Op) -> bool:
    return getattr(op, "sem", "weak") == "weak"


def _of(kernels: Sequence[Kernel], unit: Unit, costs: Costs, strong: bool) -> Iterator[Step]:
    if strong:
        yield from _stronger(kernels, unit, costs)
    yield from _waits(kernels, unit, costs)
    for op, cost in _inserted(kernels, unit, costs):
        for after in (False, True):
            text = "; ".join(instruction_text(one, True, lambda index: f"L{index}") for one in op)
            change = ChangeEntry("insert", "", unit.line, unit.op.source.span.column, unit.text, text, after)
            yield Step(cost, added(kernels, unit, op, after), change)


def _replaced(kernels: Sequence[Kernel], unit: Unit, made: Sequence[ops.Op], cost: int) -> Step:
    text = said(unit.op, made[0])
    change = ChangeEntry("replace", "", unit.line, unit.op.source.span.column, unit.text, text, False)
    return Step(cost, {place: (op,) for place, op in zip(unit.places, made, strict=True)}, change)


def _stronger(kernels: Sequence[Kernel], unit: Unit, costs: Costs) -> Iterator[Step]:
    """Other orders and scopes of an instruction."""
    forms = [_forms(kernels[grid], kernels[grid].code.body[at]) for grid, at in unit.places]
    first = forms[0]
    if first is None:
        return
    for number, (form, needs) in enumerate(first.forms):
        if form is None or not needs > first.given:
            continue
        made = [each.forms[number][0] for each in forms if each is not None and each.steps == first.steps]
        kept = [op for op in made if op is not None]
        if len(kept) == len(unit.places):
            takes = frozenset(first.steps[n] for n in needs - first.given)
            cost = sum(getattr(costs, step.removeprefix("scope ")) for step in takes)
            yield replace(_replaced(kernels, unit, kept, cost), takes=takes)


def _forms(kernel: Kernel, op: ops.Op) -> Forms | None:
    every = levels(kernel)

    def wider(kept: ops.Scope | None) -> tuple[ops.Scope, ...]:
        return tuple(scope for scope in SCOPES if scope in every or scope == kept)

    if isinstance(op, ops.ProxyFence | ops.MbarrierInitFence):
        return None
    return forms_with(kernel.isa, op, wider, load("ptx-8.5").coverage, stronger=True)


def _waits(kernels: Sequence[Kernel], unit: Unit, costs: Costs) -> Iterator[Step]:
    """Waits for more, or for the other phase."""
    body = [kernels[grid].code.body[at] for grid, at in unit.places]
    op = unit.op
    if isinstance(op, ops.AsyncWait):
        waits = [each for each in body if isinstance(each, ops.AsyncWait)]
        if op.read:
            yield _replaced(kernels, unit, [replace(each, read=False) for each in waits], costs.wait)
        for pending in range(op.pending or 0):
            yield _replaced(kernels, unit, [replace(each, pending=pending) for each in waits], costs.wait)
    if isinstance(op, ops.MbarrierWait) and isinstance(op.parity, ops.Imm):
        asks = [each for each in body if isinstance(each, ops.MbarrierWait) and isinstance(each.parity, ops.Imm)]
        if len(asks) == len(body):
            turned = [replace(each, parity=ops.Imm(1 - each.parity.value)) for each in asks]  # type: ignore[union-attr]
            yield _replaced(kernels, unit, turned, costs.wait)


def _inserted(kernels: Sequence[Kernel], unit: Unit, costs: Costs) -> Iterator[tuple[list[ops.Op], int]]:
    """What may be put before or after an instruction."""
    op, kernel = unit.op, kernels[unit.places[0][0]]
    source = replace(op.source, text="")
    body = [other for each in kernels for other in each.code.body]
    scope = levels(kernel)[-1]
    yield [ops.Fence("acq_rel", scope, source)], costs.fence
    if any(isinstance(other, ops.BulkCopy) for other in body):
        yield [ops.ProxyFence("async", source)], costs.proxy
    if kernel.grid.size > 1:
        yield [ops.WarpBarrier(ops.Imm(0xFFFFFFFF), source)], costs.barrier_warp
        yield [ops.Barrier("sync", ops.Imm(0), None, None, source)], costs.barrier_cta
    if "cluster" in levels(kernel):
        meet = [ops.ClusterBarrier("arrive", "release", source), ops.ClusterBarrier("wait", "acquire", source)]
        yield [*meet], costs.barrier_cluster
    for kind in dict.fromkeys(_kind(other) for other in body if isinstance(other, _COPIES)):
        if kind == "cp.async":
            yield [ops.AsyncWait("cp.async", None, False, source)], costs.wait
        elif kind == "bulk":
            yield [ops.AsyncWait("bulk", 0, False, source)], costs.wait


def _kind(op: ops.Op) -> str:
    if isinstance(op, ops.CopyAsync):
        return "cp.async"
    return "bulk" if isinstance(op, ops.BulkCopy) and op.mbarrier is None else "mbarrier"
