"""Loops of compare-and-swap that try again (``program.shared.retries``): against the reference, which executes every
attempt."""

from __future__ import annotations

import pytest

from ptxmm.analysis.observe import observed
from ptxmm.engines.result import Observed
from ptxmm.program.shared.control import control_flow
from ptxmm.program.shared.polls import without_repeats
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Branch
from tests import random_retries, reference
from tests.reference import everything, restrict
from tests.reference_dependencies import TooSlow
from tests.reference_flow import Flow
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

FRAME = """PTX t
{{
  .global .u32 f = 0;
  .global .u32 d = 0;
}}
P0 @ cta 0 {{
  {0}
}}
P1 @ cta 1 {{
  atom.relaxed.gpu.add.u32 old, [f], 1;
}}
exists (f == 1)
"""
ADD = """ld.relaxed.gpu.u32 r1, [f];
  L: add.u32 n, r1, 1;
  atom.relaxed.gpu.cas.b32 r2, [f], r1, n;
  setp.ne.u32 p, r2, r1;
  mov.u32 r1, r2;
  @p bra L;
  ld.u32 out, [d];"""
BRANCH = 5


def again(test: Test) -> int:
    """Where the first thread goes if its attempt fails."""
    op = without_repeats(test).threads[0].body[BRANCH]
    assert isinstance(op, Branch)
    return op.target


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("ld.relaxed.gpu", "ld.acquire.gpu"),  # as strong as the attempts, which acquire as well
        ("p, r2, r1", "p, r1, r2"),
    ],
)
def test_back_to_the_load(old: str, new: str) -> None:
    text = ADD.replace(old, new) if old else ADD
    if "ld.acquire" in text:
        text = text.replace("atom.relaxed", "atom.acquire")
    test = parse_one(FRAME.format(text))
    assert again(test) == 0
    flow = control_flow(without_repeats(test).threads[0])
    assert flow.spin == {BRANCH: 0}
    found = ask("solve", without_repeats(test), model_named("ptx-8.5"), unroll=0)
    assert not found.bounded and found.states


@pytest.mark.parametrize("load", ["ld.u32", "ld.relaxed.gpu.u32"])
def test_a_weaker_load_is_not_read_again(load: str) -> None:
    text = ADD.replace("ld.relaxed.gpu.u32 r1", f"{load} r1").replace("atom.relaxed", "atom.acquire")
    assert again(parse_one(FRAME.format(text))) == BRANCH


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ld.relaxed.gpu.u32 r1", "ld.acquire.gpu.u32 r1"),  # stronger than the attempts
        ("ld.relaxed.gpu.u32 r1", "ld.relaxed.sys.u32 r1"),
        ("ld.relaxed.gpu.u32 r1, [f]", "ld.relaxed.gpu.u32 r1, [d]"),
        ("cas.b32 r2, [f]", "cas.b32 r2, [d]"),
        ("mov.u32 r1, r2", "mov.u32 r1, 7"),  # what it compares next is not what it has found
        ("mov.u32 r1, r2;", "add.u32 r1, r2, 0; add.u32 c, c, 1; st.u32 [d], c;"),
        ("setp.ne.u32 p, r2, r1", "setp.ne.u32 p, r2, 3"),
        ("setp.ne.u32 p, r2, r1", "setp.gt.u32 p, r2, r1"),
        ("r1, n;", "5, n;"),
        ("L: add.u32 n, r1, 1", "fence.sc.gpu; L: add.u32 n, r1, 1"),
    ],
)
def test_other_loops_stay(old: str, new: str) -> None:
    text = ADD.replace(old, new)
    assert text != ADD
    test = parse_one(FRAME.format(text))
    assert without_repeats(test) is test


@pytest.mark.parametrize(
    ("first", "last", "least"), [(0, 25, 5), pytest.param(25, 500, 120, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_no_final_state_changes(
    first: int, last: int, least: int, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.setattr(Flow, "spins", lambda self, pc: None)
    model, compared, raced, stuck = model_named("ptx-8.5"), 0, 0, 0
    for seed in range(first, last):
        test = parse_one(random_retries.program(seed))
        made = without_repeats(test)
        if made is test:
            continue
        what = Observed(observed(test).registers, everything(test).memory)
        try:
            executions = list(reference.executions(test, "ptx-8.5", unroll=3, seconds=2))
        except TooSlow:
            continue
        found = ask("solve", made, model, unroll=3, observed=what)
        assert found.states == {restrict(state, what) for state, _ in executions}, seed
        assert found.flags == frozenset().union(*(flags for _, flags in executions)), seed
        compared, raced = compared + 1, raced + bool(found.flags)
        stuck += any(isinstance(op, Branch) and op.target == pc for pc, op in enumerate(made.threads[0].body))
    tally.notes.append(f"loops of cas in the reference: {compared}, {raced} with races, {stuck} with a weaker load")
    assert compared >= least and raced >= least // 4 and stuck >= least // 4
