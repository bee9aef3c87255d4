// Bulk copy on a cuda::barrier: the leader arrives with the number of bytes, the other warp arrives as usual, both wait for the data.
// From: the TMA section of the CUDA C++ Programming Guide (cuda::device::memcpy_async_tx, cuda::device::barrier_arrive_tx).
// Wrong: the leader arrives without expecting the bytes: the phase may complete before the copy.
// ptxmm: kernel = "barrier_tx"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 4, init = [10, 11, 12, 13] }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[1] == 11)"
// ptxmm: races = "none"
#include <cuda/barrier>
#include <cuda/ptx>

#pragma nv_diag_suppress static_var_with_dynamic_init

using block_barrier = cuda::barrier<cuda::thread_scope_block>;

__device__ __forceinline__ void wait(block_barrier &barrier, block_barrier::arrival_token token)
{
    while (!cuda::ptx::mbarrier_try_wait(cuda::device::barrier_native_handle(barrier), token)) { }
}

extern "C" __global__ void barrier_tx(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned tile[4];
    __shared__ block_barrier barrier;
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        init(&barrier, 2);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        if (warp == 0) {
            cuda::device::memcpy_async_tx(tile, in, cuda::aligned_size_t<16>(sizeof tile), barrier);
            wait(barrier, barrier.arrive());
        } else {
            wait(barrier, barrier.arrive());
        }
        out[warp] = tile[warp];  // WRONG
    }
}
