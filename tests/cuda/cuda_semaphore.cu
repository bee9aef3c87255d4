// A binary semaphore of the device guards a counter of three CTAs.
// From: libcu++ (cuda::binary_semaphore<cuda::thread_scope_device>).
// Right: release() releases the counter to the acquire() that takes the semaphore.
// ptxmm: kernel = "cuda_semaphore"
// ptxmm: grid = 3
// ptxmm: args = ["semaphore", "counter"]
// ptxmm: [objects]
// ptxmm: semaphore = "cuda::binary_semaphore(1)"
// ptxmm: counter = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (counter == 3)"
// ptxmm: races = "none"
#include <cuda/semaphore>

extern "C" __global__ void cuda_semaphore(cuda::binary_semaphore<cuda::thread_scope_device> *semaphore, unsigned *counter)
{
    semaphore->acquire();
    *counter += 1;
    semaphore->release();
}
