"""What instructions that access memory need of the launch that executes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ptxmm.analysis.claims import BOUNDS, TRAPS
from ptxmm.program.shared.legality import meets
from ptxmm.program.test import TRAP
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.barriers.mbarriers import Mbarriers
from ptxmm.whole.execution.carried import Carried
from ptxmm.whole.execution.gathering import Gathering
from ptxmm.whole.execution.kept import Kept
from ptxmm.whole.execution.leaders import Leaders
from ptxmm.whole.execution.polls import Poll
from ptxmm.whole.execution.regions import Regions
from ptxmm.whole.execution.state import ENDED, State, Stopped
from ptxmm.whole.launched import Launched
from ptxmm.whole.order.strong import Plan, Strong
from ptxmm.whole.order.trace import Trace


class Accessing(State):
    """The threads of a launch, the ``trace`` of their accesses, and what the ``strong`` ones synchronize; the
    ``leaders`` of warps, the ``mbarriers``, the origins of what is stored (``kept``), and what registers
    have of tensor maps (``carried``). ``plan``: what is known of
    other executions; ``waiting``: the loops that wait; ``lenient``: what is assumed (see there), else that of
    ``before``."""

    def __init__(
        self, launch: Launched, plan: Plan, waiting: Mapping[int, Poll], before: Accessing | None = None,
        layout: int = 0, lenient: frozenset[str] | None = None, compared: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(launch, before, layout, compared)
        self.lenient: frozenset[str] = lenient if lenient is not None else before.lenient if before else frozenset()
        self.trace = Trace(self.clocks)
        self.plan, self.waiting, self.exact = plan, waiting, plan.exact
        self.strong = Strong(self.clocks, self.clusters, self.devices, plan)
        self.memory.open[list(plan.open)] = True
        self.memory.known &= ~self.memory.open
        self.memory.opaque &= ~self.memory.open
        self.leaders = Leaders(self)
        self.mbarriers = Mbarriers(self, self.strong, self.leaders, self.lenient)
        self.kept = Kept(self)
        self.carried = Carried(self)
        self.regions = Regions(self, self.strong)
        self.gathering = Gathering(self, waiting)
        self.watched = np.zeros(len(self.memory.bytes), np.bool_)
        """The bytes of which strong accesses keep a log."""
        self.changed = np.zeros(len(self.memory.bytes), np.uint8)
        """By which orderless operation each byte was changed since it was last written, 0 for none."""
        self.fixed = np.full(len(self.memory.bytes), -1, np.int64)
        """The weak load by which a loop that waits reads each byte in every round, -1 for none."""
        self._rules: dict[tuple[int, ops.Address], ops.Rule] = {}

    def places(
        self, address: ops.Address, space: str | None, size: int, at: int, threads: Numbers, alignment: int = 0
    ) -> Numbers:
        """Where in the arena the ``size`` bytes at an operand are.

        Raises ``Stopped`` where they are in no variable, or their address is no multiple of ``alignment``, or of their
        size."""
        base = self.decided(address.base, ops.U64, at, "the address", threads)
        words = base + np.uint64(address.offset & (1 << 64) - 1)
        window = space
        if isinstance(address.base, ops.Sym):
            window = self.kernel.variables[address.base.name].space
        if (words == np.uint64(TRAP)).any():
            message, refuted = "a trap is executed, which ends the launch", TRAPS if self.exact else None
            raise Stopped("undecided", message, at, int(threads[0]), refuted)
        if window is not None:
            words, valid = self.memory.generic(words, window, threads)
            if (wrong := np.flatnonzero(~valid)).size:
                message = "an address of another CTA, or of none, in shared memory (5.1.7)"
                raise Stopped("undefined", message, at, int(threads[wrong[0]]))
        if (wrong := np.flatnonzero(words % np.uint64(alignment or size) != 0)).size:
            message = f"an address that is no multiple of {alignment or size}"
            raise Stopped("undefined", message, at, int(threads[wrong[0]]))
        numbers, places = self.memory.find(words, size, threads)
        if (wrong := np.flatnonzero(places < 0)).size:
            raise Stopped("outside", "an access outside of all variables", at, int(threads[wrong[0]]), BOUNDS)
        ctas = self.memory.remote(places, self.cta[threads])
        self._check_allowed(self._rule(at, address), numbers, ctas, at, threads)
        for cta in np.unique(ctas[ctas >= 0]).tolist():
            if (self.mode[cta * self.size : (cta + 1) * self.size] == ENDED).all():
                thread, message = int(threads[ctas == cta][0]), "shared memory of a CTA that has ended (5.1.7)"
                raise Stopped("undefined", message, at, thread, other=self.end_of(cta))
        self.did(at, threads, places, places=True)
        return places

    def _rule(self, at: int, address: ops.Address) -> ops.Rule:
        """What holds of an operand of an instruction."""
        if (at, address) not in self._rules:
            touched = ops.touched(self.body[at])
            self._rules[at, address] = next(touch.rule for touch in touched if touch.address == address)
        return self._rules[at, address]

    def _check_allowed(self, rule: ops.Rule, numbers: Numbers, ctas: Numbers, at: int, threads: Numbers) -> None:
        """Raise ``Stopped`` where an operand may not be in one of the instances of variables where it is; ``ctas``: the
        other CTAs whose shared memory that is."""
        for number in np.unique(numbers).tolist():
            item, here = self.memory.instances[number], numbers == number
            space, far = item.variable.space, bool((ctas[here] >= 0).any())
            if rule.writes and space in ("const", "param"):
                why = f"a write of memory in .{space}"
            elif not meets(rule, space) or (far and "shared::cluster" not in rule.spaces):
                whose = " of another CTA" if far else ""
                allowed = " or ".join(f".{name}" for name in rule.spaces)
                why = f"this is .{space} memory{whose}, but has to be in {allowed} ({rule.section})"
            elif rule.away and (ctas[here] < 0).any():
                why = f"shared memory of the CTA itself, which has to be that of another one ({rule.section})"
            else:
                continue
            raise Stopped("undefined", why, at, int(threads[here][0]))

    def overwrite(self, places: Numbers, size: int, at: int) -> None:
        """A copy has written ``size`` bytes at each place. Raises ``Stopped`` where strong accesses find that."""
        span = (places[:, None] + np.arange(size)).ravel()
        self.changed[span] = 0
        self.memory.known[span] &= ~self.memory.open[span]
        self.kept.forget(places, size)
        if self.watched[span].any():
            raise Stopped("unsupported", "a copy to what strong accesses access is not followed yet", at)

    def mbarrier_places(self, op: Any, at: int, threads: Numbers) -> Numbers:
        """Where the mbarriers at the address of ``op`` are."""
        return self.places(op.address, op.space, ops.MBARRIER_BYTES, at, threads)

    def order(self, op: Any, at: int, threads: Numbers) -> None:
        """``fence``, ``membar``."""
        if op.restrict is not None:
            raise Stopped("unsupported", "`.sync_restrict` is not followed in a whole launch yet", at)
        self.tell("fence", None, 0, at, threads)
        self.strong.fence(op, threads.tolist())
