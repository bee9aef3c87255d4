// A few polls at once, then polls with a growing sleep between them.
// From: libcu++ waits and lock implementations with backoff.
// Right: both polls are acquires.
// ptxmm: kernel = "wait_backoff"
// ptxmm: grid = 2
// ptxmm: args = ["data", "flag", "out"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: flag = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"
#include <cuda/atomic>

__device__ __forceinline__ void wait_for(cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready)
{
    for (int i = 0; i < 64; ++i)
        if (ready.load(cuda::memory_order_relaxed))
            return;
    unsigned sleep = 8;
    while (!ready.load(cuda::memory_order_acquire)) {
        __nanosleep(sleep);
        if (sleep < 256)
            sleep *= 2;
    }
}

extern "C" __global__ void wait_backoff(unsigned *data, unsigned *flag, unsigned *out)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42;
        ready.store(1, cuda::memory_order_release);
    } else {
        wait_for(ready);
        *out = *data;  // WRONG
    }
}
