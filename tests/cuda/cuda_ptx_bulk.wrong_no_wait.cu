// One thread loads a tile with a bulk copy and an mbarrier of cuda::ptx, and both warps wait for it by parity.
// From: the TMA section of the CUDA C++ Programming Guide (cuda::ptx::cp_async_bulk, mbarrier_try_wait_parity).
// Right: the fence makes the initialized mbarrier visible to the async proxy; the bytes complete the phase.
// ptxmm: kernel = "cuda_ptx_bulk"
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 4, init = [1, 2, 3, 4], align = 16 }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 1 /\\ out[1] == 2)"
// ptxmm: races = "none"
#include <cuda/ptx>

namespace ptx = cuda::ptx;

extern "C" __global__ void cuda_ptx_bulk(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned tile[4];
    __shared__ cuda::std::uint64_t barrier;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 1);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, sizeof(tile), &barrier);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, sizeof(tile));
    }
    if (threadIdx.x % 32 == 0)
        out[threadIdx.x / 32] = tile[threadIdx.x / 32];  // WRONG
}
