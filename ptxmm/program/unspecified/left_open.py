"""What the language leaves open and the analyses do not try in full, so that a verdict may rest on it."""

from __future__ import annotations

from collections.abc import Collection

from ptxmm.program.test import Test
from ptxmm.program.unspecified.active import untried_masks
from ptxmm.program.unspecified.elected import untried_leaders
from ptxmm.program.unspecified.positions import position_uses


def left_open(test: Test, asked: Collection[int] = ()) -> list[str]:
    """In words, for each such matter of ``test`` where it decides something; then only refutations are certain.

    ``asked``: the threads whose registers are asked for besides those of the condition.
    """
    found = []
    positions, masks, leaders = position_uses(test), untried_masks(test), untried_leaders(test, asked)
    if positions:
        found.append(f"where variables lie is left open, but matters ({'; '.join(positions)}): one layout was tried")
    if masks:
        found.append(f"which lanes are active together is left open ({'; '.join(masks)}): not all ways were tried")
    if leaders:
        found.append(f"which lane is elected is left open ({'; '.join(leaders)}): not all were tried")
    if test.claims is not None:
        found += test.claims.partial
    return found
