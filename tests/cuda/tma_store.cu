// TMA store epilogue: two warps write a tile to shared memory, one thread stores it by cp.async.bulk and then posts a flag for another CTA.
// From: CUTLASS SM90 epilogue (tma_store_fence, tma_store_arrive, tma_store_wait) and triton PR 10415 (flag after desc.store).
// Right: write; fence.proxy.async; __syncthreads() orders the tile before the copy; wait_group 0 completes its writes before the release.
// ptxmm: kernel = "tma_store"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "tile", "flag", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 4, init = [10, 11, 12, 13] }
// ptxmm: tile = { type = "u32", count = 4 }
// ptxmm: flag = "u32"
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[1] == 12)"
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

__device__ __forceinline__ void store_release(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ unsigned load_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

extern "C" __global__ void tma_store(const unsigned *in, unsigned *tile, unsigned *flag, unsigned *out)
{
    __shared__ alignas(16) unsigned staging[4];
    unsigned warp = threadIdx.x / 32;
    bool leader = threadIdx.x % 32 == 0;
    if (blockIdx.x == 0) {
        if (leader) {
            staging[2 * warp] = in[2 * warp];
            staging[2 * warp + 1] = in[2 * warp + 1];
            fence_async();
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            bulk_store(tile, staging, sizeof staging);
            asm volatile("cp.async.bulk.wait_group 0;" : : : "memory");
            store_release(flag, 1);
        }
    } else if (leader) {
        while (load_acquire(flag) == 0) { }
        out[warp] = tile[2 * warp];
    }
}
