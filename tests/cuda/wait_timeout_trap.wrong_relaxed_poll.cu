// A poll that gives up: after so many cycles the kernel traps.
// From: barriers of communication libraries with a timeout on clock64().
// Right: the poll is an acquire.
// ptxmm: kernel = "wait_timeout_trap"
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
#include <cstdio>
#include <cuda/atomic>

extern "C" __global__ void wait_timeout_trap(unsigned *data, unsigned *flag, unsigned *out)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42;
        ready.store(1, cuda::memory_order_release);
    } else {
        long long start = clock64();
        while (!ready.load(cuda::memory_order_relaxed)) {
            if (clock64() - start > 2000000000) {
                printf("timeout: block %d\n", blockIdx.x);
                __trap();
            }
        }
        *out = *data;  // WRONG
    }
}
