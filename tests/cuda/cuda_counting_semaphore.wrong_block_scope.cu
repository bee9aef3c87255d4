// A counting semaphore tells another CTA that an item is in its place.
// From: libcu++ (cuda::counting_semaphore).
// Wrong: the semaphore synchronizes threads of one block only.
// ptxmm: kernel = "cuda_counting_semaphore"
// ptxmm: grid = 2
// ptxmm: args = ["items", "slot", "out"]
// ptxmm: [objects]
// ptxmm: items = "cuda::counting_semaphore(0)"
// ptxmm: slot = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 7 /\\ items == 0)"
// ptxmm: races = "none"
#include <cuda/semaphore>

extern "C" __global__ void cuda_counting_semaphore(cuda::counting_semaphore<cuda::thread_scope_block> *items, unsigned *slot,
                                                   unsigned *out)
{
    if (blockIdx.x == 0) {
        *slot = 7;
        items->release();  // WRONG
    } else {
        items->acquire();
        *out = *slot;
    }
}
