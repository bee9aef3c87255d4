// Threads of a block meet at a cuda::barrier of the block before they read each other's words, twice.
// From: libcu++ (cuda::barrier<cuda::thread_scope_block>, arrive_and_wait()); simpleAWBarrier of the CUDA samples in style.
// Right: arrive_and_wait() releases what precedes it and acquires what the others wrote before theirs.
// ptxmm: kernel = "cuda_barrier_arrive_and_wait"
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["out"]
// ptxmm: [objects]
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 4 /\\ out[1] == 3)"
// ptxmm: races = "none"
#include <cuda/barrier>

#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void cuda_barrier_arrive_and_wait(unsigned *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ unsigned word[2];
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        init(&barrier, 2);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        word[warp] = warp + 1;
        barrier.arrive_and_wait();
        unsigned other = word[warp ^ 1];
        barrier.arrive_and_wait();
        word[warp] = other + 2;
        out[warp] = word[warp];
    }
}
