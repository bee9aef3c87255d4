// Split arrive/wait with cuda::barrier: each warp's leader writes its word, arrives, does other work, and waits before it reads the other word.
// From: the asynchronous barrier section of the CUDA C++ Programming Guide and libcu++ (cuda::barrier<cuda::thread_scope_block>).
// Wrong: the word is written after the arrive: arrive() releases only what precedes it.
// ptxmm: kernel = "cuda_barrier_split"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 2, init = [3, 4] }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 4 /\\ out[1] == 3)"
// ptxmm: races = "none"
#include <cuda/barrier>
#include <cuda/ptx>

#pragma nv_diag_suppress static_var_with_dynamic_init

using block_barrier = cuda::barrier<cuda::thread_scope_block>;

__device__ __forceinline__ void wait(block_barrier &barrier, block_barrier::arrival_token token)
{
    while (!cuda::ptx::mbarrier_try_wait(cuda::device::barrier_native_handle(barrier), token)) { }
}

extern "C" __global__ void cuda_barrier_split(const unsigned *in, unsigned *out)
{
    __shared__ block_barrier barrier;
    __shared__ unsigned word[2];
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        init(&barrier, 2);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        auto token = barrier.arrive();
        word[warp] = in[warp];
        unsigned *mine = out + warp;          // work that needs no data of the other warp
        wait(barrier, token);
        *mine = word[warp ^ 1];  // WRONG
    }
}
