"""A reduction of a whole block: values of 256 threads through shuffles and shared memory, which no race depends on."""

from __future__ import annotations

import pytest

import ptxmm.formats
from ptxmm.analysis.races import races
from tests.support import model_named

SUM = "  shfl.sync.down.b32 %r3, %r2, {}, 31, 0xffffffff;\n  add.s32 %r2, %r2, %r3;\n"
KERNEL = """// ptxmm: block = 256
// ptxmm: args = ["x", "out"]
// ptxmm: [objects]
// ptxmm: x = {{ type = "s32", count = 256 }}
// ptxmm: out = "s32"
// ptxmm: [check]
// ptxmm: races = "none"
.version 8.0
.target sm_90
.address_size 64
.shared .align 4 .b32 sums[8];
.visible .entry sum(.param .u64 p0, .param .u64 p1)
{{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [p0];
  ld.param.u64 %rd2, [p1];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd3, %rd1, %rd3;
  ld.global.s32 %r2, [%rd3];
{within}  and.b32 %r4, %r1, 31;
  shr.u32 %r5, %r1, 3;
  mov.u32 %r6, sums;
  add.u32 %r5, %r6, %r5;
  setp.ne.u32 %p, %r4, 0;
  @%p bra STORED;
  st.shared.s32 [%r5], %r2;
STORED:
  {barrier}
  setp.gt.u32 %p, %r1, 31;
  @%p bra DONE;
  and.b32 %r4, %r1, 7;
  shl.b32 %r4, %r4, 2;
  add.u32 %r4, %r6, %r4;
  ld.shared.s32 %r2, [%r4];
{among}  setp.ne.u32 %p, %r1, 0;
  @%p bra DONE;
  st.global.s32 [%rd2], %r2;
DONE:
  ret;
}}
"""


@pytest.mark.parametrize("barrier,free", [("bar.sync 0;", True), ("", False)])
def test_races(barrier: str, free: bool) -> None:
    within = "".join(SUM.format(step) for step in (16, 8, 4, 2, 1))
    among = "".join(SUM.format(step) for step in (4, 2, 1))
    (test,) = ptxmm.formats.parse(KERNEL.format(within=within, among=among, barrier=barrier), "sum.ptx")
    found = races(test, model_named("ptx-8.5"), most=1)
    assert (len(test.threads), found.race_free, found.status) == (256, free, "complete")
