// A maximum by compare-and-swap: each CTA tries again with what the last attempt has found.
// From: atomicMax of types that have none, as in the CUDA C++ Programming Guide, with cuda::atomic_ref.
// Wrong: between the load and the store another CTA may have stored a larger value.
// ptxmm: kernel = "atomic_max_cas"
// ptxmm: grid = 3
// ptxmm: args = ["in", "most"]
// ptxmm: [objects]
// ptxmm: in = { type = "f32", count = 3, init = [2.0, 5.0, 3.0] }
// ptxmm: most = "f32"
// ptxmm: [check]
// ptxmm: condition = "forall (most == 5.0)"
// ptxmm: races = "none"
#include <cuda/atomic>

extern "C" __global__ void atomic_max_cas(const float *in, float *most)
{
    cuda::atomic_ref<float, cuda::thread_scope_device> word(*most);
    float mine = in[blockIdx.x], seen = word.load(cuda::memory_order_relaxed);
    if (seen < mine)
        word.store(mine, cuda::memory_order_relaxed);  // WRONG
}
