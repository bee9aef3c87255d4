"""What tells instructions and events apart: their places in the test, which compare and sort as plain tuples do."""

from __future__ import annotations

from typing import NamedTuple

TENSORMAP = 1 << 16
"""The operand of an event that reads the tensor map of a copy: after all others."""


class Site(NamedTuple):
    """An instruction: the index of its thread, and its own in the body."""

    thread: int
    instruction: int


class Switch(NamedTuple):
    """A switch of the instruction at a site, by its number. Where instructions at several sites change together, it is
    named after one of them."""

    thread: int
    instruction: int
    number: int

    @property
    def site(self) -> Site:
        """The instruction that it is named after."""
        return Site(self.thread, self.instruction)


class Instance(NamedTuple):
    """One execution of an instruction. ``round``: how often the thread has taken the backward branches around it
    (``control.around``) before."""

    thread: int
    instruction: int
    round: int


class EventId(NamedTuple):
    """An event; with its kind it is unique. The read and the write of one atomic access share the id.

    ``instruction``: the index in the body of the thread; the start of a thread is at -1, its end at the length of its
    body. ``round``: as in ``Instance``.
    ``operand`` and ``offset`` tell the events of one instance apart: the offset in bytes from the address of an
    operand. Operand 0 is the address of an access, or the source of an asynchronous copy, 1 + k its destination k
    (multicast) and ``TENSORMAP`` its tensor map; location k of a multimem address is operand k, and so is the
    completion at destination k. Of the implicit proxy fences of a copy the one after its reads is 0, that after its
    writes 1. All else is 0.
    """

    thread: int
    instruction: int
    round: int = 0
    operand: int = 0
    offset: int = 0

    @property
    def site(self) -> Site:
        """The instruction."""
        return Site(self.thread, self.instruction)

    @property
    def instance(self) -> Instance:
        """The execution of the instruction."""
        return Instance(self.thread, self.instruction, self.round)

    def at(self, offset: int, operand: int = 0) -> EventId:
        """Another event of the same instance."""
        return EventId(self.thread, self.instruction, self.round, operand, offset)
