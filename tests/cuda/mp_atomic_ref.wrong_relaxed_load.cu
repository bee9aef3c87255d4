// Message passing by cuda::atomic_ref of device scope: store(release), load(acquire).
// From: libcu++ (CCCL), cuda::atomic_ref.
// Wrong: memory_order_relaxed in the poll: no acquire pattern.
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
        flag_ref(*flag).store(1, cuda::memory_order_release);
    } else {
        while (flag_ref(*flag).load(cuda::memory_order_relaxed) == 0) {
        }
        *out = *data;  // WRONG
    }
}
