// Two CTAs count down a latch in global memory; the third waits for both and adds their words.
// From: libcu++ (cuda::latch<cuda::thread_scope_device>, wait()).
// Right: count_down() releases, wait() acquires when the counter is 0.
// ptxmm: kernel = "cuda_latch_device"
// ptxmm: grid = 3
// ptxmm: args = ["latch", "word", "out"]
// ptxmm: [objects]
// ptxmm: latch = "cuda::latch(2)"
// ptxmm: word = { type = "u32", count = 2 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 3)"
// ptxmm: races = "none"
#include <cuda/latch>

extern "C" __global__ void cuda_latch_device(cuda::latch<cuda::thread_scope_device> *latch, unsigned *word, unsigned *out)
{
    if (blockIdx.x < 2) {
        word[blockIdx.x] = blockIdx.x + 1;
        latch->count_down();
    } else {
        latch->wait();
        *out = word[0] + word[1];
    }
}
