"""What almost orders accesses of tcgen05: the fences and waits of their own (PTX ISA 9.0, 9.7.16.6)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ptxmm.ptx import ops
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.order.history import Event

Row = tuple[int, int, int, int]
"""An access: its instruction, its agent with its clock, and the row of the trace."""


def apart(machine: Machine, events: Iterable[Event], a: Row, b: Row) -> str | None:
    """Why an access ``b`` that is made after ``a`` is not ordered behind it, if a wait or a fence of its own lacks;
    ``events``: of the history of ``machine``."""
    body, (at, agent, clock, row) = machine.body, a
    kind = {ops.TensorLoad: "ld", ops.TensorStore: "st"}.get(type(body[at]))
    thread, line = machine.copies.thread(agent), body[b[0]].source.span.line
    if kind is not None:
        what = "group", f"tcgen05.{kind}"
        waits = (e for e in events if e.kind == "pass" and e.what == what and row < e.moment <= b[3])
        if not any(thread in event.agents for event in waits):
            return f"no `tcgen05.wait::{kind}` by its thread comes before line {line}"
    issued = machine.tensorcore.views.get(b[3])
    if issued is None:
        return None
    issuer, view = (np.array([number]) for number in issued)
    if machine.clocks.after(view, issuer, np.array([agent]), np.array([clock]))[0]:
        fence = "`tcgen05.fence::after_thread_sync`"
        return f"no {fence} of its thread is between what orders them and line {line} (9.7.16.6.3 of PTX ISA 9.0)"
    return None
