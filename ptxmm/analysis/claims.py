"""What is claimed of a launched kernel: its condition, freedom from data races, robustness."""

from __future__ import annotations

from msgspec.structs import replace

from ptxmm.analysis.expectation import Expectation
from ptxmm.engines.result import Limits
from ptxmm.program.test import Test

RACES, ROBUST = "no data races", "robust"
"""The claims besides the condition, as results name them."""

HOLDS = Expectation("holds", False)
"""What is expected of the condition of a kernel: it holds, and no execution waits for ever at a barrier."""


def claimed(test: Test) -> tuple[str | None, ...]:
    """What has to be decided of ``test``: None stands for its condition (its final states, if there is none)."""
    claims = test.claims
    if claims is None:
        return (None,)
    found = [name for name, wanted in ((RACES, claims.races), (ROBUST, claims.robust)) if wanted]
    return tuple(found) if found and test.condition is None else (None, *found)


def limits_of(test: Test, limits: Limits) -> Limits:
    """``limits`` with the bound of loops that the launch states."""
    unroll = None if test.claims is None else test.claims.unroll
    return limits if unroll is None else replace(limits, unroll=unroll)
