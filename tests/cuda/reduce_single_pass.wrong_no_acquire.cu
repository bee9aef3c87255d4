// Reduction of floating-point numbers in one pass: the block that takes the last ticket adds up what the others have stored.
// From: threadFenceReduction of the CUDA samples (cooperative groups, atomicInc).
// Wrong: as in the sample, nothing orders the ticket before the sums of the others: a relaxed atomic acquires nothing.
// ptxmm: kernel = "reduce_single_pass"
// ptxmm: grid = 2
// ptxmm: block = 64
// ptxmm: threads = "lane 0"
// ptxmm: args = ["in", "sums", 256]
// ptxmm: [objects]
// ptxmm: in = { type = "f32", count = 256, init = 1.0 }
// ptxmm: sums = { type = "f32", count = 2 }
// ptxmm: [check]
// ptxmm: races = "none"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ unsigned retired;

__device__ void reduce_block(volatile float *shared, float mine, const cg::thread_block &block)
{
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    unsigned rank = block.thread_rank(), lane = warp.thread_rank();
    shared[rank] = mine;
    warp.sync();
    for (unsigned i = 16; i > 0; i /= 2) {
        if (lane < i)
            shared[rank] = mine += shared[rank + i];
        warp.sync();
    }
    block.sync();
    if (rank == 0)
        shared[0] += shared[32];
    block.sync();
}

extern "C" __global__ void reduce_single_pass(const float *in, float *sums, unsigned count)
{
    __shared__ float shared[64];
    __shared__ bool last;
    cg::thread_block block = cg::this_thread_block();
    unsigned rank = block.thread_rank();
    float mine = 0;
    for (unsigned i = blockIdx.x * 64 + rank; i < count; i += 64 * gridDim.x)
        mine += in[i];
    reduce_block(shared, mine, block);
    if (rank == 0) {
        sums[blockIdx.x] = shared[0];
        __threadfence();
        last = atomicInc(&retired, gridDim.x) == gridDim.x - 1;
    }
    block.sync();
    if (last) {
        reduce_block(shared, rank < gridDim.x ? sums[rank] : 0, block);  // WRONG
        if (rank == 0)
            sums[0] = shared[0];
    }
}
