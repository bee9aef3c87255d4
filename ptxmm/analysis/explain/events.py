"""How an explanation names events: the thread, the line and text of the instruction, and what it does."""

from __future__ import annotations

from msgspec import Struct, field

from ptxmm.analysis.execution import location, shown_at
from ptxmm.analysis.instruction import crowded, instruction
from ptxmm.analysis.result import EventView
from ptxmm.engines.explicit.witness import Rebuilt
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Op, ProxyFence, TensormapCopyFence, TensormapFence

MOST_BYTES = 16
"""Values of more bytes than any register has are not shown: they are those of tensor maps."""

_ACTIONS = {
    "BA": "arrives",
    "BW": "goes on",
    "CA": "arrives",
    "CW": "goes on",
    "MBI": "initialises",
    "MBA": "arrives",
    "MBW": "has seen the phase complete",
    "MBP": "has not seen the phase complete",
    "MBV": "invalidates",
    "ISS": "starts",
    "AW": "goes on",
    "PF": "its own proxy fence",
}


class Views(Struct):
    """The events of one execution of ``test`` by number, each made once."""

    test: Test
    execution: Rebuilt
    _known: dict[int, EventView] = field(default_factory=dict)

    def event(self, number: int) -> EventView:
        """The event with this number in the layout."""
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self._view(number)
        return found

    def _view(self, number: int) -> EventView:
        layout = self.execution.layout
        event = layout.events[number]
        action = _ACTIONS.get(event.kind, "")
        if event.kind in ("R", "W") and event.cell is not None:
            where, what = location(self.test, *event.cell), shown_at(self.test, self.execution, number)
            if number >= layout.initial_first:
                return EventView(None, f"initial value of {where}", f"is {what}")
            action = f"{'reads' if event.kind == 'R' else 'writes'} {where}"
            if event.cell[2] <= MOST_BYTES:
                action += f" = {what}"
        if event.kind == "F":
            action = _fence(event.op)
        if event.asynchronous and action:
            action += ", asynchronously"
        thread, index, round_ = event.id.instance
        if event.op is None:
            name = self.test.threads[thread].name
            return EventView(None, f"the {'start' if index < 0 else 'end'} of {name}")
        crowd = crowded(self.test, thread, index)
        return EventView(instruction(self.test, thread, index), "", action, round_, crowd)


def _fence(op: Op | None) -> str:
    """What kind of proxy fence this is, with the section of PTX ISA 8.5; nothing for a memory fence."""
    match op:
        case ProxyFence(kind="alias"):
            return "alias proxy fence, 8.6"
        case ProxyFence():
            return "proxy fence, 8.6"
        case TensormapFence() | TensormapCopyFence():
            return "tensormap proxy fence, 9.7.14.4"
    return ""
