// Copy of a tile through shared memory: TMA load, wait, TMA store, with the wrappers of cuda::ptx (libcu++).
// From: NVIDIA/Fuser PR 3136 and 3146 (a proxy fence between a TMA load and a TMA store is needless once the mbarrier has been waited for).
// Wrong: the store is issued without waiting for the load: copies of one thread are not ordered among themselves.
// ptxmm: kernel = "tma_copy"
// ptxmm: grid = 1
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 4, init = [10, 11, 12, 13] }
// ptxmm: out = { type = "u32", count = 4 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[3] == 13)"
// ptxmm: races = "none"
#include <cuda/ptx>

namespace ptx = cuda::ptx;

extern "C" __global__ void tma_copy(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned tile[4];
    __shared__ cuda::std::uint64_t full;
    if (threadIdx.x != 0)
        return;
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, sizeof tile, &full);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, sizeof tile);  // WRONG
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
