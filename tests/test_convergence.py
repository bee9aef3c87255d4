"""Aligned instructions of kernels: all threads of a warp execute the same one (PTX ISA 9.7.14.1, 9.7.16.7).

The same is one place of the code of the kernel: two barriers on one line are two, and so are two calls of a function.
"""

from __future__ import annotations

import textwrap

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.progress import progress
from ptxmm.analysis.races import races
from ptxmm.program.test import Test
from tests.kernels import launched
from tests.support import ENGINES, ask, model_named, parse_one

OBJECTS, CHECK = {"out": '"u32"'}, 'condition = "forall (out == 0)"'
START = ".reg .pred p, q; .reg .u32 r; mov.u32 r, %tid.x;"


def kernel(body: str) -> Test:
    """A kernel that two threads of one warp run; ``p`` holds in the first one."""
    functions = ".func meet() { bar.sync 0; ret; }\n.func meet_freely() { barrier.sync 0; ret; }"
    (test,) = launched(f"{START} setp.eq.u32 p, r, 0;\n{body}", OBJECTS, CHECK, launch="block = 2", before=functions)
    return test


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize(
    ("body", "defined"),
    [
        ("bar.sync 0;", True),
        ("call meet; call meet;", True),
        ("@p bra A; A: bar.sync 0;", True),
        # a barrier in each arm of a branch that goes both ways
        ("@p bra A; bar.sync 0; bra E; A: bar.sync 0; E:", False),
        ("@p bra A; call meet; bra E; A: call meet; E:", False),
        ("@p bra A; barrier.sync 0; bra E; A: barrier.sync 0; E:", True),
        ("@p bra A; call meet_freely; bra E; A: call meet_freely; E:", True),
        # both threads execute two, in another order
        ("@p bra A; bar.sync 0; A: bar.sync 0; @!p bra E; bar.sync 0; E:", False),
        # what is no barrier
        ("@p bra A; A: wgmma.fence.sync.aligned;", True),
        ("@p wgmma.fence.sync.aligned;", False),
        ("@p bra A; wgmma.fence.sync.aligned; bra E; A: wgmma.fence.sync.aligned; E:", False),
        ("@p bra E; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; E:", False),
        ("wgmma.commit_group.sync.aligned; @p exit; wgmma.wait_group.sync.aligned 0;", False),
        ("setmaxnreg.inc.sync.aligned.u32 64;", True),
        ("@p setmaxnreg.inc.sync.aligned.u32 64;", False),
        ("@!p bra A; setmaxnreg.dec.sync.aligned.u32 24; A:", False),
        ("wgmma.fence.sync.aligned; bar.sync 0; wgmma.fence.sync.aligned;", True),
    ],
)
def test_the_same_barrier(body: str, defined: bool, engine: str) -> None:
    """Whether the program has a meaning does not depend on where its lines end."""
    result = check(kernel(body), model_named("ptx-8.5"), engine=engine)
    assert (result.status == "undefined") is not defined, result.notes


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize(
    ("threads", "body", "defined"),
    [
        # p holds in the first two warps of the first warpgroup, q in all of it
        ("0,32,64,96", "wgmma.fence.sync.aligned;", True),
        ("0,64", "@p wgmma.fence.sync.aligned;", False),
        ("0,32", "@p wgmma.fence.sync.aligned;", True),
        ("0,128", "@q wgmma.fence.sync.aligned;", True),
        ("0,64", "@p bra A; wgmma.fence.sync.aligned; bra E; A: wgmma.fence.sync.aligned; E:", False),
        ("0,128", "@q bra A; setmaxnreg.dec.sync.aligned.u32 24; bra E; A: setmaxnreg.inc.sync.aligned.u32 240; E:",
         True),
        ("0,64", "@p bra A; setmaxnreg.dec.sync.aligned.u32 24; bra E; A: setmaxnreg.inc.sync.aligned.u32 240; E:",
         False),
        ("0,96", "wgmma.commit_group.sync.aligned; @p exit; wgmma.wait_group.sync.aligned 0;", False),
        ("0,1,96", "bar.sync 0; wgmma.commit_group.sync.aligned; bar.sync 0; wgmma.wait_group.sync.aligned 0;", True),
        # barriers are those of a warp each
        ("0,64", "@p bra A; bar.sync 1, 64; bra E; A: bar.sync 2, 64; E:", True),
        ("0,64", "wgmma.fence.sync.aligned; @p bra A; barrier.cluster.arrive.aligned; A: wgmma.fence.sync.aligned;",
         True),
    ],
)  # fmt: skip
def test_the_same_instruction_of_a_warpgroup(threads: str, body: str, defined: bool, engine: str) -> None:
    """The four warps from a multiple of 4 on execute wgmma and setmaxnreg together (9.7.16.1, 9.7.16.7, 9.7.19.5)."""
    text = f"{START} setp.lt.u32 p, r, 64; setp.lt.u32 q, r, 128;\n{body}"
    launch = f'block = 256\n// ptxmm: threads = "thread {threads}"'
    (test,) = launched(text, OBJECTS, CHECK, launch=launch, target="sm_90a")
    result = check(test, model_named("ptx-8.5"), engine=engine)
    assert (result.status == "undefined") is not defined, result.notes
    assert defined or any("a warpgroup" in note.text for note in result.notes)


SPINS = """PTX spins
{ .shared .u32 s @ cta 0 = 0; .shared .u32 f @ cta 0 = 0; }
P0 @ cta 0, warp 0 { st.shared.u32 [s], 1; wgmma.fence.sync.aligned; }
P1 @ cta 0, warp 0 { L: ld.acquire.cta.shared.u32 r0, [f]; setp.eq.u32 p, r0, 0; @p bra L; wgmma.fence.sync.aligned; }
P2 @ cta 0, warp 1 { st.release.cta.shared.u32 [f], 1; }
exists (s == 1)
"""


def test_a_thread_that_spins_has_not_left_its_warp() -> None:
    """A round more of a loop is looked at for races, and none of it takes the meaning from the program."""
    test, model = parse_one(SPINS), model_named("ptx-8.5")
    result = races(test, model)
    assert (result.status, result.race_free) == ("complete", True)
    assert progress(test, model, engine="both").verdict == "terminates"


def test_what_comes_after_an_aligned_arrival_is_no_reason_for_its_misuse() -> None:
    """P1 can read 1 only if P0 goes on past an arrival that P1 does not execute with it."""
    text = """
        PTX t
        { .global .u32 y = 0; }
        P0@cta 0, warp 0 {
          ld.relaxed.cta.global.u32 r2, [y];
          setp.eq.u32 p1, r2, 1;
          vote.sync.any.pred p1, p1, 3;
          @p1 barrier.cluster.arrive.aligned;
          st.relaxed.cta.global.u32 [y], 1;
          @p1 barrier.cluster.wait.aligned;
        }
        P1@cta 0, warp 0 {
          ld.relaxed.cta.global.u32 r2, [y];
          setp.eq.u32 p1, r2, 1;
          vote.sync.any.pred p1, p1, 3;
          @p1 bar.sync 0;
          @p1 barrier.cluster.wait.aligned;
        }
        exists (P1:r2 == 1)
    """
    answers = [ask(engine, parse_one(textwrap.dedent(text).strip()), model_named("ptx-8.5")) for engine in ENGINES]
    assert answers[0].undefined == answers[1].undefined
