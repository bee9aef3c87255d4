"""The bound of loops: what is left out because of it is told, whatever the other threads do."""

from __future__ import annotations

import pytest

from tests.support import ask, model_named, parse_one

WAITED_FOR = """PTX a thread that spins waits for one that is cut
{
  .global .u32 x = 0;
  .global .u32 n = 0;
  .global .u32 y = 0;
}
 P0 @ cta 0                                 | P1 @ cta 1                        | P2 @ cta 2                       ;
 ld.relaxed.gpu.global.u32 r2, [y]          | L0:                               | st.relaxed.gpu.global.u32 [y], 1 ;
 setp.eq.u32 p1, r2, 0                      | ld.acquire.gpu.global.u32 r0, [x] |                                  ;
 @p1 bra L2                                 | setp.eq.u32 p0, r0, 0             |                                  ;
 L1:                                        | @p0 bra L0                        |                                  ;
 atom.relaxed.gpu.global.add.u32 r1, [n], 1 |                                   |                                  ;
 setp.lt.u32 p0, r1, 6                      |                                   |                                  ;
 @p0 bra L1                                 |                                   |                                  ;
 L2:                                        |                                   |                                  ;
 st.release.gpu.global.u32 [x], 1           |                                   |                                  ;
exists (n == 7)
"""
AT_A_BARRIER = WAITED_FOR.replace("@p0 bra L0                        |", "@p0 bra L0                        |").replace(
    " st.release.gpu.global.u32 [x], 1           |                                   |",
    " st.release.gpu.global.u32 [x], 1           | bar.sync 0                        |",
)
BARRIER_IN_THE_LOOP = WAITED_FOR.replace(
    " @p0 bra L1 ",
    f" {'bar.sync 0':43}| {'':34}| {'':33};\n @p0 bra L1 ",
)
"""The thread that spins comes to no barrier: what its path may be is asked of it all the same."""


@pytest.mark.parametrize("engine", ["solve", "enumerate"])
@pytest.mark.parametrize(
    "text", [WAITED_FOR, AT_A_BARRIER, BARRIER_IN_THE_LOOP], ids=["alone", "barrier", "barrier in the loop"]
)
def test_a_cut_counts_while_others_spin(text: str, engine: str) -> None:
    test, model = parse_one(text), model_named("ptx-8.5")
    short, long = ask(engine, test, model, unroll=3), ask(engine, test, model, unroll=8)
    assert short.bounded and not long.bounded
    assert len(long.states) == len(short.states) + 1  # n == 7


def test_code_behind_a_loop_that_lies_between_its_ends() -> None:
    """Its round does not count what the loop did (``program.control.around``)."""
    text = """PTX behind
{ .global .u32 f = 0; .global .u32 d = 0; }
P0 @ cta 0 { st.global.u32 [d], 1; st.release.gpu.global.u32 [f], 1; }
P1 @ cta 1 {
  L1:
  ld.acquire.gpu.global.u32 r0, [f];
  setp.eq.u32 p0, r0, 0;
  @p0 bra L2;
  ld.global.u32 r1, [d];
  ret;
  L2:
  bra L1;
}
exists (P1:r1 == 0)
"""
    test, model = parse_one(text), model_named("ptx-8.5")
    answers = [ask(engine, test, model) for engine in ("solve", "enumerate")]
    assert answers[0].states == answers[1].states and not answers[0].bounded and len(answers[0].states) == 1


@pytest.mark.parametrize("engine", ["solve", "enumerate"])
@pytest.mark.parametrize(
    "rest",
    ["@p bar.sync 1, 64;", "mov.u32 r1, 0; L: add.u32 r1, r1, 1; setp.lt.and.u32 q, r1, 9, p; @q bra L;"],
    ids=["a barrier", "a loop"],
)
def test_what_comes_after_a_stray_access_counts_for_nothing(rest: str, engine: str) -> None:
    """Only the execution without meaning waits for ever, or goes past the bound."""
    text = f"""PTX stray
{{ .global .u32 x = 0; .global .u32 f = 0; }}
P0 @ cta 0 {{
  ld.relaxed.gpu.global.u32 r0, [f];
  mov.u64 a, x;
  setp.eq.u32 p, r0, 1;
  @p add.u64 a, a, 4096;
  st.global.u32 [a], 1;
  {rest}
}}
P1 @ cta 1 {{ st.relaxed.gpu.global.u32 [f], 1; }}
exists (x == 0)
"""
    answer = ask(engine, parse_one(text), model_named("ptx-8.5"))
    assert answer.undefined is not None and not answer.deadlock and not answer.bounded
