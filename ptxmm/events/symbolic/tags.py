"""The sets that an event belongs to by its instruction alone (PTX ISA 8.4 Table 19, 8.5, 8.6)."""

from __future__ import annotations

from collections.abc import Iterable

from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.scopes import scope_of
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Atomic, Barrier, Fence, Load, ProxyFence, Store

PROXIES = {"generic": "GEN", "surface": "SUR", "texture": "TEX", "constant": "CON"}

TAGS = (
    "R",
    "W",
    "M",
    "IW",
    "F",
    "FSC",
    "FAR",
    "PF",
    "AF",
    "BA",
    "BW",
    "B",
    "STRONG",
    "REL",
    "ACQ",
    "NORET",
    "AMO",
    "GEN",
    "SUR",
    "TEX",
    "CON",
    "RLX",
    "ACQ_REL",
    "SC",
    "WEAK",
    "VOL",
    "MMIO",
    "ALIAS",
    "CTA",
    "CLUSTER",
    "GPU",
    "SYS",
    "HOST",
)


def tags_of(test: Test, event: Event) -> Iterable[str]:
    """The names of the sets that ``event`` is in (8.4, Table 19)."""
    op = event.op
    if test.threads[event.thread].placement.host:
        yield "HOST"
    scope = scope_of(event)
    if scope is not None:
        yield "STRONG"
        yield scope.upper()
    match op:
        case Fence():
            yield from ("F", "GEN", *(("FSC", "SC") if op.sem == "sc" else ("FAR", "ACQ_REL")))
        case ProxyFence():
            yield "F"
            if op.kind == "alias":
                yield from ("AF", "ALIAS")
            else:
                yield from ("PF", PROXIES[op.kind])
        case Barrier():
            yield from (event.kind, "B")
        case Load() | Store() | Atomic():
            yield from (event.kind, "M", PROXIES[op.proxy])
            yield from _order(event, op)


def _order(event: Event, op: Load | Store | Atomic) -> Iterable[str]:
    if isinstance(op, Atomic):
        yield "AMO"
        if event.kind == "R" and not op.returns:
            yield "NORET"
        releases, acquires = op.sem in ("release", "acq_rel"), op.sem in ("acquire", "acq_rel")
        if releases:
            yield "REL"
        if acquires and event.kind == "R":
            yield "ACQ"
        if not (acquires if event.kind == "R" else releases):
            yield "RLX"
        return
    if op.volatile:
        yield "VOL"
    if op.mmio:
        yield "MMIO"
    yield {"weak": "WEAK", "relaxed": "RLX", "acquire": "ACQ", "release": "REL"}[op.sem]
