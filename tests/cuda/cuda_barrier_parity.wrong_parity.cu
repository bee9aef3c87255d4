// Double buffer of one producer and one consumer over a pair of cuda::barrier, waited for by parity.
// From: libcu++ (cuda::barrier::wait_parity, arrive).
// Right: the consumer waits for the phase that the producer's arrival ends, and the producer for that of the consumer.
// ptxmm: kernel = "cuda_barrier_parity"
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["out"]
// ptxmm: [objects]
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 1 /\\ out[1] == 2)"
// ptxmm: races = "none"
#include <cuda/barrier>

#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void cuda_barrier_parity(unsigned *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> full, empty;
    __shared__ unsigned word;
    if (threadIdx.x == 0) {
        init(&full, 1);
        init(&empty, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < 2; ++i) {
            empty.wait_parity((i & 1) ^ 1);
            word = i + 1;
            (void)full.arrive();
        }
    } else if (threadIdx.x == 32) {
        for (unsigned i = 0; i < 2; ++i) {
            full.wait_parity((i & 1) ^ 1);
            out[i] = word;  // WRONG
            (void)empty.arrive();
        }
    }
}
