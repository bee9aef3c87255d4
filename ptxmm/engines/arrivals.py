"""Whether executions that differ only in the order of the operations on an mbarrier have to be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxmm.program.shared.mbarriers import counted
from ptxmm.program.test import Test

if TYPE_CHECKING:
    from ptxmm.cat import Model


def in_order(test: Test, model: Model) -> bool:
    """Whether ``model`` asks for that order (``mbnext``), or for what came before an arrival whose state ``test``
    computes with (``mbcount``)."""
    names = model.names()
    return "mbnext" in names or ("mbcount" in names and counted(test.threads))
