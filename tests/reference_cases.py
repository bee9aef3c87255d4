"""Programs of what random ones seldom or never do, for the agreement of the engines with the reference."""

CASES = {
    "vectors through an alias": """
        { .global .align 8 .u32 x[2] = {0,0}; y @ generic aliases x; }
        P0 @ cta 0 { st.global.v2.u32 [x], {1,2}; fence.proxy.alias; ld.global.u32 r0, [y+4]; ld.global.v2.u32 {r1,r2},
          [y]; }
        P1 @ cta 0 { st.relaxed.gpu.global.u32 [y], 3; ld.relaxed.gpu.global.u32 r0, [x]; }
        exists (x[0] == 1)""",
    "an mbarrier chosen by a read": """
        { .shared .b64 b[2] @ cta 0 = {mbarrier(1), mbarrier(1)}; .global .u32 x = 0; }
        P0 @ cta 0 { ld.global.u32 r0, [x]; cvt.u64.u32 d, r0; shl.b64 d, d, 3; mov.u64 a, b; add.u64 a, a, d;
          mbarrier.arrive.shared::cta.b64 _, [a]; }
        P1 @ cta 0 { st.global.u32 [x], 1; mbarrier.try_wait.parity.shared::cta.b64 p, [b+8], 0;
          mbarrier.try_wait.parity.shared::cta.b64 q, [b], 0; }
        exists (b[0] == 1)""",
    "a bulk copy on a new mbarrier": """
        { .shared .align 16 .u64 s[2] @ cta 0 = {0, 0}; .global .align 16 .u64 g[2] = {1, 2}; .shared .b64 b @ cta 0 =
          0; }
        P0 @ cta 0 { mbarrier.init.shared::cta.b64 [b], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16;
          cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];
          mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; ld.shared.u64 r0, [s]; }
        exists (b == 1)""",
    "a copy read in other sizes": """
        { .shared .align 16 .u32 s[4] @ cta 0 = {1, 2, 3, 4}; .global .align 16 .u32 g[4] = {0, 0, 0, 0}; }
        P0 @ cta 0 { cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16; cp.async.bulk.commit_group;
          cp.async.bulk.wait_group 0; ld.global.u64 r0, [g+8]; ld.global.u16 r1, [g]; st.global.u8 [g+1], 7; }
        exists (g[0] == 1)""",
    "a copy read through a register": """
        { .shared .align 16 .u32 s[4] @ cta 0 = {1, 2, 3, 4}; .global .align 16 .u32 g[4] = {0, 0, 0, 0}; }
        P0 @ cta 0 { mov.u64 a, g; cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16; cp.async.bulk.commit_group;
          cp.async.bulk.wait_group 0; ld.global.u16 r1, [a]; ld.global.v2.u32 {r2,r3}, [a+8]; }
        exists (g[0] == 1)""",
    "addresses and size in registers": """
        { .shared .align 16 .u64 s[2] @ cta 0, cluster 0 = {0, 0}; .shared .align 16 .u64 t[2] @ cta 1, cluster 0 = {3,
          4}; .shared .b64 b @ cta 0, cluster 0 = mbarrier(0, 16); }
        P0 @ cta 1, cluster 0 { mov.u32 n, 16; mapa.shared::cluster.u64 d, s, 0; mapa.shared::cluster.u64 m, b, 0;
          mov.u64 e, t; cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [d], [e], n, [m];
          getctarank.u64 k, d; isspacep.shared::cluster p, d; isspacep.shared::cta q, d; }
        P1 @ cta 0, cluster 0 { mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; ld.shared.u32 r0, [s+8]; }
        exists (s[0] == 1)""",
    "an exited thread and a cluster barrier": """
        { .global .u32 x = 0; }
        P0 @ cta 0, cluster 0 { ld.global.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p exit; st.global.u32 [x], 2;
          barrier.cluster.arrive; barrier.cluster.wait; }
        P1 @ cta 1, cluster 0 { st.global.u32 [x], 1; barrier.cluster.arrive; barrier.cluster.wait; ld.global.u32 r0,
          [x]; }
        exists (x == 1)""",
    "pending counts incremented by copies": """
        { .shared .align 8 .u32 s[2] @ cta 0 = {0, 0}; .global .align 8 .u32 g[2] = {1, 2}; .shared .b64 b @ cta 0 =
          mbarrier(1); }
        P0 @ cta 0 { cp.async.ca.shared.global [s], [g], 4, 2; cp.async.mbarrier.arrive.shared::cta.b64 [b];
          cp.async.ca.shared.global [s+4], [g], 4; cp.async.mbarrier.arrive.shared::cta.b64 [b]; }
        P1 @ cta 0 { mbarrier.arrive.shared::cta.b64 t, [b]; mbarrier.try_wait.shared::cta.b64 p, [b], t; @!p exit;
          ld.shared.u32 r0, [s]; ld.shared.u32 r1, [s+4]; }
        exists (b == 1)""",
    "a copy that arrives on a new mbarrier": """
        { .shared .u32 s @ cta 0 = 0; .global .u32 g = 1; .shared .b64 b @ cta 0 = 0; }
        P0 @ cta 0 { cp.async.ca.shared.global [s], [g], 4; mbarrier.init.shared::cta.b64 [b], 1;
          cp.async.mbarrier.arrive.noinc.shared::cta.b64 [b]; mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0;
          ld.shared.u32 r0, [s]; }
        exists (b == 1)""",
    "copies in a loop": """
        { .shared .align 8 .u32 s[2] @ cta 0 = {0, 0}; .global .align 8 .u32 g[2] = {1, 2}; }
        P0 @ cta 0 { mov.u64 a, s; mov.u64 c, g; mov.u32 i, 0; L: cp.async.ca.shared.global [a], [c], 4;
          cp.async.commit_group; add.u64 a, a, 4; add.u64 c, c, 4; add.u32 i, i, 1; setp.lt.u32 p, i, 2; @p bra L;
          cp.async.wait_group 1; ld.shared.u32 r0, [s]; ld.shared.u32 r1, [s+4]; }
        exists (P0:r0 == 1)""",
    "no arrival expected any more": """
        { .shared .b64 b @ cta 0 = mbarrier(1); }
        P0 @ cta 0 { mbarrier.arrive_drop.shared::cta.b64 t, [b]; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], 4;
          mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [b], 4; mbarrier.test_wait.shared::cta.b64 p, [b], t; }
        exists (b == 1)""",
    "packed halves and their word": """
        { .global .b32 x = 0x3c003c00; .reg .b32 P0:r1 = 0x3c003c00; }
        P0 @ cta 0 { atom.relaxed.gpu.global.add.noftz.f16x2 r0, [x], r1; }
        P1 @ cta 0 { atom.relaxed.gpu.global.exch.b32 r0, [x], 0x40004000; }
        exists (x == 1)""",
    "grids and a host thread": """
        { .global .u32 x = 0; .global .u32 f = 0; }
        P0 @ cta 0, grid 0 { st.global.u32 [x], 1; st.release.sys.global.u32 [f], 1; }
        P1 @ cta 0, grid 1 { ld.global.u32 r0, [x]; ld.global.u32 r1, [f]; }
        P2 @ host { ld.acquire.sys.u32 r0, [f]; ld.u32 r1, [x]; }
        exists (x == 1)""",
    "an mbarrier initialised again": """
        { .shared .b64 b @ cta 0 = 0; .shared .u32 x @ cta 0 = 0; }
        P0 @ cta 0 { mbarrier.init.shared::cta.b64 [b], 1; mbarrier.arrive.shared::cta.b64 _, [b];
          mbarrier.inval.shared::cta.b64 [b]; mbarrier.init.shared::cta.b64 [b], 2; bar.sync 0; st.shared.u32 [x], 1;
          mbarrier.arrive.shared::cta.b64 t, [b]; }
        P1 @ cta 0 { bar.sync 0; mbarrier.arrive.shared::cta.b64 t, [b]; mbarrier.try_wait.shared::cta.b64 p, [b], t;
          ld.shared.u32 r0, [x]; }
        exists (b == 1)""",
    "an mbarrier made invalid": """
        { .shared .b64 b @ cta 0 = mbarrier(1); }
        P0 @ cta 0 { mbarrier.arrive.shared::cta.b64 t, [b]; mbarrier.test_wait.shared::cta.b64 p, [b], t;
          mbarrier.inval.shared::cta.b64 [b]; }
        exists (b == 1)""",
    "two phases by state": """
        { .shared .b64 b @ cta 0 = mbarrier(1); .shared .align 16 .u64 s[2] @ cta 0 = {0, 0}; .global .align 16 .u64
          g[2] = {1, 2}; }
        P0 @ cta 0 { mbarrier.arrive.expect_tx.shared::cta.b64 t, [b], 16;
          cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b]; W:
          mbarrier.try_wait.shared::cta.b64 p, [b], t; @!p bra W; ld.shared.u64 r0, [s];
          mbarrier.arrive.expect_tx.shared::cta.b64 t, [b], 16;
          cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];
          mbarrier.try_wait.shared::cta.b64 p, [b], t; ld.shared.u64 r1, [s+8]; }
        P1 @ cta 0 { mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; @!p exit; ld.shared.u64 r0, [s]; st.shared.u64
          [s], 9; }
        exists (b == 1)""",
    "the state of a phase long past": """
        { .shared .b64 b @ cta 0 = mbarrier(1); .shared .u32 x @ cta 0 = 0; }
        P0 @ cta 0 { st.shared.u32 [x], 1; mbarrier.arrive.shared::cta.b64 t, [b]; mbarrier.arrive.shared::cta.b64 u,
          [b]; mbarrier.test_wait.shared::cta.b64 p, [b], u; mbarrier.test_wait.shared::cta.b64 q, [b], t; }
        P1 @ cta 0 { mbarrier.test_wait.parity.shared::cta.b64 p, [b], 1; ld.shared.u32 r0, [x]; }
        exists (b == 1)""",
    "pending counts": """
        { .shared .b64 b @ cta 0 = mbarrier(3); }
        P0 @ cta 0 { mbarrier.arrive.shared::cta.b64 t, [b]; mbarrier.test_wait.shared::cta.b64 p, [b], t;
          mbarrier.pending_count.b64 n, t; }
        P1 @ cta 0 { mbarrier.arrive.noComplete.shared::cta.b64 t, [b], 1; mbarrier.arrive_drop.shared::cta.b64 u, [b];
          mbarrier.pending_count.b64 n, t; mbarrier.pending_count.b64 m, u; }
        exists (b == 1)""",
    "a pipeline of two rounds": """
        { .shared .b64 full @ cta 0 = mbarrier(1); .shared .b64 empty @ cta 0 = mbarrier(1); .shared .u32 s @ cta 0 = 0;
          }
        P0 @ cta 0 { mov.u32 i, 0; L: st.shared.u32 [s], i; mbarrier.arrive.shared::cta.b64 _, [full]; and.b32 q, i, 1;
          W: mbarrier.try_wait.parity.shared::cta.b64 p, [empty], q; @!p bra W; add.u32 i, i, 1; setp.lt.u32 p, i, 2; @p
          bra L; }
        P1 @ cta 0 { mov.u32 i, 0; mov.u32 acc, 0; L: and.b32 q, i, 1; W: mbarrier.try_wait.parity.shared::cta.b64 p,
          [full], q; @!p bra W; ld.shared.u32 v, [s]; shl.b32 acc, acc, 4; add.u32 acc, acc, v;
          mbarrier.arrive.shared::cta.b64 _, [empty]; add.u32 i, i, 1; setp.lt.u32 p, i, 2; @p bra L; }
        exists (P1:acc == 1)""",
    "predicated arrivals": """
        { .shared .b64 b @ cta 0 = mbarrier(2); .global .u32 x = 0; }
        P0 @ cta 0 { ld.global.u32 r0, [x]; setp.eq.u32 p, r0, 1; mov.b64 t, 5; @p mbarrier.arrive.shared::cta.b64 t,
          [b]; @!p mbarrier.arrive.shared::cta.b64 _, [b], 2; }
        P1 @ cta 0 { st.global.u32 [x], 1; mbarrier.arrive.shared::cta.b64 u, [b]; mbarrier.pending_count.b64 n, u; }
        exists (b == 1)""",
    "reductions of two sizes": """
        { .shared .align 16 .u64 s[2] @ cta 0 = {1, 1}; .shared .align 16 .u32 t[4] @ cta 0 = {1, 1, 1, 1}; .global
          .align 16 .u64 x[2] = {0, 0}; }
        P0 @ cta 0 { cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [x], [s], 16;
          cp.async.bulk.commit_group; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [x], [t], 16;
          cp.async.bulk.commit_group; }
        exists (x[0] == 1)""",
    "remote store of a vector read in another size": """
        { .shared .align 16 .u64 s[2] @ cta 0, cluster 0 = {0, 0}; .shared .b64 b @ cta 0, cluster 0 = mbarrier(0, 8); }
        P0 @ cta 1, cluster 0 { st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [s], {1, 2}, [b]; }
        P1 @ cta 0, cluster 0 { mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; @!p exit; ld.shared.u64 r0, [s];
          ld.shared.u16 r1, [s]; }
        exists (s[0] == 1)""",
    "remote store read in parts": """
        { .shared .align 16 .u64 s[2] @ cta 0, cluster 0 = {0, 0}; .shared .b64 b @ cta 0, cluster 0 = mbarrier(0, 8); }
        P0 @ cta 1, cluster 0 { st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u64 [s], 0x200000001, [b]; }
        P1 @ cta 0, cluster 0 { mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; ld.shared.u32 r0, [s]; ld.shared.u16
          r1, [s+4]; }
        exists (s[0] == 1)""",
    "a token in memory": """
        { .shared .b64 b @ cta 0 = mbarrier(2); .shared .b64 m @ cta 0 = 7; }
        P0 @ cta 0 { mbarrier.arrive.shared::cta.b64 t, [b]; st.shared.b64 [m], t; }
        P1 @ cta 0 { mbarrier.arrive.shared::cta.b64 t, [b]; ld.shared.b64 u, [m]; }
        exists (b == 1)""",
    "an initialisation that may not happen": """
        { .shared .b64 b @ cta 0 = 0; .shared .u32 f @ cta 0 = 0; }
        P0 @ cta 0 { ld.shared.u32 r0, [f]; setp.eq.u32 p, r0, 0; @p mbarrier.init.shared::cta.b64 [b], 1; bar.sync 0; }
        P1 @ cta 0 { st.shared.u32 [f], 1; bar.sync 0; mbarrier.arrive.shared::cta.b64 _, [b]; }
        exists (b == 1)""",
    "a vector divided by scalars": """
        { .global .align 8 .u32 x[2] = {0,0}; }
        P0 @ cta 0 { st.global.v2.u32 [x], {1,0x20003}; bar.sync 0; }
        P1 @ cta 0 { bar.sync 0; ld.global.u16 r0, [x+6]; ld.global.u64 r1, [x]; st.global.u16 [x+4], 9;
          ld.global.v2.u32 {r2, r3}, [x]; }
        exists (x[0] == 1)""",
    "a bulk copy read through an alias": """
        { .global .align 16 .u64 g[2] = {1, 2}; h @ generic aliases g; .shared .align 16 .u64 s[2] @ cta 0 = {3, 4}; }
        P0 @ cta 0 { cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16; cp.async.bulk.commit_group;
          cp.async.bulk.wait_group 0; fence.proxy.alias; ld.global.u64 r0, [h]; }
        P1 @ cta 0 { ld.global.u64 r0, [h+8]; }
        exists (g[0] == 1)""",
    "atomics of two sizes and a byte": """
        { .global .u64 x = 0; }
        P0 @ cta 0 { atom.relaxed.gpu.global.cas.b16 r0, [x+2], 0, 5; st.relaxed.gpu.global.u8 [x+3], 7; }
        P1 @ cta 1 { atom.relaxed.gpu.global.add.u32 r0, [x], 65536; }
        exists (x == 1)""",
    "a count that was read": """
        { .shared .b64 b @ cta 0 = mbarrier(3); .global .u32 x = 1; }
        P0 @ cta 0 { ld.global.u32 r0, [x]; mbarrier.arrive.shared::cta.b64 t, [b], r0; }
        P1 @ cta 0 { st.global.u32 [x], 2; mbarrier.arrive.shared::cta.b64 t, [b]; mbarrier.try_wait.shared::cta.b64 p,
          [b], t; }
        exists (b == 1)""",
    "a bulk copy of what an alias wrote": """
        { .global .align 16 .u64 g[2] = {1, 2}; h @ generic aliases g; .shared .align 16 .u64 s[2] @ cta 0 = {0, 0};
          .shared .b64 b @ cta 0 = mbarrier(0, 16); }
        P0 @ cta 0 { st.global.u64 [h], 9; fence.proxy.alias; fence.proxy.async;
          cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b]; }
        P1 @ cta 0 { mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; ld.shared.u64 r0, [s]; }
        exists (b == 1)""",
    "bytes that were read": """
        { .shared .b64 b @ cta 0 = mbarrier(1); .global .u32 x = 8; }
        P0 @ cta 0 { ld.global.u32 r0, [x]; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], r0;
          mbarrier.arrive.shared::cta.b64 _, [b]; }
        P1 @ cta 0 { st.global.u32 [x], 16; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [b], 16;
          mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; }
        exists (b == 1)""",
    "four grids": """
        { .global .u32 x = 0; .global .u32 y = 0; }
        P0 @ cta 0, grid 0 { st.global.u32 [x], 1; }
        P1 @ cta 0, grid 1 overlap { ld.global.u32 r0, [x]; st.global.u32 [y], 1; }
        P2 @ cta 0, grid 2 { ld.global.u32 r0, [x]; ld.global.u32 r1, [y]; }
        P3 @ cta 0, grid 3 overlap { ld.global.u32 r0, [x]; griddepcontrol.wait; ld.global.u32 r1, [y]; }
        exists (x == 1)""",
    "multicast": """
        { .shared .align 16 .u64 s[2] = {0, 0}; .global .align 16 .u64 g[2] = {1, 2}; .shared .b64 b = mbarrier(1); }
        P0 @ cta 0, cluster 0 { mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16;
          cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [g], 16, [b], 3;
          mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; ld.shared.u64 r0, [s]; }
        P1 @ cta 1, cluster 0 { mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16;
          mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; ld.shared.u64 r0, [s+8]; }
        exists (g[0] == 1)""",
    "a parity that was read": """
        { .shared .b64 b @ cta 0 = mbarrier(1); .global .u32 x = 0; }
        P0 @ cta 0 { ld.global.u32 r0, [x]; mbarrier.try_wait.parity.shared::cta.b64 p, [b], r0; selp.u32 r1, 5, 6, p;
          st.global.u32 [x], r1; }
        P1 @ cta 0 { st.global.u32 [x], 1; mbarrier.arrive.shared::cta.b64 _, [b]; }
        exists (b == 1)""",
    "a reduction by a value that was read": """
        { .shared .u32 s @ cta 0, cluster 0 = 0; .shared .b64 b @ cta 0, cluster 0 = mbarrier(0, 4); .global .u32 x = 0;
          }
        P0 @ cta 1, cluster 0 { ld.global.u32 r0, [x];
          red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [s], r0, [b]; }
        P1 @ cta 0, cluster 0 { ld.relaxed.cluster.shared.u32 r0, [s]; st.global.u32 [x], r0;
          atom.relaxed.cluster.shared.add.u32 r1, [s], 1; }
        exists (b == 1)""",
    "masks, an exited lane and a CTA barrier": """
        { .shared .u32 x @ cta 0 = 0; }
        P0 @ warp 0, cta 0 { st.shared.u32 [x], 1; bar.warp.sync 0x5; bar.sync 0; }
        P1 @ warp 0, cta 0 { ld.shared.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p exit; bar.sync 0; ld.shared.u32 r1, [x]; }
        P2 @ warp 0, cta 0 { bar.warp.sync 0x5; ld.shared.u32 r0, [x]; bar.sync 0; st.shared.u32 [x], 2; }
        exists (x == 1)""",
}
