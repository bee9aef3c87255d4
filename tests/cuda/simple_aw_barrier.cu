// Dot product with a cuda::barrier of the block: the first warp adds the parts of the warps after the barrier.
// From: simpleAWBarrier of the CUDA samples, in style.
// Right: the other warps arrive, the first arrives and waits.
// ptxmm: kernel = "simple_aw_barrier"
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["a", "b", "out"]
// ptxmm: [objects]
// ptxmm: a = { type = "u32", count = 2, init = [2, 3] }
// ptxmm: b = { type = "u32", count = 2, init = [4, 5] }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 23)"
// ptxmm: races = "none"
#include <cuda/barrier>

#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void simple_aw_barrier(const unsigned *a, const unsigned *b, unsigned *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ unsigned part[2];
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        init(&barrier, 2);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        part[warp] = a[warp] * b[warp];
        auto token = barrier.arrive();
        if (warp == 0) {
            barrier.wait(std::move(token));
            *out = part[0] + part[1];
        }
    }
}
