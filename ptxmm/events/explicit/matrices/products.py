"""What a path does with the registers of products of a warpgroup (PTX ISA 9.7.16.7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from ptxmm.program.shared.products import UNFENCED, accessed, changed, fragments, registers, unfinished
from ptxmm.ptx.ops import Op, Wgmma, WgmmaFence

_Use = tuple[str, object]
"""How a register is used: by a thread (``thread``), as an accumulator of a shape (``D``), as a fragment (``A``)."""


class Products(Struct):
    """``used``: for each register how it has been used since the last ``wgmma.fence`` (``fenced``: there was one).
    ``running``: the registers of products that nothing has waited for, by the position of their last event."""

    registers: frozenset[str]
    fenced: bool = False
    used: dict[str, set[_Use]] = field(default_factory=dict)
    running: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def concerns(self, op: Op) -> bool:
        """Whether ``op`` has to do with these registers."""
        return isinstance(op, Wgmma | WgmmaFence) or bool(accessed(op, self.registers))

    def execute(self, op: Op) -> str | None:
        """Note that ``op`` is executed; why that is undefined, or None."""
        if isinstance(op, WgmmaFence):
            self.fenced = True
            self.used.clear()
            return None
        if isinstance(op, Wgmma):
            return self._product(op)
        found = accessed(op, self.registers)
        for name in found:
            self.used.setdefault(name, set()).add(("thread", None))
        open_ = [name for name in found if any(name in held for held in self.running.values())]
        return unfinished(open_[0]) if open_ else None

    def _product(self, op: Wgmma) -> str | None:
        accumulators: _Use = "D", (op.shape, op.type)
        allowed = {r.name: {accumulators} for r in op.dst} | {name: {("A", None)} for name in fragments(op)}
        wrong = sorted(name for name, uses in allowed.items() if not self.used.get(name, set()) <= uses)
        for name, uses in allowed.items():
            self.used.setdefault(name, set()).update(uses)
        if not self.fenced:
            return UNFENCED
        return changed(wrong[0]) if wrong else None

    def start(self, op: Wgmma, last: int) -> None:
        """A product runs, whose last event is at ``last``."""
        self.running[last] = (*(r.name for r in op.dst), *fragments(op))

    def finish(self, last: Iterable[int]) -> None:
        """The products whose last events these are have been waited for."""
        for position in last:
            self.running.pop(position, None)


def products(body: Sequence[Op]) -> Products | None:
    """For a thread; None if it has no products."""
    found = registers(body)
    return Products(found) if found else None
