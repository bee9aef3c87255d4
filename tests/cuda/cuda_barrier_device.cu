// Two CTAs meet at a cuda::barrier of the device in global memory.
// From: libcu++ (cuda::barrier<cuda::thread_scope_device>, initialized by the host).
// Right: arrive_and_wait() releases and acquires at the scope of the device.
// ptxmm: kernel = "cuda_barrier_device"
// ptxmm: grid = 2
// ptxmm: args = ["barrier", "word", "out"]
// ptxmm: [objects]
// ptxmm: barrier = "cuda::barrier(2)"
// ptxmm: word = { type = "u32", count = 2 }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 2 /\\ out[1] == 1)"
// ptxmm: races = "none"
#include <cuda/barrier>

extern "C" __global__ void cuda_barrier_device(cuda::barrier<cuda::thread_scope_device> *barrier, unsigned *word, unsigned *out)
{
    unsigned rank = blockIdx.x;
    word[rank] = rank + 1;
    barrier->arrive_and_wait();
    out[rank] = word[rank ^ 1];
}
