"""What instructions that access memory need of the launch that executes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ptxmm.ptx import ops
from ptxmm.whole.mbarriers import Mbarriers
from ptxmm.whole.memory import Flags, Numbers
from ptxmm.whole.state import State
from ptxmm.whole.trace import Trace


class Accessing(State, ABC):
    """The threads of a launch, the ``trace`` of their accesses, and their ``mbarriers``; ``watched``: the bytes of
    which strong accesses keep a log. ``lenient``: see there."""

    trace: Trace
    mbarriers: Mbarriers
    watched: Flags
    lenient: frozenset[str]

    @abstractmethod
    def places(
        self, address: ops.Address, space: str | None, size: int, at: int, threads: Numbers, alignment: int = 0
    ) -> Numbers:
        """Where in the arena the ``size`` bytes at an operand are.

        Raises ``Stopped`` where they are in no variable, or their address is no multiple of ``alignment``, or of their
        size."""

    @abstractmethod
    def mbarrier_places(self, op: Any, at: int, threads: Numbers) -> Numbers:
        """Where the mbarriers at the address of ``op`` are."""

    @abstractmethod
    def check_writable(self, places: Numbers, at: int, threads: Numbers) -> None:
        """Nothing writes constants and parameters of kernels."""

    @abstractmethod
    def overwrite(self, places: Numbers, size: int, at: int) -> None:
        """A copy has written ``size`` bytes at each place. Raises ``Stopped`` where strong accesses find that."""
