"""Flags of loops (``formats.modules.flags``): that control tells what they hold changes no final state."""

from __future__ import annotations

import pytest

from ptxmm.engines.result import Observed
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules import module
from ptxmm.formats.modules.read import parse_ptx
from ptxmm.program.test import Test
from tests.random_flags import module as text
from tests.reference import everything
from tests.support import Answer, ask, model_named
from tests.tally import Tally

UNROLL = 1


def _asked(test: Test, engine: str, unroll: int) -> Answer | None:
    what = Observed((), everything(test).memory)
    try:
        found = ask(engine, test, model_named("ptx-8.5"), unroll=unroll, observed=what, seconds=20)
    except PtxmmError as error:
        assert error.kind == "unsupported", error
        return None
    return found if found.complete else None


def _compare(first: int, many: int, tally: Tally) -> tuple[int, int]:
    compared = better = 0
    for number in range(first, first + many):
        source = text(number)
        (made,) = parse_ptx(source, "k.ptx")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "told_apart", lambda code: code)
            patch.setattr(module, "alone", lambda code: code)
            (plain,) = parse_ptx(source, "k.ptx")
        told = [_asked(made, engine, UNROLL) for engine in ("solve", "enumerate")]
        before = _asked(plain, "solve", UNROLL + 1)
        if before is None or told[0] is None or told[1] is None:
            continue
        assert told[0].comparable() == told[1].comparable(), number
        if not told[0].bounded:
            assert told[0].states >= before.states, number
            assert before.bounded or told[0].states == before.states, number
        if before.bounded:
            assert told[0].bounded or told[0].states == before.states, number
        compared, better = compared + 1, better + (before.bounded and not told[0].bounded)
    tally.notes.append(f"kernels with flags of loops: {compared} compared, {better} bounded before and not now")
    return compared, better


def test_no_final_state_changes(tally: Tally) -> None:
    compared, better = _compare(4, 6, tally)
    assert compared >= 4 and better >= 3


@pytest.mark.slow
@pytest.mark.parametrize("share", range(4))
def test_no_final_state_of_many_changes(share: int, tally: Tally, shift: int) -> None:
    compared, better = _compare(1000 + 100 * share + shift, 100, tally)
    assert compared >= 50 and better >= 8
