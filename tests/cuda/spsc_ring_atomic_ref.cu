// Single-producer single-consumer mailbox of one slot with cuda::atomic_ref at device scope.
// From: the examples of libcu++ (cuda::atomic_ref over plain memory, https://nvidia.github.io/cccl/libcudacxx/).
// Right: release store and acquire load of `full` at device scope; the same for `full = 0` before the slot is written again.
// ptxmm: kernel = "spsc_mailbox"
// ptxmm: grid = 2
// ptxmm: block = 32
// ptxmm: threads = "lane 0"
// ptxmm: args = ["slot", "full", "out"]
// ptxmm: [objects]
// ptxmm: slot = "u32"
// ptxmm: full = "u32"
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 10 /\\ out[1] == 11)"
// ptxmm: races = "none"
#include <cuda/atomic>

using flag_ref = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

extern "C" __global__ void spsc_mailbox(unsigned *slot, unsigned *full, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    flag_ref flag(*full);
    if (blockIdx.x == 0) {
        for (unsigned i = 0; i < 2; ++i) {
            while (flag.load(cuda::memory_order_acquire) != 0) { }
            *slot = 10 + i;
            flag.store(1, cuda::memory_order_release);
        }
    } else {
        for (unsigned i = 0; i < 2; ++i) {
            while (flag.load(cuda::memory_order_acquire) != 1) { }
            out[i] = *slot;
            flag.store(0, cuda::memory_order_release);
        }
    }
}
