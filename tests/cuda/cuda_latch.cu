// Start-up latch: one warp loads a table into shared memory and counts down, the other one waits for it.
// From: libcu++ (cuda::latch<cuda::thread_scope_block>).
// Right: count_down() releases the table, try_wait() acquires it when it returns true.
// ptxmm: kernel = "cuda_latch"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", init = 7 }
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 7)"
// ptxmm: races = "none"
#include <cuda/latch>
#include <new>

#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void cuda_latch(const unsigned *in, unsigned *out)
{
    __shared__ alignas(8) unsigned char storage[sizeof(cuda::latch<cuda::thread_scope_block>)];
    __shared__ unsigned table;
    auto *ready = reinterpret_cast<cuda::latch<cuda::thread_scope_block> *>(storage);
    if (threadIdx.x == 0)
        new (ready) cuda::latch<cuda::thread_scope_block>(1);
    __syncthreads();
    if (threadIdx.x == 0) {
        table = *in;
        ready->count_down();
    } else if (threadIdx.x == 32) {
        while (!ready->try_wait()) { }
        *out = table;
    }
}
