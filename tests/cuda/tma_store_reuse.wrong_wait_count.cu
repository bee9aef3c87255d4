// TMA store from one staging buffer that is used again for the next tile: the copy must have read it before it is overwritten.
// From: CUTLASS SM90 epilogue (tma_store_wait<N> = wait_group.read) and NVIDIA/Fuser PR 5448 (the wait was missing in the loop).
// Wrong: wait_group.read 1 leaves the newest group pending: it is the one that reads the buffer (DeepEP#657).
// ptxmm: kernel = "tma_store_reuse"
// ptxmm: grid = 1
// ptxmm: block = 32
// ptxmm: threads = "lane 0-1"
// ptxmm: args = ["in", "tiles"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 2, init = [10, 11] }
// ptxmm: tiles = { type = "u32", count = 8 }
// ptxmm: [check]
// ptxmm: condition = "forall (tiles[0] == 10 /\\ tiles[4] == 11)"
// ptxmm: races = "none"
#include <cstdint>

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void bulk_store(void *to, const void *from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 : : "l"(to), "r"(shared_address(from)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" : : : "memory");
}

__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

extern "C" __global__ void tma_store_reuse(const unsigned *in, unsigned *tiles)
{
    __shared__ alignas(16) unsigned staging[4];
    for (int tile = 0; tile < 2; ++tile) {
        if (threadIdx.x == 0 && tile > 0)
            asm volatile("cp.async.bulk.wait_group.read 1;" : : : "memory");
        __syncwarp();
        if (threadIdx.x < 4)
            staging[threadIdx.x] = in[tile];  // WRONG
        fence_async();
        __syncwarp();
        if (threadIdx.x == 0)
            bulk_store(tiles + 4 * tile, staging, sizeof staging);
    }
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group 0;" : : : "memory");
}
