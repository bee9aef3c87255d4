"""Memory that nobody changes (``formats.modules.unchanged``): what is known of it changes no final state."""

from __future__ import annotations

import pytest

from ptxmm.analysis.observe import observed
from ptxmm.engines.result import Observed
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules import module
from ptxmm.formats.modules.read import parse_ptx
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Load
from tests.random_pointers import module as text
from tests.reference import everything
from tests.support import ask, model_named
from tests.tally import Tally


def _loads(test: Test) -> int:
    return sum(isinstance(op, Load) for thread in test.threads for op in thread.body)


def _both(source: str) -> tuple[Test, Test]:
    """A module as it is specialised, and without anything known of memory."""
    (made,) = parse_ptx(source, "k.ptx")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "asked", lambda *_: False)
        (plain,) = parse_ptx(source, "k.ptx")
    return made, plain


def _compare(first: int, many: int, tally: Tally) -> tuple[int, int]:
    compared = fewer = 0
    for number in range(first, first + many):
        made, plain = _both(text(number))
        answers = []
        for test in (made, plain):
            what = Observed((), everything(test).memory)
            for engine in ("solve", "enumerate"):
                try:
                    answers.append(ask(engine, test, model_named("ptx-8.5"), observed=what))
                except PtxmmError as error:
                    assert error.kind in ("unsupported", "type"), (number, error)
        if len(answers) == 4 and all(answer.complete for answer in answers):
            assert len({answer.comparable() for answer in answers}) == 1, number
            compared, fewer = compared + 1, fewer + (_loads(made) < _loads(plain))
    tally.notes.append(f"kernels with pointers in memory: {compared} compared, {fewer} with reads that are known")
    return compared, fewer


def test_no_final_state_changes(tally: Tally) -> None:
    compared, fewer = _compare(0, 25, tally)
    assert compared >= 15 and fewer >= 5


@pytest.mark.slow
@pytest.mark.parametrize("share", range(4))
def test_no_final_state_of_many_changes(share: int, tally: Tally, shift: int) -> None:
    compared, fewer = _compare(1000 + 100 * share + shift, 100, tally)
    assert compared >= 60 and fewer >= 20


HEAD = """.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = 2
// ptxmm: args = ["tab"]
// ptxmm: [objects]
// ptxmm: tab = { type = "u64", count = 4, init = ["x", 7, "tab+8", 0] }
// ptxmm: x = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (x == 7)"
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [p]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra OTHER;
  ld.u64 %d2, [%d1]; ld.u64 %d3, [%d1+8]; cvt.u32.u64 %r2, %d3; setp.eq.u32 %p2, %r2, 7;
  @%p2 st.u32 [%d2], 7; @!%p2 st.u32 [%d2], 1;
  ret;
OTHER:
  """


@pytest.mark.parametrize(
    ("other", "left"),
    [
        ("", 0),
        ("st.u64 [%d1+24], 3;", 0),
        ("st.u64 [%d1+8], 3;", 1),
        ("st.u32 [%d1+12], 3;", 1),  # half of it
        ("ld.u64 %d2, [%d1+16]; st.u64 [%d2], 3;", 1),
        (
            "ld.u64 %d2, [%d1+24]; shl.b64 %d2, %d2, 3; add.u64 %d2, %d2, %d1; st.u64 [%d2], 3;",
            2,
        ),  # a pointer that is written: where P0 writes is open
        ("ld.volatile.u32 %r2, [%d1+24]; mad.wide.u32 %d2, %r2, 8, %d1; st.u64 [%d2+8], 3;", 1),
        ("ld.u32 %r2, [%d1+24]; setp.eq.u32 %p3, %r2, 0; @!%p3 st.u64 [%d1+8], 3;", 0),
        ("atom.add.u64 %d2, [%d1+8], 0;", 1),
    ],
)
def test_what_is_written_is_read(other: str, left: int) -> None:
    """How many loads are left of the first thread."""
    made, plain = _both(f"{HEAD}{other}\n  ret;\n}}\n")
    assert sum(isinstance(op, Load) for op in plain.threads[0].body) == 2
    assert sum(isinstance(op, Load) for op in made.threads[0].body) == left
    states = [ask("solve", test, model_named("ptx-8.5"), observed=observed(plain)).states for test in (made, plain)]
    assert states[0] == states[1]
