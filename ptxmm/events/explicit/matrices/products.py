"""What a path does with the registers of products of a warpgroup (PTX ISA 9.7.16.7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from ptxmm.program.shared.products import UNFENCED, accessed, changed, copied, feeding, fragments, registers, unfinished
from ptxmm.ptx.ops import Op, Wgmma, WgmmaFence

_Use = tuple[str, object]
"""How a register is used: by a thread (``thread``), as an accumulator of a shape (``D``), as a fragment (``A``)."""


class Products(Struct):
    """``used``: for each register how it has been used since the last ``wgmma.fence`` (``fenced``: there was one).
    ``running``: the products that nothing has waited for, by the position of their last event. ``copied``: the
    registers that come to be those of products by copies, where a copy is no use (wgmma-mov=free)."""

    registers: frozenset[str]
    copied: frozenset[str] = frozenset()
    fenced: bool = False
    used: dict[str, set[_Use]] = field(default_factory=dict)
    running: dict[int, Wgmma] = field(default_factory=dict)

    def concerns(self, op: Op) -> bool:
        """Whether ``op`` has to do with these registers."""
        return isinstance(op, Wgmma | WgmmaFence) or bool(accessed(op, self.registers, self.copied))

    def execute(self, op: Op) -> str | None:
        """Note that ``op`` is executed; why that is undefined, or None."""
        if isinstance(op, WgmmaFence):
            self.fenced = True
            self.used.clear()
            return None
        if isinstance(op, Wgmma):
            return self._product(op)
        found = accessed(op, self.registers, self.copied)
        copy = copied(op) if self.copied else None
        if copy is None:
            for name in found:
                self.used.setdefault(name, set()).add(("thread", None))
        elif copy[1] is not None:
            self.used.setdefault(copy[0], set()).update(self.used.get(copy[1], ()))
        return self._open(dict.fromkeys(found, "thread"))

    def _open(self, roles: Mapping[str, object]) -> str | None:
        """Why these uses are undefined while products run: of each register, what it is for; but for a fragment that
        two products read, and accumulators of products of the same shape (9.7.16.7.3)."""
        held = [item for op in self.running.values() for item in _roles(op).items()]
        early = [name for name, role in held if roles.get(name, role) != role]
        return unfinished(min(early)) if early else None

    def _product(self, op: Wgmma) -> str | None:
        accumulators: _Use = "D", (op.shape, op.type)
        allowed = {r.name: {accumulators} for r in op.dst} | {name: {("A", None)} for name in fragments(op)}
        wrong = sorted(name for name, uses in allowed.items() if not self.used.get(name, set()) <= uses)
        for name, uses in allowed.items():
            self.used.setdefault(name, set()).update(uses)
        if not self.fenced:
            return UNFENCED
        return changed(wrong[0]) if wrong else self._open(_roles(op))

    def start(self, op: Wgmma, last: int) -> None:
        """A product runs, whose last event is at ``last``."""
        self.running[last] = op

    def finish(self, last: Iterable[int]) -> None:
        """The products whose last events these are have been waited for."""
        for position in last:
            self.running.pop(position, None)


def _roles(op: Wgmma) -> dict[str, object]:
    """What each register of a product is for."""
    return dict.fromkeys(fragments(op), "A") | {r.name: ("D", op.shape, op.type) for r in op.dst}


def products(body: Sequence[Op], copies: bool) -> Products | None:
    """For a thread; None if it has no products. ``copies``: as in the readings."""
    found = registers(body)
    return Products(found, feeding(body, found) if copies else frozenset()) if found else None
