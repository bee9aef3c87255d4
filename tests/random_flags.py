"""Random kernels of two CTAs of one thread that go round a loop until a flag, which only ever gets constants, says that
they are done: with what they try in each round, work that is done once, votes, and what they have done before."""

from __future__ import annotations

import random

_HEAD = """.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = 2
// ptxmm: args = ["lock", "x"]
// ptxmm: [objects]
// ptxmm: lock = "u32"
// ptxmm: x = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "exists (x[0] == 2)"
.visible .entry k(.param .u64 pl, .param .u64 px)
{
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [pl]; ld.param.u64 %d2, [px];
  mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r9, 0; activemask.b32 %r2;
"""


def module(number: int) -> str:
    """The module with this number."""
    rng = random.Random(number)
    first = rng.choice((0, 0, 1))
    work = rng.sample(
        ["ld.u32 %r5, [%d2];", "add.u32 %r5, %r9, 1; st.u32 [%d2], %r5;", "st.u32 [%d2+4], %r9;",
         "fence.acq_rel.gpu;", "atom.add.u32 %r6, [%d2], 1;"], rng.choice((1, 2)),
    )  # fmt: skip
    attempt = rng.choice(
        ("atom.exch.b32 %r4, [%d1], 1;", "atom.cas.b32 %r4, [%d1], 0, 1;", "ld.relaxed.gpu.u32 %r4, [%d1];",
         "atom.acquire.gpu.exch.b32 %r4, [%d1], 1;", "atom.add.u32 %r4, [%d1], 1;")
    )  # fmt: skip
    release = rng.choice(("st.relaxed.gpu.u32 [%d1], 0;", "atom.release.gpu.exch.b32 %r7, [%d1], 0;", ""))
    failed = rng.choice(("", f"mov.u32 %r3, {first};", "mov.u32 %r3, 2;", "add.u32 %r9, %r9, 1;"))
    skip = rng.random() < 0.4
    rows = [f"mov.u32 %r3, {first};", "LOOP:"]
    if skip:
        rows += [f"setp.ne.u32 %p2, %r3, {first};", "@%p2 bra NEXT;"]
    rows += [attempt, "setp.ne.u32 %p3, %r4, 0;", "@%p3 bra FAILED;", *work, release, "mov.u32 %r3, 5;", "bra NEXT;"]
    rows += ["FAILED:", failed, "NEXT:", f"setp.ne.u32 %p4, %r3, {first};"]
    if rng.random() < 0.5:
        rows += ["vote.sync.ballot.b32 %r8, %p4, %r2;", "setp.ne.u32 %p5, %r8, %r2;", "@%p5 bra LOOP;"]
    else:
        rows += ["@!%p4 bra LOOP;"]
    rows += [rng.choice(("st.u32 [%d2+4], %r3;", "", "ld.u32 %r10, [%d2+4];"))]
    return _HEAD + "".join(f"  {row}\n" for row in rows if row) + "  ret;\n}\n"
