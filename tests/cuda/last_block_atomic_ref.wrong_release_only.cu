// Reduction in one launch with the counter as cuda::atomic_ref: fetch_add(acq_rel).
// From: the last-block reductions of CUB-style libraries, written with libcu++.
// Wrong: memory_order_release: the last CTA releases its own sum but acquires none.
//
// ptxmm: kernel = "reduce"
// ptxmm: grid = 3
// ptxmm: args = ["in", "partial", "count", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 3, init = [1, 2, 4] }
// ptxmm: partial = { type = "u32", count = 3 }
// ptxmm: count = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 7)"
// ptxmm: races = "none"

#include <cuda/atomic>

extern "C" __global__ void reduce(const unsigned *in, unsigned *partial, unsigned *count, unsigned *out)
{
    partial[blockIdx.x] = in[blockIdx.x];
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrivals(*count);
    if (arrivals.fetch_add(1, cuda::memory_order_release) == gridDim.x - 1) {
        unsigned sum = 0;
#pragma unroll 1
        for (unsigned block = 0; block < gridDim.x; block++)
            sum += partial[block];  // WRONG
        *out = sum;
    }
}
