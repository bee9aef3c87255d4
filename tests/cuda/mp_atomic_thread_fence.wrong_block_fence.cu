// Message passing by a relaxed cuda::atomic_ref and cuda::atomic_thread_fence of device scope.
// From: libcu++ (CCCL), cuda::atomic_thread_fence.
// Wrong: the fence of the consumer has block scope: it is not morally strong with that of the other CTA.
//
// ptxmm: kernel = "mp"
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

using flag_ref = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

extern "C" __global__ void mp(unsigned *data, unsigned *flag, unsigned *out)
{
    if (blockIdx.x == 0) {
        *data = 42;
        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
        flag_ref(*flag).store(1, cuda::memory_order_relaxed);
    } else {
        while (flag_ref(*flag).load(cuda::memory_order_relaxed) == 0) {
        }
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_block);
        *out = *data;  // WRONG
    }
}
