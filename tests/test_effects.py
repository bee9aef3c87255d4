"""Every operation has an effect on either side, and each effect takes the operations that it stands for; what it
accesses is said of each of its addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest

from ptxmm.events.explicit import interpreter
from ptxmm.events.explicit.values.compute import Assigning
from ptxmm.events.symbolic import instructions
from ptxmm.events.symbolic.values.compute import Eventless
from ptxmm.formats import read
from ptxmm.program.symbols import addresses
from ptxmm.ptx import ops
from tests.support import ROOT

Lookup = Callable[[type], Callable[..., Any]]
FENCES = (*get_args(ops.FenceOp), ops.WgmmaFence, ops.GridControl)
SIDES = {
    "explicit": (interpreter.effect, get_args(Assigning)),
    "symbolic": (instructions.effect, (*get_args(Eventless), *FENCES)),
}
"""Of each side what finds an effect, and the operations that it does not find one for: these are matched."""


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", get_args(ops.Straight))
def test_each_operation_has_an_effect(side: str, kind: type) -> None:
    find, matched = SIDES[side]
    if kind is ops.Opaque and side == "explicit":
        assert find(kind) is not None  # of the free ones, which are events; the others are assigned
        return
    if kind in matched:
        with pytest.raises(KeyError):
            find(kind)
        return
    hint = get_type_hints(find(kind))["op"]
    assert kind in (get_args(hint) or (hint,))


def test_what_is_accessed_is_said_of_each_address() -> None:
    tests = [test for path in sorted((ROOT / "litmus").rglob("*.litmus")) for test in read(path)]
    found = [op for test in tests for thread in test.threads for op in thread.body]
    wrong = [op for op in found if {touch.address for touch in ops.touched(op)} != set(addresses(op))]
    assert wrong == []
    accessing = set(get_args(ops.Op)) - set(get_args(ops.Addressless)) - set(get_args(ops.WholeOnly))
    assert accessing - {type(op) for op in found} == {ops.StoreMatrix}  # tests/test_ptx_rows.py has one
