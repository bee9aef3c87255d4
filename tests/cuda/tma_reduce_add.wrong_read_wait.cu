// Split-K by TMA reduction: each CTA adds its partial tile to global memory with cp.reduce.async.bulk; the last one to finish reads the sum.
// From: stream-K and split-K kernels with TMA reduce-add (CUTLASS SM90_TMA_REDUCE_ADD), counter as in the threadFenceReduction sample.
// Wrong: wait_group.read does not complete the reduction: the fence and the counter may be ahead of it.
// ptxmm: kernel = "tma_reduce_add"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "sum", "done", "out"]
// ptxmm: [objects]
// ptxmm: partial = { init = 0 }
// ptxmm: in = { type = "u32", count = 2, init = [3, 4] }
// ptxmm: sum = { type = "u32", count = 4 }
// ptxmm: done = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 7)"
// ptxmm: races = "none"
#include <cstdint>

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

__device__ __forceinline__ void bulk_add(unsigned *to, const unsigned *from, unsigned bytes)
{
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;"
                 : : "l"(to), "r"(shared_address(from)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" : : : "memory");
}

extern "C" __global__ void tma_reduce_add(const unsigned *in, unsigned *sum, unsigned *done, unsigned *out)
{
    __shared__ alignas(16) unsigned partial[4];
    if (threadIdx.x == 0) {
        partial[0] = in[blockIdx.x];
        partial[1] = partial[2] = partial[3] = 0;
        fence_async();
        bulk_add(sum, partial, sizeof partial);
        asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory");
        __threadfence();
        if (atomicAdd(done, 1u) == gridDim.x - 1) {
            __threadfence();
            *out = sum[0];  // WRONG
        }
    }
}
