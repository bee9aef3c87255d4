"""Programs by hand that random ones rarely are: exchanges of warps, barriers with reductions, matrices.

The text of each is what follows ``PTX name``; the three (both engines and the reference) must agree on all of it.
"""

from __future__ import annotations

CASES: dict[str, str] = {
    "a value out of thin air through two lanes": """
        { .global .u32 x = 0; .global .u32 y = 0; }
        P0 @ warp 0, cta 0 { ld.relaxed.gpu.global.u32 r1, [x]; shfl.sync.idx.b32 r2, r1, 1, 31, 3; }
        P1 @ warp 0, cta 0 { mov.u32 r1, 0; shfl.sync.idx.b32 r2, r1, 0, 31, 3; st.relaxed.gpu.global.u32 [y], r2; }
        P2 @ cta 1 { ld.relaxed.gpu.global.u32 r1, [y]; st.relaxed.gpu.global.u32 [x], r1; }
        exists (x == 1)""",
    "a vote over reads in a cycle": """
        { .global .u32 x = 0; .global .u32 y = 0; }
        P0 @ warp 0, cta 0 { ld.relaxed.gpu.global.u32 r1, [x]; setp.ne.u32 p1, r1, 0; vote.sync.any.pred p2, p1, 3; }
        P1 @ warp 0, cta 0 { setp.eq.u32 p1, 0, 1; vote.sync.any.pred p2, p1, 3; selp.u32 r2, 1, 0, p2;
          st.relaxed.gpu.global.u32 [y], r2; }
        P2 @ cta 1 { ld.relaxed.gpu.global.u32 r1, [y]; st.relaxed.gpu.global.u32 [x], r1; }
        exists (x == 1)""",
    "an exchange that carries no dependency": """
        { .global .u32 x = 0; .global .u32 y = 0; }
        P0 @ warp 0, cta 0 { ld.relaxed.gpu.global.u32 r1, [x]; shfl.sync.idx.b32 r2, r1, 1, 31, 3; }
        P1 @ warp 0, cta 0 { mov.u32 r1, 1; shfl.sync.idx.b32 r2, r1, 1, 31, 3; st.relaxed.gpu.global.u32 [y], r2; }
        P2 @ cta 1 { ld.relaxed.gpu.global.u32 r1, [y]; st.relaxed.gpu.global.u32 [x], r1; }
        exists (x == 1)""",
    "a lane that was read": """
        { .global .u32 x = 0; }
        P0 @ warp 0, cta 0 { ld.relaxed.gpu.global.u32 r1, [x]; shfl.sync.idx.b32 r2|p1, 5, r1, 31, 3; }
        P1 @ warp 0, cta 0 { ld.relaxed.gpu.global.u32 r1, [x]; shfl.sync.idx.b32 r2|p1, 6, r1, 31, 3; }
        P2 @ cta 1 { st.relaxed.gpu.global.u32 [x], 1; }
        exists (x == 1)""",
    "a clamp that was read": """
        { .global .u32 x = 0; }
        P0 @ warp 0, cta 0 { ld.relaxed.gpu.global.u32 r1, [x]; shfl.sync.down.b32 r2|p1, 5, 1, r1, 3; }
        P1 @ warp 0, cta 0 { shfl.sync.down.b32 r2|p1, 6, 1, 1, 3; }
        P2 @ cta 1 { st.relaxed.gpu.global.u32 [x], 1; }
        exists (x == 1)""",
    "a lane of which the exit depends on a read": """
        { .global .u32 x = 0; }
        P0 @ warp 0, cta 0 { ld.relaxed.gpu.global.u32 r1, [x]; setp.eq.u32 p1, r1, 0; @p1 exit;
          vote.sync.ballot.b32 r2, p1, 3; }
        P1 @ warp 0, cta 0 { setp.eq.u32 p1, 0, 0; vote.sync.ballot.b32 r2, p1, 3; st.relaxed.gpu.global.u32 [x], r2; }
        P2 @ cta 1 { st.relaxed.gpu.global.u32 [x], 1; }
        exists (x == 1)""",
    "an elected lane initialises": """
        { .shared .b64 b @ cta 0; .shared .u32 s @ cta 0 = 0; }
        P0 @ warp 0, cta 0 { elect.sync _|p1, 3; @p1 mbarrier.init.shared::cta.b64 [b], 2; bar.warp.sync 3;
          st.shared.u32 [s], 1; mbarrier.arrive.shared::cta.b64 _, [b]; }
        P1 @ warp 0, cta 0 { elect.sync _|p1, 3; @p1 mbarrier.init.shared::cta.b64 [b], 2; bar.warp.sync 3;
          mbarrier.arrive.shared::cta.b64 _, [b]; mbarrier.try_wait.parity.shared::cta.b64 p2, [b], 0;
          ld.shared.u32 r1, [s]; }
        exists (s == 1)""",
    "exchanges in a chain": """
        { .global .u32 x = 0; }
        P0 @ warp 0, cta 0 { ld.global.u32 r1, [x]; redux.sync.add.u32 r2, r1, 7; match.any.sync.b32 r3, r2, 3;
          redux.sync.xor.b32 r4, r3, 7; st.global.u32 [x], r4; }
        P1 @ warp 0, cta 0 { mov.u32 r1, 1; redux.sync.add.u32 r2, r1, 7; match.any.sync.b32 r3, r1, 3;
          redux.sync.xor.b32 r4, r3, 7; }
        P2 @ warp 0, cta 0 { mov.u32 r1, 2; redux.sync.add.u32 r2, r1, 7; redux.sync.xor.b32 r4, r2, 7; }
        exists (x == 1)""",
    "two of three warps meet": """
        { .global .u32 x = 0; }
        P0 @ cta 0 { setp.eq.u32 p1, 0, 0; barrier.red.popc.u32 r1, 1, 64, p1; }
        P1 @ cta 0 { setp.eq.u32 p1, 0, 1; barrier.red.popc.u32 r1, 1, 64, p1; }
        P2 @ cta 0 { ld.global.u32 r2, [x]; setp.ne.u32 p1, r2, 0; barrier.red.popc.u32 r1, 1, 64, !p1;
          barrier.red.popc.u32 r1, 1, 64, p1; }
        P3 @ cta 1 { st.global.u32 [x], 1; }
        exists (x == 1)""",
    "a reduction over a named warp and another": """
        { .shared .u32 s @ cta 0 = 0; }
        P0 @ warp 0, cta 0 { st.shared.u32 [s], 1; setp.eq.u32 p1, 0, 0; barrier.red.popc.u32 r1, 0, p1; }
        P1 @ warp 0, cta 0 { setp.eq.u32 p1, 0, 0; barrier.red.popc.u32 r1, 0, p1; ld.shared.u32 r2, [s]; }
        P2 @ cta 0 { ld.shared.u32 r2, [s]; setp.ne.u32 p1, r2, 0; barrier.red.popc.u32 r1, 0, p1; }
        exists (s == 1)""",
    "reductions in phases, one under a predicate": """
        { .shared .u32 s @ cta 0 = 0; }
        P0 @ cta 0 { ld.shared.u32 r1, [s]; setp.ne.u32 p1, r1, 0; barrier.red.or.pred p2, 0, p1;
          @p2 barrier.red.and.pred p3, 0, p1; @p3 st.shared.u32 [s], 3; }
        P1 @ cta 0 { st.shared.u32 [s], 1; setp.eq.u32 p1, 0, 1; barrier.red.or.pred p2, 0, p1;
          @p2 barrier.red.and.pred p3, 0, !p1; @p3 st.shared.u32 [s], 4; }
        exists (s == 1)""",
    "a reduction and a plain barrier in one phase": """
        { .shared .u32 s @ cta 0 = 0; }
        P0 @ cta 0 { ld.shared.u32 r1, [s]; setp.ne.u32 p1, r1, 0; @p1 barrier.sync 0;
          @!p1 barrier.red.or.pred p2, 0, p1; }
        P1 @ cta 0 { st.shared.u32 [s], 1; setp.eq.u32 p1, 0, 1; barrier.red.or.pred p2, 0, p1; }
        exists (s == 1)""",
    "a mask with lanes that are not shown": """
        { .global .u32 x = 0; }
        P0 @ warp 0, cta 0 { ld.global.u32 r1, [x]; match.all.sync.b32 r2|p1, r1, 0xffffffff;
          vote.sync.all.pred p2, p1, 0xffffffff; activemask.b32 r3; }
        P1 @ warp 0, cta 0 { ld.global.u32 r1, [x]; match.all.sync.b32 r2|p1, r1, 0xffffffff;
          vote.sync.all.pred p2, !p1, 0xffffffff; activemask.b32 r3; }
        P2 @ cta 0 { st.global.u32 [x], 1; }
        exists (x == 1)""",
    "rows across words and a transposed row": """
        { .shared .align 16 .u32 s[4] @ cta 0 = {1, 2, 3, 4}; }
        P0 @ cta 0 { mov.b32 r1, 0x50006; stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [s], {r1}; bar.sync 0;
          ldmatrix.sync.aligned.m8n8.x4.trans.b16 {r2, _, r3, r4}, [s]; }
        P1 @ cta 0 { bar.sync 0; ld.shared.v4.u32 {r1, r2, r3, r4}, [s]; ld.shared.u16 r5, [s+6]; }
        exists (s[0] == 1)""",
    "rows at addresses in registers": """
        { .shared .align 16 .u32 s[8] @ cta 0 = {1, 2, 3, 4, 5, 6, 7, 8}; .global .u32 x = 0; }
        P0 @ cta 0 { ld.global.u32 r1, [x]; mul.wide.u32 d1, r1, 16; mov.u64 d2, s; add.u64 d3, d1, d2;
          ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r2}, [d3]; st.shared.u32 [s+16], 9; }
        P1 @ cta 1 { st.global.u32 [x], 1; }
        exists (x == 1)""",
    "a product of two matrices, one of them rewritten": """
        { .shared .align 16 .u32 s[4] @ cta 0 = {1, 0, 0, 0}; .shared .align 16 .u32 t[4] @ cta 0 = {2, 0, 0, 0}; }
        P0 @ cta 0 { mov.u64 d1, s; mov.u64 d2, t; st.shared.u32 [t], 5; fence.proxy.async; wgmma.fence.sync.aligned;
          st.shared.u32 [s], 6;
          wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {t1, t2, t3, t4}, d2, d1, 0, 1, 1, 0, 0;
          wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; bar.sync 0; }
        P1 @ cta 0 { bar.sync 0; st.shared.u32 [t], 7; st.shared.u32 [s], 8; }
        exists (s[0] == 1)""",
    "a product after a copy": """
        { .shared .align 16 .u32 s[4] @ cta 0 = {1, 0, 0, 0}; .global .align 16 .u32 g[4] = {2, 0, 0, 0};
          .shared .b64 b @ cta 0 = mbarrier(0, 16); }
        P0 @ cta 0 { cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];
          mbarrier.try_wait.parity.shared::cta.b64 p1, [b], 0; @!p1 exit; mov.u64 d1, s;
          mov.b32 k1, 0; mov.b32 k2, 0; mov.b32 k3, 0; mov.b32 k4, 0; wgmma.fence.sync.aligned;
          wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {t1, t2, t3, t4}, {k1, k2, k3, k4}, d1, 0, 1, 1, 0;
          wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; st.shared.u32 [s], 3; }
        exists (s[0] == 1)""",
    "products in three groups": """
        { .shared .align 16 .u32 s[4] @ cta 0 = {1, 0, 0, 0}; .shared .align 16 .u32 t[4] @ cta 0 = {2, 0, 0, 0}; }
        P0 @ cta 0 { mov.u64 d1, s; mov.u64 d2, t; mov.b32 k1, 0; mov.b32 k2, 0; mov.b32 k3, 0; mov.b32 k4, 0;
          wgmma.fence.sync.aligned;
          wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {t1, t2, t3, t4}, {k1, k2, k3, k4}, d1, 0, 1, 1, 0;
          wgmma.commit_group.sync.aligned;
          wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {t1, t2, t3, t4}, {k1, k2, k3, k4}, d2, 0, 1, 1, 0;
          wgmma.commit_group.sync.aligned; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 2;
          st.shared.u32 [s], 3; st.shared.u32 [t], 4; }
        exists (s[0] == 1)""",
    "a loop until all lanes have seen a flag": """
        { .global .u32 x = 0; }
        P0 @ warp 0, cta 0 { L: ld.relaxed.gpu.global.u32 r1, [x]; setp.ne.u32 p1, r1, 0;
          vote.sync.all.pred p2, p1, 3; @!p2 bra L; }
        P1 @ warp 0, cta 0 { mov.u32 r2, 0; L: setp.ne.u32 p1, r2, 0; vote.sync.all.pred p2, p1, 3; add.u32 r2, r2, 1;
          @!p2 bra L; }
        P2 @ cta 1 { st.relaxed.gpu.global.u32 [x], 1; }
        exists (x == 1)""",
    "lanes that meet in different places of a branch": """
        { .global .u32 x = 0; .global .u32 y = 0; }
        P0 @ warp 0, cta 0 { ld.relaxed.gpu.global.u32 r1, [x]; setp.ne.u32 p1, r1, 0; @p1 bra L;
          shfl.sync.idx.b32 r2, 5, 1, 31, 3; bra M; L: shfl.sync.idx.b32 r2, 6, 1, 31, 3; M:
          st.relaxed.gpu.global.u32 [y], r2; }
        P1 @ warp 0, cta 0 { ld.relaxed.gpu.global.u32 r1, [x]; shfl.sync.idx.b32 r2, r1, 0, 31, 3; }
        P2 @ cta 1 { ld.relaxed.gpu.global.u32 r1, [y]; st.relaxed.gpu.global.u32 [x], r1; }
        exists (x == 1)""",
    "one phase for a part of a warp, then another": """
        { .shared .u32 s @ cta 0 = 0; }
        P0 @ warp 0, cta 0 { st.shared.u32 [s], 1; redux.sync.add.u32 r1, 1, 3; bar.warp.sync 7; }
        P1 @ warp 0, cta 0 { redux.sync.add.u32 r1, 2, 3; redux.sync.add.u32 r2, r1, 6; bar.warp.sync 7;
          ld.shared.u32 r3, [s]; }
        P2 @ warp 0, cta 0 { redux.sync.add.u32 r2, 4, 6; bar.warp.sync 7; st.shared.u32 [s], r2; }
        exists (s == 1)""",
    "a reduction by lanes of which one has left": """
        { .shared .u32 s @ cta 0 = 0; }
        P0 @ warp 0, cta 0 { setp.eq.u32 p1, 0, 0; barrier.red.popc.u32 r1, 0, 64, p1; }
        P1 @ warp 0, cta 0 { ld.shared.u32 r1, [s]; setp.ne.u32 p1, r1, 0; @p1 exit;
          barrier.red.popc.u32 r2, 0, 64, p1; }
        P2 @ cta 0 { st.shared.u32 [s], 1; setp.eq.u32 p1, 0, 1; barrier.red.popc.u32 r1, 0, 64, !p1; }
        exists (s == 1)""",
    "a count of a reduction for another barrier": """
        { .shared .b64 b @ cta 0 = mbarrier(2); }
        P0 @ cta 0 { setp.eq.u32 p1, 0, 0; barrier.red.popc.u32 r1, 0, p1; shr.u32 r2, r1, 5;
          mbarrier.arrive.shared::cta.b64 _, [b], r2; }
        P1 @ cta 0 { setp.eq.u32 p1, 0, 0; barrier.red.popc.u32 r1, 0, p1; barrier.sync 1, r1;
          mbarrier.test_wait.parity.shared::cta.b64 p2, [b], 0; }
        P2 @ cta 0 { setp.eq.u32 p1, 0, 0; barrier.red.popc.u32 r1, 0, !p1; barrier.sync 1, r1; }
        exists (b == 1)""",
    "values of 64 bits and of halves": """
        { .global .u64 x = 0; }
        P0 @ warp 0, cta 0 { ld.relaxed.gpu.global.u64 d1, [x]; match.any.sync.b64 r1, d1, 3;
          match.all.sync.b64 r2|p1, d1, 3; redux.sync.max.s32 r3, -1, 3; redux.sync.or.b32 r4, 4, 3; }
        P1 @ warp 0, cta 0 { mov.u64 d1, 4294967296; match.any.sync.b64 r1, d1, 3; match.all.sync.b64 r2|p1, d1, 3;
          redux.sync.max.s32 r3, -2, 3; redux.sync.or.b32 r4, 1, 3; }
        P2 @ cta 1 { st.relaxed.gpu.global.u64 [x], 4294967296; }
        exists (x == 1)""",
    "rows beside words and halves of words": """
        { .shared .align 16 .u32 s[4] @ cta 0 = {1, 2, 3, 4}; }
        P0 @ cta 0 { ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r1, r2}, [s];
          ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {r3}, [s]; }
        P1 @ cta 0 { st.shared.u64 [s], 4294967301; st.shared.u8 [s+1], 7; st.relaxed.cta.shared.u16 [s+2], 8; }
        exists (s[0] == 1)""",
    "products under a predicate and a fence of their own proxy only": """
        { .shared .align 16 .u32 s[4] @ cta 0 = {1, 0, 0, 0}; .shared .u32 f @ cta 0 = 0; }
        P0 @ cta 0 { mov.b32 k1, 0; mov.b32 k2, 0; mov.b32 k3, 0; mov.b32 k4, 0; mov.b32 t1, 0; mov.u64 d1, s;
          wgmma.fence.sync.aligned; ld.acquire.cta.shared.u32 r1, [f]; setp.ne.u32 p1, r1, 0; fence.proxy.async;
          @p1 wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {t1, t2, t3, t4}, {k1, k2, k3, k4}, d1, 0, 1, 1, 0;
          wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; st.shared.u32 [s], 3; }
        P1 @ cta 0 { st.shared.u32 [s], 2; fence.proxy.async; st.release.cta.shared.u32 [f], 1; }
        exists (s[0] == 1)""",
}
