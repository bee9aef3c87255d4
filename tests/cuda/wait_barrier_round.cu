// All threads of a CTA poll a flag, and stay together by a barrier in each round.
// From: spin loops with __syncthreads_or in collective kernels.
// Right: every thread acquires the flag itself.
// ptxmm: kernel = "wait_barrier_round"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: threads = ["cta 0 thread 0", "cta 1 lane 0"]
// ptxmm: args = ["data", "flag", "out"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: flag = "u32"
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 42 /\\ out[1] == 42)"
// ptxmm: races = "none"
#include <cuda/atomic>

extern "C" __global__ void wait_barrier_round(unsigned *data, unsigned *flag, unsigned *out)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            *data = 42;
            ready.store(1, cuda::memory_order_release);
        }
    } else {
        while (__syncthreads_or(ready.load(cuda::memory_order_acquire) == 0)) { }
        if (threadIdx.x % 32 == 0)
            out[threadIdx.x / 32] = *data;
    }
}
