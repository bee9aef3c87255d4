// One CTA waits for a flag of another with atomic_ref::wait, which the other sets and notifies.
// From: libcu++ (cuda::atomic_ref::wait, notify_one).
// Right: the release store is acquired by the load inside wait().
// ptxmm: kernel = "atomic_ref_wait"
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

extern "C" __global__ void atomic_ref_wait(unsigned *data, unsigned *flag, unsigned *out)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42;
        ready.store(1, cuda::memory_order_relaxed);
        ready.notify_one();
    } else {
        ready.wait(0, cuda::memory_order_acquire);
        *out = *data;  // WRONG
    }
}
