// The host writes a job and rings a doorbell in pinned memory; a persistent kernel polls it with cuda::atomic_ref of
// system scope.
// From: persistent kernels and MSCCL++/NVSHMEM command queues.
// Right: the acquire load has .sys scope and so has the release of the host: they synchronize.
//
// ptxmm: kernel = "worker"
// ptxmm: grid = 1
// ptxmm: args = ["doorbell", "job", "out"]
// ptxmm: [objects]
// ptxmm: doorbell = "u32"
// ptxmm: job = "u32"
// ptxmm: out = "u32"
// ptxmm: [host]
// ptxmm: H0 = "st.u32 [job], 42; st.release.sys.u32 [doorbell], 1;"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
// ptxmm: races = "none"

#include <cuda/atomic>

// A persistent kernel waits for work that the host puts into pinned memory.
extern "C" __global__ void worker(unsigned *doorbell, unsigned *job, unsigned *out)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_system> bell(*doorbell);
    while (bell.load(cuda::memory_order_acquire) == 0) {
    }
    *out = *job;
}
