"""What is looked at when a test has run: what its condition, ``locations`` and filter name."""

from __future__ import annotations

from ptxmm.analysis.observe import observed
from ptxmm.engines.result import Observed
from ptxmm.program.condition import MemoryTerm, RegisterTerm, terms
from ptxmm.program.test import Test


def looked_at(test: Test) -> Observed:
    """What distinguishes two ends of ``test``."""
    what = observed(test)
    more = () if test.filter is None else tuple(terms(test.filter))
    registers = [t for t in more if isinstance(t, RegisterTerm) and t not in what.registers]
    memory = [t for t in more if isinstance(t, MemoryTerm) and t not in what.memory]
    return Observed((*what.registers, *dict.fromkeys(registers)), (*what.memory, *dict.fromkeys(memory)))
