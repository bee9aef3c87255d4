// Two-stage pipeline of cuda::pipeline<thread_scope_thread>: memcpy_async of the next tile while this one is used.
// From: the pipeline section of the CUDA C++ Programming Guide (cuda::make_pipeline, pipeline_consumer_wait_prior).
// Right: wait_prior completes the thread's own copy of the tile; __syncthreads() shows it to the other warp and protects the buffer.
// ptxmm: kernel = "cuda_pipeline"
// ptxmm: grid = 1
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = { type = "u32", count = 6, init = [10, 20, 11, 21, 12, 22] }
// ptxmm: out = { type = "u32", count = 6 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 20 /\\ out[1] == 10 /\\ out[2] == 21 /\\ out[3] == 11 /\\ out[4] == 22 /\\ out[5] == 12)"
// ptxmm: races = "none"
#include <cuda/pipeline>

constexpr int kTiles = 3;

extern "C" __global__ void cuda_pipeline(const unsigned *in, unsigned *out)
{
    __shared__ unsigned buffer[2][2];
    unsigned warp = threadIdx.x / 32;
    bool leader = threadIdx.x % 32 == 0;
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    if (leader)
        cuda::memcpy_async(&buffer[0][warp], &in[warp], sizeof(unsigned), pipe);
    pipe.producer_commit();
    for (int tile = 0; tile < kTiles; ++tile) {
        pipe.producer_acquire();
        if (leader && tile + 1 < kTiles)
            cuda::memcpy_async(&buffer[(tile + 1) % 2][warp], &in[2 * (tile + 1) + warp], sizeof(unsigned), pipe);
        pipe.producer_commit();
        cuda::pipeline_consumer_wait_prior<1>(pipe);
        __syncthreads();
        unsigned value = buffer[tile % 2][warp ^ 1];
        if (leader)
            out[2 * tile + warp] = value;
        __syncthreads();
        pipe.consumer_release();
    }
}
