// One asynchronous copy into shared memory with the C interface of <cuda_pipeline.h>, read by the neighbouring warp.
// From: the pipeline primitives section of the CUDA C++ Programming Guide.
// Wrong: no __syncthreads(): only the own copies of the thread are complete, not those of the other warp.
// ptxmm: kernel = "pipeline_primitives"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 64, init = 7 }
// ptxmm: out = { type = "u32", count = 64 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 7 /\\ out[32] == 7)"
// ptxmm: races = "none"
#include <cuda_pipeline.h>

extern "C" __global__ void pipeline_primitives(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[64];
    unsigned thread = threadIdx.x;
    __pipeline_memcpy_async(&tile[thread], &in[thread], sizeof(unsigned));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[thread] = tile[thread ^ 32];  // WRONG
}
