// A poll that gives up: after so many rounds the kernel traps.
// From: spin loops with an abort counter.
// Right: the poll is an acquire.
// ptxmm: kernel = "wait_count_trap"
// ptxmm: grid = 2
// ptxmm: assume = ["no-timeout"]
// ptxmm: args = ["data", "flag", "out"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: flag = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"
#include <cuda/atomic>

extern "C" __global__ void wait_count_trap(unsigned *data, unsigned *flag, unsigned *out)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42;
        ready.store(1, cuda::memory_order_release);
    } else {
        unsigned rounds = 0;
        while (!ready.load(cuda::memory_order_acquire)) {
            if (++rounds == 1000000)
                __trap();
        }
        *out = *data;
    }
}
