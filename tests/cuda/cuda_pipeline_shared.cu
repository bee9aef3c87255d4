// One producer warp and one consumer warp share a two-stage cuda::pipeline.
// From: the pipeline section of the CUDA C++ Programming Guide (cuda::pipeline_shared_state, roles by partition).
// Right: consumer_wait() acquires the stage, consumer_release() gives it back to producer_acquire().
// ptxmm: kernel = "cuda_pipeline_shared"
// ptxmm: block = 2
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 3, init = [5, 6, 7] }
// ptxmm: out = { type = "u32", count = 3 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 5 /\\ out[1] == 6 /\\ out[2] == 7)"
// ptxmm: races = "none"
#include <cooperative_groups.h>
#include <cuda/pipeline>

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

extern "C" __global__ void cuda_pipeline_shared(const unsigned *in, unsigned *out)
{
    __shared__ unsigned buffer[2];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    cg::thread_block block = cg::this_thread_block();
    bool producer = block.thread_rank() == 0;
    auto pipe = cuda::make_pipeline(block, &state, producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    for (int i = 0; i < 3; ++i) {
        if (producer) {
            pipe.producer_acquire();
            buffer[i % 2] = in[i];
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            out[i] = buffer[i % 2];
            pipe.consumer_release();
        }
    }
}
