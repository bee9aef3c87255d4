"""How an explanation names events: the thread, the line and text of the instruction, and what it does."""

from __future__ import annotations

from msgspec import Struct, field

from ptxmm.analysis.execution import location, shown
from ptxmm.analysis.instruction import instruction
from ptxmm.analysis.result import Instruction
from ptxmm.engines.explicit.witness import Rebuilt
from ptxmm.engines.result import Witness
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Op, ProxyFence, TensormapCopyFence, TensormapFence


class EventView(Struct, frozen=True):
    """An event of an execution.

    ``instruction``: what performs it; None for an initial write, and for the start or end of a thread, which ``text``
    tells. ``action``: what it does, such as ``reads x = 1``. ``round``: how often the thread has taken the branches
    back around it before. ``crowded``: its thread has other instructions in the same line.
    """

    instruction: Instruction | None
    text: str
    action: str = ""
    round: int = 0
    crowded: bool = False

    @property
    def place(self) -> str:
        """``P1:12``; ``P1:12 (round 2)`` in a loop."""
        if self.instruction is None:
            return self.text
        return f"{self.instruction.place} (round {self.round + 1})" if self.round else self.instruction.place

    @property
    def label(self) -> str:
        """The place, which is enough to know the instruction by: with its column if there are others in the line."""
        if self.instruction is None or not self.crowded:
            return self.place
        return self.place.replace(self.instruction.place, f"{self.instruction.place}:{self.instruction.column}")

    @property
    def name(self) -> str:
        """The place and the text of the instruction."""
        return self.text if self.instruction is None else f"{self.place}: {self.instruction.text}"

    @property
    def same(self) -> tuple[Instruction | None, str, int]:
        """What the events of one execution of one instruction have in common."""
        return self.instruction, self.text, self.round


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
    witness: Witness
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
            value = self.witness.values[event.id] if event.kind == "R" else self.execution.written[number]
            where, what = location(self.test, *event.cell), shown(self.test, value, event.cell)
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
        body = self.test.threads[thread].body
        line = event.op.source.span.line
        crowded = any(i != index and op.source.span.line == line for i, op in enumerate(body))
        return EventView(instruction(self.test, thread, index), "", action, round_, crowded)


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
