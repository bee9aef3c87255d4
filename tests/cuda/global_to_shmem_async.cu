// Tiles come to shared memory by memcpy_async that arrives at a cuda::barrier.
// From: globalToShmemAsyncCopy of the CUDA samples, in style (AsyncCopyLargeChunkAWBarrier).
// Right: the copies complete before the phase that both warps wait for.
// ptxmm: kernel = "global_to_shmem_async"
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 8, init = [1, 2, 3, 4, 5, 6, 7, 8], align = 16 }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 5 /\\ out[1] == 1)"
// ptxmm: races = "none"
#include <cuda/barrier>

#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void global_to_shmem_async(const uint4 *in, unsigned *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ alignas(16) uint4 tile[2];
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        init(&barrier, 2);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        cuda::memcpy_async(&tile[warp], &in[warp], cuda::aligned_size_t<16>(16), barrier);
        barrier.arrive_and_wait();
        out[warp] = tile[warp ^ 1].x;
    }
}
